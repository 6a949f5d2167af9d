//! The door as a client meets it: requests through the router, over embedded adapters. Every answer is held against the
//! document that describes it.
#![expect(clippy::unwrap_used, reason = "tests")]

mod by_path;
mod chats;
mod contexts;
mod dead_letters;
mod document;
mod doors;
mod errors;
mod files;
mod flows;
mod headers;
mod health;
mod hub;
mod idempotency;
mod isolation;
mod labels;
mod langgraph;
mod malformed;
mod mcp_servers;
mod openapi;
mod page;
mod people;
mod relations;
mod sandbox;
mod schedules;
mod search;
mod shapes;
mod streams_elsewhere;
mod support;
mod tasks;
mod webhooks;
