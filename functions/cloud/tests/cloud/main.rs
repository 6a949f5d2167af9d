//! The function binaries as they are deployed, for what only they have: a price, a deadline, services that fail. What people do with
//! them is in the suite of `tests/journeys`, in every world.
#![expect(clippy::unwrap_used, reason = "tests")]

mod calls;
mod chains;
mod deaths;
mod faults;
mod operated;
mod origin;
mod sandbox;
mod sweeps;
mod world;
