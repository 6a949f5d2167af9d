//! Changes in a workspace: of its files, and of the state of its chats and tasks. Their stream lets a client refresh a view
//! that it loaded before.

use crate::{
    CallId, ChatId, ChatStatus, Conversion, FileId, FilePath, Mode, NodeId, Status, TaskId, TaskPhase, Timestamp,
    TurnId, UserId, WorkspaceId,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The kind of an entry of a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// A file with versions.
    File,
    /// A folder.
    Folder,
    /// A file whose history is kept elsewhere, such as a chat's: it has an identity, but no versions.
    Projection,
}

/// The effect of a change on a file or folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileOp {
    /// A folder, or a projection, was made.
    Made,
    /// A version was written, or was found to be current already.
    Written,
    /// It has another path.
    Moved,
    /// It is in the trash.
    Removed,
    /// It came back from the trash.
    Restored,
    /// It is gone for good.
    Purged,
    /// Its conversion to Markdown has another status; its content is the same.
    Converted,
    /// It has other tags or explicit links; its content is the same.
    Marked,
}

/// One change in a workspace. Those of chats and tasks carry their state after the change, so only the latest one counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum WorkspaceEvent {
    /// A file or folder was made, written, moved, removed or restored, by anybody: a person, an agent of a chat, or a task.
    FileUpdated {
        /// Its path after the change; the last one, if it is gone.
        path: FilePath,
        /// Its current version; 0 for a folder, for a chat's own file, and for one that is gone.
        v: u64,
        /// Its identity.
        file_id: FileId,
        /// Its kind.
        kind: FileKind,
        /// The effect of the change.
        op: FileOp,
        /// Its path before the change, if it was moved.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<FilePath>,
        /// The author: `user:…`, `agent:…` or `system`.
        author: String,
        /// The time of the change.
        at: Timestamp,
        /// Its conversion to Markdown, if it is a document.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        conversion: Option<Conversion>,
    },
    /// A chat was made, has another status, title, model or mode, or began or ended a turn.
    ChatUpdated {
        /// The chat.
        chat_id: ChatId,
        /// Its title.
        title: String,
        /// Its model, if one was chosen.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// Its mode.
        #[serde(default)]
        mode: Mode,
        /// Its status.
        status: ChatStatus,
        /// The turn that runs or waits.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn_id: Option<TurnId>,
        /// The number of open questions, requests for permission, and calls that wait for a program.
        waiting_for: u64,
        /// The call that waits for a program, if one does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        handed_out: Option<CallId>,
        /// The time at which it last began or ended a turn.
        active_at: Timestamp,
    },
    /// A chat was deleted.
    ChatDeleted {
        /// The chat.
        chat_id: ChatId,
    },
    /// A task was made, or has another phase or status. Clones and subtasks are not told: the task's own stream has them.
    TaskUpdated {
        /// The task.
        task_id: TaskId,
        /// The name of its flow.
        flow: String,
        /// Its phase.
        phase: TaskPhase,
        /// Its outcome, once `phase` is `finished`. Before that it tells only whether something has failed so far.
        status: Status,
        /// The node that waits for a person, if one does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asks: Option<NodeId>,
        /// The time at which it ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        finished_at: Option<Timestamp>,
    },
    /// A task was deleted.
    TaskDeleted {
        /// The task.
        task_id: TaskId,
    },
    /// An agent of a task, or a clone or subtask, waits for a person, or does so no more. Their states are not told otherwise.
    WaitingUpdated {
        /// The task that people made.
        root_task_id: TaskId,
        /// The task.
        task_id: TaskId,
        /// The chat of its agent, where that asks.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        chat_id: Option<ChatId>,
        /// The node.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        node: Option<NodeId>,
        /// The ids of its open questions and requests for permission; none when it waits no more.
        requests: Vec<uuid::Uuid>,
    },
    /// A person looks at something, or has looked away. It is on the bus alone: no record keeps it.
    Presence {
        /// The person.
        user_id: UserId,
        /// The chat or the path.
        at: PresenceTarget,
        /// Whether they look at it.
        here: bool,
    },
}

/// The subject of a person's attention.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PresenceTarget {
    /// A chat.
    ChatId(ChatId),
    /// A file, a folder, or the page of one.
    Path(FilePath),
}

impl PresenceTarget {
    /// The path that policies decide on: of a chat the path of its file.
    ///
    /// # Errors
    /// None in practice: the path of an id is valid.
    pub fn path(&self) -> Result<FilePath, crate::Error> {
        match self {
            Self::ChatId(chat) => Ok(FilePath::parse(&format!("/chats/{chat}.md"))?),
            Self::Path(path) => Ok(path.clone()),
        }
    }
}

/// The bus channel on which changes of a workspace are announced, each as the JSON of an [`Announced`].
pub fn changes_channel(workspace: WorkspaceId) -> String {
    format!("changes/{workspace}")
}

