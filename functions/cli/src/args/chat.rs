//! The arguments of `buildscale chat` and `buildscale chats`.

use super::{
    Connection, Reference,
    label::{Label, label},
};
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct ChatArgs {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// The workspace, by name or id [default: the first one; one named "default" is made when there is none]
    #[arg(long, short, env = "BUILDSCALE_WORKSPACE", value_name = "WORKSPACE")]
    pub(crate) workspace: Option<String>,
    /// Go on with this chat: its id, the beginning of it, or - for the one that was last active
    #[arg(long, value_name = "CHAT")]
    pub(crate) chat: Option<Reference>,
    /// Go on with the chat that was last active
    #[arg(long = "continue", short = 'c', conflicts_with = "chat")]
    pub(crate) resume: bool,
    /// The persona: a folder of /system/agents
    #[arg(long, conflicts_with_all = ["chat", "resume"], value_name = "ROLE")]
    pub(crate) role: Option<String>,
    /// The model [default: the hub's]
    #[arg(long, conflicts_with_all = ["chat", "resume"], value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// How far the agent may go
    #[arg(long, conflicts_with_all = ["chat", "resume"], value_name = "MODE")]
    pub(crate) mode: Option<Mode>,
    /// How the chat works [default: chat_mode]
    #[arg(long, conflicts_with_all = ["chat", "resume"], value_name = "SCENARIO")]
    pub(crate) scenario: Option<Scenario>,
    /// The persona of an agent of the team, for --scenario parallel_agents and co_work; can be repeated
    #[arg(long = "agent", requires = "scenario", value_name = "ROLE")]
    pub(crate) agents: Vec<String>,
    /// The plan that it works on: a Markdown checklist of the workspace
    #[arg(long, conflicts_with_all = ["chat", "resume"], value_name = "PATH")]
    pub(crate) plan: Option<String>,
    /// The version of the plan that you have read and approve, for --mode build
    #[arg(long, requires = "plan", value_name = "N")]
    pub(crate) plan_version: Option<u64>,
    /// Give the chat a label, to find it by; can be repeated
    #[arg(long = "label", conflicts_with_all = ["chat", "resume"], value_name = "KEY=VALUE", value_parser = label)]
    pub(crate) labels: Vec<Label>,
    /// Attach a file of the workspace to the first message; can be repeated (`files put` uploads)
    #[arg(long = "file", value_name = "PATH")]
    pub(crate) files: Vec<String>,
    /// Work on this folder of this machine: the agent reads it, and each change is shown to you as a diff before it is made
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// Run one turn and exit, as it does by itself when standard input is not a terminal
    #[arg(long)]
    pub(crate) once: bool,
    /// Print the answer alone, and nothing of the way to it
    #[arg(long, short, conflicts_with = "events")]
    pub(crate) quiet: bool,
    /// Print the agent's work on standard output too, where that is no terminal and has the answer alone otherwise
    #[arg(long)]
    pub(crate) events: bool,
    /// The first message; - reads it from standard input
    #[arg(value_name = "GOAL")]
    pub(crate) goal: Vec<String>,
}

#[derive(Debug, Args)]
pub struct ChatsArgs {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// The workspace, by name or id [default: the first one]
    #[arg(long, short, global = true, env = "BUILDSCALE_WORKSPACE", value_name = "WORKSPACE")]
    pub(crate) workspace: Option<String>,
    /// How many at most
    #[arg(long, short = 'n', default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
    /// Only with this label; can be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    pub(crate) labels: Vec<Label>,
    #[command(subcommand)]
    pub(crate) command: Option<ChatsCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ChatsCommand {
    /// List chats, the last active first (as `chats` alone does)
    List {
        /// How many at most [default: 20]
        #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        limit: Option<u32>,
        /// Only with this label; can be repeated
        #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
        labels: Vec<Label>,
    },
    /// Take a chat off the list and put its file into the trash; its running turn is stopped
    Rm {
        /// The chat: its id, the beginning of it, or - for the one that was last active
        #[arg(value_name = "CHAT")]
        chat: Reference,
    },
    /// Print a chat as Markdown; with --json its messages
    Export {
        /// The chat: its id, the beginning of it, or - for the one that was last active
        #[arg(value_name = "CHAT")]
        chat: Reference,
        /// The file to write it to [default: standard output]
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

/// How far the agent may go.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Mode {
    /// Tools run at once; you are asked before each command
    Chat,
    /// Only plans are written, and no command runs
    Plan,
    /// An approved plan is carried out (see --plan and --plan-version)
    Build,
}

impl Mode {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Plan => "plan",
            Self::Build => "build",
        }
    }
}

/// The ways to work, by their names in the API.
#[derive(Clone, Copy, Debug, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum Scenario {
    /// A conversation
    ChatMode,
    /// A planner writes a plan, you approve it, and another persona carries it out
    PlanThenExecute,
    /// Several agents carry one plan out side by side
    ParallelAgents,
    /// The agent works without you until its goal is met or a limit is reached
    Autonomous,
    /// A strategist plans a campaign for a topic, and a team writes it
    CoWork,
}

impl Scenario {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::ChatMode => "chat_mode",
            Self::PlanThenExecute => "plan_then_execute",
            Self::ParallelAgents => "parallel_agents",
            Self::Autonomous => "autonomous",
            Self::CoWork => "co_work",
        }
    }
}
