//! What goes wrong around the functions: calls that fail, workers that die at any of them, messages that come twice, and workers of
//! two versions at once. After each of it the simulator's invariants hold, and whoever watched saw everything once and in order.
#![expect(clippy::unwrap_used, reason = "tests")]

mod bus;
mod check;
mod checkpoints;
mod deaths;
mod deliveries;
mod ecs;
mod lane;
mod machines;
mod services;
mod storms;
mod versions;
mod wishes;
