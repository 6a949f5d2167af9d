//! Tasks: made of flows, listed, read. Commands to them are in [`crate::task_commands`], inspection of their runs in [`crate::run_inspection`].

use crate::{
    Context,
    access::{Access, Read, Run},
    error::Answer,
    extract::{ByLabel, Json, Labelled, TraceParent, Traced, page_length},
    flows::InFlow,
    ids::Ids,
    rate_limits::Paced,
    schema,
    workspaces::InWorkspace,
};
use axum::{extract::State, response::IntoResponse};
use domain::{
    Budget, CommandId, Error, FileId, LabelChanges, Labels, Status, TaskId, TaskPhase, Timestamp, WorkspaceId,
};
use engine::{AcceptedTask, TaskChanges, TaskFilter};
use http::{StatusCode, header};
use serde::Deserialize;
use serde_json::{Number, Value};
use std::{collections::BTreeMap, sync::Arc};
use utoipa::{IntoParams, ToSchema};

/// The task of a path.
#[derive(Clone, Copy, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct InTask {
    /// The workspace.
    #[param(value_type = Uuid)]
    pub workspace_id: WorkspaceId,
    /// The task.
    #[param(value_type = Uuid)]
    pub task_id: TaskId,
}

/// A task to make.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewTask {
    /// The input: any JSON, at most 192 KiB.
    #[serde(default)]
    #[schema(value_type = Value, example = json!({ "topic": "bees" }))]
    input: Value,
    /// The start node; the flow's default one when none.
    start: Option<String>,
    /// Files to give along, by id.
    #[serde(default)]
    #[schema(value_type = Vec<Uuid>)]
    files: Vec<FileId>,
    /// The priority: when not all tasks can run, those with higher values go first.
    #[serde(default = "usual_priority")]
    #[schema(value_type = i8, minimum = -100, maximum = 100)]
    priority: Number,
    /// Whether it pauses before each node, and so do its clones and subtasks.
    #[serde(default)]
    stepping: bool,
    /// Nodes that it pauses before, in each clone and subtask too.
    #[serde(default)]
    breakpoints: Vec<String>,
    /// The budget for its agents and those of all clones and subtasks below it; a part that is left out is that of the flow.
    #[serde(default, deserialize_with = "crate::extract::or_default")]
    #[schema(value_type = Option<schema::TaskBudget>)]
    budget: Budget,
    /// Labels to find it by: at most 16 pairs of text, with keys of at most 64 characters and values of at most 512. No agent reads them, and
    /// clones and subtasks have none of them.
    #[serde(default, deserialize_with = "crate::extract::or_default")]
    #[schema(value_type = Option<BTreeMap<String, String>>, example = json!({ "customer": "c-17" }))]
    labels: BTreeMap<String, String>,
}

fn usual_priority() -> Number {
    0.into()
}

/// Changes of a task; at least one field.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskChange {
    /// The priority: when not all tasks can run, those with higher values go first.
    #[schema(value_type = Option<i8>, minimum = -100, maximum = 100)]
    priority: Option<Number>,
    /// Labels to set; null removes the label of a key. Others stay.
    #[serde(default, deserialize_with = "crate::extract::or_default")]
    #[schema(value_type = Option<BTreeMap<String, Option<String>>>, example = json!({ "customer": "c-17", "ticket": null }))]
    labels: LabelChanges,
}

/// A number that is no `i8` becomes one that the task's own check refuses as out of range.
fn priority_of(number: &Number) -> i8 {
    number.as_i64().and_then(|priority| i8::try_from(priority).ok()).unwrap_or(i8::MAX)
}

/// The selection of tasks.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Which {
    /// Only those of this flow.
    flow: Option<String>,
    /// Only those that are, or were, like this.
    #[param(value_type = Option<schema::TaskStatus>)]
    status: Option<Status>,
    /// Only those that do this.
    #[param(value_type = Option<schema::TaskPhase>)]
    phase: Option<TaskPhase>,
    /// Only those that were made then or later (RFC 3339).
    #[param(value_type = Option<String>, format = DateTime)]
    since: Option<Timestamp>,
    /// Only those that were made before (RFC 3339).
    #[param(value_type = Option<String>, format = DateTime)]
    until: Option<Timestamp>,
    /// The clones and subtasks of this task, in their order, instead of the tasks that people made.
    #[param(value_type = Option<Uuid>)]
    parent: Option<TaskId>,
    /// Tasks whose ids begin so, of all creators, in the order of their ids, instead. No other filter counts then.
    #[param(min_length = 1, max_length = 36, pattern = "^[0-9a-fA-F-]+$", example = "019bf537")]
    id: Option<String>,
    /// At most this many; 1 to 200. A page may have fewer and still have a next one.
    #[param(default = 50, minimum = 1, maximum = 200)]
    limit: Option<usize>,
    /// The `next_cursor` of the page before.
    cursor: Option<String>,
}

/// The answer about a task that will be.
pub(crate) fn accepted(workspace: WorkspaceId, task: AcceptedTask) -> impl IntoResponse {
    let place = format!("/api/v1/workspaces/{workspace}/tasks/{}", task.task_id);
    let body = schema::TaskAccepted { task_id: task.task_id.0, status: "queued", flow: task.flow.into() };
    (StatusCode::ACCEPTED, [(header::LOCATION, place)], axum::Json(body))
}

