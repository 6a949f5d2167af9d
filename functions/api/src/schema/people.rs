//! How tools, personas, models and usage look.

use super::{InnerError, ModelSettings};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use utoipa::ToSchema;
use uuid::Uuid;

/// A tool.
#[derive(Serialize, ToSchema)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// Its effect, and when to use it.
    pub description: String,
    /// The JSON Schema of its arguments.
    #[schema(value_type = Object)]
    pub parameters: Value,
    /// Whether a chat has it only where its context, its persona or its flow lists it.
    pub optional: bool,
}

/// All tools.
#[derive(Serialize, ToSchema)]
pub struct Tools {
    /// The tools.
    pub tools: Vec<Tool>,
}

/// The outcome of a tool's call.
#[derive(Serialize, ToSchema)]
pub struct ToolResult {
    /// Whether the call succeeded.
    pub success: bool,
    /// Its result, as data; null for a failure.
    pub result: Value,
    /// The text that a model would read.
    pub output: String,
    /// Whether the output was cut.
    pub truncated: bool,
    /// Why it failed; null for a success.
    #[schema(value_type = Option<InnerError>)]
    pub error: Option<domain::Error>,
}

/// How the workspace's sandbox is.
#[derive(Serialize, ToSchema)]
pub struct Sandbox {
    /// `cold`: there is none. `starting`: one was asked for. `ready`: it answers. `failed`: it could not be started.
    #[schema(value_type = String, example = "ready")]
    pub state: ports::SandboxState,
    /// The start of this state, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "2026-01-31T12:00:00.000Z")]
    pub since: Option<domain::Timestamp>,
    /// The thing that it waits for, or the reason why it could not start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl From<ports::SandboxView> for Sandbox {
    fn from(ports::SandboxView { state, since, reason }: ports::SandboxView) -> Self {
        Self { state, since, reason }
    }
}

