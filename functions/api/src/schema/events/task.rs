//! The data of the events of tasks (`domain::task_native`).

use super::{
    super::{
        ChildKind, ErrorCode, FlowRef, InnerError, StageMetrics, StageResources, StageTool, TaskRetry, TaskStatus,
        Usage,
    },
    Question,
};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

/// The task was made.
#[derive(Serialize, ToSchema)]
pub struct TaskStarted {
    /// The task.
    pub task_id: Uuid,
    /// Its flow.
    pub flow: FlowRef,
    /// Its input, exactly.
    #[schema(value_type = Value)]
    pub input: Value,
    /// The node that it begins at.
    pub start: String,
    /// The time of the creation.
    #[schema(format = DateTime)]
    pub at: String,
    /// The origin of a clone or a subtask.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<TaskStartedBy>,
    /// Files given along.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<Vec<String>>,
    /// The run that it repeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay: Option<TaskReplay>,
}

/// The task that made a clone or a subtask.
#[derive(Serialize, ToSchema)]
pub struct TaskStartedBy {
    /// That task.
    pub parent: Uuid,
    /// The kind of the child.
    pub kind: ChildKind,
    /// Its name among its siblings.
    pub child: String,
}

/// A re-run of a task that has ended.
#[derive(Serialize, ToSchema)]
pub struct TaskReplay {
    /// The recorded task.
    pub of: Uuid,
    /// Nodes that do not come after this one take their recorded outputs. Without it every node runs, on recorded answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Whether only what failed runs for real.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<bool>,
}

/// A node began.
#[derive(Serialize, ToSchema)]
pub struct TaskNodeStarted {
    /// The node.
    pub node: String,
    /// Counts from 1; above 1 after a crash or a retry.
    #[schema(minimum = 1)]
    pub attempt: u32,
    /// How long the task waited in the queue before it, in milliseconds.
    pub queue_ms: u64,
    /// The time of the start.
    #[schema(format = DateTime)]
    pub at: String,
    /// The failure that it was begun anew for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<TaskRetry>,
}

/// The context of a node was put together.
#[derive(Serialize, ToSchema)]
pub struct TaskContext {
    /// The node.
    pub node: String,
    /// The profile; `global` for all of it.
    pub profile: String,
    /// Its tokens.
    pub tokens: u64,
    /// Items that matched and did not fit the budget.
    pub left_out: u32,
    /// Its items, without their contents.
    pub items: Vec<TaskContextItem>,
}

/// One remembered thing in a context.
#[derive(Serialize, ToSchema)]
pub struct TaskContextItem {
    /// `task`, `project` or `global`.
    pub store: String,
    /// Its key.
    pub key: String,
    /// Its tokens.
    pub tokens: u64,
}

/// A policy refused something.
#[derive(Serialize, ToSchema)]
pub struct TaskDenied {
    /// The node.
    pub node: String,
    /// The thing that was refused.
    pub what: String,
    /// The rule.
    pub rule: String,
}

/// A node asked its agent.
#[derive(Serialize, ToSchema)]
pub struct TaskAgentAsked {
    /// The node.
    pub node: String,
    /// The chat that carries the conversation; it has a stream of its own.
    pub chat_id: Uuid,
    /// Counts from 1; above 1 when the output did not fit the node's schema.
    #[schema(minimum = 1)]
    pub round: u32,
    /// The prompt; its beginning where it is long.
    pub prompt: String,
}

/// An agent answered.
#[derive(Serialize, ToSchema)]
pub struct TaskAgentReplied {
    /// The node.
    pub node: String,
    /// The chat.
    pub chat_id: Uuid,
    /// The round that it answers.
    pub round: u32,
    /// The agent's last words.
    pub text: String,
    /// Why its turn ended: a stop reason of `done`, or `stopped`.
    pub stop_reason: String,
    /// Its usage.
    pub usage: Usage,
    /// Model calls.
    pub steps: u32,
    /// The tools that it called, in order.
    pub tools: Vec<StageTool>,
    /// The failure, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<InnerError>,
}

