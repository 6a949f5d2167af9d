//! The shapes of answers, for the document and for those who write clients. Where a shape is that of a domain value, the
//! value itself is what is sent; the tests hold every answer against its shape here.

use axum::response::{IntoResponse, Response};
use domain::ChatId;
use http::StatusCode;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

/// What every refusal looks like.
#[derive(Serialize, ToSchema)]
pub struct ErrorEnvelope {
    /// What went wrong.
    pub error: RequestError,
}

/// Why a request was refused.
#[derive(Serialize, ToSchema)]
pub struct RequestError {
    /// What kind of error, for programs. Codes are stable; messages are not.
    pub code: ErrorCode,
    /// What happened, for people.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The request, for the log: also in the header `X-Request-Id`.
    pub request_id: String,
    /// Further facts: the field at fault, the version found.
    #[schema(value_type = Object)]
    pub details: Map<String, Value>,
}

/// The codes.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[expect(missing_docs, reason = "described by domain::Code")]
pub enum ErrorCode {
    InvalidArgument,
    Unauthorized,
    Forbidden,
    NotFound,
    Conflict,
    IdempotencyMismatch,
    StaleVersion,
    PayloadTooLarge,
    Unprocessable,
    RateLimited,
    LimitReached,
    Cancelled,
    Internal,
    UpstreamUnavailable,
    Timeout,
    Paused,
}

/// An error inside of an answer.
#[derive(Serialize, ToSchema)]
pub struct InnerError {
    /// What kind of error.
    pub code: ErrorCode,
    /// What happened.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Further facts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub details: Option<Map<String, Value>>,
}

/// A command that is durable; what comes of it is told by events.
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

/// A workspace.
#[derive(Serialize, ToSchema)]
pub struct Workspace {
    /// Its id.
    pub workspace_id: Uuid,
    /// Its name.
    pub name: String,
    /// Who made it.
    pub owner: Uuid,
    /// When.
    #[schema(format = DateTime)]
    pub created_at: String,
}

/// A page of workspaces.
#[derive(Serialize, ToSchema)]
pub struct WorkspacePage {
    /// The workspaces, oldest first.
    pub workspaces: Vec<Workspace>,
    /// Where the next page begins; none at the end.
    pub next_cursor: Option<String>,
}

/// How far a chat may go.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Tools run at once.
    Chat,
    /// Only plan files may be written.
    Plan,
    /// An approved plan is carried out.
    Build,
}

/// What to do with a message that comes while a turn runs.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnBusy {
    /// Wait for the turn to end.
    Enqueue,
    /// Refuse with `CONFLICT`.
    Reject,
    /// Stop the turn, then start.
    Interrupt,
}

/// A decision on a permission.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Yes.
    Approved,
    /// No.
    Declined,
    /// Withdrawn.
    Cancelled,
}

/// What one turn may use; what is left out has its default. A limit that is reached ends the turn and keeps what was made.
#[derive(Serialize, ToSchema)]
pub struct Limits {
    /// Model calls.
    #[schema(default = 200, required = false)]
    pub max_steps: u32,
    /// Tokens read and written.
    #[schema(default = 5_000_000, required = false)]
    pub max_tokens: u64,
    /// Milliseconds, without the time that it waits for people.
    #[schema(default = 3_600_000, required = false)]
    pub max_wall_ms: u64,
    /// US dollars.
    #[schema(default = 20.0, required = false)]
    pub max_cost_usd: f64,
}

/// What a chat is doing.
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

/// What was used.
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

/// A chat.
#[derive(Serialize, ToSchema)]
pub struct Chat {
    /// Its id.
    pub chat_id: Uuid,
    /// Its workspace.
    pub workspace_id: Uuid,
    /// Its title.
    pub title: String,
    /// Its persona.
    pub role: String,
    /// Its model, where one was chosen.
    pub model: Option<String>,
    /// How far it may go.
    pub mode: Mode,
    /// What it is doing.
    pub status: ChatStatus,
    /// Why it is paused.
    pub paused_reason: Option<String>,
    /// The turn that runs or waits.
    pub turn_id: Option<Uuid>,
    /// The number of the running turn's first event.
    pub turn_seq: Option<u64>,
    /// What is asked while it is suspended: `question` or `permission_required`, as `{event, data}`.
    #[schema(value_type = Vec<Object>, required = false)]
    pub waiting_for: Vec<Value>,
    /// What all its turns used.
    pub usage: Usage,
    /// Turns ended.
    pub turns: u64,
    /// Its plan file, where there is one.
    pub plan_path: Option<String>,
    /// Its own file, `/chats/<id>.md`.
    pub file_id: Uuid,
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
    /// Where the next page begins; none at the end.
    pub next_cursor: Option<String>,
}

