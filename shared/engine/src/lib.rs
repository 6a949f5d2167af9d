//! The engine (spec 002): runs tasks of flows. Tasks are actors, and routing is a pure function.
//!
//! ```text
//!   Tasks (the way in) ── commands ── mailbox ── machine (pure) ── perform (effects)
//!     Flows, FlowCache                             flow::router      memory, artifact, provider
//! ```
//!
//! A task executes at most one node at a time. Clones of a branch and subtasks of a split are tasks of their own, so that
//! every log has one writer and a join is a message. An agent node is a conversation with a chat of its own: the same loop,
//! models and tools as anywhere else. Nothing routes but the graph (`flow::router`). The machine knows neither its effects nor the way in.

mod admission_keys;
pub mod artifact;
mod cache;
mod call;
pub mod error;
pub mod flows;
mod functions;
pub mod handoff;
mod http_tools;
pub mod log;
pub mod machine;
pub mod memory;
pub mod metadata;
mod models;
pub mod perform;
mod personas;
pub mod provider;
mod remains;
pub mod reruns;
pub mod secret;
pub mod tasks;
mod triggers;

pub use cache::FlowCache;
pub use flows::{FlowInfo, Flows};
pub use functions::FunctionTools;
pub use handoff::Handoffs;
pub use machine::TaskMachine;
pub use models::FlowModels;
pub use perform::TaskEffects;
pub use remains::{remove_remains, remove_task};
pub use tasks::{
    AcceptedTask, AdmissionObserver, Answers, NewTask, RerunOptions, TaskChanges, TaskFilter, TaskPage, TaskReader,
    Tasks,
};
pub use triggers::Triggers;

/// The folder of a workspace's flows.
pub const FLOWS: &str = "/system/flows";
