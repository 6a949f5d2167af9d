//! The machine of one workspace, as a server: a task of ECS with a mirror of the workspace's files on its NVMe, where they are searched
//! and where commands run beside them (spec 000 §7; spec 001 §5).
//!
//! ```text
//!   worker ── sandbox::Remote ── HTTP with the task's token ──┬── Mirror ── what it lacks, from the blobs
//!                                                             ├── search over the mirror
//!                                                             └── Commands, confined
//! ```
//!
//! It is told what its mirror is to contain, and reads nothing but contents by their digests: it has no way to the table. It ends
//! itself when nobody has used it for a while, with code 0, and with it the task. What the requests are is in [`sandbox::wire`].
//!
//! What it does not do: it knows no tools (whoever starts it brings what searches a folder), no users and no permissions: who has the
//! token may do everything here, and everything here is one workspace's.

mod answer;
mod door;
mod exec;
mod idle;
mod options;
mod routes;
mod serve;

pub use options::{Failure, Options};
pub use routes::{Machine, Search, router};
pub use serve::serve;
