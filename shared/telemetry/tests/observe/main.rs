//! Records of runs on the real runtime (spec 002 §6, §10.2, §10.4, §10.7): histories, traces, differences, metadata, metrics,
//! observers; and the keys of manifests that act on tasks.
#![expect(clippy::unwrap_used, reason = "tests")]

// The tests of the flows name their crate so, and share their graphs with these.
extern crate flow as buildscale_flow;

mod flow_cache;
mod flows;
mod follows;
#[path = "../../../flow/tests/support/graphs.rs"]
mod graphs;
mod history;
mod manifest_keys;
mod metadata;
mod observers;
mod providers;
mod rig;
mod runs;
