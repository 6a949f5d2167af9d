//! The arguments of `buildscale mcp`.

use super::Connection;
use clap::Args;

#[derive(Debug, Args)]
pub struct McpArgs {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// The workspace, by name or id [default: the first one]
    #[arg(long, short, env = "BUILDSCALE_WORKSPACE", value_name = "WORKSPACE")]
    pub(crate) workspace: Option<String>,
}
