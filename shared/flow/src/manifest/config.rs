//! The small manifests: policy, execution, inspector, command line, metadata, deployment.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// `policy.yaml`: rules of what a task may do (spec 002 §10.5). The first rule that matches decides; none that matches permits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("required" = ["rules"]))]
pub struct Policies {
    /// The version of this file, for people.
    pub version: Value,
    /// The rules.
    pub rules: Vec<PolicyManifest>,
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyManifest {
    /// Its name, as denials show it.
    #[schemars(length(min = 1))]
    pub id: String,
    /// The kind of thing that the rule is about.
    pub target: PolicyTarget,
    /// Names it matches, with `*`: tools by id, stores, `provider/model`, nodes by id. All when nothing is said. An agent that names no
    /// model asks that of the installation, which has two names here: its own, and `default`.
    #[serde(default)]
    pub names: Vec<String>,
    /// Nodes it is about; all when nothing is said.
    #[serde(default)]
    pub nodes: Vec<String>,
    /// Whether it permits.
    pub allow: bool,
    /// Why, for people.
    pub reason: Option<String>,
}

/// `execution.yaml` or `scheduler.yaml`: how much runs at once, and how much a task may use (spec 002 §10.8, §10.12).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Execution {
    /// The version of this file, for people.
    pub version: Value,
    /// Nodes of this flow that execute at once, over all its tasks; the others wait.
    #[schemars(range(min = 1))]
    pub max_concurrency: Option<u32>,
    /// Tasks of this flow that wait or run, clones and subtasks not counted; one more is refused until one has ended.
    #[schemars(range(min = 1))]
    pub max_queued: Option<u32>,
    /// The order of waiting tasks.
    pub queue_policy: QueuePolicy,
    /// Model calls at once, by provider.
    pub providers: BTreeMap<String, u32>,
    /// The budget of a task: of its agents, and of those of all clones and subtasks below it. A request for a task may name another one.
    pub budget: TaskBudgetManifest,
}

/// The budget of a task and all tasks below it; a limit that is left out is none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TaskBudgetManifest {
    /// Tokens read and written by its agents, all model calls together.
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u64>,
    /// US dollars for its agents.
    #[schemars(range(min = 0.000001))]
    pub max_cost_usd: Option<f64>,
    /// Seconds since the task was made, waits included: no agent is asked after them.
    #[schemars(range(min = 0.001, max = 31536000.0))]
    pub max_seconds: Option<f64>,
}

/// The order of waiting tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QueuePolicy {
    /// The one with the highest priority, then the oldest.
    #[default]
    Priority,
    /// The oldest.
    Fifo,
}

/// `inspector.yaml`: the nodes before which tasks pause for people to look (spec 002 §10.7).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Inspector {
    /// The version of this file, for people.
    pub version: Value,
    /// Whether tasks that people begin pause as this file says. Those of evaluations and re-runs do not.
    pub enabled: bool,
    /// Nodes to pause before.
    pub breakpoints: Vec<String>,
    /// Whether to pause before every node.
    pub stepping: bool,
}

/// `cli_profiles.yaml`: how the command line behaves (spec 002 §10.9).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("required" = ["profiles"]))]
pub struct CliProfiles {
    /// The version of this file, for people.
    pub version: Value,
    /// The profiles; the first one is the default.
    pub profiles: Vec<CliProfile>,
}

/// One way to use the command line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CliProfile {
    /// Its id.
    #[schemars(length(min = 1))]
    pub id: String,
    /// Its name, for people.
    pub label: Option<String>,
    /// Its purpose.
    pub description: Option<String>,
    /// Without effect here, and noted so: a flow is the folder that it is run from.
    pub default_config_dir: Option<String>,
    /// Without effect here, and noted so: `telemetry_overlays` chooses the shown parts.
    pub presentation_rules: Option<Value>,
    /// The flow that it runs.
    pub default_workflow_id: Option<String>,
    /// The start node of its tasks; the default one when nothing is said.
    pub start: Option<String>,
    /// The part of a session that is kept.
    #[serde(default)]
    pub session_policies: SessionPolicies,
    /// The meaning of typed text: `default`, or the name of a command.
    #[serde(default)]
    pub input_mappings: BTreeMap<String, InputMapping>,
    /// The facts about a run that are shown.
    #[serde(default)]
    pub telemetry_overlays: TelemetryOverlay,
    /// Commands of its own.
    #[serde(default)]
    pub custom_commands: Vec<CustomCommand>,
}

