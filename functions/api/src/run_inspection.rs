//! Inspection of a run: its stages, its trace, its memory, its metadata, and its differences from another run. Looking never changes a
//! task.

use crate::{
    Context,
    access::{Access, Read},
    error::Answer,
    extract::{Query, page_length},
    schema,
    tasks::InTask,
    workspaces::InWorkspace,
};
use axum::{body::Body, extract::State, response::IntoResponse};
use domain::{Error, TaskId, TaskPhase, Timestamp};
use engine::{
    artifact::{ArtifactFilter, Artifacts},
    memory::{Memory, Scope},
};
use futures::TryStreamExt;
use http::header;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;

/// A page of a list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Page {
    /// At most this many; 1 to 200.
    #[param(default = 50, minimum = 1, maximum = 200)]
    limit: Option<usize>,
    /// The `next_cursor` of the page before.
    cursor: Option<String>,
}

/// The selection of artifacts of a task.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskArtifactQuery {
    /// Of this node.
    node: Option<String>,
    /// That fit this schema, by name.
    schema: Option<String>,
    /// That came about then or later (RFC 3339).
    #[param(value_type = Option<String>, format = DateTime)]
    after: Option<Timestamp>,
    /// That came about before (RFC 3339).
    #[param(value_type = Option<String>, format = DateTime)]
    before: Option<Timestamp>,
    /// At most this many; 1 to 200.
    #[param(default = 50, minimum = 1, maximum = 200)]
    limit: Option<usize>,
    /// The `next_cursor` of the page before.
    cursor: Option<String>,
}

/// The selection of artifacts of a workspace.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct ArtifactQuery {
    /// Of this task.
    #[param(value_type = Option<Uuid>)]
    task: Option<TaskId>,
    /// Of tasks of this flow, by name.
    flow: Option<String>,
    /// Of this node; with `flow` or `task`.
    node: Option<String>,
    /// That fit this schema, by name; with `flow` or `task`.
    schema: Option<String>,
    /// That came about then or later (RFC 3339).
    #[param(value_type = Option<String>, format = DateTime)]
    after: Option<Timestamp>,
    /// That came about before (RFC 3339).
    #[param(value_type = Option<String>, format = DateTime)]
    before: Option<Timestamp>,
    /// At most this many; 1 to 200.
    #[param(default = 50, minimum = 1, maximum = 200)]
    limit: Option<usize>,
    /// The `next_cursor` of the page before.
    cursor: Option<String>,
}

/// With which run to compare.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct DiffQuery {
    /// The other task.
    #[param(value_type = Uuid)]
    with: TaskId,
}

/// The stages of a task in the order in which they began, each with its input and output exactly as they were, its context,
/// tools, questions, route and times. Clones and subtasks have histories of their own.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/tasks/{task_id}/history", tag = "tasks",
    params(InTask, Page), responses((status = 200, description = "A page of them.", body = schema::TaskHistory)))]
pub(crate) async fn get_history(
    State(context): State<Arc<Context>>,
    Access { at, .. }: Access<Read, InTask>,
    Query(page): Query<Page>,
) -> Answer<impl IntoResponse> {
    let after = match page.cursor.as_deref() {
        None => 0,
        Some(cursor) => cursor.parse().map_err(|_| Error::invalid("cursor", "this is no cursor of this list"))?,
    };
    let limit = page_length(page.limit, 50, 200)?;
    Ok(axum::Json(telemetry::history(&context.tasks, at.workspace_id, at.task_id, after, limit).await?))
}

/// The trace of a task with all its clones and subtasks: one JSON line a fact, without ids, times and money. Two runs that
/// did the same have the same bytes.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/tasks/{task_id}/trace", tag = "tasks", params(InTask),
    responses((status = 200, description = "The trace.", body = String, content_type = "application/jsonl")))]
pub(crate) async fn get_trace(
    State(context): State<Arc<Context>>,
    Access { at, .. }: Access<Read, InTask>,
) -> Answer<impl IntoResponse> {
    let trace = telemetry::trace_stream(&context.tasks, at.workspace_id, at.task_id).await?;
    let body = Body::from_stream(trace.map_err(|error| std::io::Error::other(error.message)));
    Ok(([(header::CONTENT_TYPE, "application/jsonl")], body))
}

/// The memory of a task now; of a task that has ended, its memory at the end.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/tasks/{task_id}/memory", tag = "tasks", params(InTask),
    responses((status = 200, description = "The memory.", body = schema::TaskMemory)))]
