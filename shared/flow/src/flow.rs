//! A loaded flow: everything a running task needs of its manifests, checked and immutable (spec 002 §2.2, §8).

use crate::{
    canonical,
    failure::Handling,
    graph::{Graph, Role},
    manifest::Settings,
    report::ManifestFault,
    trigger::Trigger,
};
use domain::{Budget, NodeId, Sha256, task::FlowRef};
use schema::SchemaError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

pub use crate::manifest::{KeepManifest, PolicyTarget, Retrieval, StoreKind};

/// The name of the words that may come along with an approval.
pub const COMMENT: &str = "comment";

/// A flow that was loaded without a fault.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Its name and the hash of its manifests.
    pub reference: FlowRef,
    /// The graph, which the router reads.
    pub graph: Graph,
    /// The operations of its nodes.
    pub nodes: HashMap<NodeId, Node>,
    /// The node at which a task begins by default.
    pub default_start: NodeId,
    /// `agents.yaml`.
    pub agents: HashMap<String, Agent>,
    /// `tools.yaml`, with their targets.
    pub tools: HashMap<String, ToolBinding>,
    /// The HTTP tools of `tools/`, by the names that agents call them by. They go before those of the workspace.
    pub http_tools: BTreeMap<String, HttpTool>,
    /// The schemas of `schemas/`, compiled, by their names without `.json`.
    pub schemas: HashMap<String, Arc<Schema>>,
    /// `memory.yaml`.
    pub memory: Memory,
    /// `policy.yaml`.
    pub policy: Vec<PolicyRule>,
    /// `execution.yaml` (or `scheduler.yaml`).
    pub limits: FlowLimits,
    /// Its purpose.
    pub description: Option<String>,
    /// The files whose new versions start a task of it.
    pub triggers: Vec<Trigger>,
    /// All other manifests.
    pub settings: Settings,
    /// The files it was loaded from: paths in the folder and their texts. Input of the hash.
    pub bundle: Arc<BTreeMap<String, String>>,
    /// Whether it passed every check of today, and not only those that it takes to run.
    pub is_checked: bool,
    /// The keys of its manifests that have no effect here.
    pub notes: Vec<ManifestFault>,
}

/// The operation of a node, and its settings.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its id.
    pub id: NodeId,
    /// Its name for people.
    pub name: Option<String>,
    /// Its role.
    pub role: Role,
    /// Its operation.
    pub op: Op,
    /// The schema of its input, by name.
    pub schema_in: Option<String>,
    /// The schema of its output, by name.
    pub schema_out: Option<String>,
    /// The memory that it reads.
    pub context: ContextUse,
    /// The tools that it may use: ids of `tools.yaml`.
    pub tools: Vec<String>,
    /// For a split: the elements that become subtasks.
    pub split: Option<SplitRule>,
    /// For a merge with `best_of`: a CEL expression over `input` (`from, child, status, output`), a number.
    pub score: Option<String>,
    /// The store of its output, if it is remembered.
    pub remember: Option<Remember>,
    /// How long it may take.
    pub timeout: Option<Duration>,
    /// The handling of its failures.
    pub failures: Handling,
    /// How many of it may run at once, over all tasks of the flow.
    pub max_concurrency: Option<u32>,
}

/// An operation of a node. All but `Agent` and `Ask` are deterministic.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// Gives its input back.
    Identity,
    /// A CEL expression over `input`, `context` and `outputs`.
    Expr(String),
    /// A text with `{{expression}}` in it, or an object or list of such texts.
    Template(Value),
    /// Calls one tool; the arguments are a template.
    Tool {
        /// The id in `tools.yaml`.
        tool: String,
        /// Its arguments.
        args: Map<String, Value>,
    },
    /// Runs a command in the sandbox.
    Command(CommandRule),
    /// A registered Rust function, by its entry point.
    Function(String),
    /// Asks its agent: the id in `agents.yaml`.
    Agent {
        /// The id in `agents.yaml`.
        agent: String,
        /// Its prompt: a template; the input as JSON when none.
        prompt: Option<String>,
    },
    /// Asks people.
    Ask(AskRule),
}

