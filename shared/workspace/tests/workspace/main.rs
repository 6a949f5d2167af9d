//! The promises of a workspace, over stores in memory and a real disk.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod access;
mod chats;
mod common;
mod crowd;
mod damage;
mod deaths;
mod export_import;
mod export_import_git;
mod files;
mod fsck;
mod handoffs;
mod hydrate;
mod kept_index;
mod known_damage;
mod large;
mod mirror;
mod model;
mod processes;
mod real;
mod relations;
mod remains;
mod repair;
mod rewind;
mod sandbox_mirror;
