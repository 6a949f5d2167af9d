//! How stages, memory, metadata and comparisons of tasks look.

use super::{ChildKind, ErrorCode, FlowRef, InnerError, NodeRole, TaskStatus, Usage};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use utoipa::ToSchema;
use uuid::Uuid;

/// A page of a task's history.
#[derive(Serialize, ToSchema)]
pub struct TaskHistory {
    /// The stages, in the order in which they began.
    pub stages: Vec<TaskStage>,
    /// The cursor of the next page; none at the end.
    pub next_cursor: Option<String>,
}

/// The executor of a node.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StageKind {
    /// A model.
    Agent,
    /// People.
    Human,
    /// Code.
    Deterministic,
}

/// One execution of a node.
#[derive(Serialize, ToSchema)]
pub struct TaskStage {
    /// Counts from 1 in its task.
    pub number: u64,
    /// The node.
    pub node: String,
    /// Its executor.
    pub kind: Option<StageKind>,
    /// The role of the node.
    pub role: Option<NodeRole>,
    /// How it ended; none while it executes or waits.
    pub status: Option<TaskStatus>,
    /// How often it was begun.
    pub attempt: u32,
    /// How often a worker died with it.
    pub crashes: Option<u32>,
    /// When it first began.
    #[schema(format = DateTime)]
    pub started_at: Option<String>,
    /// When it ended.
    #[schema(format = DateTime)]
    pub finished_at: Option<String>,
    /// Its input, exactly.
    #[schema(value_type = Value)]
    pub input: Value,
    /// Its output, exactly.
    #[schema(value_type = Value)]
    pub output: Value,
    /// Why it failed.
    pub error: Option<InnerError>,
    /// The context that it was given.
    pub context: Option<StageContext>,
    /// Why it was begun anew.
    #[schema(required = false)]
    pub retries: Vec<StageRetry>,
    /// A refusal of a policy.
    #[schema(required = false)]
    pub denials: Vec<StageDenial>,
    /// The tools that it called itself.
    #[schema(required = false)]
    pub tools: Vec<StageTool>,
    /// The conversation with its agent.
    #[schema(required = false)]
    pub conversation: Vec<StageRound>,
    /// Outputs that did not fit the node's schema.
    #[schema(required = false)]
    pub rejected: Vec<StageRejection>,
    /// The questions to people, and their answers.
    #[schema(required = false)]
    pub questions: Vec<StageQuestion>,
    /// When it was paused before it.
    #[schema(required = false)]
    pub pauses: Vec<StagePause>,
    /// For a merge: the branches that came.
    pub merge: Option<StageMerge>,
    /// For a branch or a split: its children.
    pub fork: Option<StageFork>,
    /// The node that the task went to next.
    pub routed_to: Option<String>,
    /// Its usage.
    pub metrics: Option<StageMetrics>,
}

/// The usage of one execution of a node.
#[derive(Serialize, ToSchema)]
pub struct StageMetrics {
    /// From start to end, in milliseconds.
    pub duration_ms: u64,
    /// How long the task waited in the queue before it, in milliseconds.
    pub queue_ms: u64,
    /// Tokens of context.
    pub context_tokens: u64,
    /// Tokens and money, where a model was asked.
    pub usage: Option<Usage>,
    /// Tools called.
    pub tool_calls: u32,
}

/// The context that a node was given.
#[derive(Serialize, ToSchema)]
pub struct StageContext {
    /// The profile; `global` for all of it.
    pub profile: String,
    /// Its items, in the order in which the node reads them.
    pub items: Vec<MemoryItem>,
    /// Its tokens.
    pub tokens: u64,
    /// Items that matched and did not fit the budget.
    pub left_out: u32,
}

/// One remembered thing.
#[derive(Serialize, ToSchema)]
pub struct MemoryItem {
    /// `task`, `project` or `global`.
    pub store: String,
    /// Its key.
    pub key: String,
    /// The content.
    #[schema(value_type = Value)]
    pub content: Value,
    /// Its tags.
    #[schema(required = false)]
    pub tags: Vec<String>,
    /// Its tokens.
    pub tokens: u64,
    /// When it was remembered.
    #[schema(format = DateTime)]
    pub at: String,
}

/// A retry.
#[derive(Serialize, ToSchema)]
pub struct StageRetry {
    /// Counts from 1.
    pub number: u32,
    /// The earlier failure.
    pub error: InnerError,
    /// When it was begun anew.
    #[schema(format = DateTime)]
    pub at: String,
}

/// A refusal of a policy.
#[derive(Serialize, ToSchema)]
pub struct StageDenial {
    /// The thing that was refused.
    pub what: String,
    /// The rule.
    pub rule: String,
}

