//! The web as tools of agents, behind [`ports::ToolServers`]: HTTP tools that workspaces and flows declare, `web_fetch` and `web_search`.
//!
//! ```text
//!   ports::ToolServers ── Web ─┬─ declared: /system/tools/*.yaml, and those of a flow ── call: a signed request, retried by its policy
//!                              ├─ fetch: robots, redirects, a page as Markdown by `ports::Converter`, kept for some minutes
//!                              └─ search: Brave, Tavily, SearXNG
//!                                  └── all by `Egress`: which addresses
//! ```
//!
//! All that is read is a stranger's: `read` bounds it in bytes and in time, before anybody else sees it. This crate decides on nobody's rights: the
//! gate of chats asks people.

mod call;
mod config;
mod dependencies;
mod fetch;
mod read;
mod robots;
mod search;
mod servers;
mod tool_declarations;

pub use config::{Provider, SearchConfig, WebConfig};
pub use dependencies::{Egress, WebDependencies};
pub use robots::Robots;
pub use servers::Web;
pub use tool_declarations::check;