/// The command of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandRule {
    /// Its words; each is a template.
    pub words: Vec<String>,
    /// The files that are kept of it.
    pub keep: Vec<KeepManifest>,
}

impl CommandRule {
    /// Its templates.
    pub(crate) fn templates(&self) -> impl Iterator<Item = &String> {
        self.words.iter().chain(self.keep.iter().flat_map(|one| [&one.from, &one.to]))
    }
}

/// The questions of a human step.
#[derive(Clone, Debug, PartialEq)]
pub struct AskRule {
    /// The questions (their texts are templates); none for an approval.
    pub questions: Vec<domain::event::Question>,
    /// For an approval, the text to approve: a template.
    pub approve: Option<String>,
    /// How long it waits.
    pub timeout: Option<Duration>,
    /// The answers that count when none came in time.
    pub default: Option<Map<String, Value>>,
}

/// The elements that a split makes subtasks of.
#[derive(Clone, Debug, PartialEq)]
pub struct SplitRule {
    /// A CEL expression that gives a list: one subtask per element. None: one subtask per edge.
    pub over: Option<String>,
    /// The name under which a subtask has its element: its input is `{name: element}`. None: the element is its input.
    pub item: Option<String>,
    /// The most subtasks.
    pub max_subtasks: u32,
}

/// The memory that a node reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContextUse {
    /// Nothing.
    None,
    /// Everything, within a default budget.
    Global,
    /// The sources of this profile.
    Profile(String),
}

/// The store and the key of a remembered output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remember {
    /// The store.
    pub store: StoreKind,
    /// The key; the node's id when none.
    pub key: Option<String>,
    /// The tags.
    pub tags: Vec<String>,
}

/// One agent of `agents.yaml`.
#[derive(Clone, Debug, PartialEq)]
pub struct Agent {
    /// Its id.
    pub id: String,
    /// `provider/model`; none for the default one.
    pub model: Option<String>,
    /// Its system text.
    pub system: Option<String>,
    /// The persona of `/system/agents` that it is, if it is one.
    pub persona: Option<String>,
    /// The temperature.
    pub temperature: Option<f64>,
    /// The part of the likeliest words that it chooses from, from 0 to 1.
    pub top_p: Option<f64>,
    /// The most tokens of one answer.
    pub max_tokens: Option<u32>,
    /// The schema of its answers, where the node names none.
    pub schema_out: Option<String>,
    /// The limits of one node's conversation.
    pub limits: domain::Limits,
}

impl Agent {
    /// The limits of the conversation of this node, which may have less time than the agent.
    pub fn limits_in(&self, node: &Node) -> domain::Limits {
        let wall_ms = node.timeout.map_or(u64::MAX, |timeout| timeout.as_millis() as u64);
        domain::Limits { max_wall_ms: self.limits.max_wall_ms.min(wall_ms), ..self.limits }
    }
}

/// One tool of `tools.yaml`.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolBinding {
    /// Its id.
    pub id: String,
    /// Its purpose; agents are told.
    pub description: Option<String>,
    /// The implementation behind it.
    pub target: ToolTarget,
    /// Its permissions.
    pub permissions: Permissions,
    /// Whether its target can reach the network. No built-in tool can, and a function is pure.
    pub reaches_network: bool,
}

/// The target of an entry point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolTarget {
    /// A built-in tool, by its name.
    Builtin(String),
    /// A registered Rust function, by its entry point.
    Function(String),
    /// A command in the sandbox.
    Command(Vec<String>),
}

/// An HTTP tool that the flow brings (spec 002 §5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpTool {
    /// The name that agents call it by, `http__NAME`: an entry point of `tools.yaml`.
    pub name: String,
    /// Its file, by its path in the folder.
    pub file: String,
    /// The line of the file that names it, from 1.
    pub line: u32,
    /// The declaration, as JSON.
    pub declaration: String,
}