/// Who says a message.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
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
pub struct MadeCall {
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
    /// Who says it.
    pub role: Speaker,
    /// Its id; a tool's answer has `call_id` instead.
    pub id: Option<Uuid>,
    /// When.
    #[schema(format = DateTime)]
    pub at: String,
    /// The text, but for a tool's answer.
    pub content: Option<String>,
    /// Attached files, of a person's message.
    pub files: Option<Vec<String>>,
    /// The calls, of an agent's message.
    pub calls: Option<Vec<MadeCall>>,
    /// The agent's reasoning, where there is one.
    pub reasoning: Option<String>,
    /// Which call a tool answers.
    pub call_id: Option<Uuid>,
    /// Which tool.
    pub tool: Option<String>,
    /// What the tool answered.
    pub output: Option<String>,
    /// Whether the tool did what it was asked to.
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
    /// The number of the last event: the `after` to watch from.
    pub last_seq: u64,
}

/// What something in a workspace is.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A file with versions.
    File,
    /// A folder.
    Folder,
    /// A file whose history is kept elsewhere, such as a chat's: it has no versions.
    Projection,
}

/// A file or folder as it is now.
#[derive(Serialize, ToSchema)]
pub struct Info {
    /// Its identity; survives moves and new versions.
    pub file_id: Uuid,
    /// Where it is.
    pub path: String,
    /// The last name of the path.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// Its current version, from 1; 0 for what has none.
    pub v: u64,
    /// The SHA-256 of its content, where it has versions.
    pub sha256: Option<String>,
    /// The length of its content in bytes.
    pub size: u64,
    /// Who wrote the current version.
    pub author: String,
    /// When it was made.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When its current version was written.
    #[schema(format = DateTime)]
    pub updated_at: String,
}

/// A page of a folder.
#[derive(Serialize, ToSchema)]
pub struct Listing {
    /// What is in it, by name.
    pub entries: Vec<Info>,
    /// Where the next page begins; none at the end.
    pub next_cursor: Option<String>,
}

/// What was done.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// A folder was made.
    Made,
    /// A version was written, or was current already.
    Written,
    /// It has another path.
    Moved,
    /// It is in the trash.
    Removed,
    /// It came back from the trash.
    Restored,
    /// It is gone for good.
    Purged,
}

/// What a command did to a file or folder.
#[derive(Serialize, ToSchema)]
pub struct Change {
    /// What was done.
    pub op: Op,
    /// Where it is now, or was last.
    pub path: String,
    /// Where it was before, for a move.
    pub from: Option<String>,
    /// Which file or folder.
    pub file_id: Uuid,
    /// What it is.
    pub kind: Kind,
    /// Its version; 0 for folders and for what was removed.
    pub v: u64,
    /// The SHA-256 of its content, where it has one.
    pub sha256: Option<String>,
    /// The length of its content in bytes.
    pub size: u64,
    /// Who did it.
    pub author: String,
    /// When.
    #[schema(format = DateTime)]
    pub at: String,
}

/// One version of a file.
#[derive(Serialize, ToSchema)]
pub struct Version {
    /// Counts from 1.
    pub v: u64,
    /// The SHA-256 of the content.
    pub sha256: String,
    /// The length of the content in bytes.
    pub size: u64,
    /// Who wrote it.
    pub author: String,
    /// When.
    #[schema(format = DateTime)]
    pub at: String,
    /// The tool call that wrote it, if one did.
    pub call_id: Option<Uuid>,
}

/// A page of versions.
#[derive(Serialize, ToSchema)]
pub struct VersionPage {
    /// The versions, newest first.
    pub versions: Vec<Version>,
    /// Where the next page begins; none at the end.
    pub next_cursor: Option<String>,
}

