//! The requests of a chat or task to people, as an entry of the list of what waits in a workspace.

use crate::{ChatId, NodeId, TaskId, UserId, WorkspaceEvent, WorkspaceId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A chat or task that waits for people: its requests, and where they are from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Waiting {
    /// Its workspace.
    pub workspace_id: WorkspaceId,
    /// The chat, where a chat asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat_id: Option<ChatId>,
    /// The task, where a node or its agent asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// The tasks above that one, the root first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub above: Vec<TaskId>,
    /// The node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeId>,
    /// The title of the chat, or the name of the flow.
    pub title: String,
    /// The person that it works for.
    pub user_id: UserId,
    /// The open questions and requests for permission, as their events.
    pub waiting_for: Vec<Value>,
}

impl Waiting {
    /// The task that people made, where a task or its agent asks.
    pub fn root(&self) -> Option<TaskId> {
        Some(self.task_id?.top(&self.above))
    }

    /// Whether the task, or one below it, asks.
    pub fn is_below(&self, task: TaskId) -> bool {
        self.task_id == Some(task) || self.above.contains(&task)
    }

    /// The event that tells a workspace's clients of the open requests, or that there are none any more; none where the state of the chat or of the
    /// task tells of them.
    pub fn event(&self, is_over: bool) -> Option<WorkspaceEvent> {
        let task_id = self.task_id.filter(|_| self.chat_id.is_some() || !self.above.is_empty())?;
        let id = |asked: &Value| {
            let data = asked.get("data")?;
            data.get("permission_id").or_else(|| data.get("question_id"))?.as_str()?.parse().ok()
        };
        Some(WorkspaceEvent::WaitingUpdated {
            root_task_id: self.root()?,
            task_id,
            chat_id: self.chat_id,
            node: self.node.clone(),
            requests: if is_over { Vec::new() } else { self.waiting_for.iter().filter_map(id).collect() },
        })
    }
}
