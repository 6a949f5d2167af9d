//! The arguments of `buildscale acp`.

use super::{Connection, WORKSPACE};
use clap::Args;

#[derive(Debug, Args)]
pub struct AcpArgs {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// The workspace, by name or id [default: the first one; one named "default" is made when there is none]
    #[arg(long, short, env = WORKSPACE, value_name = "WORKSPACE")]
    pub(crate) workspace: Option<String>,
    /// The agent of new sessions: buildscale, a persona of the workspace, or a coding agent that the hub has
    #[arg(long, default_value = "buildscale", value_name = "AGENT")]
    pub(crate) agent: String,
}
