//! The protocols: their messages, and recorded logs as each renders them.
#![expect(clippy::unwrap_used, reason = "tests")]

mod acp;
mod clients;
mod each;
mod formats;
mod hub;
mod logs;
mod mcp;
mod pauses;
mod planner;
mod threads;
