//! `workflow.yaml`: nodes and edges.
//!
//! Required keys are optional in these types and required in their schemas (`extend`: a field that has a default is
//! never required by itself). A node with a mistake is still looked at, so that its other mistakes are found, too.

use super::StoreKind;
use crate::graph::{OnFailure, Role};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The graph of a flow and what its nodes do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("x-partial" = true, "required" = ["nodes", "edges"]))]
pub struct Workflow {
    /// The version of this file, for people.
    pub version: Value,
    /// The flow's name, for people; the folder's name is what it is called by.
    pub name: Option<String>,
    /// Its purpose.
    pub description: Option<String>,
    /// Files whose new versions start a task of this flow, once per version. The task has the version as its input and works for the
    /// author of the version.
    pub on: Vec<Trigger>,
    /// The nodes.
    pub nodes: Vec<NodeManifest>,
    /// The ways from node to node. There are no others.
    pub edges: Vec<EdgeManifest>,
    /// Anything, for people.
    pub metadata: Option<Map<String, Value>>,
}

/// Files whose new versions start a task: a pattern of paths, or one with more conditions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Trigger {
    /// Paths, with `*` inside of a folder and `**` through folders, such as `/projects/**/*.md`.
    Path(String),
    /// With more conditions.
    Pattern(TriggerPattern),
}

/// Files whose new versions start a task: those that fulfil all conditions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TriggerPattern {
    /// Paths, with `*` inside of a folder and `**` through folders, such as `/projects/**/*.md`.
    pub path: String,
    /// The `status` in the front matter of a Markdown file, such as `ready`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Other keys of the front matter, each with the value that it has to have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub front_matter: Option<Map<String, Value>>,
    /// Only first versions of files, or only later ones; both when it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<TriggerEvent>,
}

/// The kind of a version that starts a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TriggerEvent {
    /// The first version of a file.
    Created,
    /// A later version.
    Updated,
}

/// Whether an agent does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NodeKind {
    /// A model answers, and may use tools.
    Agent,
    /// The same input gives the same output.
    Deterministic,
}

/// One node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("x-partial" = true, "required" = ["id", "kind", "role", "context"]))]
pub struct NodeManifest {
    /// Its id, unique in the flow, without `/`.
    #[schemars(required, length(min = 1, max = 100))]
    pub id: Option<String>,
    /// Its name, for people.
    pub name: Option<String>,
    /// Its purpose.
    pub description: Option<String>,
    /// Whether an agent does it.
    #[schemars(required)]
    pub kind: Option<NodeKind>,
    /// Its role in the graph.
    #[schemars(required)]
    pub role: Option<Role>,
    /// For one start node of several: tasks begin here when nothing else is said.
    pub default_start: bool,
    /// For an agent node: the agent, an id of agents.yaml.
    pub agent_id: Option<String>,
    /// For an agent node: its prompt, a text with {{expressions}}. Its input as JSON by default.
    pub prompt: Option<String>,
    /// The part of memory that it is given: `none`, `global`, or the id of a context profile of memory.yaml.
    #[schemars(required)]
    pub context: Option<String>,
    /// The tools that it may use: ids of tools.yaml.
    pub tools: Vec<String>,
    /// The schema of its input: a file of schemas/, without .json.
    pub schema_in: Option<String>,
    /// The schema of its output: a file of schemas/, without .json.
    pub schema_out: Option<String>,
    /// The task goes on when this node fails. Not for a decision, which has nothing to go on by: it has `on_error`.
    pub continue_on_failure: Option<bool>,
    /// The task fails when this node fails; this is the default. For an exit: a task that comes there partial has failed.
    pub fail_on_failure: Option<bool>,
    /// For a linear node or a decision: failures that go on along an edge of their own, once no retry is left. The task stays as it
    /// was, and the next node is given `{error, input}`: the failure of the node, and its input. The first that matches counts.
    pub on_error: Vec<ErrorRouteManifest>,
    /// For an exit: every task that reaches it has failed. An exit has nothing else to say: it gives back its input.
    pub always_fail: bool,
    /// For a merge: how it joins.
    pub merge: Option<MergeManifest>,
    /// For a split: the elements that become subtasks.
    pub split: Option<SplitManifest>,
    /// For a deterministic node: its operation. `identity` by default.
    pub op: Option<OpManifest>,
    /// For a human step: its questions.
    pub ask: Option<AskManifest>,
    /// The place in memory for its output.
    pub remember: Option<RememberManifest>,
    /// How long it may take, in seconds.
    #[schemars(range(min = 0.001, max = 604800.0))]
    pub timeout_seconds: Option<f64>,
    /// How often it is tried again when its failure may pass by itself (a limit of rate, a service that does not answer, its own
    /// time that was up), with growing pauses; or a policy that says which failures, how often and when. An agent node that says nothing
    /// is tried again as often as `max_retries` of its agent says; 0 is never.
    pub retries: Option<RetriesManifest>,
    /// How many of it may run at once, over all tasks of the flow.
    #[schemars(range(min = 1))]
    pub max_concurrency: Option<u32>,
}

