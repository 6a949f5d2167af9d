//! The model of a flow (spec 002): folders of manifests, loaded and checked.
//!
//! ```text
//!   folder ─ load (eight steps, all faults at once) ─ Flow ─┬─ graph       nodes, edges, the owner of each merge
//!                                                           ├─ router      the ways that a task goes, as a pure function
//!                                                           ├─ op          expressions, templates, functions
//!                                                           ├─ policy      permissions of nodes
//!                                                           ├─ failure     retries and error routes
//!                                                           └─ draw        pictures
//! ```
//!
//! Its modules name each other in one direction: `load` names `flow`, and what both need, such as `report`, names neither.
//!
//! Nothing here has I/O, is asynchronous or knows an actor: the same files are the same flow everywhere. The crate `engine` runs
//! tasks of flows.

pub mod adapters;
pub mod built_in;
mod bundle;
pub mod canonical;
pub mod diff;
pub mod draw;
pub mod failure;
pub mod flow;
pub mod graph;
pub mod load;
pub mod manifest;
pub mod metrics;
pub mod op;
pub mod policy;
mod reads;
pub mod report;
pub mod router;
pub mod template;
pub mod tool_declarations;
pub mod trigger;

pub use flow::Flow;
pub use graph::Graph;
