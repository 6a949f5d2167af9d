//! The data of the events of workspaces (`domain::WorkspaceEvent`).

use super::super::{ChatStatus, Conversion, FileKind, FileOp, Mode, TaskPhase, TaskStatus};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

/// A file or folder was made, written, moved, removed or restored, by any author.
#[derive(Serialize, ToSchema)]
pub struct WorkspaceFileUpdated {
    /// Its path after the change; the last one, if it is gone.
    pub path: String,
    /// Its current version; 0 for a folder, for a chat's own file, and for one that is gone.
    pub v: u64,
    /// Its identity.
    pub file_id: Uuid,
    /// Its kind.
    pub kind: FileKind,
    /// The effect of the change.
    pub op: FileOp,
    /// Its path before the change, if it was moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The author: `user:…`, `agent:…` or `system`.
    pub author: String,
    /// The time of the change.
    #[schema(format = DateTime)]
    pub at: String,
    /// Of a document: its conversion to Markdown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversion: Option<Conversion>,
}

/// A chat was made, has another status, title, model or mode, or began or ended a turn.
#[derive(Serialize, ToSchema)]
pub struct WorkspaceChatUpdated {
    /// The chat.
    pub chat_id: Uuid,
    /// Its title.
    pub title: String,
    /// Its model, if one was chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its mode.
    pub mode: Mode,
    /// Its status.
    pub status: ChatStatus,
    /// The turn that runs or waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<Uuid>,
    /// The number of open questions, requests for permission, and calls that wait for a program.
    pub waiting_for: u64,
    /// The call that waits for a program, if one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handed_out: Option<Uuid>,
    /// The time at which it last began or ended a turn.
    #[schema(format = DateTime)]
    pub active_at: String,
}

/// A chat was deleted.
#[derive(Serialize, ToSchema)]
pub struct WorkspaceChatDeleted {
    /// The chat.
    pub chat_id: Uuid,
}

/// A task was made, or has another phase or status. Clones and subtasks are not told: the task's own stream has them.
#[derive(Serialize, ToSchema)]
pub struct WorkspaceTaskUpdated {
    /// The task.
    pub task_id: Uuid,
    /// The name of its flow.
    pub flow: String,
    /// Its phase.
    pub phase: TaskPhase,
    /// Its outcome, once `phase` is `finished`. Before that it tells only whether something has failed so far.
    pub status: TaskStatus,
    /// The node that waits for a person, if one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asks: Option<String>,
    /// The time at which it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub finished_at: Option<String>,
}

/// A task was deleted.
#[derive(Serialize, ToSchema)]
pub struct WorkspaceTaskDeleted {
    /// The task.
    pub task_id: Uuid,
}

/// An agent of a task, or a clone or subtask, waits for a person, or does so no more. Their states are not told otherwise; a task that people
/// made and a chat of people tell it by theirs.
#[derive(Serialize, ToSchema)]
pub struct WorkspaceWaitingUpdated {
    /// The task that people made.
    pub root_task_id: Uuid,
    /// The task.
    pub task_id: Uuid,
    /// The chat of its agent, where that asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat_id: Option<Uuid>,
    /// The node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The ids of its open questions and requests for permission; none when it waits no more.
    pub requests: Vec<Uuid>,
}

/// A person looks at a chat, a file or a folder, or has looked away: of these `chat_id` or `path` is there. Presences are of this connection: after a
/// reconnect, forget those that were told, and they are told anew.
#[derive(Serialize, ToSchema)]
pub struct WorkspacePresence {
    /// The person.
    pub user_id: Uuid,
    /// The chat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat_id: Option<Uuid>,
    /// The file or folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Whether they look at it. A presence that is not repeated for 60 s ends with `false`.
    pub here: bool,
}

/// An event of a chat that the client named in `actors`.
#[derive(Serialize, ToSchema)]
pub struct WorkspaceChatEvent {
    /// The chat.
    pub chat_id: Uuid,
    /// Its number in the chat, the cursor to go on from there.
    pub id: u64,
    /// Its name, as in the stream of the chat; `cursor` tells nothing but the number.
    pub event: String,
    /// Its data, as in the stream of the chat.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub data: Option<Value>,
}

/// An event of a task that the client named in `actors`.
#[derive(Serialize, ToSchema)]
pub struct WorkspaceTaskEvent {
    /// The task.
    pub task_id: Uuid,
    /// Its number in the task, the cursor to go on from there.
    pub id: u64,
    /// Its name, as in the stream of the task; `cursor` tells nothing but the number.
    pub event: String,
    /// Its data, as in the stream of the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub data: Option<Value>,
}