/// The permissions of a tool (spec 002 §5).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permissions {
    /// The folder of the workspace that it may touch; everything when none.
    pub root: Option<String>,
    /// Whether it may reach the network.
    pub allow_network: bool,
    /// Whether it may run commands.
    pub allow_shell: bool,
}

/// `memory.yaml` and `persistent_memory.yaml`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    /// The context profiles.
    pub profiles: HashMap<String, Profile>,
    /// The bounds of its stores, where a manifest says some.
    pub stores: HashMap<StoreKind, Bounds>,
}

/// The bounds of a store; without any, everything is kept for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// The newest items, so many of them.
    pub max_items: Option<usize>,
    /// Items that are no older.
    pub retention: Option<Duration>,
}

/// One context profile.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Its id.
    pub id: String,
    /// Its budget.
    pub max_tokens: u64,
    /// How items are chosen.
    pub policy: Retrieval,
    /// The stores that are searched.
    pub sources: Vec<Source>,
}

/// A store that is searched, and the tags of its items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The store.
    pub store: StoreKind,
    /// Only items with one of these tags; all when empty.
    pub tags: Vec<String>,
}

/// One rule of `policy.yaml`: the first that matches decides; none that matches permits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyRule {
    /// Its name, as denials show it.
    pub id: String,
    /// The subject of the rule: `tool`, `context`, `model` or `node`.
    pub target: PolicyTarget,
    /// Names it matches, with `*`.
    pub names: Vec<String>,
    /// Nodes it is about; all when empty.
    pub nodes: Vec<String>,
    /// Whether it permits.
    pub allow: bool,
    /// The reason, for people.
    pub reason: Option<String>,
}

/// How many tasks of a flow may run and wait, and how much each may use (spec 002 §10.8, §10.12).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowLimits {
    /// Nodes of it that execute at once, over all its tasks; the others wait.
    pub max_concurrency: Option<u32>,
    /// Root tasks that wait or run, exactly, of all callers; one more is refused with `RATE_LIMITED`.
    pub max_queued: Option<u32>,
    /// Model calls at once, by provider.
    pub providers: BTreeMap<String, u32>,
    /// The budget of a root task and all tasks below it.
    pub budget: Budget,
}

/// A JSON Schema (2020-12) of a flow.
#[derive(Debug)]
pub struct Schema {
    /// Its name.
    pub name: String,
    /// As it was written.
    pub source: Value,
    compiled: schema::Schema,
}

impl Schema {
    /// The most errors that are told of one value.
    const MOST_ERRORS: usize = 10;

    /// Compiles a schema. References lead to places in itself only; nothing is fetched.
    ///
    /// # Errors
    /// It is no schema, or takes too much to check.
    pub fn compile(name: &str, source: Value) -> Result<Self, SchemaError> {
        Self::compile_within(name, source, schema::MOST_COMPILED)
    }

    /// The same where its patterns have so many bytes, once they are compiled.
    ///
    /// # Errors
    /// As of [`Schema::compile`].
    pub fn compile_within(name: &str, source: Value, most: usize) -> Result<Self, SchemaError> {
        let compiled = schema::Schema::compile_within(&source, most)?;
        Ok(Self { name: name.into(), source, compiled })
    }

    /// Its revision: the SHA-256 of its text, independent of the order of its keys.
    pub fn revision(&self) -> Sha256 {
        canonical::hash(&self.source)
    }

    /// Whether the value fits.
    pub fn is_valid(&self, value: &Value) -> bool {
        self.compiled.is_valid(value)
    }

    /// The faults of a value: paths and messages, the first ten; empty when it fits.
    pub fn errors(&self, value: &Value) -> Vec<String> {
        self.compiled.errors(value, Self::MOST_ERRORS)
    }
}

