//! How chats and their messages look.

use axum::response::{IntoResponse, Response};
use domain::ChatId;
use http::StatusCode;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use utoipa::ToSchema;
use uuid::Uuid;

/// A command that is durable; its result is told by events.
#[derive(Serialize, ToSchema)]
pub struct Accepted {
    /// The chat.
    pub chat_id: Uuid,
    /// Always `accepted`.
    pub status: &'static str,
}

impl Accepted {
    /// The answer about this chat.
    pub(crate) fn of(chat: ChatId) -> Response {
        (StatusCode::ACCEPTED, axum::Json(Self { chat_id: chat.0, status: "accepted" })).into_response()
    }
}

/// How far a chat may go.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Tools run at once; a person is asked before each command.
    Chat,
    /// Only plan files may be written, and no command runs.
    Plan,
    /// An approved plan is carried out: commands run, too, while the plan is the one that was approved.
    Build,
}

/// The way in which a chat works.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scenario {
    /// A conversation: tools run at once, and the agent waits for the next message.
    ChatMode,
    /// A planner writes a plan; after a person approved it another persona carries it out. With `plan_id` it is carried out at once.
    PlanThenExecute,
    /// As `plan_then_execute`, with several agents that carry the plan out side by side.
    ParallelAgents,
    /// The agent works without people until its goal is met or a limit is reached.
    Autonomous,
    /// A strategist plans a campaign for a topic, and a team writes it.
    CoWork,
}

/// The scenario of a chat.
#[derive(Serialize, ToSchema)]
pub struct ScenarioSetup {
    /// The scenario.
    pub name: Scenario,
    /// The persona that carries the plan out once it is approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executor: Option<String>,
    /// The personas of the team.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    /// The place of the plan before it is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan_path: Option<String>,
}

/// The treatment of a message that comes while a turn runs.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnBusy {
    /// Wait for the turn to end.
    Enqueue,
    /// Refuse with `CONFLICT`.
    Reject,
    /// Stop the turn, then start.
    Interrupt,
    /// Add the words to the turn: the model reads them with its next call. Words that come when it has just ended begin a turn.
    Steer,
    /// Stop the turn and take its work back: its changes of files, and its part of the conversation. Then start. `CONFLICT` where messages
    /// wait behind it, `UNPROCESSABLE` for the thread of a coding agent.
    Rollback,
}

/// How far a granted rule goes.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RuleScope {
    /// The chat that asked.
    Chat,
    /// All chats of the workspace that work for the person who grants it.
    Person,
    /// All chats of the workspace.
    Workspace,
}

/// A decision on a permission.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PermissionOutcome {
    /// Yes.
    Approved,
    /// No.
    Declined,
    /// Withdrawn.
    Cancelled,
}

/// A rule of a chat: calls that need no further permission, or that are denied.
#[derive(Serialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum PermissionRule {
    /// Commands that begin with these words. A command counts only when it has no character that means something to a shell.
    CommandPrefix {
        /// The program and its subcommand, each a whole word; in front of them the words of a program that runs them, as `timeout 10`.
        words: Vec<String>,
        /// The folder that they run in; the root of the workspace when it is left out.
        #[serde(skip_serializing_if = "Option::is_none")]
        folder: Option<String>,
    },
    /// One command with all of its words.
    Command {
        /// The program and its arguments.
        words: Vec<String>,
        /// The folder that it runs in; the root of the workspace when it is left out.
        #[serde(skip_serializing_if = "Option::is_none")]
        folder: Option<String>,
    },
    /// New contents of one file under `/system`; moves and removals are asked about.
    File {
        /// The file.
        path: String,
    },
    /// A tool of a server, with any arguments.
    Tool {
        /// Its name for agents.
        #[schema(example = "mcp__github__create_issue")]
        tool: String,
    },
    /// The calls that another rule covers are denied.
    Deny {
        /// That rule, of one of the other kinds.
        #[schema(value_type = Object)]
        rule: Value,
    },
}

/// The limits of one turn; a limit that is left out has its default. A limit that is reached ends the turn and keeps its results.
#[derive(Serialize, ToSchema)]
pub struct Limits {
    /// Model calls.
    #[schema(default = 200, minimum = 1, required = false)]
    pub max_steps: u32,
    /// Tokens read and written.
    #[schema(default = 5_000_000, minimum = 1, required = false)]
    pub max_tokens: u64,
    /// Milliseconds, without the time that it waits for people.
    #[schema(default = 3_600_000, minimum = 1, required = false)]
    pub max_wall_ms: u64,
    /// US dollars.
    #[schema(default = 20.0, exclusive_minimum = 0.0, required = false)]
    pub max_cost_usd: f64,
}

