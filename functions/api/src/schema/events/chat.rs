//! The data of the events of chats (`domain::native`).

use super::{
    super::{ErrorCode, InnerError, MessageRole, Mode, PermissionOutcome, PermissionRule, StageResources},
    Question,
};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

/// A turn began, or began again after a crash.
#[derive(Serialize, ToSchema)]
pub struct ChatTurnStarted {
    /// The turn.
    pub turn_id: Uuid,
    /// Counts from 1. Above 1 the pieces of text without a `message` are void.
    #[schema(minimum = 1)]
    pub attempt: u32,
}

/// The turn waits, and nothing is held for it.
#[derive(Serialize, ToSchema)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum ChatWaiting {
    /// As many models are asked as may be at once.
    Slots {
        /// The message to come.
        message_id: Uuid,
        /// The start of the wait.
        #[schema(format = DateTime)]
        at: String,
    },
    /// As many commands run as may at once.
    Place {
        /// The call.
        call_id: Uuid,
        /// The start of the wait.
        #[schema(format = DateTime)]
        at: String,
    },
    /// The machine of the command is not ready.
    Sandbox {
        /// The call.
        call_id: Uuid,
        /// Why it could not begin.
        message: String,
        /// The start of the wait.
        #[schema(format = DateTime)]
        at: String,
        /// The time at which it is made again.
        #[schema(format = DateTime, required = true)]
        until: Option<String>,
    },
    /// The provider failed in a way that passes.
    Model {
        /// The message to come.
        message_id: Uuid,
        /// The kind of error.
        code: ErrorCode,
        /// The explanation.
        message: String,
        /// When it failed.
        #[schema(format = DateTime)]
        at: String,
        /// When the model is asked again.
        #[schema(format = DateTime)]
        until: String,
    },
}

/// A piece of the model's text or reasoning. It expires; the `message` has the whole.
#[derive(Serialize, ToSchema)]
pub struct ChatDelta {
    /// The piece.
    pub text: String,
    /// The message to come.
    pub message_id: Uuid,
}

/// A message is complete.
#[derive(Serialize, ToSchema)]
pub struct ChatMessage {
    /// The message.
    pub message_id: Uuid,
    /// The speaker.
    pub role: MessageRole,
    /// The whole text.
    pub content: String,
    /// Attached files, of a person's message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<Vec<String>>,
    /// The person who wrote it, of a person's message; none in messages of earlier versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<Uuid>,
}

