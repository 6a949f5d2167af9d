//! The arguments of `buildscale threads`, `turn`, `permit` and `rules`.

use super::{Connection, IdPrefix, Reference, WORKSPACE};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use uuid::Uuid;

#[derive(Debug, Args)]
pub struct ThreadsArgs {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// The workspace, by name or id [default: the first one; one named "default" is made when there is none]
    #[arg(long, short, global = true, env = WORKSPACE, value_name = "WORKSPACE")]
    pub(crate) workspace: Option<String>,
    #[command(subcommand)]
    pub(crate) command: Option<ThreadsCommand>,
}

/// An option of an agent, with its value.
fn option(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("it has no =, as in effort=high")?;
    Ok((name.to_owned(), value.to_owned()))
}

#[derive(Debug, Subcommand)]
pub(crate) enum ThreadsCommand {
    /// List threads, the newest first (as `threads` alone does)
    List {
        /// How many at most
        #[arg(long, short = 'n', default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=200))]
        limit: u32,
    },
    /// Make a thread and print its id; no process starts
    New {
        /// The agent: buildscale, a persona of the workspace, or a coding agent (`buildscale agents` lists those)
        #[arg(long, default_value = "buildscale", value_name = "AGENT")]
        agent: String,
        /// The folder that it works in, on the hub's machine [default: this one]
        #[arg(long, value_name = "DIR")]
        cwd: Option<PathBuf>,
        /// Its title
        #[arg(long, value_name = "TITLE")]
        title: Option<String>,
        /// The mode of the agent, such as plan
        #[arg(long, value_name = "MODE")]
        mode: Option<String>,
        /// The model, by the agent's own name for it
        #[arg(long, value_name = "MODEL")]
        model: Option<String>,
        /// An option of a coding agent; may be given several times
        #[arg(long = "option", value_name = "NAME=VALUE", value_parser = option)]
        options: Vec<(String, String)>,
    },
    /// Show the turns of a thread
    Show {
        /// The thread: its id, the beginning of it, or - for the one that was last active
        #[arg(value_name = "THREAD")]
        thread: Reference,
    },
    /// Delete a thread with its turns
    Rm {
        /// The thread: its id, the beginning of it, or - for the one that was last active
        #[arg(value_name = "THREAD")]
        thread: Reference,
    },
}

#[derive(Debug, Args)]
pub struct TurnArgs {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// The workspace that the thread is in, by name or id [default: the first one]
    #[arg(long, short, env = WORKSPACE, value_name = "WORKSPACE")]
    pub(crate) workspace: Option<String>,
    /// Print the id of the turn and leave; the turn goes on
    #[arg(long)]
    pub(crate) detach: bool,
    /// A file to bring along; may be given several times
    #[arg(long, value_name = "FILE")]
    pub(crate) attach: Vec<PathBuf>,
    /// Cancel this turn instead of beginning one
    #[arg(long, value_name = "TURN", conflicts_with_all = ["detach", "thread", "attach"])]
    pub(crate) cancel: Option<Uuid>,
    /// The thread: its id, the beginning of it, or - for the one that was last active
    #[arg(value_name = "THREAD", required_unless_present = "cancel")]
    pub(crate) thread: Option<Reference>,
    /// The request, in words
    #[arg(value_name = "WORDS", required_unless_present = "cancel")]
    pub(crate) words: Vec<String>,
}

#[derive(Debug, Args)]
pub struct PermitArgs {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// The workspace, by name or id [default: the first one]
    #[arg(long, short, env = WORKSPACE, value_name = "WORKSPACE")]
    pub(crate) workspace: Option<String>,
    /// The permission: its id, or the beginning of it; without it, those that wait are listed
    #[arg(value_name = "PERMISSION", requires = "answer")]
    pub(crate) permission: Option<IdPrefix>,
    /// yes, no, or the id of an option of the request, such as allow_always or reject_always
    #[arg(value_name = "ANSWER")]
    pub(crate) answer: Option<String>,
    /// With allow_always and reject_always: how far the rule goes [default: the chat that asks]
    #[arg(long, value_name = "SCOPE", value_parser = ["chat", "person", "workspace"], requires = "answer")]
    pub(crate) scope: Option<String>,
}

#[derive(Debug, Args)]
pub struct RulesArgs {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// The workspace that the chat is in [default: all are searched]
    #[arg(long, short, env = WORKSPACE, value_name = "WORKSPACE")]
    pub(crate) workspace: Option<String>,
    /// Revoke all of them: calls are asked about again
    #[arg(long)]
    pub(crate) revoke: bool,
    /// With --revoke: this rule alone, by its id in the list
    #[arg(long, value_name = "RULE", requires = "revoke")]
    pub(crate) rule: Option<String>,
    /// The chat or thread: its id, the beginning of it, or - for the one that was last active [default: the rules for all chats of the workspace]
    #[arg(value_name = "CHAT")]
    pub(crate) chat: Option<Reference>,
}