/// How often a node is tried again: a number, or a policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum RetriesManifest {
    /// So often, and all else as it is by default.
    Times(#[schemars(range(max = 20))] u32),
    /// With more to say.
    Policy(Box<RetryManifest>),
}

/// The failures that are tried again, how often and when. A node that pauses holds nothing, and a stop ends it at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RetryManifest {
    /// How often, at most.
    #[schemars(range(min = 1, max = 100))]
    pub times: u32,
    /// The failures: `passing` (the default: RATE_LIMITED, UPSTREAM_UNAVAILABLE, NOT_BEGUN, STORAGE_FULL and TIMEOUT), `any`, `exit`
    /// (a command that ends with another code than 0, or by a signal), `exit:22` (with this code), `exit:137` (with this code or by
    /// signal 9: 128 and its number, as in a shell), or codes of errors. OUTCOME_UNKNOWN, of a command or a call that was
    /// interrupted, is tried again only where it is named: it may have taken effect.
    pub on: Vec<String>,
    /// The first pause, in seconds.
    #[schemars(range(min = 0.0, max = 86400.0))]
    pub backoff_seconds: f64,
    /// By how much each pause is longer than the one before.
    #[schemars(range(min = 1.0, max = 10.0))]
    pub backoff_rate: f64,
    /// The longest pause, in seconds.
    #[schemars(range(min = 0.0, max = 604800.0))]
    pub max_backoff_seconds: f64,
    /// The share of each pause that is drawn at random: 0 for none, 1 for all of it. The drawn pause is in the log.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub jitter: f64,
    /// How long after the node first began the last retry may begin, in seconds; no limit when nothing is said.
    #[schemars(range(min = 0.001, max = 2592000.0))]
    pub within_seconds: Option<f64>,
}

impl Default for RetryManifest {
    fn default() -> Self {
        Self {
            times: 3,
            on: vec!["passing".into()],
            backoff_seconds: 1.0,
            backoff_rate: 2.0,
            max_backoff_seconds: 60.0,
            jitter: 0.5,
            within_seconds: None,
        }
    }
}

/// Failures that go on along an edge of their own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ErrorRouteManifest {
    /// The failures, by the names that `retries.on` has; all of them by default.
    #[serde(default = "any_failure")]
    pub on: Vec<String>,
    /// The edge: its label, or the id of the node that it leads to.
    pub to: String,
}

fn any_failure() -> Vec<String> {
    vec!["any".into()]
}

/// One edge, such as `{from: plan, to: review}`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("x-partial" = true, "required" = ["from", "to"]))]
pub struct EdgeManifest {
    /// The node it leaves.
    #[schemars(required)]
    pub from: Option<String>,
    /// The node it leads to.
    #[schemars(required)]
    pub to: Option<String>,
    /// By which a decision selects it; the id of its target is good, too.
    pub label: Option<String>,
}

/// When a merge begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StrategyName {
    /// When everyone that can still come has come.
    #[default]
    All,
    /// With the first that comes with success; the others are cancelled.
    FirstSuccess,
    /// When `quorum` have come with success; the others are cancelled.
    Quorum,
    /// When everyone has come, with the one whose `score` is highest.
    BestOf,
}

