//! `agents.yaml` and `tools.yaml`: the agents, and their tools.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The agents of a flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("required" = ["agents"]))]
pub struct Agents {
    /// The version of this file, for people.
    pub version: Value,
    /// The agents.
    pub agents: Vec<AgentManifest>,
}

/// One agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentManifest {
    /// Its id.
    #[schemars(length(min = 1))]
    pub id: String,
    /// Its name, for people.
    pub name: Option<String>,
    /// Its purpose.
    pub description: Option<String>,
    /// Always `agent`.
    pub kind: Option<super::NodeKind>,
    /// Its model, `provider/model`; the default model when nothing is said.
    pub llm: Option<String>,
    /// The instructions before everything else.
    pub system: Option<String>,
    /// The persona that it is: a name in /system/agents.
    pub persona: Option<String>,
    /// The parameters of its model.
    #[serde(default)]
    pub config: AgentConfig,
    /// The schema of its answers, where the node names none: a file of schemas/, without .json.
    pub schema_out: Option<String>,
    /// The limits of the conversation of one node.
    #[serde(default)]
    pub limits: AgentLimits,
}

/// The parameters of a model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AgentConfig {
    /// The temperature of sampling. A model that is known to refuse one is asked without it, and without `top_p`.
    #[schemars(range(min = 0.0, max = 2.0))]
    pub temperature: Option<f64>,
    /// The share of the likeliest words from which it chooses. Some models refuse it beside `temperature`.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub top_p: Option<f64>,
    /// The most tokens of one answer.
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u32>,
    /// How long the conversation of one node may take, in seconds, where `limits.max_seconds` says nothing.
    #[schemars(range(min = 0.001, max = 604800.0))]
    pub timeout: Option<f64>,
    /// The instructions before everything else, where the agent has no `system`.
    pub system_prompt: Option<String>,
    /// Whether its nodes are tried again, where a node says nothing of `retries`: `max_retries` times, else once.
    pub retry_on_failure: Option<bool>,
    /// How often its nodes are tried again, where a node says nothing of `retries` and `retry_on_failure` is not false.
    #[schemars(range(max = 20))]
    pub max_retries: Option<u32>,
}

/// The limits of the conversation of one node; one that is left out is that of the server (`ai.limits`), and none goes beyond it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AgentLimits {
    /// Model calls.
    #[schemars(range(min = 1))]
    pub max_steps: Option<u32>,
    /// Tokens read and written, all model calls together.
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u64>,
    /// Seconds.
    #[schemars(range(min = 0.001, max = 604800.0))]
    pub max_seconds: Option<f64>,
    /// US dollars.
    #[schemars(range(min = 0.0))]
    pub max_cost_usd: Option<f64>,
}

/// The tools of a flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("required" = ["tools"]))]
pub struct Tools {
    /// The version of this file, for people.
    pub version: Value,
    /// The tools.
    pub tools: Vec<ToolManifest>,
}

/// One tool: an entry point, or a command.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolManifest {
    /// Its id, which nodes list and agents call it by.
    #[schemars(length(min = 1))]
    pub id: String,
    /// Its name, for people.
    pub name: Option<String>,
    /// Its purpose. Agents read it.
    pub description: Option<String>,
    /// Its kind, for people, such as `filesystem`.
    #[serde(rename = "type")]
    pub sort: Option<String>,
    /// `module:function`: a registered function, or a built-in tool by a usual name such as `tools.fs:read_file`.
    pub entrypoint: Option<String>,
    /// A command for the sandbox: words, each a template over `input`, the arguments; no shell is between. It runs in the folder
    /// of `permissions.root`, and reads that alone. An agent is told to give what the words read, as in `input.file`; it reads the
    /// output and the exit code. A node gets what a command of its own gives.
    pub command: Option<Vec<String>>,
    /// The permissions of the tool.
    #[serde(default)]
    pub permissions: ToolPermissions,
}

/// The permissions of a tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ToolPermissions {
    /// The folder of the workspace that it may touch, such as `/projects`; everything when nothing is said, or `false`.
    pub root: Option<Root>,
    /// Whether it may reach the network. No built-in tool and no registered function of ours can; a tool of the host that can
    /// is denied without this, and so is the network to a command in the sandbox.
    pub allow_network: bool,
    /// Whether it may run a command. No built-in tool that a flow can have does; a tool with a `command` is denied without this.
    pub allow_shell: bool,
}

/// A folder, or `false` for no narrower one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Root {
    /// A folder.
    Folder(String),
    /// No narrower one.
    None(bool),
}
