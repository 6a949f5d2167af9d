//! Programs as children of this process, with the rights of its user: they end with all that they started. Agents, servers of tools and commands of the
//! command line run so.
//!
//! `group` starts a process group and ends it, also when this process is killed. `strays` finds the processes that have left it. `stat` reads the state
//! of a process. Nothing here confines a program: `sandbox` does, and has groups of its own.

mod group;
mod stat;
#[cfg(target_os = "linux")]
mod strays;

pub use group::ProcessGroup;
pub use stat::ProcessStat;
