//! Machines on which commands run beside a workspace's files (spec 000 §7; spec 001 §5), on a hub and on AWS.
//!
//! ```text
//!   Local   (the hub) ─────────────────────────┐
//!                                               ├── Commands ── namespaces of its own ── an inner wall ── the command
//!   Remote ── HTTP (wire) ── functions/sandbox ─┘               (where the container is not the outer wall already)
//!                              └── Mirror: files by manifest
//! ```
//!
//! - [`Commands`] runs commands: once under their call, for as long as they may, and nothing of them is left when they have
//!   ended. How they are confined is in `confine` (the inner wall, the same in every place; on a kernel without it, nothing runs)
//!   and in `namespaces` (the outer one, on the hub).
//! - [`Mirror`] is a folder that manifests bring up to date, for a machine that does not see the workspace's own.
//! - [`Local`] is the sandbox of the hub: commands see `latest/` itself. [`Remote`] is one that answers over HTTP.
//! - [`Commands::start_program`] starts programs that run for long and are spoken to, such as servers of tools; [`start_program_in`] starts one in a sandbox elsewhere.
//! - [`LocalCopies`] are the folders in which coding agents work. [`SandboxAgents`] is their port where they work in sandboxes.
//!
//! This crate does not decide on anyone's rights, and knows no tool: the server of a mirror brings the tools that search it.

mod agents;
mod commands;
mod converter;
mod copies;
mod hidden_paths;
mod http;
mod local;
mod long_running;
mod mirror;
mod options;
mod output;
mod pipes;
mod places;
mod plan;
mod remote;
mod run;
mod scratch;
pub mod wire;

#[cfg(target_os = "linux")]
mod cgroup;
#[cfg(target_os = "linux")]
mod confine;
#[cfg(target_os = "linux")]
mod confined_process;
#[cfg(target_os = "linux")]
mod group;
#[cfg(target_os = "linux")]
pub mod http_proxy;
#[cfg(target_os = "linux")]
mod kept;
#[cfg(target_os = "linux")]
mod namespaces;
#[cfg(target_os = "linux")]
mod own_user;
#[cfg(target_os = "linux")]
mod path_hint;
#[cfg(target_os = "linux")]
mod supervise;
#[cfg(target_os = "linux")]
mod usage;

#[cfg(not(target_os = "linux"))]
mod unsupported;
#[cfg(not(target_os = "linux"))]
use unsupported as supervise;

pub use agents::SandboxAgents;
pub use commands::Commands;
#[cfg(target_os = "linux")]
pub use confine::{can_confine, confine};
pub use converter::{ChildConverter, convert_if_asked};
pub use copies::LocalCopies;
pub use local::Local;
pub use long_running::program;
pub use mirror::{Budget, Mirror};
#[cfg(target_os = "linux")]
pub use namespaces::{enter, probe_namespaces};
pub use options::{AT_ONCE, Isolation, Limits, Options};
#[cfg(target_os = "linux")]
pub use own_user::become_user_of;
pub use pipes::start_program_in;
pub use remote::Remote;
#[cfg(not(target_os = "linux"))]
pub use unsupported::{become_user_of, can_confine, confine};

/// Does nothing: there are no namespaces here.
#[cfg(not(target_os = "linux"))]
pub fn enter() {}

/// That there are none.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn probe_namespaces() -> Result<Isolation, String> {
    Err("only Linux has namespaces".into())
}
