//! Principals: the callers of reads and writes.

use crate::{ChatId, TaskId, UserId};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The caller of a read or a write: every one of them names a principal (ARCHITECTURE.md, "Security").
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Principal {
    /// A person.
    User {
        /// The user.
        id: UserId,
    },
    /// An agent that works in a chat for a person.
    Agent {
        /// The persona, such as `assistant`.
        role: String,
        /// The chat it works in.
        chat: ChatId,
        /// The user it works for.
        user: UserId,
    },
    /// A deterministic node of a task that works for a person.
    Task {
        /// The task.
        task: TaskId,
        /// The user it works for.
        user: UserId,
    },
    /// BuildScale itself, for housekeeping.
    System,
}

impl Principal {
    /// The one person of a machine without accounts.
    pub fn local() -> Self {
        Self::User { id: UserId(uuid::Uuid::nil()) }
    }

    /// The person behind it; the nil id for the system.
    pub fn user(&self) -> UserId {
        match self {
            Self::User { id } | Self::Agent { user: id, .. } | Self::Task { user: id, .. } => *id,
            Self::System => UserId(uuid::Uuid::nil()),
        }
    }
}

/// As it is shown as an author: `user:<id>`, `agent:<role>`, `task:<id>`, `system`.
impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User { id } => write!(f, "user:{id}"),
            Self::Agent { role, .. } => write!(f, "agent:{role}"),
            Self::Task { task, .. } => write!(f, "task:{task}"),
            Self::System => f.write_str("system"),
        }
    }
}
