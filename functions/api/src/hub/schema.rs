//! The bodies of the hub, in its own `camelCase`.

use domain::AgentOptions;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use utoipa::ToSchema;
use uuid::Uuid;

/// A sign of life.
#[derive(Serialize, ToSchema)]
#[schema(as = HubHealth)]
pub(crate) struct Health {
    pub ok: bool,
}

/// An agent that threads can have.
#[derive(Serialize, ToSchema)]
#[schema(as = HubAgent)]
pub(crate) struct Agent {
    /// Its id, for `agent` of a thread.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// `persona`, or `coding` for a program with tools of its own.
    #[schema(pattern = "^(persona|coding)$")]
    pub kind: &'static str,
    /// `available` or `unavailable`.
    #[schema(pattern = "^(un)?available$")]
    pub status: &'static str,
    /// Why it is not available.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The command that would install it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub install: Option<String>,
}

/// The agents.
#[derive(Serialize, ToSchema)]
#[schema(as = HubAgents)]
pub(crate) struct Agents {
    pub agents: Vec<Agent>,
}

/// The models of an agent.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = HubModels)]
pub(crate) struct Models {
    pub agent_id: String,
    /// Each with `id` and `name`.
    #[schema(value_type = Vec<Object>)]
    pub models: Vec<Value>,
}

/// The settings of a thread's agent.
#[derive(Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schema(as = HubAgentOptions)]
pub(crate) struct Options {
    /// The mode of its session; of a persona `chat` or `plan`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// The model that it asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_id: Option<String>,
    /// The session of a coding agent that the next turn goes on with; none while it has begun none. A change that leaves it out begins a new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Options of its configuration, by their ids.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub config_overrides: BTreeMap<String, String>,
}

impl From<Options> for AgentOptions {
    fn from(options: Options) -> Self {
        let Options { mode, model_id, session_id, config_overrides } = options;
        Self { mode, model_id, session_id, config_overrides }
    }
}

impl From<AgentOptions> for Options {
    fn from(options: AgentOptions) -> Self {
        let AgentOptions { mode, model_id, session_id, config_overrides } = options;
        let session_id = session_id.filter(|session| !session.is_empty());
        Self { mode, model_id, session_id, config_overrides }
    }
}

/// A thread to make.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = HubNewThread)]
pub(crate) struct NewThread {
    /// The agent, of `GET /v1/agents`.
    #[schema(example = "buildscale")]
    pub agent: String,
    /// The folder that it works in: an absolute path inside an allowed root.
    #[schema(example = "/srv/app")]
    pub cwd: String,
    /// A title: at most 200 characters.
    pub title: Option<String>,
    /// The settings of the agent.
    pub agent_options: Option<Options>,
    /// Functions that the client runs itself, for a persona: at most 64, each with `name`, `description`, `parameters` (JSON Schema) and `effects`.
    /// Before a call of one with the effects `write`, `execute` or `mcp` a person is asked; `read` and `own` are not asked about. The stream tells a
    /// call as `call_handed_out`. The client takes it and answers it: `POST …/chats/{thread_id}/calls/{toolCallId}`.
    #[schema(value_type = Option<Vec<Object>>)]
    pub functions: Option<Value>,
}

/// A thread that was made.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = HubCreatedThread)]
pub(crate) struct CreatedThread {
    pub thread_id: Uuid,
}

/// A thread.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = HubThread)]
pub(crate) struct Thread {
    pub thread_id: Uuid,
    pub agent: String,
    pub cwd: String,
    pub title: String,
    pub agent_options: Options,
    /// The summary of its earlier turns; empty while they were not compacted.
    pub summary: String,
    /// Whether a turn runs, waits for a person, or is about to begin.
    pub has_active_session: bool,
    /// When it was made, in RFC 3339.
    pub created_at: String,
    /// When it last changed, in RFC 3339.
    pub updated_at: String,
}

/// A thread alone.
#[derive(Serialize, ToSchema)]
#[schema(as = HubThreadResponse)]
pub(crate) struct ThreadResponse {
    pub thread: Thread,
}

