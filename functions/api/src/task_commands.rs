//! Commands to a task: stop, pause, step, go on, answers, and to run again.

use crate::{
    Context,
    access::{Access, Run, demand},
    error::Answer,
    extract::Json,
    ids::Ids,
    rate_limits::Paced,
    schema,
    tasks::{InTask, accepted},
};
use axum::{extract::State, response::IntoResponse};
use domain::{Budget, CommandId, Error, NodeId, TaskId, WorkspaceId};
use engine::RerunOptions;
use identity::Action;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// The nodes to pause before.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PauseTaskRequest {
    /// Before these nodes, whenever they come; before the next node, whichever it is, when none.
    #[serde(default)]
    before: Vec<String>,
}

/// Options of a resume.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResumeTaskRequest {
    /// Whether to give up the part that failed again and again instead of trying it once more.
    #[serde(default)]
    drop: bool,
}

/// Options of a re-run.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReplayTaskRequest {
    /// The nodes that do not come after this one take their recorded output; it and the nodes after it run for real. Without it every node
    /// runs, with the recorded answers of models, tools and people.
    from: Option<String>,
    /// The budget of the new task; a part that is left out is that of the recorded one.
    #[serde(default, deserialize_with = "crate::extract::or_default")]
    #[schema(value_type = Option<schema::TaskBudget>)]
    budget: Budget,
    /// Whether the new task pauses before each node, and so do its clones and subtasks.
    #[serde(default)]
    stepping: bool,
    /// Nodes that it pauses before, in each clone and subtask too.
    #[serde(default)]
    breakpoints: Vec<String>,
}

/// Options of a retry.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RetryTaskRequest {
    /// The budget of the new task; a part that is left out is that of the recorded one.
    #[serde(default, deserialize_with = "crate::extract::or_default")]
    #[schema(value_type = Option<schema::TaskBudget>)]
    budget: Budget,
    /// Whether the new task pauses before each node, and so do its clones and subtasks.
    #[serde(default)]
    stepping: bool,
    /// Nodes that it pauses before, in each clone and subtask too.
    #[serde(default)]
    breakpoints: Vec<String>,
}

/// Answers to a human step, one by each question's name.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StepAnswers {
    /// One value per question, by its name; for an approval `approved`, and maybe a `comment`.
    #[schema(value_type = Object, example = json!({ "approved": true, "comment": "well done" }))]
    answers: Map<String, Value>,
}

/// The human step of a path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct AtNode {
    /// The workspace.
    #[param(value_type = Uuid)]
    workspace_id: WorkspaceId,
    /// The task.
    #[param(value_type = Uuid)]
    task_id: TaskId,
    /// The node that asks.
    node: String,
}

/// Stops a task with its clones and subtasks. Again, and after its end, is harmless.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/tasks/{task_id}/stop", tag = "tasks", params(InTask),
    responses((status = 200, description = "There was nothing to stop: it had ended.", body = schema::AcceptedTaskCommand),
        (status = 202, description = "It is accepted; the `stopped` event tells when it has.",
        body = schema::AcceptedTaskCommand)))]
pub(crate) async fn stop_task(
    State(context): State<Arc<Context>>,
    Access { at, by, .. }: Access<Run, InTask>,
    ids: Ids,
) -> Answer<impl IntoResponse> {
    let was_alive = context.tasks.stop(at.workspace_id, at.task_id, CommandId(ids.id("command")), &by).await?;
    Ok(match was_alive {
        true => schema::AcceptedTaskCommand::of(at.task_id),
        false => schema::AcceptedTaskCommand::had_ended(at.task_id),
    })
}

/// Pauses a task before its next node, or before these nodes, and with it all clones and subtasks below it, now and later. A
/// node that executes ends first. `CONFLICT` when the task has ended.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/tasks/{task_id}/pause", tag = "tasks", params(InTask),
    request_body = PauseTaskRequest, responses((status = 202, description = "It is accepted.", body = schema::AcceptedTaskCommand)))]
pub(crate) async fn pause_task(
    State(context): State<Arc<Context>>,
    Access { at, by, .. }: Access<Run, InTask>,
    ids: Ids,
    Json(pause): Json<PauseTaskRequest>,
) -> Answer<impl IntoResponse> {
    let command = CommandId(ids.id("command"));
    context.tasks.pause(at.workspace_id, at.task_id, &pause.before, command, &by).await?;
    Ok(schema::AcceptedTaskCommand::of(at.task_id))
}

/// Lets a paused task execute one node and pause again; where it waits for clones and subtasks, each paused one of these.
/// `CONFLICT` when it neither is paused nor waits for them.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/tasks/{task_id}/step", tag = "tasks", params(InTask),
    responses((status = 202, description = "It is accepted.", body = schema::AcceptedTaskCommand)))]
pub(crate) async fn step_task(
    State(context): State<Arc<Context>>,
    Access { at, by, .. }: Access<Run, InTask>,
    ids: Ids,
) -> Answer<impl IntoResponse> {
    context.tasks.step(at.workspace_id, at.task_id, CommandId(ids.id("command")), &by).await?;
    Ok(schema::AcceptedTaskCommand::of(at.task_id))
}