/// The part of a session that is kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SessionPolicies {
    /// Whether typed lines are kept.
    pub persist_history: bool,
    /// In which file.
    pub history_file: Option<String>,
    /// How much of it.
    pub max_history_items: Option<u32>,
    /// Without effect here, and noted so: attached files are files of the workspace.
    pub persist_attachments: Option<bool>,
}

/// The meaning of typed text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct InputMapping {
    /// Whether attached files come along with the input.
    pub attach_files_as_context: bool,
    /// The key of the input under which the text stands; the text is the whole input when nothing is said.
    pub key: Option<String>,
    /// The start node of the task.
    pub start: Option<String>,
}

/// The facts about a run that are shown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TelemetryOverlay {
    /// Whether anything is.
    pub enabled: bool,
    /// How much: `summary` for the figures of each run alone; else every event.
    pub level: Option<String>,
    /// The types of events, with `*`; all when nothing is said.
    pub filters: Vec<String>,
}

/// A command of a profile: a name for an input, or for a start node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CustomCommand {
    /// Its name, without the slash.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Its effect.
    pub description: Option<String>,
    /// Its effect, where it has no `description`.
    pub help: Option<String>,
    /// Other names.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// A registered function, `module:function`, that makes the input of the typed text.
    pub entrypoint: Option<String>,
    /// The start node of the task.
    pub start: Option<String>,
    /// The input: a template over `text`, the typed text.
    pub input: Option<Value>,
}

/// `engine_metadata.yaml`: the name, version and authors of this flow, and the engine that it needs (spec 002 §10.2).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EngineMetadata {
    /// The version of this file, for people.
    pub version: Value,
    /// The flow's name.
    pub name: Option<String>,
    /// The flow's own version.
    pub flow_version: Option<String>,
    /// The engine that it was made for: a range such as `>=0.1, <0.3`. Another engine refuses the flow.
    pub engine_version: Option<String>,
    /// Its authors.
    pub authors: Vec<String>,
    /// The revisions of its schemas, by name, as every run records them: the schema's own revision (`version`, `x-revision`), the
    /// beginning of its SHA-256, or any other text.
    pub schema_revisions: BTreeMap<String, String>,
    /// Anything more that every run records.
    pub metadata: Map<String, Value>,
}

/// `deployment.yaml`: how to put this flow somewhere, reproducibly (spec 002 §10.13).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Deployment {
    /// The version of this file, for people.
    pub version: Value,
    /// The flow's name, for people.
    pub name: Option<String>,
    /// The flow's own version, for people.
    pub flow_version: Option<String>,
    /// The engine that it needs: a range such as `>=0.1, <0.3`. Another engine refuses the flow.
    pub engine_version: Option<String>,
    /// Its files and folders with their purposes, for people.
    pub layout: BTreeMap<String, String>,
    /// The environment that it needs, for people: a variable that is not set refuses nothing.
    pub environment: Vec<EnvironmentVariable>,
    /// The steps before the first run, in order, for people: none of them is run by the engine.
    pub bootstrap: Vec<Bootstrap>,
    /// The files with their SHA-256, as `package` writes them.
    pub fingerprints: Vec<Fingerprint>,
    /// The SHA-256 of the whole, as tasks record it.
    pub hash: Option<String>,
}

/// One variable of the environment; never its value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EnvironmentVariable {
    /// Its name.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Its purpose.
    pub description: Option<String>,
    /// Whether the flow cannot work without it.
    #[serde(default)]
    pub required: bool,
}

/// One thing to do before the first run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bootstrap {
    /// The instruction, for people.
    pub step: String,
    /// The command that does it, for people to run.
    pub run: Option<String>,
}

/// One file and its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fingerprint {
    /// The path in the folder.
    pub path: String,
    /// The SHA-256 of its text.
    pub sha256: String,
    /// Its length in bytes.
    pub bytes: u64,
}

/// The subject of a policy rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PolicyTarget {
    /// Uses of tools, by id.
    Tool,
    /// Uses of context stores: `task`, `project`, `global`.
    Context,
    /// Uses of models, by `provider/model`.
    Model,
    /// Executions of nodes, by id.
    Node,
}
