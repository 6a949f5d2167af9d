//! The command line as people and scripts use it: the real binary, alone and against a hub that is the same binary.
#![expect(clippy::unwrap_used, reason = "tests")]

mod calendar;
mod configuration;
mod dead_letters;
mod end_to_end;
mod everyday;
mod export_import;
mod folder;
mod fsck;
mod human_steps;
mod issuer;
mod login;
mod own_yes;
mod people;
mod sandbox;
mod schedule;
mod support;
mod tasks;
mod threads;
mod webhooks;
