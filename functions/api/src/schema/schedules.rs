//! How schedules look.

use super::{InnerError, Limits, Mode, Scenario};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

/// The times at which a schedule is due.
#[derive(Serialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ScheduleTimes {
    /// Once.
    Once {
        /// The moment.
        #[schema(format = DateTime)]
        at: String,
    },
    /// Again and again.
    Rule {
        /// The rule of RFC 5545 §3.3.10.
        #[schema(example = "FREQ=WEEKLY;BYDAY=MO,WE")]
        rrule: String,
        /// The time zone.
        #[schema(example = "Europe/Berlin")]
        time_zone: String,
        /// The first moment on the clock of the zone, as iCalendar writes it.
        #[schema(example = "20261201T080000")]
        begins: String,
    },
}

/// The treatment of times that are found more than five minutes late, as after a hub was switched off.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MissedRunPolicy {
    /// It runs once, however many times passed.
    RunOnce,
    /// It waits for the next time.
    Skip,
}

/// The treatment of a run that is due while the work of an earlier run is not done: a task that has not ended, a chat that is not idle.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OverlapPolicy {
    /// The run begins beside it.
    Begin,
    /// The run begins nothing, its error is `CONFLICT`, and the schedule waits for the next time.
    Skip,
}

/// The work that begins when a schedule is due.
#[derive(Serialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ScheduleAction {
    /// A new chat.
    Chat {
        /// Its goal.
        goal: String,
        /// The persona; `assistant` when left out.
        #[serde(skip_serializing_if = "Option::is_none")]
        role: Option<String>,
        /// The model; the default one when left out.
        #[serde(skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// How far it may go: `chat` or `plan`.
        #[schema(required = false)]
        mode: Mode,
        /// The way to work; a conversation when left out. An `autonomous` agent asks nobody, and ends at its goal or at a limit.
        #[serde(skip_serializing_if = "Option::is_none")]
        scenario: Option<Scenario>,
        /// The limits of each of its turns; those of the installation when left out.
        #[serde(skip_serializing_if = "Option::is_none")]
        limits: Option<Limits>,
    },
    /// A message to a chat that there is.
    Message {
        /// The chat.
        chat_id: Uuid,
        /// The words.
        content: String,
    },
    /// A task of a flow.
    Task {
        /// The flow.
        flow: String,
        /// Its input.
        #[schema(required = false)]
        input: Value,
    },
    /// A call of a tool, as `POST …/tools` makes it.
    Tool {
        /// The tool.
        #[schema(example = "sync_calendar")]
        tool: String,
        /// Its arguments.
        #[schema(required = false, value_type = Object)]
        args: Value,
    },
    /// The daily brief of the person for whom it acts: a new chat writes `/users/<id>/brief.md` by the settings in `/users/<id>/daily-brief.md`.
    DailyBrief {
        /// The model; the default one when left out.
        #[serde(skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    },
}

/// The state of a schedule.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScheduleStatus {
    /// It waits for its next time.
    Active,
    /// It is paused.
    Paused,
    /// It has no time left.
    Ended,
}

/// A run of a schedule.
#[derive(Serialize, ToSchema)]
pub struct ScheduleRun {
    /// Its id.
    pub run: Uuid,
    /// The time that it was due; left out for one that a person asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub due: Option<String>,
    /// When it began.
    #[schema(format = DateTime)]
    pub at: String,
    /// The chat that it began, or wrote to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat_id: Option<Uuid>,
    /// The task that it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<Uuid>,
    /// The answer of the tool that it called: its first 1,000 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Why it began nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<InnerError>,
}

/// A schedule.
#[derive(Serialize, ToSchema)]
pub struct Schedule {
    /// Its id.
    pub schedule_id: Uuid,
    /// Its workspace.
    pub workspace_id: Uuid,
    /// The person for whom it acts, with the rights that they have when it is due.
    pub user_id: Uuid,
    /// Its name.
    pub name: String,
    /// When it is due.
    pub times: ScheduleTimes,
    /// The treatment of times that passed while nothing ran.
    pub missed: MissedRunPolicy,
    /// The treatment of a run that is due while the work of an earlier run is not done; `begin` where it is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlap: Option<OverlapPolicy>,
    /// The work that begins.
    pub action: ScheduleAction,
    /// Its state.
    pub status: ScheduleStatus,
    /// Why it is paused, where no person paused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_because: Option<InnerError>,
    /// Its next time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub next_at: Option<String>,
    /// Its last run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_run: Option<ScheduleRun>,
    /// How many runs began.
    pub runs: u64,
    /// How many times were skipped or missed.
    pub skipped: u64,
    /// When it was made.
    #[schema(format = DateTime)]
    pub created_at: String,
}

/// A page of schedules, the oldest first.
#[derive(Serialize, ToSchema)]
pub struct SchedulePage {
    /// The schedules.
    pub schedules: Vec<Schedule>,
    /// The cursor of the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A run that will be.
#[derive(Serialize, ToSchema)]
pub struct AcceptedRun {
    /// The schedule.
    pub schedule_id: Uuid,
    /// The run.
    pub run: Uuid,
}
