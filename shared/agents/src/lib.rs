//! Coding agents as child processes, which speak the Agent Client Protocol (ACP), version 1, over their standard input and output.
//!
//! `registry` knows the agents of the box and those of the configuration. `adapter` has one process per thread, and is the port. A process is
//! `process` (its start, its process group, its end), `connection` (JSON-RPC over lines, with bounds), `agent_updates` (what the agent told and asked so far, with
//! `remembered_calls`),
//! `start` (its first requests), `content` (a prompt as it takes it), `reader` (its output), `callbacks` (its requests to us: `files` with `roots`, and `terminal`), and `confinement`
//! (what it sees where it is confined; how that is done comes from outside).
//!
//! The messages are read as JSON and not as types: updates go to the log whole, also those of newer agents, and a field that one agent writes
//! in another way fails that field alone.

mod adapter;
mod agent_updates;
mod callbacks;
mod confinement;
mod connection;
mod content;
mod files;
mod host_environment;
mod process;
mod reader;
mod registry;
mod remembered_calls;
mod roots;
mod start;
mod terminal;

pub use adapter::{ChildAgents, Options};
pub use host_environment::ConfineThread;
pub use registry::{Confined, KnownAgent, built_in_agents};
pub use roots::Roots;
