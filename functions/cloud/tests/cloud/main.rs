//! The function binaries as they are deployed, on emulators of the real protocols.
#![expect(clippy::unwrap_used, reason = "tests")]

mod calls;
mod client;
mod deaths;
mod faults;
mod journey;
mod world;