/// The rules of a merge.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MergeManifest {
    /// When it begins.
    pub strategy: StrategyName,
    /// For the strategy `quorum`: how many successes it takes; more than half when nothing is said.
    #[schemars(range(min = 1))]
    pub quorum: Option<u32>,
    /// For the strategy `best_of`: an expression over `input` (`from`, `child`, `status`, `output`) that gives a number.
    pub score: Option<String>,
    /// The treatment of children that failed. By default, one of them fails a merge that takes all or the best, and the
    /// other strategies go on without them. `include` shows those that failed until the merge began, with any strategy.
    pub on_failure: Option<OnFailure>,
    /// The branch, split or decision whose ways it joins, where it is not the nearest one.
    pub of: Option<String>,
}

/// The list that a split makes subtasks of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SplitManifest {
    /// An expression that gives a list: one subtask per element. One subtask per edge when nothing is said.
    pub over: Option<String>,
    /// The name under which a subtask has its element. The element is its whole input when nothing is said.
    #[serde(rename = "as")]
    pub item: Option<String>,
    /// The most subtasks; 10,000 when nothing is said.
    #[schemars(range(min = 1, max = 1000000))]
    pub max_subtasks: Option<u32>,
}

/// The operation of a deterministic node: `identity`, or one of the keys of an object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum OpManifest {
    /// Gives its input back.
    Name(OpName),
    /// One of the others.
    Spec(Box<OpSpec>),
}

/// The operation that needs no more words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OpName {
    /// Gives its input back.
    Identity,
}

/// An operation: exactly one of `expr`, `template`, `tool`, `command` and `function`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OpSpec {
    /// A CEL expression over `input`, `context` and `outputs`.
    pub expr: Option<String>,
    /// A text with {{expressions}}, or an object or list of such texts.
    pub template: Option<Value>,
    /// A tool to call: an id of tools.yaml.
    pub tool: Option<String>,
    /// The arguments of the tool: templates.
    pub args: Option<Map<String, Value>>,
    /// A command for the sandbox: words, each a template; no shell is between. It runs in the root of the workspace, reads all of it,
    /// changes none of it and has no network. It gives its standard output as JSON where that is one value and the node has a
    /// `schema_out`, else an object with `exit_code`, `stdout`, `stderr`, `signal`, `timed_out`, `duration_ms` and `dropped_bytes`.
    /// With another exit code than 0 the node is partial; with a `schema_out` it has failed. It is ended with the node's time.
    pub command: Option<Vec<String>>,
    /// Files that the command leaves below `$TMPDIR` and that become versions in the workspace, at most 20 entries. The output has `kept`
    /// and `left_out` besides. With an entry that is left out the node is partial; with a `schema_out` it has failed.
    pub keep: Vec<KeepManifest>,
    /// A registered function, `module:function`.
    pub function: Option<String>,
}

/// A file or a folder that a command leaves, and its place in the workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeepManifest {
    /// Its path below `$TMPDIR`, such as `out/chart.png`, with {{expressions}}.
    pub from: String,
    /// Its path in the workspace, such as `/projects/app/chart.png`, with {{expressions}}; the files of a folder get their paths below it.
    pub to: String,
}

/// A request to people: questions, or an approval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AskManifest {
    /// The questions.
    pub questions: Vec<QuestionManifest>,
    /// The text to approve, with {{expressions}}.
    pub approve: Option<String>,
    /// How long to wait, in seconds; for ever when nothing is said. Then the node has failed with TIMEOUT, which `on_error` can take
    /// along an edge of its own.
    #[schemars(range(min = 0.001, max = 31536000.0))]
    pub timeout_seconds: Option<f64>,
    /// The answers that count when none came in time: one value per question; for an approval `{approved: false}`.
    pub default: Option<Map<String, Value>>,
}

/// One question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuestionManifest {
    /// The key of the answer.
    pub name: String,
    /// The text of the question, with {{expressions}}.
    pub question: String,
    /// The JSON Schema of the answer; a text when nothing is said.
    pub schema: Option<Map<String, Value>>,
    /// Ready answers to show as buttons.
    pub buttons: Option<Vec<Value>>,
}

/// The place in memory for an output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RememberManifest {
    /// In which store.
    pub store: StoreKind,
    /// Under which key, a text with {{expressions}}, which know the `context` of operations only; the node's id when
    /// nothing is said, in a clone or subtask with its name, as `work@items/work[3]`. Of several executions of one run that use the same key the last one in the order of the flow stays.
    pub key: Option<String>,
    /// With which tags.
    #[serde(default)]
    pub tags: Vec<String>,
}