/// A message on [`changes_channel`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Announced {
    /// The record of the change, for a change of a file: a version 7 UUID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<uuid::Uuid>,
    /// The change.
    #[serde(flatten)]
    pub event: WorkspaceEvent,
}

impl WorkspaceEvent {
    /// The time of the change, where it says one.
    pub fn at(&self) -> Option<Timestamp> {
        match self {
            Self::FileUpdated { at, .. } | Self::ChatUpdated { active_at: at, .. } => Some(*at),
            Self::TaskUpdated { finished_at, .. } => *finished_at,
            Self::ChatDeleted { .. }
            | Self::TaskDeleted { .. }
            | Self::WaitingUpdated { .. }
            | Self::Presence { .. } => None,
        }
    }

    /// The event by which the wait that this one tells of is over; none for one without open requests, and for events of another kind.
    #[must_use]
    pub fn waiting_over(&self) -> Option<Self> {
        match self {
            Self::WaitingUpdated { root_task_id, task_id, chat_id, node, requests } if !requests.is_empty() => {
                let (root_task_id, task_id, chat_id) = (*root_task_id, *task_id, *chat_id);
                Some(Self::WaitingUpdated { root_task_id, task_id, chat_id, node: node.clone(), requests: Vec::new() })
            }
            _ => None,
        }
    }

    /// Whether its chat or task is gone for good: no state of it comes after this one.
    pub fn is_deletion(&self) -> bool {
        matches!(self, Self::ChatDeleted { .. } | Self::TaskDeleted { .. })
    }

    /// The chat or task whose state it is, as a key of its own; none for a change of a file, and for a presence.
    pub fn subject(&self) -> Option<String> {
        match self {
            Self::FileUpdated { .. } | Self::Presence { .. } => None,
            Self::ChatUpdated { chat_id, .. } | Self::ChatDeleted { chat_id } => Some(format!("chat/{chat_id}")),
            Self::TaskUpdated { task_id, .. } | Self::TaskDeleted { task_id } => Some(format!("task/{task_id}")),
            Self::WaitingUpdated { chat_id: Some(chat_id), .. } => Some(format!("chat/{chat_id}")),
            Self::WaitingUpdated { task_id, .. } => Some(format!("task/{task_id}")),
        }
    }
}

/// The name and the data of `event` on the wire.
pub fn encode(event: &WorkspaceEvent) -> (&'static str, Value) {
    match event {
        WorkspaceEvent::FileUpdated { path, v, file_id, kind, op, from, author, at, conversion } => {
            let mut data = json!({
                "path": path, "v": v, "file_id": file_id, "kind": kind, "op": op, "author": author, "at": at,
            });
            if let Some(from) = from {
                data["from"] = json!(from);
            }
            if let Some(conversion) = conversion {
                data["conversion"] = json!(conversion);
            }
            ("file_updated", data)
        }
        WorkspaceEvent::ChatUpdated {
            chat_id,
            title,
            model,
            mode,
            status,
            turn_id,
            waiting_for,
            handed_out,
            active_at,
        } => {
            let mut data = json!({
                "chat_id": chat_id, "title": title, "mode": mode, "status": status, "waiting_for": waiting_for, "active_at": active_at,
            });
            if let Some(model) = model {
                data["model"] = json!(model);
            }
            if let Some(turn_id) = turn_id {
                data["turn_id"] = json!(turn_id);
            }
            if let Some(call_id) = handed_out {
                data["handed_out"] = json!(call_id);
            }
            ("chat_updated", data)
        }
        WorkspaceEvent::ChatDeleted { chat_id } => ("chat_deleted", json!({ "chat_id": chat_id })),
        WorkspaceEvent::TaskUpdated { task_id, flow, phase, status, asks, finished_at } => {
            let mut data = json!({ "task_id": task_id, "flow": flow, "phase": phase, "status": status });
            if let Some(asks) = asks {
                data["asks"] = json!(asks);
            }
            if let Some(finished_at) = finished_at {
                data["finished_at"] = json!(finished_at);
            }
            ("task_updated", data)
        }
        WorkspaceEvent::TaskDeleted { task_id } => ("task_deleted", json!({ "task_id": task_id })),
        WorkspaceEvent::WaitingUpdated { root_task_id, task_id, chat_id, node, requests } => {
            let mut data = json!({ "root_task_id": root_task_id, "task_id": task_id, "requests": requests });
            if let Some(chat_id) = chat_id {
                data["chat_id"] = json!(chat_id);
            }
            if let Some(node) = node {
                data["node"] = json!(node);
            }
            ("waiting_updated", data)
        }
        WorkspaceEvent::Presence { user_id, at, here } => {
            let mut data = json!({ "user_id": user_id, "here": here });
            match at {
                PresenceTarget::ChatId(chat) => data["chat_id"] = json!(chat),
                PresenceTarget::Path(path) => data["path"] = json!(path),
            }
            ("presence", data)
        }
    }
}
