//! Machines on which commands run beside a workspace's files (spec 000 §7; spec 001 §5), in both worlds.
//!
//! ```text
//!   Local   (the hub) ─────────────────────────┐
//!                                               ├── Commands ── a world of its own ── an inner wall ── the command
//!   Remote ── HTTP (wire) ── functions/sandbox ─┘               (where the container is not the world already)
//!                              └── Mirror: files by manifest
//! ```
//!
//! - [`Commands`] runs commands: once under their call, for as long as they may, and nothing of them is left when they have
//!   ended. How they are confined is in `confine` (the inner wall, the same in every place; on a kernel without it, nothing runs)
//!   and in `world` (the outer one, on the hub).
//! - [`Mirror`] is a folder that manifests bring up to date, for a machine that does not see the workspace's own.
//! - [`Local`] is the sandbox of the hub: commands see `latest/` itself. [`Remote`] is one that answers over HTTP.
//! - [`Commands::talk`] starts programs that run for long and are spoken to, such as servers of tools; [`talk_in`] starts one in a sandbox elsewhere.
//! - [`LocalCopies`] are the folders in which coding agents work. [`SandboxAgents`] is their port where they work in sandboxes.
//!
//! This crate does not decide on anyone's rights, and knows no tool: the server of a mirror brings the tools that search it.

mod agents;
mod commands;
mod converter;
mod copies;
mod covers;
mod http;
mod local;
mod mirror;
mod options;
mod output;
mod pipes;
mod places;
mod plan;
mod remote;
mod run;
mod scratch;
mod talk;
pub mod wire;

#[cfg(target_os = "linux")]
mod cgroup;
#[cfg(target_os = "linux")]
mod confine;
#[cfg(target_os = "linux")]
mod fenced;
#[cfg(target_os = "linux")]
pub mod forward;
#[cfg(target_os = "linux")]
mod group;
#[cfg(target_os = "linux")]
mod own_user;
#[cfg(target_os = "linux")]
mod seen;
#[cfg(target_os = "linux")]
mod supervise;
#[cfg(target_os = "linux")]
mod usage;
#[cfg(target_os = "linux")]
mod world;

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(not(target_os = "linux"))]
use elsewhere as supervise;

pub use agents::SandboxAgents;
pub use commands::Commands;
#[cfg(target_os = "linux")]
pub use confine::{can_confine, confine};
pub use converter::{ChildConverter, convert_if_asked};
pub use copies::LocalCopies;
#[cfg(not(target_os = "linux"))]
pub use elsewhere::{become_user_of, can_confine, confine};
pub use local::Local;
pub use mirror::{Budget, Mirror};
pub use options::{AT_ONCE, Limits, Options, Outer};
#[cfg(target_os = "linux")]
pub use own_user::become_user_of;
pub use pipes::talk_in;
pub use remote::Remote;
pub use talk::program;
#[cfg(target_os = "linux")]
pub use world::{enter, world};

/// Does nothing: there are no worlds here.
#[cfg(not(target_os = "linux"))]
pub fn enter() {}

/// That there are none.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn world() -> Result<Outer, String> {
    Err("only Linux has namespaces".into())
}

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, also after a panic elsewhere: every critical section here leaves its data whole at each step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
