//! The promises of a workspace, over stores in memory and a real disk.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod chats;
mod common;
mod damage;
mod files;
mod hydrate;
mod large;
mod mirror;
mod model;
mod repair;
mod sandbox_mirror;