/// What changed between two versions.
#[derive(Serialize, ToSchema)]
pub struct Diff {
    /// The older version.
    pub from: u64,
    /// The newer version.
    pub to: u64,
    /// A unified diff, capped; null when either is not a text, or too long.
    pub diff: Option<String>,
}

/// Something in the trash.
#[derive(Serialize, ToSchema)]
pub struct Trashed {
    /// As it was, with its old path.
    pub info: Info,
    /// Who removed it.
    pub by: String,
    /// When.
    #[schema(format = DateTime)]
    pub at: String,
}

/// A page of the trash.
#[derive(Serialize, ToSchema)]
pub struct TrashPage {
    /// What is in it.
    pub files: Vec<Trashed>,
    /// Where the next page begins; none at the end.
    pub next_cursor: Option<String>,
}

/// A tool.
#[derive(Serialize, ToSchema)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// The JSON Schema of its arguments.
    #[schema(value_type = Object)]
    pub parameters: Value,
}

/// All tools.
#[derive(Serialize, ToSchema)]
pub struct Tools {
    /// The tools.
    pub tools: Vec<Tool>,
}

/// What came of a tool's call.
#[derive(Serialize, ToSchema)]
pub struct ToolResult {
    /// Whether it did what it was asked to.
    pub success: bool,
    /// What it gave, as data; null for a failure.
    pub result: Value,
    /// What a model would read.
    pub output: String,
    /// Whether the output was cut.
    pub truncated: bool,
    /// Why it failed; null for a success.
    #[schema(value_type = Option<InnerError>)]
    pub error: Option<domain::Error>,
}

/// A persona or a skill.
#[derive(Serialize, ToSchema)]
pub struct Described {
    /// The name of its folder: what a chat's `role` names.
    pub name: String,
    /// What it calls itself.
    pub title: String,
    /// What it is for.
    pub description: String,
    /// Its file.
    pub path: String,
    /// The identity of its file.
    pub file_id: Uuid,
}

/// The personas of a workspace.
#[derive(Serialize, ToSchema)]
pub struct Agents {
    /// The personas, by name.
    pub agents: Vec<Described>,
}

/// The skills of a workspace.
#[derive(Serialize, ToSchema)]
pub struct Skills {
    /// The skills, by name.
    pub skills: Vec<Described>,
}

/// A model.
#[derive(Serialize, ToSchema)]
pub struct Model {
    /// What to ask for.
    pub id: String,
    /// Who serves it.
    pub provider: String,
    /// Whether it can be asked now.
    pub available: bool,
    /// Why not, or what to know about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Whether it serves chats that name no model.
    pub default: bool,
    /// The tokens that fit its context, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
}

/// All models.
#[derive(Serialize, ToSchema)]
pub struct Models {
    /// The models.
    pub models: Vec<Model>,
    /// Whether any real model can be asked.
    pub configured: bool,
    /// What to do when none can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<&'static str>,
}

/// What turns used.
#[derive(Default, Serialize, ToSchema)]
pub struct Used {
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

impl Used {
    /// Adds one turn.
    pub(crate) fn add(&mut self, calls: u32, usage: domain::Usage) {
        self.turns += 1;
        self.calls += u64::from(calls);
        self.input_tokens += usage.input_tokens;
        self.output_tokens += usage.output_tokens;
        self.cached_tokens += usage.cached_tokens;
        self.cost_usd += usage.cost_usd;
    }
}

/// What the turns of one day, chat and model used.
#[derive(Serialize, ToSchema)]
pub struct UsedBy {
    /// The day, in UTC.
    #[schema(format = Date)]
    pub day: String,
    /// The chat.
    pub chat_id: Uuid,
    /// The model; null for the default one.
    pub model: Option<String>,
    /// What they used.
    #[serde(flatten)]
    pub used: Used,
}

/// What a workspace used.
#[derive(Serialize, ToSchema)]
pub struct UsedIn {
    /// The first day.
    #[schema(format = Date)]
    pub from: String,
    /// The last day.
    #[schema(format = Date)]
    pub to: String,
    /// All together.
    pub total: Used,
    /// By day, chat and model.
    pub parts: Vec<UsedBy>,
}

/// That the process lives, or can work.
#[derive(Serialize, ToSchema)]
pub struct Health {
    /// `ok`, or `ready`.
    pub status: &'static str,
    /// The version of the program.
    pub version: &'static str,
}
