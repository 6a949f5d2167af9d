//! Sandboxes on ECS: one per workspace, with any messages lost; a reason for everything; and nothing is left behind.
#![expect(clippy::unwrap_used, reason = "tests")]

mod faults;
mod life;
mod shapes;
mod sweeps;
mod world;