/// A page of threads, the newest first.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = HubThreads)]
pub(crate) struct Threads {
    pub threads: Vec<Thread>,
    /// The cursor of the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A change of a thread.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = HubThreadChange)]
pub(crate) struct ThreadChange {
    /// A new title: at most 200 characters.
    pub title: Option<String>,
    /// The new settings, which replace those before.
    pub agent_options: Option<Options>,
}

/// A thread that was deleted.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = HubDeletedThread)]
pub(crate) struct DeletedThread {
    pub thread_id: Uuid,
    /// Always `deleted`.
    pub status: &'static str,
}

/// A turn to begin.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = HubNewTurn)]
pub(crate) struct NewTurn {
    /// The words: at most 200 KiB of UTF-8.
    #[schema(min_length = 1, max_length = 204_800)]
    pub input: String,
    /// Whether the answer is the event stream of the turn; else the turn is answered by its id.
    #[serde(default, deserialize_with = "crate::extract::or_default")]
    #[schema(value_type = Option<bool>)]
    pub stream: bool,
}

/// A turn that will be.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = HubTurnStatus)]
pub(crate) struct TurnStatus {
    pub turn_id: Uuid,
    pub thread_id: Uuid,
    /// `running`, or `cancelling`.
    pub status: &'static str,
}

/// The turns of a thread.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = HubHistory)]
pub(crate) struct History {
    /// Oldest first, each with `turnId, requestText, responseText, status, stopReason, errorMessage, createdAt, completedAt, isInternal`,
    /// and with `events` if they were asked for.
    #[schema(value_type = Vec<Object>)]
    pub turns: Vec<protocols::hub::Turn>,
    /// The cursor of the page with earlier turns; none where there are none, and without `limit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<Uuid>,
}

/// An answer to a permission.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = HubDecision)]
pub(crate) struct Decision {
    /// `approved`, `declined` or `cancelled`.
    #[schema(value_type = Option<crate::schema::PermissionOutcome>)]
    pub outcome: Option<domain::event::PermissionOutcome>,
    /// One of the options of the request. It wins over `outcome`. `allow_once`, `allow_always`, `reject_once` and `reject_always` are understood
    /// for every request, also where a coding agent has others.
    pub option_id: Option<String>,
    /// With `allow_always` and `reject_always`: how far the granted rule goes [default: `chat`, which is the thread]. With an option of a coding agent: the rule
    /// is one of the hub, and the agent hears its yes or no for this once; without a scope it hears its own option, and keeps a rule of its own.
    #[schema(value_type = Option<crate::schema::RuleScope>)]
    pub scope: Option<chat::RuleScope>,
    /// The `digest` of the request that was read. 409 when the request shows something else.
    #[schema(value_type = Option<String>)]
    pub digest: Option<domain::Sha256>,
}

/// A decision that was recorded.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = HubRecordedDecision)]
pub(crate) struct RecordedDecision {
    pub permission_id: Uuid,
    /// Always `recorded`.
    pub status: &'static str,
    /// The decision that it is.
    #[schema(value_type = crate::schema::PermissionOutcome)]
    pub outcome: domain::event::PermissionOutcome,
}

/// How to compact.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = HubCompact)]
pub(crate) struct Compact {
    /// The longest summary, in characters; 4,000 by default.
    #[schema(minimum = 200, maximum = 16_000)]
    pub max_summary_chars: Option<u32>,
}

/// A compaction of a thread.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = HubCompacted)]
pub(crate) struct Compacted {
    pub thread_id: Uuid,
    /// The internal turn, which histories leave out.
    pub turn_id: Uuid,
    /// `completed`, `skipped`, `cancelled`, `error`, or `running` where it lasts longer than the answer was held back.
    pub status: &'static str,
    /// `end_turn`, `cancelled` or `error`; none while it runs.
    pub stop_reason: Option<&'static str>,
    /// The summary; empty where there is none.
    pub summary: String,
    /// Its length, in characters.
    pub summary_chars: u64,
    /// Why there is no summary, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The options of a thread's agent.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = HubConfigOptions)]
pub(crate) struct ConfigOptions {
    pub thread_id: Uuid,
    /// Each with `id`, `currentValue`, and `category`, `name`, `description`, `type`, `options` where known.
    #[schema(value_type = Vec<Object>)]
    pub config_options: Vec<Value>,
}

/// The choice of an option.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = HubChoice)]
pub(crate) struct Choice {
    /// The option.
    pub config_id: String,
    /// One of its values.
    pub value: String,
}

/// The agent's own sessions.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = HubSessions)]
pub(crate) struct Sessions {
    pub thread_id: Uuid,
    /// Whether the agent keeps any.
    pub supported: bool,
    /// Each with `sessionId`, and `cwd`, `title`, `updatedAt` where known.
    #[schema(value_type = Vec<Object>)]
    pub sessions: Vec<Value>,
    pub next_cursor: Option<String>,
}

/// The messages of one of the agent's own sessions.
#[derive(Serialize, ToSchema)]
#[schema(as = HubSessionHistory)]
pub(crate) struct SessionHistory {
    /// Whether the agent can replay it.
    pub supported: bool,
    /// Each with `role` and `content`.
    #[schema(value_type = Vec<Object>)]
    pub messages: Vec<Value>,
}

/// The rules of a thread.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = HubRules)]
pub(crate) struct Rules {
    pub thread_id: Uuid,
    /// The oldest first.
    pub rules: Vec<Rule>,
}

/// A rule by which calls are allowed or denied without a question.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = HubRule)]
pub(crate) struct Rule {
    /// Its id: the same for the same rule in every thread.
    pub rule_id: String,
    /// `allow` or `deny`. Of two rules that cover a call the one that denies wins.
    pub effect: &'static str,
    /// The rule in words.
    pub words: String,
    /// The rule.
    #[schema(value_type = crate::schema::PermissionRule)]
    pub rule: domain::PermissionRule,
}

/// A rule that is revoked.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = HubRevokedRule)]
pub(crate) struct RevokedRule {
    pub thread_id: Uuid,
    pub rule_id: String,
    /// Always `revoked`.
    pub status: &'static str,
}

/// The slash commands of a thread's agent.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = HubCommands)]
pub(crate) struct Commands {
    pub thread_id: Uuid,
    pub commands: Vec<Command>,
}

/// A slash command.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = HubCommand)]
pub(crate) struct Command {
    /// Its name, without the slash.
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_hint: Option<String>,
}

/// Folders that complete a path.
#[derive(Serialize, ToSchema)]
#[schema(as = HubPaths)]
pub(crate) struct Paths {
    /// The beginning that was asked for.
    pub query: String,
    /// Absolute paths of folders.
    pub results: Vec<String>,
}

/// The folders of the latest threads.
#[derive(Serialize, ToSchema)]
#[schema(as = HubDirectories)]
pub(crate) struct Directories {
    /// Absolute paths, the last used first.
    pub directories: Vec<String>,
}
