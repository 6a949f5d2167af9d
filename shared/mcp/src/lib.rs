//! Servers of tools that speak the Model Context Protocol (spec 004 §11): BuildScale as their client, behind [`ports::ToolServers`].
//!
//! ```text
//!   ports::ToolServers ── Servers ── a Slot per workspace and server ── Link ── rmcp ── pipes ── Programs: a sandbox, or a child
//!                           │                                                     └─── HTTP ── Egress: which addresses
//!                           └── declared: the configuration, and `/system/mcp.json` of a workspace
//! ```
//!
//! A link is made with the first use, and ends after a while without one. Its failure is remembered with a back-off. All that a server says is
//! bounded in `bounds` before anybody else reads it; pipes and HTTP bound the size of a message. A server gets no capability of a client:
//! it cannot ask a person, a model, or for folders.
//!
//! This crate decides on nobody's rights: the gate of chats asks people, and the tools ask the workspace.

mod bounds;
mod child;
mod declared;
mod flood;
mod link;
mod parts;
mod servers;

pub use child::Children;
pub use declared::{ServerConfig, check};
pub use parts::{Egress, Parts, Program, Programs, Talk};
pub use servers::Servers;