/// One use of a tool.
#[derive(Serialize, ToSchema)]
pub struct StageTool {
    /// The tool.
    pub tool: String,
    /// Its arguments; cut when they are long.
    pub args: String,
    /// How it ended: a misuse is a failure, an ordinary error is partial.
    pub status: TaskStatus,
    /// The answer; cut when it is long.
    pub output: String,
    /// The reason when it is no success: `NOT_BEGUN` means that no part of it happened, `OUTCOME_UNKNOWN` that it was begun and its result
    /// is not known, anything else that it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<ErrorCode>,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// How long it waited before for slots, for a place on its machine and for the machine itself, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_ms: Option<u64>,
    /// The resources that it used, when it ran as processes of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<StageResources>,
}

/// The resources that a command used.
#[derive(Serialize, ToSchema)]
pub struct StageResources {
    /// CPU time, of the kernel's too, in milliseconds: of the command and of those of its processes that it waited for.
    pub cpu_ms: u64,
    /// The most memory that one of its processes had, in bytes. It is looked at ten times a second.
    pub peak_memory_bytes: u64,
    /// The size of its standard input, in bytes.
    pub bytes_in: u64,
    /// The size of its standard output and standard error, in bytes, dropped parts included.
    pub bytes_out: u64,
}

/// One round of a conversation with an agent.
#[derive(Serialize, ToSchema)]
pub struct StageRound {
    /// The chat that carries it.
    pub chat: Uuid,
    /// Counts from 1.
    pub round: u32,
    /// The prompt; its beginning where it is long, the whole is an artifact of the task.
    #[schema(required = false)]
    pub prompt: String,
    /// The agent's answer; none while it is being asked.
    pub reply: Option<StageReply>,
}

/// The answer of an agent.
#[derive(Serialize, ToSchema)]
pub struct StageReply {
    /// The chat.
    pub chat: Uuid,
    /// Counts from 1.
    pub round: u32,
    /// Its last words.
    pub text: String,
    /// Why its turn ended.
    pub stop_reason: String,
    /// Its usage.
    pub usage: Usage,
    /// Model calls.
    pub steps: u32,
    /// The tools it called.
    #[schema(required = false)]
    pub tools: Vec<StageTool>,
    /// The failure.
    pub error: Option<InnerError>,
}

/// An output that did not fit the schema.
#[derive(Serialize, ToSchema)]
pub struct StageRejection {
    /// Counts from 1.
    pub round: u32,
    /// The messages of the validator.
    pub errors: Vec<String>,
}

/// The questions to people.
#[derive(Serialize, ToSchema)]
pub struct StageQuestion {
    /// The set of questions.
    pub question_id: Uuid,
    /// The questions, as in the `question` event.
    #[schema(value_type = Vec<Object>)]
    pub questions: Vec<Value>,
    /// The time of the questions.
    #[schema(format = DateTime)]
    pub at: String,
    /// When no answer becomes a failure.
    #[schema(format = DateTime)]
    pub expires_at: Option<String>,
    /// Their answers.
    pub answer: Option<StageAnswer>,
}

/// The answers of people.
#[derive(Serialize, ToSchema)]
pub struct StageAnswer {
    /// One value per question.
    #[schema(value_type = Object)]
    pub answers: Map<String, Value>,
    /// The person who answered.
    pub by: String,
    /// The time of the answers.
    #[schema(format = DateTime)]
    pub at: String,
}

/// A pause.
#[derive(Serialize, ToSchema)]
pub struct StagePause {
    /// The time of the pause.
    #[schema(format = DateTime)]
    pub at: String,
    /// The time of the continuation; none while it lasts.
    #[schema(format = DateTime)]
    pub continued_at: Option<String>,
}

/// How a merge came to begin.
#[derive(Serialize, ToSchema)]
pub struct StageMerge {
    /// The nodes whose outputs it takes, in the order of its input.
    pub taken: Vec<String>,
    /// Those that could have come and failed.
    #[schema(required = false)]
    pub failed: Vec<String>,
    /// Those that the merge has stopped waiting for.
    #[schema(required = false)]
    pub cancelled: Vec<String>,
}

/// The children of a branch or a split.
#[derive(Serialize, ToSchema)]
pub struct StageFork {
    /// Their kind.
    pub kind: ChildKind,
    /// The nodes that its edges lead to.
    pub to: Vec<String>,
    /// How many there will be.
    pub total: u32,
    /// How many were sent off.
    pub spawned: u32,
    /// How many ended by themselves with success.
    pub succeeded: u32,
    /// How many failed.
    pub failed: u32,
    /// How many ended with some of their work done.
    pub partial: u32,
    /// How many went on into a merge.
    pub merged: u32,
}

