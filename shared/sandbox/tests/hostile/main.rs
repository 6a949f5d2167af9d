//! What a hostile command tries, with every version of Landlock that this kernel has, as root and as somebody else.
//!
//! The same attempts are made without confinement, too, where they succeed: so each test fails when what it is about is taken out.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "tests")]

mod cage;
mod calls;
mod files;
mod leftovers;
mod processes;
mod somebody_else;
