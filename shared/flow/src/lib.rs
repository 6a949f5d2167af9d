//! The DAG engine (spec 002): flows as folders of manifests, tasks as actors, routing as a pure function.
//!
//! ```text
//!   folder ─ load (eight steps, all faults at once) ─ Flow ─┬─ graph ── router (pure) ──┐
//!                                                           ├─ op, memory, policy ──────┼─ machine (pure) ─ perform
//!   Tasks (the way in) ── commands ── mailbox ──────────────┴───────────────────────────┘
//! ```
//!
//! A task executes at most one node at a time. Clones of a branch and subtasks of a split are tasks of their own, so that
//! every log has one writer and a join is a message. An agent node is a conversation with a chat of its own: the same loop,
//! models and tools as anywhere else. Nothing routes but the graph.

pub mod artifact;
mod cache;
pub mod draw;
pub mod evaluate;
pub mod failure;
pub mod flow;
pub mod flows;
pub mod graph;
pub mod in_the_box;
pub mod load;
pub mod machine;
pub mod manifest;
pub mod memory;
pub mod observe;
pub mod op;
pub mod perform;
pub mod policy;
pub mod provider;
pub mod router;
pub mod secret;
pub mod tasks;
pub mod template;

pub use cache::FlowCache;
pub use evaluate::{Evaluation, Evaluations, Understudy};
pub use flow::Flow;
pub use flows::{FlowInfo, Flows};
pub use graph::Graph;
pub use machine::TaskMachine;
pub use perform::TaskEffects;
pub use tasks::{AcceptedTask, Answers, NewTask, TaskFilter, TaskPage, TaskReader, Tasks};
