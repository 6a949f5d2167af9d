//! Servers of tools that speak the Model Context Protocol (spec 004 §11): BuildScale as their client, behind [`ports::ToolServers`].
//!
//! ```text
//!   ports::ToolServers ── Servers ── a Slot per workspace, server and hidden files ── Link ── rmcp ── pipes ── Programs: a sandbox, or a child
//!                           │                                                                   └─── HTTP ── Egress: which addresses
//!                           ├── declared: the configuration, and `/system/mcp.json` of a workspace
//!                           └── oauth: accounts at servers that need a sign-in
//! ```
//!
//! A link is made with the first use, and ends after a while without one. Its failure is remembered with a back-off. All that a server says is
//! bounded in `bounds` before anybody else reads it; pipes and HTTP bound the size of a message. A server may ask
//! the person for whom a call runs, and the model of their chat (`asks`), and not for folders.
//!
//! This crate decides on nobody's rights: the gate of chats asks people, and the tools ask the workspace.

mod asks;
mod bounded_reader;
mod bounds;
mod child;
mod declared;
mod egress;
mod exact;
mod files;
mod link;
mod oauth;
mod parts;
mod people;
mod post;
mod server_files;
mod servers;
mod slot;

pub use child::Children;
pub use declared::{OauthConfig, ServerConfig, check};
pub use egress::Egress;
pub use oauth::{accounts::AccountParts, seal::KeySource};
pub use parts::{Program, Programs, ServerParts};
pub use servers::Servers;
