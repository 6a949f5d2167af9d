//! The list of requests and questions that wait for people.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

/// A chat or task that waits for people: its requests, and where they are from.
#[derive(Serialize, ToSchema)]
pub struct WaitingEntry {
    /// The workspace.
    pub workspace_id: Uuid,
    /// The chat, where a chat asks.
    pub chat_id: Option<Uuid>,
    /// The task, where a node or its agent asks.
    pub task_id: Option<Uuid>,
    /// The tasks above that one, the root first.
    #[schema(required = false)]
    pub above: Vec<Uuid>,
    /// The node.
    pub node: Option<String>,
    /// The title of the chat, or the name of the flow.
    pub title: String,
    /// The person that it works for.
    pub user_id: Uuid,
    /// The open questions and requests for permission, each as `{event, data}`: `question` or `permission_required`.
    #[schema(value_type = Vec<Object>)]
    pub waiting_for: Vec<Value>,
}

/// A page of what waits for people.
#[derive(Serialize, ToSchema)]
pub struct WaitingPage {
    /// The chats and tasks.
    pub waiting: Vec<WaitingEntry>,
    /// The cursor of the next page; none at the end.
    pub next_cursor: Option<String>,
}

/// The agent of a node waits for people, or goes on. They answer it at its chat.
#[derive(Serialize, ToSchema)]
pub struct TaskAgentWaits {
    /// The node.
    pub node: String,
    /// The chat.
    pub chat_id: Uuid,
    /// The time at which the task was told.
    #[schema(format = DateTime)]
    pub at: String,
    /// The open question or request for permission; none when the agent goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<AgentAsked>,
}

/// A question or request for permission of an agent. Very long arguments are cut, and such a request has no `digest`; the chat has the whole.
#[derive(Serialize, ToSchema)]
pub struct AgentAsked {
    /// `question` or `permission_required`.
    pub event: String,
    /// The data of that event.
    #[schema(value_type = Object)]
    pub data: Value,
}
