//! The arguments of `buildscale rewind` and `buildscale fork`.

use super::{Connection, Reference};
use clap::{ArgGroup, Args};

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("scope").required(true).multiple(true).args(["path", "chat", "task", "undo"])))]
pub struct RewindArgs {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// The workspace, by name or id [default: the first one, or the one of the chat or task]
    #[arg(long, short, env = "BUILDSCALE_WORKSPACE", value_name = "WORKSPACE")]
    pub(crate) workspace: Option<String>,
    /// The file or folder to rewind to --time, --seq, --turn or --version; / for all of the workspace
    #[arg(conflicts_with_all = ["task", "undo"])]
    pub(crate) path: Option<String>,
    /// Back to this time, such as 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", requires = "path", conflicts_with_all = ["chat", "turn", "seq", "version"])]
    pub(crate) time: Option<String>,
    /// Back to this version of the file
    #[arg(long, value_name = "N", requires = "path", conflicts_with_all = ["chat", "turn", "seq"])]
    pub(crate) version: Option<u64>,
    /// Take back what this chat changed; with a path: back to a point of this chat
    #[arg(long, value_name = "CHAT", conflicts_with_all = ["task", "undo"])]
    pub(crate) chat: Option<Reference>,
    /// Only what this turn of the chat changed; with a path: back to before this turn
    #[arg(long, value_name = "TURN", requires = "chat", conflicts_with = "seq")]
    pub(crate) turn: Option<String>,
    /// Only what the chat changed after the event with this number; with a path: back to that moment
    #[arg(long, value_name = "N", requires = "chat")]
    pub(crate) seq: Option<u64>,
    /// Take back what this task, its clones, its subtasks and their agents changed
    #[arg(long, value_name = "TASK", conflicts_with = "undo")]
    pub(crate) task: Option<Reference>,
    /// Take back another rewind
    #[arg(long, value_name = "REWIND")]
    pub(crate) undo: Option<String>,
    /// The chat goes back, too: make a fork of it that ends before the turn, or at the event
    #[arg(long, requires = "chat", conflicts_with = "path")]
    pub(crate) fork: bool,
    /// Show the diffs of the preview
    #[arg(long, conflicts_with = "yes")]
    pub(crate) diff: bool,
    /// Do it; without this the steps are only shown
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Go on with the rewind of this id after it was interrupted
    #[arg(long, value_name = "ID", requires = "yes")]
    pub(crate) rewind_id: Option<String>,
    /// As a preview has shown it: changes after its `as_of` are kept
    #[arg(long, value_name = "ID", requires = "yes")]
    pub(crate) as_of: Option<String>,
}

#[derive(Debug, Args)]
pub struct ForkArgs {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// The workspace, by name or id [default: the one of the chat]
    #[arg(long, short, env = "BUILDSCALE_WORKSPACE", value_name = "WORKSPACE")]
    pub(crate) workspace: Option<String>,
    /// The chat: its id, the beginning of it, or - for the one that was last active
    pub(crate) chat: Reference,
    /// With the turns that had ended at the event with this number [default: all that have ended]
    #[arg(long, value_name = "N", conflicts_with_all = ["turn", "before"])]
    pub(crate) seq: Option<u64>,
    /// Up to this turn, with it
    #[arg(long, value_name = "TURN", conflicts_with = "before")]
    pub(crate) turn: Option<String>,
    /// Up to this turn, without it
    #[arg(long, value_name = "TURN")]
    pub(crate) before: Option<String>,
    /// The title of the new chat [default: the same]
    #[arg(long)]
    pub(crate) title: Option<String>,
}