/// Lets a task go on that is paused, with all below it, or that was put aside because a command failed again and again.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/tasks/{task_id}/resume", tag = "tasks", params(InTask),
    request_body = ResumeTaskRequest, responses((status = 202, description = "It is accepted.", body = schema::AcceptedTaskCommand)))]
pub(crate) async fn resume_task(
    State(context): State<Arc<Context>>,
    Access { at, by, .. }: Access<Run, InTask>,
    ids: Ids,
    Json(go_on): Json<ResumeTaskRequest>,
) -> Answer<impl IntoResponse> {
    let command = CommandId(ids.id("command"));
    context.tasks.resume(at.workspace_id, at.task_id, go_on.drop, command, &by).await?;
    Ok(schema::AcceptedTaskCommand::of(at.task_id))
}

/// Answers a human step, also before it asks: the answer is kept for it, in the place of one that was given before. An approval needs
/// the right to approve. `INVALID_ARGUMENT` when it does not fit, `CONFLICT` once the step has ended.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/tasks/{task_id}/answers/{node}", tag = "tasks",
    params(AtNode), request_body = StepAnswers,
    responses((status = 202, description = "They are accepted.", body = schema::AcceptedTaskCommand)))]
pub(crate) async fn answer_task(
    State(context): State<Arc<Context>>,
    Access { at, by, caller, role, .. }: Access<Run, AtNode>,
    ids: Ids,
    Json(given): Json<StepAnswers>,
) -> Answer<impl IntoResponse> {
    let command = CommandId(ids.id("command"));
    let may_approve = demand(&caller, role, Action::Approve).is_ok();
    let given = engine::Answers { answers: given.answers, may_approve };
    context.tasks.answer(at.workspace_id, at.task_id, &at.node, given, command, &by).await?;
    Ok(schema::AcceptedTaskCommand::of(at.task_id))
}

/// Runs a task again that has ended, as a new task; the old one is not changed. `CONFLICT` for one that has not ended, and
/// for clones and subtasks: they run again with the task that made them. From a node behind an approval it needs the right to approve: nobody is
/// asked again.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/tasks/{task_id}/replay", tag = "tasks", params(InTask),
    request_body = ReplayTaskRequest,
    responses((status = 202, description = "The new task is accepted.", body = schema::TaskAccepted)))]
pub(crate) async fn replay_task(
    State(context): State<Arc<Context>>,
    Access { at, by, caller, role, .. }: Access<Run, InTask>,
    _: Paced,
    ids: Ids,
    Json(again): Json<ReplayTaskRequest>,
) -> Answer<impl IntoResponse> {
    if let Some(from) = &again.from
        && let Err(refused) = demand(&caller, role, Action::Approve)
        && let Some(kept) = context.tasks.kept_approvals(at.workspace_id, at.task_id, from).await?.first()
    {
        return Err(asks_nobody(refused, kept).into());
    }
    let new = TaskId::root(ids.id("task"));
    let ReplayTaskRequest { from, budget, stepping, breakpoints } = again;
    let options = RerunOptions { budget, stepping, breakpoints };
    let task = context.tasks.replay(at.workspace_id, at.task_id, new, from.as_deref(), options, &by).await?;
    Ok(accepted(at.workspace_id, task))
}

/// Runs the nodes of a task again that failed or were stopped, as a new one: nodes that succeeded keep their recorded output, in clones and
/// subtasks too, unless nodes that run now give them another input. `CONFLICT` when none failed and none was stopped. Of nodes
/// behind an approval it needs the right to approve: nobody is asked again.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/tasks/{task_id}/retry", tag = "tasks", params(InTask),
    request_body = RetryTaskRequest,
    responses((status = 202, description = "The new task is accepted.", body = schema::TaskAccepted)))]
pub(crate) async fn retry_task(
    State(context): State<Arc<Context>>,
    Access { at, by, caller, role, .. }: Access<Run, InTask>,
    _: Paced,
    ids: Ids,
    Json(RetryTaskRequest { budget, stepping, breakpoints }): Json<RetryTaskRequest>,
) -> Answer<impl IntoResponse> {
    if let Err(refused) = demand(&caller, role, Action::Approve)
        && let Some(kept) = context.tasks.approvals_kept_by_retry(at.workspace_id, at.task_id).await?.first()
    {
        return Err(asks_nobody(refused, kept).into());
    }
    let (new, options) = (TaskId::root(ids.id("task")), RerunOptions { budget, stepping, breakpoints });
    let task = context.tasks.retry(at.workspace_id, at.task_id, new, options, &by).await?;
    Ok(accepted(at.workspace_id, task))
}

/// The refusal of a re-run by which nodes behind `kept` would run once more by an approval of the recorded run.
fn asks_nobody(refused: Error, kept: &NodeId) -> Error {
    refused.hint(format!("replay it from {kept} or a node before it, which asks again"))
}
