//! The attempts of a hostile command, as root and as another user: behind the inner wall alone, with every version of Landlock that this
//! kernel has, and in namespaces of its own (`escapes`).
//!
//! The same attempts are made without confinement, too, and succeed there: so each test fails when its wall is taken out.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "tests")]

mod cage;
mod calls;
mod escapes;
mod files;
mod kept;
mod leftovers;
mod other_tenant;
mod processes;
