//! The commands about the context of a chat.

use super::{Connection, Reference};
use clap::Args;

#[derive(Debug, Args)]
pub struct CompactArgs {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// The workspace that the chat is in [default: all are searched]
    #[arg(long, short, env = "BUILDSCALE_WORKSPACE", value_name = "WORKSPACE")]
    pub(crate) workspace: Option<String>,
    /// The chat: its id, the beginning of it, or - for the one that was last active
    #[arg(value_name = "CHAT")]
    pub(crate) chat: Reference,
    /// The longest summary, in characters: 200 to 16000 [default: 4000]
    #[arg(long, value_name = "CHARACTERS", conflicts_with = "undo")]
    pub(crate) max: Option<u32>,
    /// Take the last compaction back
    #[arg(long)]
    pub(crate) undo: bool,
}

#[derive(Debug, Args)]
pub struct ContextArgs {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// The workspace that the chat is in [default: all are searched]
    #[arg(long, short, env = "BUILDSCALE_WORKSPACE", value_name = "WORKSPACE")]
    pub(crate) workspace: Option<String>,
    /// The chat: its id, the beginning of it, or - for the one that was last active
    #[arg(value_name = "CHAT")]
    pub(crate) chat: Reference,
    /// The turn, by its id [default: the last one]
    #[arg(long, value_name = "TURN")]
    pub(crate) turn: Option<String>,
}
