//! How a schedule is set up: when it is due, and the work that begins then.

use crate::rule::Times;
use chat::NewChat;
use domain::{ChatId, Error, Limits, Mode, Scenario, TaskId, Timestamp, UserId, WorkspaceId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

/// How a schedule is set up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduleConfig {
    /// Its workspace.
    pub workspace: WorkspaceId,
    /// Its id.
    pub schedule: Uuid,
    /// The person for whom it acts, with the rights that they have when it is due.
    pub user: UserId,
    /// Its name.
    pub name: String,
    /// When it is due.
    pub times: Times,
    /// The treatment of times that passed while nothing ran.
    pub missed: MissedPolicy,
    /// The treatment of a run that is due while the work of an earlier run is not done.
    #[serde(default, skip_serializing_if = "OverlapPolicy::begins")]
    pub overlap: OverlapPolicy,
    /// The work that begins when it is due.
    pub action: Action,
    /// Whether that work was set up with a credential that may run no flows: then no file that its agent writes starts one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_not_run: bool,
    /// When it was made.
    pub created_at: Timestamp,
}

/// The treatment of a time that is found more than five minutes late, as after a hub was switched off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MissedPolicy {
    /// It runs once, however many times passed.
    #[default]
    RunOnce,
    /// It waits for the next time.
    Skip,
}

/// The treatment of a run that is due while the work of an earlier run is not done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OverlapPolicy {
    /// The run begins beside it.
    #[default]
    Begin,
    /// The run begins nothing, and the schedule waits for the next time.
    Skip,
}

impl OverlapPolicy {
    pub(crate) fn begins(&self) -> bool {
        *self == Self::Begin
    }
}

/// The work that begins when a schedule is due.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Action {
    /// A new chat.
    Chat {
        /// Its goal.
        goal: String,
        /// The persona; `assistant` when none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        role: Option<String>,
        /// The model; the default one when none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// How far it may go: `chat` or `plan`.
        #[serde(default)]
        mode: Mode,
        /// The way to work; a conversation when none. An `autonomous` agent asks nobody.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scenario: Option<Scenario>,
        /// The limits of each of its turns; those of the installation when none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limits: Option<Limits>,
    },
    /// A message to a chat that there is.
    Message {
        /// The chat.
        chat_id: ChatId,
        /// The words.
        content: String,
    },
    /// A task of a flow.
    Task {
        /// The flow.
        flow: String,
        /// Its input.
        #[serde(default)]
        input: Value,
    },
    /// A call of a tool, as `POST …/tools` makes it.
    Tool {
        /// The tool.
        tool: String,
        /// Its arguments.
        #[serde(default)]
        args: Map<String, Value>,
    },
    /// The daily brief of the person for whom it acts: a new chat that asks nobody writes it to their home.
    DailyBrief {
        /// The model; the default one when none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    },
}

/// The chat that an action begins, set up like one that a person asks for.
///
/// # Errors
/// Those of [`chat::set_up`], with the field of the action.
pub(crate) fn new_chat(
    goal: String,
    role: Option<String>,
    model: Option<String>,
    mode: Mode,
    scenario: Option<Scenario>,
    limits: Option<Limits>,
) -> Result<NewChat, Error> {
    let mut new = NewChat { goal, role, model, limits, ..NewChat::default() };
    // A mode that was left out is the usual one, and some scenarios have modes of their own.
    let mode = (mode != Mode::default()).then_some(mode);
    match chat::set_up(&mut new, scenario.unwrap_or_default(), mode, None) {
        Ok(()) => Ok(new),
        Err(error) => match error.details.get("field").and_then(Value::as_str).map(|field| format!("action.{field}")) {
            Some(field) => Err(error.detail("field", field)),
            None => Err(error),
        },
    }
}

/// The chat or task that a run began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartedWork {
    /// A chat, or a message to it.
    ChatId(ChatId),
    /// A task.
    TaskId(TaskId),
    /// Nothing that lasts: a tool answered this.
    Output(String),
}
