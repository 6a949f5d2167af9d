//! The artifacts of tasks, as they are described.

use super::FlowRef;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

/// The kind of an artifact.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ArtifactKind {
    /// An output that fitted the schema of its node.
    Output,
    /// The answer of a tool.
    ToolResult,
    /// The prompt of an agent.
    Prompt,
    /// The usage of the stages of a task.
    Telemetry,
}

/// An artifact of a task.
#[derive(Serialize, ToSchema)]
pub struct Artifact {
    /// Its id, unique in its task.
    pub id: String,
    /// The task.
    pub task_id: Uuid,
    /// The flow that made it.
    pub flow: FlowRef,
    /// Its kind.
    pub kind: ArtifactKind,
    /// The node that it is of.
    pub node: Option<String>,
    /// The number of the node's execution.
    pub attempt: u32,
    /// The schema that it fits.
    pub schema: Option<String>,
    /// When it came about.
    #[schema(format = DateTime)]
    pub at: String,
    /// The file that it is in.
    pub path: String,
    /// The offset of its line in the file, in bytes; none for one that was too large to keep.
    pub offset: Option<u64>,
    /// The length of its content as JSON, in bytes.
    pub bytes: u64,
    /// The SHA-256 of its content as JSON.
    pub sha256: String,
}

/// A page of artifacts.
#[derive(Serialize, ToSchema)]
pub struct ArtifactPage {
    /// The artifacts, oldest first.
    pub artifacts: Vec<Artifact>,
    /// The cursor of the next page; none at the end.
    pub next_cursor: Option<String>,
}
