//! The promises of a workspace, over stores in memory and a real disk.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod access;
mod chats;
mod common;
mod damage;
mod files;
mod hydrate;
mod large;
mod mirror;
mod model;
mod relations;
mod repair;
mod rewind;
mod sandbox_mirror;
