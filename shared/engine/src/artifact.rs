//! Artifacts (spec 002 §10.1, §10.10): records of a task that can be checked without the engine: validated outputs, tool
//! results, prompts, telemetry.
//!
//! They are files of the workspace under `/tasks/<task>/`, one per kind, one JSON line per artifact: a task of a hundred
//! nodes leaves four files and not a hundred, and tools such as `grep` read them. The table has an index of the same lines
//! by task, by node, by schema and by time.
//!
//! Everything is written as one batch, from the task's log, after the task has ended: no step waits for it. The same log
//! gives the same files and the same rows, so that to archive again after a crash changes nothing.

mod batch;
mod chats;
mod find;
mod flush;
mod index;
mod log;

pub use batch::{Batch, Rules};
pub use find::ArtifactFilter;
pub(crate) use index::forget;
pub use index::{ArtifactSelector, Page};

use domain::{FilePath, NodeId, Sha256, TaskId, Timestamp, UserId, WorkspaceId, task::FlowRef};
use ports::{Redactor, Table};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use workspace::Workspaces;

/// The kind of an artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArtifactKind {
    /// An output that fitted the schema of its node.
    Output,
    /// A tool's result.
    ToolResult,
    /// The prompt of an agent.
    Prompt,
    /// The usage of a task's stages.
    Telemetry,
}

impl ArtifactKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Output, Self::ToolResult, Self::Prompt, Self::Telemetry];

    /// The name of the file that they are in.
    pub fn file(self) -> &'static str {
        match self {
            Self::Output => "outputs.jsonl",
            Self::ToolResult => "tool_results.jsonl",
            Self::Prompt => "prompts.jsonl",
            Self::Telemetry => "telemetry.jsonl",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Output => "output",
            Self::ToolResult => "tool_result",
            Self::Prompt => "prompt",
            Self::Telemetry => "telemetry",
        }
    }
}

/// One thing to keep.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its kind.
    pub kind: ArtifactKind,
    /// The node that it is of; none for an artifact of the whole task.
    pub node: Option<NodeId>,
    /// The execution of the node, from 1.
    pub attempt: u32,
    /// The schema that it fits, by name.
    pub schema: Option<String>,
    /// When it came about, as the log says.
    pub at: Timestamp,
    /// The validated output, the result, the prompt or the usage.
    pub content: Value,
}

/// An artifact as the index knows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Artifact {
    /// Its id, unique in its task: `node/attempt/kind/number`.
    pub id: String,
    /// The task.
    pub task_id: TaskId,
    /// The flow, with the hash of its manifests.
    pub flow: FlowRef,
    /// Its kind.
    pub kind: ArtifactKind,
    /// The node that it is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeId>,
    /// The execution of the node, from 1.
    pub attempt: u32,
    /// The schema that it fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// When it came about.
    pub at: Timestamp,
    /// The file that it is in.
    pub path: FilePath,
    /// The start of its line in the file, in bytes; none for one that was too large to keep, whose digest alone is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// The length of its content as JSON, in bytes.
    pub bytes: u64,
    /// The SHA-256 of its content as JSON.
    pub sha256: Sha256,
}

/// The owner of artifacts: a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The task.
    pub task: TaskId,
    /// For whom it worked.
    pub user: UserId,
    /// The flow that it ran.
    pub flow: FlowRef,
}

/// The artifacts of an installation. Cheap to clone.
#[derive(Clone)]
pub struct Artifacts {
    table: Arc<dyn Table>,
    workspaces: Workspaces,
    redactor: Redactor,
}

impl std::fmt::Debug for Artifacts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Artifacts")
    }
}

impl Artifacts {
    /// Over these stores.
    pub fn new(table: Arc<dyn Table>, workspaces: Workspaces) -> Self {
        Self { table, workspaces, redactor: Redactor::default() }
    }

    /// The same, taking these secrets out of everything that is kept.
    #[must_use]
    pub fn redacting(self, redactor: Redactor) -> Self {
        Self { redactor, ..self }
    }
}

/// The file that the artifacts of a kind are in.
fn path(task: TaskId, kind: ArtifactKind) -> Result<FilePath, domain::PathError> {
    FilePath::parse(&format!("/tasks/{task}/{}", kind.file()))
}

#[cfg(test)]
mod tests;