/// The settings with which a model is asked. One that is left out is the provider's. A model that refuses a temperature, as one that reasons, is asked without
/// `temperature` and `top_p`.
#[derive(Serialize, ToSchema)]
pub struct ModelSettings {
    /// The temperature of sampling.
    #[schema(minimum = 0.0, maximum = 2.0)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The share of the likeliest tokens to sample from. Some models refuse it beside `temperature`.
    #[schema(minimum = 0.0, maximum = 1.0)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// The most tokens of one answer of the model. A turn whose answer is longer ends with `max_output_tokens`. A lower limit of the configuration holds.
    #[schema(minimum = 1, maximum = 4_294_967_295_i64)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
}

impl From<domain::ModelSettings> for ModelSettings {
    fn from(settings: domain::ModelSettings) -> Self {
        let domain::ModelSettings { temperature, top_p, max_output_tokens } = settings;
        Self { temperature, top_p, max_output_tokens }
    }
}

/// The state of a chat.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChatStatus {
    /// Accepted, not begun.
    Queued,
    /// A turn is running.
    Running,
    /// A turn waits for an answer or a permission; `waiting_for` says which.
    Suspended,
    /// Waiting for the next message.
    Idle,
    /// A command failed again and again; `paused_reason` says why.
    Paused,
}

/// Usage.
#[derive(Serialize, ToSchema)]
pub struct Usage {
    /// Tokens read, cached ones included.
    pub input_tokens: u64,
    /// Tokens written, reasoning included.
    pub output_tokens: u64,
    /// Tokens read from the provider's cache.
    pub cached_tokens: u64,
    /// US dollars; 0 where the price is not known.
    pub cost_usd: f64,
}

/// A version of a plan that somebody has approved.
#[derive(Serialize, ToSchema)]
pub struct PlanApproval {
    /// The path that the plan had.
    pub plan_path: String,
    /// The plan file.
    pub plan_id: Uuid,
    /// The version that was approved.
    pub v: u64,
    /// The SHA-256 of that version with every step pending.
    pub digest: String,
    /// The approver, as `user:<id>`.
    pub by: String,
    /// The time of the approval.
    #[schema(format = DateTime)]
    pub at: String,
}

/// The reason that a message waits.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum QueuedBehind {
    /// A turn that runs, or was accepted before.
    RunningTurn,
    /// A question that somebody has to answer first.
    OpenQuestion,
    /// A permission that somebody has to decide on first.
    OpenPermission,
    /// A call that a program has to answer first.
    HandedOutCall,
    /// The failure that paused the chat. The message has it tried again, and comes after it.
    PausedTurn,
}

/// A message that was accepted and has not begun.
#[derive(Serialize, ToSchema)]
pub struct QueuedMessage {
    /// The turn that it becomes.
    pub turn_id: Uuid,
    /// When it was accepted.
    #[schema(format = DateTime)]
    pub at: String,
    /// The beginning of its words, at most 1,024 bytes.
    pub content: String,
    /// Attached files.
    #[schema(required = false)]
    pub files: Vec<String>,
    /// The person who wrote it; none where a program did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<Uuid>,
}

/// The beginning of a fork.
#[derive(Serialize, ToSchema)]
pub struct ForkOrigin {
    /// The chat that it was forked from.
    pub chat_id: Uuid,
    /// The number of the last event of that chat that it has; 0 for none.
    pub seq: u64,
}

