//! How a schedule is set up: when it is due, and the work that begins then.

use crate::rule::Times;
use domain::{ChatId, Mode, TaskId, Timestamp, UserId, WorkspaceId};
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
    pub missed: Missed,
    /// The work that begins when it is due.
    pub action: Action,
    /// When it was made.
    pub created_at: Timestamp,
}

/// The treatment of a time that is found more than five minutes late, as after a hub was switched off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Missed {
    /// It runs once, however many times passed.
    #[default]
    RunOnce,
    /// It waits for the next time.
    Skip,
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
}

/// The chat or task that a run began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Began {
    /// A chat, or a message to it.
    ChatId(ChatId),
    /// A task.
    TaskId(TaskId),
    /// Nothing that lasts: a tool answered this.
    Output(String),
}
