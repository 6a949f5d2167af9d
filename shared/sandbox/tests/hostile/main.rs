//! What a hostile command tries, as root and as somebody else: behind the inner wall alone, with every version of Landlock that this
//! kernel has, and in a world of its own (`escapes`).
//!
//! The same attempts are made without confinement, too, where they succeed: so each test fails when what it is about is taken out.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "tests")]

mod cage;
mod calls;
mod escapes;
mod files;
mod leftovers;
mod processes;
mod somebody_else;
