//! Servers of tools that speak the Model Context Protocol (spec 004 §11): BuildScale as their client, behind [`ports::ToolServers`].
//!
//! ```text
//!   ports::ToolServers ── Servers ── a WorkspaceServer per workspace, name and hidden files ── Connection ── rmcp ── pipes ── Programs: a sandbox, or a child
//!                           │                                                                                   └─── HTTP ── Egress: which addresses
//!                           ├── declarations: the configuration, and `/system/mcp.json` of a workspace
//!                           └── oauth: accounts at servers that need a sign-in
//! ```
//!
//! A connection is made with the first use, and ends after a while without one. Its failure is remembered with a back-off. All that a server says is
//! bounded in `bounds` before anybody else reads it; pipes and HTTP bound the size of a message. A server may ask
//! the person for whom a call runs, and the model of their chat (`server_requests`), and not for folders.
//!
//! This crate decides on nobody's rights: the gate of chats asks people, and the tools ask the workspace.

mod bounded_reader;
mod bounds;
mod child;
mod connection;
mod declarations;
mod dependencies;
mod egress;
mod exact_numbers;
mod http_calls;
mod http_failures;
mod last_words;
mod oauth;
mod resource_files;
mod server_files;
mod server_requests;
mod server_views;
mod servers;
mod workspace_server;

pub use child::Children;
pub use declarations::{OauthConfig, ServerConfig, check};
pub use dependencies::{Program, Programs, ServerDependencies};
pub use egress::Egress;
pub use oauth::{accounts::AccountDependencies, seal::KeySource};
pub use servers::Servers;
