//! The function binaries as they are deployed, for behaviour that only they have: a price, a deadline, services that fail. The suite of
//! `tests/journeys` covers the use by people, in every world.
#![expect(clippy::unwrap_used, reason = "tests")]

mod agents;
mod bus_failures;
mod calls;
mod chains;
mod counted;
mod deaths;
mod faults;
mod http_events;
mod invocations;
mod operations;
mod origin;
mod sandbox;
mod sweeps;
mod timer;
mod tool_servers;
mod world;