/// Makes a task of a flow, with the flow's manifests as they are now. When this answers, the command is durable.
/// `UNPROCESSABLE` when the flow has faults. `RATE_LIMITED`, with `Retry-After`, when as many tasks of it run or wait as its
/// `execution.yaml` allows, or when the workspace has too much waiting altogether.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/flows/{flow}/tasks", tag = "tasks", params(InFlow, TraceParent),
    request_body = NewTask, responses((status = 202, description = "It is accepted.", body = schema::TaskAccepted)))]
pub(crate) async fn create_task(
    State(context): State<Arc<Context>>,
    Access { at, by, .. }: Access<Run, InFlow>,
    _: Paced,
    ids: Ids,
    Traced(trace): Traced,
    Json(new): Json<NewTask>,
) -> Answer<impl IntoResponse> {
    let NewTask { input, start, files, priority, stepping, breakpoints, budget, labels } = new;
    let (priority, labels) = (priority_of(&priority), Labels::checked("labels", labels)?);
    let handoff = None;
    let new = engine::NewTask { input, start, files, priority, stepping, breakpoints, budget, trace, handoff, labels };
    let task = context.tasks.create(at.workspace_id, TaskId::root(ids.id("task")), &at.flow, new, &by).await?;
    Ok(accepted(at.workspace_id, task))
}

/// The tasks that people made, the newest first; or the clones and subtasks of one. A page may have fewer than its limit, or none, although a
/// `next_cursor` says that more follow.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/tasks", tag = "tasks", params(InWorkspace, Which, ByLabel),
    responses((status = 200, description = "A page of them.", body = schema::TaskPage)))]
pub(crate) async fn list_tasks(
    State(context): State<Arc<Context>>,
    Access { at, .. }: Access<Read, InWorkspace>,
    Labelled(which, labels): Labelled<Which>,
) -> Answer<impl IntoResponse> {
    let Which { flow, status, phase, since, until, parent, id, limit, cursor } = which;
    let filter = TaskFilter { flow, phase, status, since, until, labels };
    let limit = page_length(limit, 50, 200)?;
    if let Some(id) = id {
        return Ok(axum::Json(context.tasks.with_prefix(at.workspace_id, &id, limit).await?));
    }
    Ok(axum::Json(match parent {
        Some(parent) => context.tasks.children(at.workspace_id, parent, &filter, limit, cursor).await?,
        None => context.tasks.list(at.workspace_id, &filter, limit, cursor).await?,
    }))
}

/// A task as it is: its progress, its status, its lineage, its output once it has ended.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/tasks/{task_id}", tag = "tasks", params(InTask),
    responses((status = 200, description = "The task.", body = schema::Task)))]
pub(crate) async fn get_task(
    State(context): State<Arc<Context>>,
    Access { at, .. }: Access<Read, InTask>,
) -> Answer<impl IntoResponse> {
    Ok(axum::Json(context.tasks.get(at.workspace_id, at.task_id).await?))
}

/// Changes labels of a task, also after its end; or gives it, and its clones and subtasks, another priority where they wait: for a worker, for slots
/// and for places of commands. An agent that is asked gets that priority, too. `CONFLICT` for another priority when the task has ended, or when its
/// flow takes tasks in their order (`queue_policy: fifo`).
#[utoipa::path(patch, path = "/api/v1/workspaces/{workspace_id}/tasks/{task_id}", tag = "tasks", params(InTask),
    request_body = TaskChange, responses((status = 202, description = "It is accepted.", body = schema::AcceptedTaskCommand)))]
pub(crate) async fn change_task(
    State(context): State<Arc<Context>>,
    Access { at, by, .. }: Access<Run, InTask>,
    ids: Ids,
    Json(change): Json<TaskChange>,
) -> Answer<impl IntoResponse> {
    let TaskChange { priority, labels } = change;
    if priority.is_none() && labels.is_empty() {
        return Err(Error::invalid("body", "there is nothing to change").hint("give a priority or labels").into());
    }
    let changes = TaskChanges { priority: priority.as_ref().map(priority_of), labels };
    context.tasks.change(at.workspace_id, at.task_id, changes, CommandId(ids.id("command")), &by).await?;
    Ok(schema::AcceptedTaskCommand::of(at.task_id))
}

/// Takes a task off the list with its clones and subtasks; one that runs is stopped first. Its artifacts go into the trash, and the
/// chats of its agents as chats do. `CONFLICT` for a clone or subtask: it goes with the task that people made.
#[utoipa::path(delete, path = "/api/v1/workspaces/{workspace_id}/tasks/{task_id}", tag = "tasks", params(InTask),
    responses((status = 204, description = "It is gone.")))]
pub(crate) async fn delete_task(
    State(context): State<Arc<Context>>,
    Access { at, by, .. }: Access<Run, InTask>,
) -> Answer<impl IntoResponse> {
    context.tasks.delete(at.workspace_id, at.task_id, CommandId(context.base.clock.id()), &by).await?;
    Ok(StatusCode::NO_CONTENT)
}
