//! The shapes of tasks, their stages and their results.

use super::{InnerError, Usage};
use axum::response::{IntoResponse, Response};
use domain::TaskId;
use http::StatusCode;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use utoipa::ToSchema;
use uuid::Uuid;

/// The universal status of tools, nodes and tasks.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// All of its work succeeded.
    Success,
    /// Its work failed.
    Failure,
    /// Some of its work succeeded, and the rules let the task go on.
    Partial,
}

/// The state of a task.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskPhase {
    /// Accepted, not begun.
    Queued,
    /// A node executes, or clones or subtasks do.
    Running,
    /// A node waits for an agent or a person.
    Suspended,
    /// Paused before a node.
    Paused,
    /// A command failed again and again; `parked_reason` says why.
    Parked,
    /// It has ended; `status` is final.
    Finished,
}

/// The kind of a child task.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChildKind {
    /// A branch.
    Clone,
    /// A split.
    Subtask,
}

/// A flow, with the hash of all its manifests.
#[derive(Serialize, ToSchema)]
pub struct FlowRef {
    /// Its name: the folder's in `/system/flows`.
    pub name: String,
    /// The SHA-256 of its manifests; a task keeps the manifests that it began with.
    pub hash: String,
}

impl From<domain::task::FlowRef> for FlowRef {
    fn from(flow: domain::task::FlowRef) -> Self {
        Self { name: flow.name, hash: flow.hash.to_string() }
    }
}

/// The task that a clone or a subtask comes from.
#[derive(Serialize, ToSchema)]
pub struct Origin {
    /// The task that made it.
    pub parent: Uuid,
    /// All tasks above it, the root first.
    pub ancestors: Vec<Uuid>,
    /// Its name and those of the tasks between it and the root.
    pub line: Vec<String>,
    /// The places of the same among their siblings, from 0.
    pub place: Vec<u32>,
    /// Its kind.
    pub kind: ChildKind,
    /// The branch or split that made it.
    pub node: String,
    /// The node that it began at.
    pub to: String,
    /// Its place among its siblings, from 0.
    pub index: u32,
}

/// A task that will be.
#[derive(Serialize, ToSchema)]
pub struct TaskAccepted {
    /// The task.
    pub task_id: Uuid,
    /// Always `queued`.
    pub status: &'static str,
    /// The flow, with the manifests that it will run.
    pub flow: FlowRef,
}

/// A command to a task that is durable; its result is told by events.
#[derive(Serialize, ToSchema)]
pub struct AcceptedTaskCommand {
    /// The task.
    pub task_id: Uuid,
    /// `accepted`; `finished` for the stop of a task that had ended.
    pub status: &'static str,
}

impl AcceptedTaskCommand {
    /// The answer about a task that had ended before.
    pub(crate) fn had_ended(task: TaskId) -> Response {
        axum::Json(Self { task_id: task.0, status: "finished" }).into_response()
    }

    /// The answer about this task.
    pub(crate) fn of(task: TaskId) -> Response {
        (StatusCode::ACCEPTED, axum::Json(Self { task_id: task.0, status: "accepted" })).into_response()
    }
}