/// A persona or a skill.
#[derive(Serialize, ToSchema)]
pub struct PersonaOrSkill {
    /// The name of its folder, as a chat's `role` names it.
    pub name: String,
    /// Its own name.
    pub title: String,
    /// Its purpose.
    pub description: String,
    /// Its file. Of a persona in the box, the file that a workspace writes to have its own of that name.
    pub path: String,
    /// The identity of its file; none for a persona in the box.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_id: Option<Uuid>,
    /// Of a persona its tools, each with the glob of the paths that it may touch where it has one; all tools when none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Of a persona the model that it is made for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Of a persona the settings of the model, where it has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_settings: Option<ModelSettings>,
    /// Of a skill its licence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub license: Option<String>,
    /// Of a skill its requirements.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compatibility: Option<String>,
    /// Of a skill what its author adds.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// Of a skill the tools that it declares as approved in advance. They give it no right: the persona, the mode and the policies decide.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_tools: Vec<String>,
    /// The faults in its front matter, by line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<FrontMatterFault>,
    /// Of a persona that is read by itself, the text of its file with the front matter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A fault in the front matter of a persona or a skill. A skill with one is used as far as it can be read; a persona with one refuses new chats.
#[derive(Serialize, ToSchema)]
pub struct FrontMatterFault {
    /// The line of the file, from 1.
    pub line: u32,
    /// The fault, and its remedy.
    pub message: String,
}

/// The personas of a workspace.
#[derive(Serialize, ToSchema)]
pub struct PersonaList {
    /// The personas, by name.
    pub agents: Vec<PersonaOrSkill>,
}

/// The skills of a workspace.
#[derive(Serialize, ToSchema)]
pub struct SkillList {
    /// The skills, by name.
    pub skills: Vec<PersonaOrSkill>,
}

/// A model.
#[derive(Serialize, ToSchema)]
pub struct Model {
    /// The name to request it by.
    pub id: String,
    /// The provider that serves it.
    pub provider: String,
    /// Whether it can be asked now.
    pub available: bool,
    /// The reason why it is not available, or a remark.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Whether it serves chats that name no model.
    pub default: bool,
    /// The tokens that fit its context, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
}

/// All coding agents.
#[derive(Serialize, ToSchema)]
pub struct CodingAgents {
    /// The agents, in the order of their ids.
    pub agents: Vec<CodingAgent>,
    /// The folders in which the `cwd` of a chat with an agent has to be, after symbolic links are resolved.
    pub allowed_roots: Vec<String>,
}

/// A coding agent: a program of its own that performs the turns of a chat.
#[derive(Serialize, ToSchema)]
pub struct CodingAgent {
    /// Its id, to make a chat with.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// Whether it can be started.
    pub available: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The command that would install it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub install: Option<String>,
}

/// All models.
#[derive(Serialize, ToSchema)]
pub struct Models {
    /// The models.
    pub models: Vec<Model>,
    /// Whether any model can be asked, the script of `ai.script` among them, and not the offline demo script alone.
    pub configured: bool,
    /// The advice when the offline demo script answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<&'static str>,
}

/// The usage of models.
#[derive(Default, Serialize, ToSchema)]
pub struct UsageTotals {
    /// Turns.
    pub turns: u64,
    /// Model calls.
    pub calls: u64,
    /// Tokens read, cached ones included.
    pub input_tokens: u64,
    /// Tokens written, reasoning included.
    pub output_tokens: u64,
    /// Tokens read from the provider's cache.
    pub cached_tokens: u64,
    /// US dollars; 0 where the price is not known.
    pub cost_usd: f64,
}

impl UsageTotals {
    /// Adds one turn.
    pub(crate) fn add(&mut self, calls: u32, usage: domain::Usage) {
        self.turns += 1;
        self.calls += u64::from(calls);
        self.input_tokens = self.input_tokens.saturating_add(usage.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(usage.output_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(usage.cached_tokens);
        self.cost_usd += usage.cost_usd;
    }

    /// Adds work outside of turns.
    pub(crate) fn add_work(&mut self, calls: u64, usage: domain::Usage) {
        let turns = self.turns;
        self.add(0, usage);
        self.turns = turns;
        self.calls += calls;
    }
}

/// The work of a model outside of turns.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum UsagePurpose {
    /// Vectors for searches by meaning.
    Embedding,
    /// Descriptions of pictures, sound and film.
    Description,
}

impl From<workspace::Purpose> for UsagePurpose {
    fn from(purpose: workspace::Purpose) -> Self {
        match purpose {
            workspace::Purpose::Embedding => Self::Embedding,
            workspace::Purpose::Description => Self::Description,
        }
    }
}

/// The usage of a model outside of turns, on one day and for one purpose.
#[derive(Serialize, ToSchema)]
pub struct UsageByPurpose {
    /// The day, in UTC.
    #[schema(format = Date)]
    pub day: String,
    /// The purpose.
    pub purpose: UsagePurpose,
    /// The model.
    pub model: String,
    /// Its usage.
    #[serde(flatten)]
    pub work: ModelUsage,
}

/// The usage of a model outside of turns.
#[derive(Serialize, ToSchema)]
pub struct ModelUsage {
    /// Model calls.
    pub calls: u64,
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// US dollars; 0 where the price is not known.
    pub cost_usd: f64,
}

impl ModelUsage {
    pub(crate) fn of(calls: u64, usage: domain::Usage) -> Self {
        let domain::Usage { input_tokens, output_tokens, cost_usd, .. } = usage;
        Self { calls, input_tokens, output_tokens, cost_usd }
    }
}

/// The usage of the turns of one day, person, chat and model.
#[derive(Serialize, ToSchema)]
pub struct UsageByChat {
    /// The day, in UTC.
    #[schema(format = Date)]
    pub day: String,
    /// The chat.
    pub chat_id: Uuid,
    /// The chat that it works for, as an executor or in a team.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_chat_id: Option<Uuid>,
    /// The person that its agent works for; absent where a turn ended before persons were kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<Uuid>,
    /// The model; null for the default one.
    pub model: Option<String>,
    /// Their usage.
    #[serde(flatten)]
    pub used: UsageTotals,
}

/// The usage of a workspace.
#[derive(Serialize, ToSchema)]
pub struct UsageReport {
    /// The first day.
    #[schema(format = Date)]
    pub from: String,
    /// The last day.
    #[schema(format = Date)]
    pub to: String,
    /// All together.
    pub total: UsageTotals,
    /// By day, chat and model.
    pub parts: Vec<UsageByChat>,
    /// Outside of turns, by day, purpose and model.
    pub other: Vec<UsageByPurpose>,
}

/// That the process lives, or can work.
#[derive(Serialize, ToSchema)]
pub struct Health {
    /// `ok`, or `ready`.
    pub status: &'static str,
    /// The version of the program.
    pub version: &'static str,
    /// Damage while it works, by part: `archive` when contents were lost, `disk` when it is full and additions are
    /// refused. Empty as a rule, and left out then.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub degraded: BTreeMap<&'static str, String>,
}