/// A chat.
#[derive(Serialize, ToSchema)]
pub struct Chat {
    /// Its id.
    pub chat_id: Uuid,
    /// Its workspace.
    pub workspace_id: Uuid,
    /// Its title.
    pub title: String,
    /// Its labels.
    #[schema(required = false)]
    pub labels: BTreeMap<String, String>,
    /// Its persona.
    pub role: String,
    /// Its model, where one was chosen.
    pub model: Option<String>,
    /// The settings with which its model is asked, where there are any.
    pub model_settings: Option<ModelSettings>,
    /// How far it may go.
    pub mode: Mode,
    /// Its state.
    pub status: ChatStatus,
    /// Why it is paused.
    pub paused_reason: Option<String>,
    /// The turn that runs or waits.
    pub turn_id: Option<Uuid>,
    /// The number of the running turn's first event.
    pub turn_seq: Option<u64>,
    /// The open request while it is suspended: `question` or `permission_required`, as `{event, data}`.
    #[schema(value_type = Vec<Object>, required = false)]
    pub waiting_for: Vec<Value>,
    /// The last compaction of its context, while the model reads its summary.
    pub compaction: Option<super::Compaction>,
    /// Messages that wait behind the turn that runs or is suspended, in order; of many only the first ones.
    #[schema(required = false)]
    pub queued: Vec<QueuedMessage>,
    /// The usage of all its turns.
    pub usage: Usage,
    /// The usage of all turns of its agents: its executors, or its team. None without any.
    pub agents_usage: Option<Usage>,
    /// Turns ended.
    pub turns: u64,
    /// The messages of the turns that have ended: of people, of the model, and results of calls.
    pub message_count: u64,
    /// Its plan file, where there is one.
    pub plan_path: Option<String>,
    /// The identity of its plan file.
    pub plan_id: Option<Uuid>,
    /// The approval that it works under in `build` mode.
    pub approval: Option<PlanApproval>,
    /// The rules that people have granted: calls that they cover need no permission in turns of people who may approve, or are denied.
    #[schema(required = false)]
    pub permissions: Vec<PermissionRule>,
    /// The settings of its coding agent, once that has begun a session, or has chosen a mode or an option by itself: `mode`, `model_id`, `session_id`,
    /// `config_overrides`.
    #[schema(value_type = Option<Object>)]
    pub agent_options: Option<Value>,
    /// When it last chose a mode or an option.
    #[schema(format = DateTime)]
    pub agent_chose_at: Option<String>,
    /// Its own file, `/chats/<id>.md`.
    pub file_id: Uuid,
    /// Of a fork: the chat whose history it begins with.
    pub forked_from: Option<ForkOrigin>,
    /// The person for whom its agent works: the one who made it. A chat of an earlier version has it from its next turn on.
    pub user_id: Option<Uuid>,
    /// Of a session of the planner chat: its context.
    #[schema(value_type = Option<Object>)]
    pub session: Option<Value>,
    /// Of an executor: its session, its plan and its step.
    #[schema(value_type = Option<Object>)]
    pub executor: Option<Value>,
    /// How it works; none for a conversation.
    pub scenario: Option<ScenarioSetup>,
    /// Of an agent of a team: the chat that has the team.
    pub parent_chat_id: Option<Uuid>,
    /// When it was made.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When it last began or ended an interaction.
    #[schema(format = DateTime)]
    pub active_at: String,
}

/// A page of chats.
#[derive(Serialize, ToSchema)]
pub struct ChatPage {
    /// The chats, the last active first.
    pub chats: Vec<Chat>,
    /// The cursor of the next page; none at the end.
    pub next_cursor: Option<String>,
}

/// The speaker of a message.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessageRole {
    /// A person.
    User,
    /// The agent.
    Assistant,
    /// A tool, answering a call.
    Tool,
    /// A note by BuildScale.
    System,
}

/// A call of a tool by a model.
#[derive(Serialize, ToSchema)]
pub struct MessageToolCall {
    /// Its id.
    pub call_id: Uuid,
    /// The tool.
    pub tool: String,
    /// The arguments as the model wrote them: JSON text, usually.
    pub args: String,
}

/// A message of a chat and its place.
#[derive(Serialize, ToSchema)]
pub struct Message {
    /// The number of its event.
    pub seq: u64,
    /// The speaker.
    pub role: MessageRole,
    /// Its id; a tool's answer has `call_id` instead.
    pub id: Option<Uuid>,
    /// The time of the message.
    #[schema(format = DateTime)]
    pub at: String,
    /// The text, but for a tool's answer.
    pub content: Option<String>,
    /// Attached files, of a person's message.
    pub files: Option<Vec<String>>,
    /// The person who wrote it, of a person's message; none in messages of earlier versions.
    pub user_id: Option<Uuid>,
    /// The calls, of an agent's message.
    pub calls: Option<Vec<MessageToolCall>>,
    /// The agent's reasoning, where there is one.
    pub reasoning: Option<String>,
    /// The call that a tool answers.
    pub call_id: Option<Uuid>,
    /// The tool.
    pub tool: Option<String>,
    /// The answer of the tool.
    pub output: Option<String>,
    /// Whether the tool succeeded.
    pub success: Option<bool>,
}

/// A chat with messages of it.
#[derive(Serialize, ToSchema)]
pub struct ChatWithHistory {
    /// The chat.
    #[serde(flatten)]
    pub chat: Chat,
    /// The messages, oldest first.
    pub messages: Vec<Message>,
    /// The `after` of the next part; none at the end.
    pub next_after: Option<u64>,
    /// With `before`: the number to go on before; absent at the beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_before: Option<u64>,
    /// The number of the last event: the `after` to watch from.
    pub last_seq: u64,
}