/// A task.
#[derive(Serialize, ToSchema)]
pub struct Task {
    /// Its id.
    pub task_id: Uuid,
    /// Its workspace.
    pub workspace_id: Uuid,
    /// Its flow.
    pub flow: FlowRef,
    /// Its labels.
    #[schema(required = false)]
    pub labels: BTreeMap<String, String>,
    /// Its state.
    pub phase: TaskPhase,
    /// Its outcome, once `phase` is `finished`. Before that it tells only that nothing has failed so far (`success`), or that something has.
    pub status: TaskStatus,
    /// The node that executes or waits.
    pub node: Option<String>,
    /// Why it is parked.
    pub parked_reason: Option<String>,
    /// The open question to people, as `{event, data}`.
    #[schema(value_type = Vec<Object>, required = false)]
    pub waiting_for: Vec<Value>,
    /// Whether the agent of its node waits for people: the list of what waits has the request.
    #[schema(required = false)]
    pub agent_waits: bool,
    /// The thing that its node waits for, where that is no answer.
    pub wait: Option<TaskWait>,
    /// Its origin, for a clone or a subtask.
    pub origin: Option<Origin>,
    /// The version of a file that started it, where one did.
    pub handoff: Option<Handoff>,
    /// Its output, once it is finished.
    #[schema(value_type = Value, required = false)]
    pub output: Value,
    /// Why it failed.
    pub error: Option<InnerError>,
    /// The priority: when not all tasks can run, those with higher values go first. Left out where it is 0.
    pub priority: Option<i8>,
    /// Nodes executed.
    pub steps: u64,
    /// Clones and subtasks made.
    pub children: u64,
    /// Its usage, without its clones' and subtasks'.
    pub usage: Usage,
    /// The budget for its agents and those of all clones and subtasks below it, where there is one.
    pub budget: Option<TaskBudget>,
    /// Where there is a budget: the usage of clones and subtasks that have ended, and of all below them.
    pub usage_below: Option<Usage>,
    /// When it was made.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When it ended.
    #[schema(format = DateTime)]
    pub finished_at: Option<String>,
}

/// The version of a file that started a task, and the tasks that led to this version.
#[derive(Serialize, ToSchema)]
pub struct Handoff {
    /// The file.
    pub file_id: Uuid,
    /// Its path when the version was written.
    #[schema(example = "/projects/app/plan.md")]
    pub path: String,
    /// The version.
    pub v: u64,
    /// The tasks that led here, the first one first: each but the first was started by a file that the one before it wrote.
    pub chain: Option<Vec<HandoffLink>>,
}

/// A task of a chain of handoffs.
#[derive(Serialize, ToSchema)]
pub struct HandoffLink {
    /// The name of its flow.
    pub flow: String,
    /// The task.
    pub task: Uuid,
}

/// A budget of a task and all tasks below it; a part that is left out has no limit.
#[derive(Serialize, ToSchema)]
pub struct TaskBudget {
    /// Tokens read and written.
    #[schema(minimum = 1)]
    pub max_tokens: Option<u64>,
    /// US dollars.
    #[schema(exclusive_minimum = 0.0)]
    pub max_cost_usd: Option<f64>,
    /// Milliseconds since the task was made, waits included.
    #[schema(minimum = 1)]
    pub max_wall_ms: Option<u64>,
}

/// A wait of a node; it holds no worker.
#[derive(Serialize, ToSchema)]
pub struct TaskWait {
    /// `backoff`: it failed, and is tried again at `until`. `slots`: as many are at work as may be. `place`: the machine of its
    /// command has as many as it takes, or starts. `budget`: nothing is left of the budget for its agent, until a clone or subtask gives back its rest.
    pub reason: String,
    /// Of `budget`: the answers of its agent so far.
    pub round: Option<u32>,
    /// When it goes on at the latest.
    #[schema(format = DateTime)]
    pub until: Option<String>,
    /// The retry that follows, with the error that caused it.
    pub retry: Option<TaskRetry>,
    /// The names that it waits for.
    pub names: Option<Vec<String>>,
    /// The name under which it waits.
    pub holder: Option<String>,
    /// How long it waited before, in milliseconds.
    pub queue_ms: Option<u64>,
    /// Why it could not begin, where the machine is not ready.
    pub why: Option<String>,
}

/// A retry of a node.
#[derive(Serialize, ToSchema)]
pub struct TaskRetry {
    /// Counts from 1.
    pub number: u32,
    /// The last failure.
    pub error: InnerError,
}

/// A page of tasks.
#[derive(Serialize, ToSchema)]
pub struct TaskPage {
    /// The tasks.
    pub tasks: Vec<Task>,
    /// The cursor of the next page; none at the end.
    pub next_cursor: Option<String>,
}