/// A call of a tool starts.
#[derive(Serialize, ToSchema)]
pub struct ChatCall {
    /// The call.
    pub call_id: Uuid,
    /// The tool.
    pub tool: String,
    /// Its arguments; a text where the model wrote no JSON.
    #[schema(value_type = Value)]
    pub args: Value,
    /// The path that it is about, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Its title, of a call of a coding agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// A coding agent works in a session of its own.
#[derive(Serialize, ToSchema)]
pub struct ChatAgentSession {
    /// The agent's id of it.
    pub session_id: String,
}

/// A coding agent has a plan, or another one than before.
#[derive(Serialize, ToSchema)]
pub struct ChatAgentPlan {
    /// Its steps, each with `content`, `priority` and `status`.
    #[schema(value_type = Value)]
    pub entries: Value,
}

/// A coding agent told of something else: a call that goes on, its mode, its commands.
#[derive(Serialize, ToSchema)]
pub struct ChatAgentUpdate {
    /// The call, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_id: Option<Uuid>,
    /// The session update of the Agent Client Protocol.
    #[schema(value_type = Value)]
    pub update: Value,
}

/// An answer that a coding agent offers.
#[derive(Serialize, ToSchema)]
pub struct ChatAgentOption {
    /// The agent's id of it.
    pub option_id: String,
    /// Its words for people.
    pub name: String,
    /// `allow_once`, `allow_always`, `reject_once` or `reject_always`.
    pub kind: String,
}

/// A call of a tool was answered.
#[derive(Serialize, ToSchema)]
pub struct ChatObservation {
    /// The call.
    pub call_id: Uuid,
    /// The tool.
    pub tool: String,
    /// The text that the model reads.
    pub output: String,
    /// Whether it did what it was asked to.
    pub success: bool,
    /// Why it is no success: `NOT_BEGUN` says that nothing of it happened, `OUTCOME_UNKNOWN` that it was begun and what became of it
    /// is not known, anything else that it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<ErrorCode>,
    /// The resources that a command used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<StageResources>,
    /// Whether the output was cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncated: Option<bool>,
}

/// A file has a new version, a new place, or is gone.
#[derive(Serialize, ToSchema)]
pub struct ChatFileUpdated {
    /// Its path.
    pub path: String,
    /// Its version; 0 when it is gone.
    pub v: u64,
    /// The file.
    pub file_id: Uuid,
    /// The author.
    pub author: String,
}

/// A step of the plan changed.
#[derive(Serialize, ToSchema)]
pub struct ChatPlanStep {
    /// Counts from 1.
    pub step: u32,
    /// `pending`, `in_progress`, `done`, `failed` or `skipped`.
    pub status: String,
    /// The text of the step.
    pub title: String,
    /// The plan file.
    pub plan_path: String,
    /// Steps done.
    pub done: u32,
    /// Steps in all.
    pub total: u32,
    /// The id of the plan file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan_id: Option<Uuid>,
}

/// The agents of the team begin to carry the plan out, or go on with the steps that became free.
#[derive(Serialize, ToSchema)]
pub struct ChatTeamStarted {
    /// Counts from 1 within the turn.
    #[schema(minimum = 1)]
    pub round: u32,
    /// The agents of this round.
    pub members: Vec<ChatTeamMember>,
}

/// An agent of a team.
#[derive(Serialize, ToSchema)]
pub struct ChatTeamMember {
    /// Its chat, which has a stream of its own.
    pub chat_id: Uuid,
    /// Its persona.
    pub role: String,
}

/// An agent of the team has ended its turn; the steps that it had claimed and not ended are free again.
#[derive(Serialize, ToSchema)]
pub struct ChatMemberEnded {
    /// Its chat.
    pub chat_id: Uuid,
    /// Why it ended: a stop reason, or `stopped`.
    pub stop_reason: String,
    /// The error, when it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<InnerError>,
    /// The usage of its turn; none for nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<crate::schema::Usage>,
}

/// A call waits for a person's permission.
#[derive(Serialize, ToSchema)]
pub struct ChatPermissionRequired {
    /// The permission, to decide on by `POST …/permissions/{permission_id}`.
    pub permission_id: Uuid,
    /// The call that waits.
    pub call_id: Uuid,
    /// `command`, `file`, `network` or `mcp`.
    pub category: String,
    /// The tool.
    pub tool: String,
    /// Its arguments; a text where the model wrote no JSON.
    #[schema(value_type = Value)]
    pub args: Value,
    /// Why a person is asked.
    pub reason: String,
    /// The rule that `"always": true` grants beside `approved`, and whose calls it denies beside `declined`; left out where there is none to grant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub always: Option<PermissionRule>,
    /// The answers that the coding agent offers, in a chat of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub options: Option<Vec<ChatAgentOption>>,
    /// The SHA-256 of what is shown: of category, tool and arguments; of a coding agent's request of category, call and options. A decision may
    /// name it, and then counts for no other request.
    pub digest: String,
    /// When no answer becomes a no.
    #[schema(format = DateTime)]
    pub expires_at: String,
}

/// A permission was decided.
#[derive(Serialize, ToSchema)]
pub struct ChatPermissionResolved {
    /// The permission.
    pub permission_id: Uuid,
    /// The decision.
    pub outcome: PermissionOutcome,
    /// The source of the decision: a principal, `stop` or `timeout`.
    pub by: String,
    /// The rule of the chat that was granted along with it: one that denies along with a no. One beyond the chat is not told here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub always: Option<PermissionRule>,
    /// The reason of a no: the words of a person, or the rule beyond the chat that denies the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The option of the coding agent that was chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub option_id: Option<String>,
}

/// A person took back rules of the chat.
#[derive(Serialize, ToSchema)]
pub struct ChatPermissionsForgotten {
    /// The person.
    pub by: String,
    /// The rule that was taken back; left out for all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule_id: Option<String>,
}

/// The turn before was taken back, as `on_busy: rollback` asks for: its messages count no more, and its changes of files are undone.
#[derive(Serialize, ToSchema)]
pub struct ChatRolledBack {
    /// The turn that was taken back.
    pub turn_id: Uuid,
    /// The rewind of its files, which another rewind takes back; left out where it changed none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rewind_id: Option<Uuid>,
    /// How many changes were taken back.
    pub changes: u64,
    /// The first 100 files that stay as they are: others changed them since, or their earlier content is lost.
    pub kept: Vec<String>,
    /// Why nothing was taken back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<ErrorCode>,
    /// The same, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A call waits for a program, which answers by `POST …/calls/{call_id}`.
#[derive(Serialize, ToSchema)]
pub struct ChatCallHandedOut {
    /// The call that waits.
    pub call_id: Uuid,
    /// The tool.
    pub tool: String,
    /// Its arguments.
    #[schema(value_type = Value)]
    pub args: Value,
    /// Whether programs may run it more than once; else a program takes it first, by `POST …/calls/{call_id}/take`.
    pub repeatable: bool,
    /// When no answer becomes a failure.
    #[schema(format = DateTime)]
    pub expires_at: String,
}

/// The agent asks people; its call waits for the answers.
#[derive(Serialize, ToSchema)]
pub struct ChatQuestion {
    /// The set of questions, to answer by `POST …/answers/{question_id}`.
    pub question_id: Uuid,
    /// The call that waits.
    pub call_id: Uuid,
    /// The questions.
    pub questions: Vec<Question>,
    /// When no answer becomes a refusal.
    #[schema(format = DateTime)]
    pub expires_at: String,
}

/// The mode was changed.
#[derive(Serialize, ToSchema)]
pub struct ChatModeChanged {
    /// The new mode.
    pub mode: Mode,
    /// The plan that it is about.
    #[schema(required = true)]
    pub plan_path: Option<String>,
    /// The sender of the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// A version of a plan was approved.
#[derive(Serialize, ToSchema)]
pub struct ChatPlanApproved {
    /// The path of the plan at that moment.
    pub plan_path: String,
    /// The plan file.
    pub plan_id: Uuid,
    /// The version.
    pub v: u64,
    /// The person who approved it, as `user:<id>`.
    pub by: String,
    /// The time of the approval.
    #[schema(format = DateTime)]
    pub at: String,
}

/// A call of a model was paid for.
#[derive(Serialize, ToSchema)]
pub struct ChatUsage {
    /// Tokens read, cached ones included.
    pub input_tokens: u64,
    /// Tokens written, reasoning included.
    pub output_tokens: u64,
    /// Tokens read from the provider's cache.
    pub cached_tokens: u64,
    /// US dollars; 0 where the price is not known.
    pub cost_usd: f64,
    /// Tokens of context sent.
    pub context_used: u64,
    /// Tokens of context allowed.
    pub context_limit: u64,
}

/// The oldest turns were compacted: the model reads the summary in place of their words.
#[derive(Serialize, ToSchema)]
pub struct ChatCompacted {
    /// The size of the context before, in tokens.
    pub tokens_before: u64,
    /// The size of the context after, in tokens.
    pub tokens_after: u64,
    /// The second as a part of the first.
    pub ratio: f64,
    /// Turns compacted.
    pub turns: u32,
    /// Their last line in the chat's file.
    pub last_line: u64,
    /// The summary; none if no model gave one, and then the last ten messages stay.
    #[schema(required = true)]
    pub summary: Option<String>,
    /// Why there is no summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<InnerError>,
}

/// A compaction that was asked for was not done.
#[derive(Serialize, ToSchema)]
pub struct ChatCompactionSkipped {
    /// The turn that it would have been.
    pub turn_id: Uuid,
    /// The reason, for people.
    pub reason: String,
}

/// The last compaction was taken back: the model reads the words again.
#[derive(Serialize, ToSchema)]
pub struct ChatCompactionUndone {
    /// The person.
    pub by: String,
}

/// Why a turn ended by itself.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChatStopReason {
    /// The model had nothing more to do.
    EndTurn,
    /// The model reached the length that it may write at once.
    MaxOutputTokens,
    /// The provider refused to go on.
    Refusal,
    /// `max_steps` was reached.
    StepLimit,
    /// `max_tokens` was reached.
    TokenLimit,
    /// `max_wall_ms` was reached.
    TimeLimit,
    /// `max_cost_usd` was reached.
    CostLimit,
    /// The turn alone is longer than the context budget.
    ContextLimit,
    /// A failure, told in the `error` event before.
    Error,
}

/// The turn ended by itself or at a limit.
#[derive(Serialize, ToSchema)]
pub struct ChatDone {
    /// The model's last words.
    pub message: String,
    /// Why it ended.
    pub stop_reason: ChatStopReason,
    /// The turn.
    pub turn_id: Uuid,
}

/// The turn was stopped.
#[derive(Serialize, ToSchema)]
pub struct ChatStopped {
    /// The reason, such as `user_cancelled`.
    pub reason: String,
    /// The text of the model until then.
    pub partial_response: String,
    /// The turn.
    pub turn_id: Uuid,
}