/// A node called a tool.
#[derive(Serialize, ToSchema)]
pub struct TaskTool {
    /// The node.
    pub node: String,
    /// The tool.
    pub tool: String,
    /// Its arguments; cut when they are long.
    pub args: String,
    /// The outcome: a misuse is a failure, any other error is partial.
    pub status: TaskStatus,
    /// The answer; cut when it is long.
    pub output: String,
    /// Why it is no success: `NOT_BEGUN` says that nothing of it happened, `OUTCOME_UNKNOWN` that it was begun and what became of it
    /// is not known, anything else that it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<ErrorCode>,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// How long it waited before, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_ms: Option<u64>,
    /// The resources that it used, if it ran as processes of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<StageResources>,
}

/// A step of a plan file changed.
#[derive(Serialize, ToSchema)]
pub struct TaskPlanStep {
    /// The node.
    pub node: String,
    /// Counts from 1.
    pub step: u32,
    /// `pending`, `in_progress`, `done`, `failed` or `skipped`.
    pub status: String,
    /// The text of the step.
    pub title: String,
    /// The plan file.
    pub plan_path: String,
    /// The id of the plan file.
    #[schema(required = true)]
    pub plan_id: Option<Uuid>,
    /// Steps done.
    pub done: u32,
    /// Steps in all.
    pub total: u32,
}

/// An output did not fit the node's schema.
#[derive(Serialize, ToSchema)]
pub struct TaskOutputRejected {
    /// The node.
    pub node: String,
    /// Counts from 1.
    pub round: u32,
    /// The messages of the validator.
    pub errors: Vec<String>,
}

/// A human step asks.
#[derive(Serialize, ToSchema)]
pub struct TaskQuestion {
    /// The node, to answer by `POST …/answers/{node}`.
    pub node: String,
    /// The set of questions.
    pub question_id: Uuid,
    /// The questions.
    pub questions: Vec<Question>,
    /// The time of the questions.
    #[schema(format = DateTime)]
    pub at: String,
    /// When no answer becomes a failure; none for never.
    #[schema(format = DateTime, required = true)]
    pub expires_at: Option<String>,
}

/// People answered.
#[derive(Serialize, ToSchema)]
pub struct TaskAnswered {
    /// The node.
    pub node: String,
    /// One value per question.
    #[schema(value_type = Object)]
    pub answers: Map<String, Value>,
    /// The person who answered.
    pub by: String,
    /// The time of the answers.
    #[schema(format = DateTime)]
    pub at: String,
}

/// A node ended.
#[derive(Serialize, ToSchema)]
pub struct TaskNodeFinished {
    /// The node.
    pub node: String,
    /// Counts from 1.
    pub attempt: u32,
    /// The status.
    pub status: TaskStatus,
    /// Its output; null when it failed without one.
    #[schema(value_type = Value)]
    pub output: Value,
    /// Its usage.
    pub metrics: StageMetrics,
    /// The time of the end.
    #[schema(format = DateTime)]
    pub at: String,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<InnerError>,
}

/// A node waits, and nothing is held for it.
#[derive(Serialize, ToSchema)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum TaskWaiting {
    /// It failed, and is tried again at `until`.
    Backoff {
        /// The node.
        node: String,
        /// The attempt that it waits after.
        attempt: u32,
        /// The start of the wait.
        #[schema(format = DateTime)]
        at: String,
        /// The end of the wait.
        #[schema(format = DateTime)]
        until: String,
        /// The retry that follows, with the error.
        retry: TaskRetry,
    },
    /// Its flow, or the node, has as many at work as may be.
    Slots {
        /// The node.
        node: String,
        /// The attempt that begins then.
        attempt: u32,
        /// The start of the wait.
        #[schema(format = DateTime)]
        at: String,
        /// The names that it waits for.
        names: Vec<String>,
        /// The name under which it waits.
        holder: String,
        /// The retry that it begins with.
        retry: Option<TaskRetry>,
        /// How long the task waited in the queue before, in milliseconds.
        queue_ms: u64,
    },
    /// Nothing is left of the budget for its agent. It goes on when a clone or subtask gives back its rest, or the task above gives more.
    Budget {
        /// The node.
        node: String,
        /// The attempt that waits.
        attempt: u32,
        /// The start of the wait.
        #[schema(format = DateTime)]
        at: String,
        /// The answers of its agent so far; 0 if it is not asked yet.
        round: u32,
    },
    /// The machine of its command has as many as it takes, or starts.
    Place {
        /// The node.
        node: String,
        /// The attempt that begins then.
        attempt: u32,
        /// The start of the wait.
        #[schema(format = DateTime)]
        at: String,
        /// The name under which it waits.
        holder: String,
        /// The retry that it begins with.
        retry: Option<TaskRetry>,
        /// How long it waited before, in milliseconds.
        queue_ms: u64,
        /// Why it could not begin, where the machine is not ready.
        why: Option<String>,
        /// When it is begun again then.
        #[schema(format = DateTime)]
        until: Option<String>,
    },
}