impl Remember {
    /// The most bytes of a key.
    pub const LONGEST_KEY: usize = 512;
    /// The most tags of an item.
    pub const MOST_TAGS: usize = 32;
    /// The most bytes of a tag.
    pub const LONGEST_TAG: usize = 128;
}

impl AskRule {
    /// Its questions, an approval among them; texts are templates still.
    pub fn all_questions(&self) -> Vec<domain::event::Question> {
        let approval = self.approve.as_ref().map(|approve| domain::event::Question {
            name: "approved".into(),
            question: approve.clone(),
            schema: serde_json::json!({ "type": "boolean" }),
            buttons: Some(vec![Value::Bool(true), Value::Bool(false)]),
        });
        self.questions.iter().cloned().chain(approval).collect()
    }

    /// The part of some answers that its questions are about. Beside an approval there may be a comment in words or `null`, which no question asks
    /// for; the answer to a question that is named so is an answer like any other.
    pub fn asked_of(&self, answers: &Map<String, Value>) -> Map<String, Value> {
        let mut asked = answers.clone();
        let is_comment = |answer: &Value| answer.is_string() || answer.is_null();
        if self.approve.is_some() && answers.get(COMMENT).is_some_and(is_comment) {
            asked.remove(COMMENT);
        }
        asked
    }
}

impl Node {
    /// Whether executing this node only computes: it reads no memory and writes none, and neither tools nor people have a part in it. A start
    /// binds providers, so it is none of these.
    pub fn is_pure(&self) -> bool {
        let computes = match self.op {
            Op::Identity | Op::Expr(_) | Op::Template(_) | Op::Function(_) => true,
            Op::Tool { .. } | Op::Command(_) | Op::Agent { .. } | Op::Ask(_) => false,
        };
        computes && self.role != Role::Start && self.context == ContextUse::None && self.remember.is_none()
    }

    /// Whether its children have the elements of a list, and not all of its output.
    pub fn splits_a_list(&self) -> bool {
        self.split.as_ref().is_some_and(|rule| rule.over.is_some())
    }
}

impl Flow {
    /// Whether executing this node runs a command.
    pub fn runs_command(&self, node: &Node) -> bool {
        match &node.op {
            Op::Command(_) => true,
            Op::Tool { tool, .. } => {
                matches!(self.tools.get(tool).map(|binding| &binding.target), Some(ToolTarget::Command(_)))
            }
            _ => false,
        }
    }

    /// Whether executing this node calls a tool that a server of others runs, and only waits for it here.
    pub fn calls_server(&self, node: &Node) -> bool {
        let Op::Tool { tool, .. } = &node.op else { return false };
        let binding = self.tools.get(tool);
        binding.is_some_and(|binding| binding.reaches_network && matches!(binding.target, ToolTarget::Builtin(_)))
    }

    /// Whether a task keeps outputs as artifacts: those that have a schema, and those of the nodes that `artifacts.yaml` names.
    pub fn keeps_outputs(&self) -> bool {
        let rules = &self.settings.artifacts;
        let names = !rules.nodes.is_empty();
        rules.enabled && rules.outputs && (names || self.nodes.values().any(|node| node.schema_out.is_some()))
    }

    /// Whether a node is given memory, or writes some.
    pub fn uses_memory(&self) -> bool {
        self.nodes.values().any(|node| node.context != ContextUse::None || node.remember.is_some())
    }

    /// Whether the provider of this `provider/model` is one of `providers.yaml`.
    pub fn declares_provider_of(&self, model: &str) -> bool {
        let id = model.split_once('/').map(|(id, _)| id);
        self.settings.providers.iter().any(|provider| Some(provider.id.as_str()) == id)
    }
}

impl Memory {
    /// Whether a node with this use of context reads that store.
    pub fn uses(&self, context: &ContextUse, store: StoreKind) -> bool {
        match context {
            ContextUse::None => false,
            ContextUse::Global => true,
            ContextUse::Profile(id) => {
                self.profiles.get(id).is_some_and(|profile| profile.sources.iter().any(|source| source.store == store))
            }
        }
    }
}