/// The memory of a task.
#[derive(Serialize, ToSchema)]
pub struct TaskMemory {
    /// When that was so.
    #[schema(format = DateTime)]
    pub at: String,
    /// The items, by store, then by key.
    pub items: Vec<MemoryItem>,
    /// Stores that have more than is shown.
    #[schema(required = false)]
    pub cut: Vec<String>,
}

/// The engine that made a run.
#[derive(Serialize, ToSchema)]
pub struct Engine {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The revision of the events in its logs.
    pub events: u32,
}

/// The origins of a run: versions and hashes.
#[derive(Serialize, ToSchema)]
pub struct TaskMetadata {
    /// The task.
    pub task_id: Uuid,
    /// The engine.
    pub engine: Engine,
    /// The flow.
    pub flow: FlowRef,
    /// The SHA-256 of every manifest, by its path.
    pub manifests: BTreeMap<String, String>,
    /// The SHA-256 of every schema.
    pub schemas: BTreeMap<String, String>,
    /// The adapters behind the flow's models and tools.
    #[schema(value_type = Vec<Object>)]
    pub adapters: Vec<Value>,
    /// The facts in `engine_metadata.yaml`: `name`, `flow_version`, `engine_version`, `authors`, and `schema_revisions`, its names of
    /// the revisions of its schemas.
    #[schema(value_type = Object, required = false)]
    pub declared: Map<String, Value>,
    /// The facts that `engine_metadata.yaml` has every run record.
    #[schema(value_type = Object, required = false)]
    pub labels: Map<String, Value>,
    /// The SHA-256 of its input.
    pub input: Option<String>,
    /// The task that it is a re-run of, and from which node.
    #[schema(value_type = Option<Object>, required = false)]
    pub replay: Option<Value>,
    /// When it was made.
    #[schema(format = DateTime)]
    pub started_at: String,
}

/// How two runs compare.
#[derive(Serialize, ToSchema)]
pub struct TaskDiff {
    /// The first run.
    pub a: ComparedRun,
    /// The second run.
    pub b: ComparedRun,
    /// The first place where they part; none when they did the same.
    pub parts: Option<Divergence>,
    /// The work of each node in both.
    pub nodes: BTreeMap<String, ComparedNode>,
}

/// A run that is compared.
#[derive(Serialize, ToSchema)]
pub struct ComparedRun {
    /// The task.
    pub task_id: Uuid,
    /// Its flow.
    pub flow: Option<FlowRef>,
    /// How it ended; none while it runs.
    pub status: Option<TaskStatus>,
}

/// A kind of difference.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "described by flow::diff::DivergenceKind")]
pub enum DivergenceKind {
    Input,
    Output,
    Status,
    Denial,
    Route,
    Fork,
    Merge,
    End,
}

/// The first place where two runs part.
#[derive(Serialize, ToSchema)]
pub struct Divergence {
    /// The task, by the names from the root down; empty for the root.
    pub task: String,
    /// The node.
    pub node: Option<String>,
    /// The kind of difference.
    pub what: DivergenceKind,
    /// The first run's value there.
    #[schema(value_type = Value, required = false)]
    pub a: Value,
    /// The second run's value there.
    #[schema(value_type = Value, required = false)]
    pub b: Value,
    /// The places where the values differ, at most 50.
    #[schema(required = false)]
    pub differences: Vec<ValueDifference>,
}

/// One place where two values differ.
#[derive(Serialize, ToSchema)]
pub struct ValueDifference {
    /// A JSON pointer.
    pub path: String,
    /// The first's value there.
    #[schema(value_type = Value, required = false)]
    pub a: Value,
    /// The second's value there.
    #[schema(value_type = Value, required = false)]
    pub b: Value,
}

/// The work of one node in two runs.
#[derive(Serialize, ToSchema)]
pub struct ComparedNode {
    /// In the first.
    pub a: NodeTotals,
    /// In the second.
    pub b: NodeTotals,
    /// Whether it gave the same in both.
    pub same: bool,
}

/// The work of one node in one run.
#[derive(Serialize, ToSchema)]
pub struct NodeTotals {
    /// How often it executed.
    pub runs: u64,
    /// How often it failed.
    pub failures: u64,
    /// How often it was tried again.
    pub retries: u64,
    /// Milliseconds in all.
    pub duration_ms: u64,
    /// Tokens read and written.
    pub tokens: u64,
    /// US dollars.
    pub cost_usd: f64,
}
