//! The behaviour, the refusals and the messages of each tool.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod ask;
mod common;
mod confine;
mod exec;
mod keep;
mod organizer;
mod read;
mod registry;
mod relate;
mod search;
mod write;