pub(crate) async fn get_memory(
    State(context): State<Arc<Context>>,
    Access { at, .. }: Access<Read, InTask>,
) -> Answer<impl IntoResponse> {
    let view = context.tasks.get(at.workspace_id, at.task_id).await?;
    let memory = Memory::new(context.base.table.clone());
    if view.phase == TaskPhase::Finished
        && let Some(kept) = memory.kept_snapshot(at.workspace_id, view.root()).await?
    {
        return Ok(axum::Json(kept));
    }
    let scope = Scope { workspace: at.workspace_id, root: view.root(), flow: view.flow.name };
    Ok(axum::Json(memory.snapshot(&scope, context.base.clock.now()).await?))
}

/// The artifacts of a task: validated outputs, results of tools, telemetry. Each is one line of a file under `/tasks/<id>/`, at
/// `offset`; oldest first. Clones and subtasks have artifacts of their own.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/tasks/{task_id}/artifacts", tag = "tasks",
    params(InTask, TaskArtifactQuery), responses((status = 200, description = "A page of them.", body = schema::ArtifactPage)))]
pub(crate) async fn list_artifacts(
    State(context): State<Arc<Context>>,
    Access { at, .. }: Access<Read, InTask>,
    Query(asked): Query<TaskArtifactQuery>,
) -> Answer<impl IntoResponse> {
    context.tasks.get(at.workspace_id, at.task_id).await?;
    let TaskArtifactQuery { node, schema, after, before, limit, cursor } = asked;
    let wanted = ArtifactFilter { task: Some(at.task_id), flow: None, node, schema, since: after, until: before };
    find(&context, at.workspace_id, &wanted, limit, cursor).await
}

/// The artifacts of all tasks of a workspace: those of one flow, node or schema, or of a time; oldest first. A page may have
/// fewer than its limit although a `next_cursor` says that more follow.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/artifacts", tag = "tasks",
    params(InWorkspace, ArtifactQuery), responses((status = 200, description = "A page of them.", body = schema::ArtifactPage)))]
pub(crate) async fn find_artifacts(
    State(context): State<Arc<Context>>,
    Access { at, .. }: Access<Read, InWorkspace>,
    Query(asked): Query<ArtifactQuery>,
) -> Answer<impl IntoResponse> {
    let ArtifactQuery { task, flow, node, schema, after, before, limit, cursor } = asked;
    if let Some(task) = task {
        context.tasks.get(at.workspace_id, task).await?;
    }
    let wanted = ArtifactFilter { task, flow, node, schema, since: after, until: before };
    find(&context, at.workspace_id, &wanted, limit, cursor).await
}

async fn find(
    context: &Context,
    workspace: domain::WorkspaceId,
    wanted: &ArtifactFilter,
    limit: Option<usize>,
    cursor: Option<String>,
) -> Answer<axum::Json<engine::artifact::Page>> {
    let artifacts = Artifacts::new(context.base.table.clone(), context.base.workspaces.clone());
    Ok(axum::Json(artifacts.find(workspace, wanted, page_length(limit, 50, 200)?, cursor).await?))
}

/// The origins of a run: the engine's version, the SHA-256 of every manifest, the revisions of schemas, the fingerprints of adapters.
/// Written once.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/tasks/{task_id}/metadata", tag = "tasks", params(InTask),
    responses((status = 200, description = "The metadata.", body = schema::TaskMetadata)))]
pub(crate) async fn get_metadata(
    State(context): State<Arc<Context>>,
    Access { at, .. }: Access<Read, InTask>,
) -> Answer<impl IntoResponse> {
    Ok(axum::Json(context.tasks.metadata(at.workspace_id, at.task_id).await?))
}

/// The first differences of two runs, from cause to effect, and the work of each node in both.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/tasks/{task_id}/diff", tag = "tasks",
    params(InTask, DiffQuery),
    responses((status = 200, description = "The comparison.", body = schema::TaskDiff)))]
pub(crate) async fn diff_tasks(
    State(context): State<Arc<Context>>,
    Access { at, .. }: Access<Read, InTask>,
    Query(compared): Query<DiffQuery>,
) -> Answer<impl IntoResponse> {
    Ok(axum::Json(telemetry::diff(&context.tasks, at.workspace_id, at.task_id, compared.with).await?))
}
