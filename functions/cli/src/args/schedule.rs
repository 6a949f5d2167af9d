//! The arguments of `buildscale schedule`.

use super::{Connection, WORKSPACE, chat::Scenario};
use clap::{ArgGroup, Args, Subcommand, ValueEnum};

#[derive(Debug, Args)]
pub struct ScheduleArgs {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// The workspace, by name or id [default: the first one]
    #[arg(short, long, global = true, env = WORKSPACE)]
    pub(crate) workspace: Option<String>,
    #[command(subcommand)]
    pub(crate) command: Option<ScheduleCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ScheduleCommand {
    /// List schedules with their next times, the oldest first (as `schedule` alone does)
    List,
    /// Make a schedule: give its times, and the chat, daily brief, message, task or call of a tool that begins
    ///
    /// It acts for you, with the rights that you have when it is due. Examples:
    ///
    /// buildscale schedule add "Daily brief" --rrule FREQ=DAILY --begins 2026-12-01T08:00 --zone Europe/Berlin --brief
    ///
    /// buildscale schedule add "Nightly review" --rrule "FREQ=WEEKLY;BYDAY=MO,FR" --begins 2026-12-01T02:00 --flow review
    Add(Box<AddArgs>),
    /// Show a schedule and its last run
    Show {
        /// The schedule: its name, or its id or the beginning of it
        schedule: String,
    },
    /// Let nothing begin until it is resumed
    Pause {
        /// The schedule
        schedule: String,
    },
    /// Go on with the next time
    Resume {
        /// The schedule
        schedule: String,
    },
    /// Begin a run now, besides the times
    Run {
        /// The schedule
        schedule: String,
    },
    /// Remove a schedule; chats and tasks that it began stay
    Remove {
        /// The schedule
        schedule: String,
    },
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("times").required(true).args(["at", "rrule"])))]
#[command(group(ArgGroup::new("begun").required(true).args(["goal", "chat", "flow", "tool", "brief"])))]
pub(crate) struct AddArgs {
    /// Its name
    pub(crate) name: String,
    /// Once, at this time (RFC 3339), such as 2026-12-01T08:00:00+01:00
    #[arg(long, value_name = "TIME")]
    pub(crate) at: Option<String>,
    /// Again and again, by a rule of iCalendar, such as FREQ=WEEKLY;BYDAY=MO,WE
    #[arg(long, value_name = "RULE")]
    pub(crate) rrule: Option<String>,
    /// The time zone of the rule, such as Europe/Berlin [default: UTC]
    #[arg(long, value_name = "ZONE", requires = "rrule")]
    pub(crate) zone: Option<String>,
    /// The first time of the rule on the clock of its zone, such as 2026-12-01T08:00 [default: this minute]
    #[arg(long, value_name = "TIME", requires = "rrule")]
    pub(crate) begins: Option<String>,
    /// A new chat begins with this goal
    #[arg(long)]
    pub(crate) goal: Option<String>,
    /// The persona of the new chat
    #[arg(long, requires = "goal")]
    pub(crate) role: Option<String>,
    /// The model of the new chat
    #[arg(long, requires = "goal")]
    pub(crate) model: Option<String>,
    /// How the new chat works [default: chat_mode]
    #[arg(long, requires = "goal")]
    pub(crate) scenario: Option<Scenario>,
    /// Your daily brief is written to /users/<your id>/brief.md, by the settings in daily-brief.md beside it
    #[arg(long)]
    pub(crate) brief: bool,
    /// A message goes to this chat, by its whole id
    #[arg(long, requires = "say")]
    pub(crate) chat: Option<String>,
    /// The words of the message
    #[arg(long, requires = "chat")]
    pub(crate) say: Option<String>,
    /// A task of this flow begins
    #[arg(long)]
    pub(crate) flow: Option<String>,
    /// The input of the task, as JSON
    #[arg(long, requires = "flow", value_name = "JSON", allow_negative_numbers = true)]
    pub(crate) input: Option<String>,
    /// This tool is called, such as sync_calendar
    #[arg(long)]
    pub(crate) tool: Option<String>,
    /// The arguments of the tool, as JSON
    #[arg(long, requires = "tool", value_name = "JSON")]
    pub(crate) args: Option<String>,
    /// The treatment of times that passed while the hub was off
    #[arg(long, value_enum, default_value_t = MissedArg::RunOnce)]
    pub(crate) missed: MissedArg,
    /// The treatment of a run that is due while the work of an earlier run is not done
    #[arg(long, value_enum, default_value_t = OverlapArg::Begin)]
    pub(crate) overlap: OverlapArg,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum MissedArg {
    /// Run once, however many times passed
    RunOnce,
    /// Wait for the next time
    Skip,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum OverlapArg {
    /// Begin beside it
    Begin,
    /// Wait for the next time
    Skip,
}
