//! Handoffs: tasks that a committed version of a file started (spec 001 §6).

use crate::{FileId, FilePath, TaskId};
use serde::{Deserialize, Serialize};

/// The version of a file that started a task, and the tasks that led to this version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Handoff {
    /// The file.
    pub file_id: FileId,
    /// Its path when the version was written.
    pub path: FilePath,
    /// The version, from 1.
    pub v: u64,
    /// The tasks that led here, the first one first: each but the first was started by a file that the one before it wrote. Empty when a
    /// person, or an agent in a person's chat, wrote the version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chain: Vec<HandoffLink>,
}

/// A task of a chain of handoffs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandoffLink {
    /// The name of its flow.
    pub flow: String,
    /// The task.
    pub task: TaskId,
}
