//! The machine of one workspace, as a server: a task of ECS with a mirror of the workspace's files on its NVMe, where they are searched
//! and where commands run beside them (spec 000 §7; spec 001 §5).
//!
//! ```text
//!   worker ── sandbox::Remote ── HTTP with the task's token ──┬── Mirror ── missing contents, from their addresses
//!                                                             ├── search over the mirror
//!                                                             ├── Commands, confined, and programs that are spoken to
//!                                                             └── coding agents, in working copies
//! ```
//!
//! It is told the contents of its mirror, and has no credentials: it reads a content by the address that the worker signed for it, and nothing else.
//! After a while without use it ends itself with code 0, and with it the task. [`sandbox::wire`] defines the requests.
//!
//! Deliberately absent: tools and agents (the caller of this library supplies the search of a folder, and the port of agents), users and permissions. A caller with the token
//! may do everything here, and everything here belongs to one workspace.

mod agents;
mod answer;
mod auth;
mod batches;
mod body;
mod copies;
mod copy_leases;
mod exec;
mod idle;
mod machine;
mod options;
mod pipes;
mod programs;
mod routes;
mod serve;

pub use machine::{Machine, Search};
pub use options::{Options, OptionsError};
pub use routes::router;
pub use serve::serve;
