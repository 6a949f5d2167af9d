//! The arguments of `buildscale mcp`.

use super::{Connection, WORKSPACE};
use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub struct McpArgs {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// The workspace, by name or id [default: the first one]
    #[arg(long, short, global = true, env = WORKSPACE, value_name = "WORKSPACE")]
    pub(crate) workspace: Option<String>,
    #[command(subcommand)]
    pub(crate) command: Option<McpCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// List the MCP servers that the workspace can use, and whether each answers
    Servers,
    /// Sign in at an MCP server, in a browser
    Login {
        /// The server, by the name that it is declared with
        server: String,
        /// The code that the browser has shown at the end of a sign-in
        #[arg(long)]
        code: Option<String>,
    },
    /// Forget the account at an MCP server
    Logout {
        /// The server
        server: String,
    },
}
