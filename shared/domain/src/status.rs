//! The states of chats and tasks, and the status of what a task has done.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The states of a chat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChatStatus {
    /// Accepted, not begun.
    Queued,
    /// A turn is running.
    Running,
    /// A turn waits for an answer or a permission.
    Suspended,
    /// Waiting for the next message.
    Idle,
    /// A command failed again and again and was put aside; see `paused_reason`.
    Paused,
}

/// The state of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskPhase {
    /// Accepted, not begun.
    Queued,
    /// A node is executing, or children are.
    Running,
    /// A node waits for an agent's or a person's answer, until it is tried again, or for its turn.
    Suspended,
    /// Held before a node, by a person or by the inspector of its flow.
    Paused,
    /// A command failed again and again; see `parked_reason`.
    Parked,
    /// It has a status.
    Finished,
}

/// The universal status of tools, nodes and tasks (spec 002 §3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It succeeded.
    Success,
    /// Its work failed.
    Failure,
    /// Some of its work succeeded, and the rules of the parent let it go on.
    Partial,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Partial => "partial",
        })
    }
}
