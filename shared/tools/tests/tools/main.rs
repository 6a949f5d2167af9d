//! What each tool does, what it refuses, and how it says so.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod ask;
mod common;
mod confine;
mod exec;
mod read;
mod registry;
mod search;
mod write;
