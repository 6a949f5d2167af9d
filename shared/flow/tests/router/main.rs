//! The router of spec 002 §3: every role and rule by itself, against a second model of the semantics on random graphs, and
//! with many tasks.

#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "../support/graphs.rs"]
mod graphs;

mod differential;
mod drive;
mod large_splits;
mod naive;
mod roles;
mod rules;
mod script;