/// A failure of the node that has just ended is taken by an edge of its own.
#[derive(Serialize, ToSchema)]
pub struct TaskCaught {
    /// The node.
    pub node: String,
    /// Its error.
    pub error: InnerError,
}

/// The task is like this from here on.
#[derive(Serialize, ToSchema)]
pub struct TaskStatusSet {
    /// The new status.
    pub status: TaskStatus,
}

/// A re-run cannot go on as the recorded task did: from here on it decides by itself.
#[derive(Serialize, ToSchema)]
pub struct TaskDiverged {
    /// The time of the divergence.
    #[schema(format = DateTime)]
    pub at: String,
}

/// The router decided where the task goes on.
#[derive(Serialize, ToSchema)]
pub struct TaskRouted {
    /// The node that it leaves.
    pub from: String,
    /// The node that it reaches.
    pub to: String,
}

/// A branch or a split made children.
#[derive(Serialize, ToSchema)]
pub struct TaskForked {
    /// The branch or split.
    pub node: String,
    /// The kind of the children.
    pub kind: ChildKind,
    /// The targets of its edges.
    pub to: Vec<String>,
    /// The number of children.
    pub total: u32,
}

/// Something came to a merge of this task.
#[derive(Serialize, ToSchema)]
pub struct TaskChildArrived {
    /// The merge.
    pub node: String,
    /// The node before it.
    pub from: String,
    /// The child, by the names from here down, joined by `/`; empty for the task itself.
    pub child: String,
    /// How it was when it came.
    pub status: TaskStatus,
    /// Its output.
    #[schema(value_type = Value)]
    pub output: Value,
}

/// A child has come to its end.
#[derive(Serialize, ToSchema)]
pub struct TaskChildFinished {
    /// The child.
    pub child: String,
    /// Its status.
    pub status: TaskStatus,
    /// Its output; null for one that went on into a merge.
    #[schema(value_type = Value)]
    pub output: Value,
    /// Whether it went on into a merge above instead of ending by itself.
    pub merged: bool,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<InnerError>,
}

/// A merge has what it waited for; its node begins.
#[derive(Serialize, ToSchema)]
pub struct TaskMerged {
    /// The merge.
    pub node: String,
    /// The children whose outputs it takes; when empty, all that have come.
    pub taken: Vec<String>,
    /// Those that could have come and failed.
    pub failed: Vec<String>,
    /// Children that the merge has stopped waiting for.
    pub cancelled: Vec<String>,
}

/// The task went on into a merge of a task above. It is the last event of its stream.
#[derive(Serialize, ToSchema)]
pub struct TaskWentUp {
    /// The merge.
    pub node: String,
    /// Its owner.
    pub task_id: Uuid,
}

/// The task is paused before a node.
#[derive(Serialize, ToSchema)]
pub struct TaskPaused {
    /// The node.
    pub node: String,
    /// The time of the pause.
    #[schema(format = DateTime)]
    pub at: String,
}

/// The task goes on.
#[derive(Serialize, ToSchema)]
pub struct TaskContinued {
    /// Whether it pauses again after one node.
    pub step: bool,
    /// The time of the continuation.
    #[schema(format = DateTime)]
    pub at: String,
}

/// The task has come to its end. It is the last event of its stream.
#[derive(Serialize, ToSchema)]
pub struct TaskEnd {
    /// The status.
    pub status: TaskStatus,
    /// The output of the task.
    #[schema(value_type = Value)]
    pub output: Value,
    /// The exit that it reached; none when it ended elsewhere.
    #[schema(required = true)]
    pub exit: Option<String>,
    /// The time of the end.
    #[schema(format = DateTime)]
    pub at: String,
    /// Why it failed, or `CANCELLED`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<InnerError>,
}

/// A command failed again and again: the task is put aside until a person resumes it or drops the command.
#[derive(Serialize, ToSchema)]
pub struct TaskParked {
    /// Always `PAUSED`.
    pub code: ErrorCode,
    /// The reason.
    pub message: String,
    /// The time of the pause.
    #[schema(format = DateTime)]
    pub at: String,
    /// Advice for the operator.
    pub hint: String,
}
