//! The schemas of compactions and contexts.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

/// A compaction of a chat's context.
#[derive(Serialize, ToSchema)]
pub struct Compaction {
    /// The summary; empty if no model gave one.
    pub summary: String,
    /// The last line of the turns that it stands for, in the chat's file.
    pub last_line: u64,
    /// The size of the context before, in tokens.
    pub tokens_before: u64,
    /// The size of the context after, in tokens.
    pub tokens_after: u64,
    /// The second as a part of the first.
    pub ratio: f64,
    /// Whether it can be taken back.
    pub can_be_undone: bool,
    /// The time of it.
    pub at: String,
}

/// The contexts of a turn.
#[derive(Serialize, ToSchema)]
pub struct TurnContexts {
    /// The turn; none for a chat that has had no turn.
    #[schema(required = true)]
    pub turn_id: Option<Uuid>,
    /// The analysis of the message, once there is one; only in a session of the planner chat.
    pub analysis: Option<TurnAnalysis>,
    /// The model calls, in order; a call that was made again after a crash is there again.
    pub calls: Vec<ModelCallContext>,
    /// The compaction that came in this turn.
    pub compaction: Option<Compaction>,
}

/// The analysis of a message.
#[derive(Serialize, ToSchema)]
pub struct TurnAnalysis {
    /// `simple`, `tool` or `complex`.
    pub strategy: String,
    /// The reasons.
    pub reasoning: String,
    /// How many operations it may take.
    pub estimated_operations: u32,
    /// Whether tools are needed.
    pub requires_tools: bool,
    /// Whether executors are needed.
    pub requires_executors: bool,
    /// Its author: `rule`, `model`, or `fallback` where the model's answer was missing or wrong.
    pub by: String,
    /// The time of it.
    pub at: String,
}

/// The subject of a session at a model call.
#[derive(Serialize, ToSchema)]
pub struct ContextLocation {
    /// The kind of work, such as `project_update`.
    pub context_type: String,
    /// The entity that it is about.
    pub entity_id: Option<String>,
    /// The focus, as the client says it.
    pub project_focus: Option<Value>,
}

/// A part of a context that was cut.
#[derive(Serialize, ToSchema)]
pub struct ContextTruncation {
    /// The part: `location` or `profile` of the system text, `history`, `results` or `tools` of an answer, `conversation` of an analysis.
    pub part: String,
    /// Its tokens before, estimated.
    pub tokens_before: u64,
    /// The tokens that were kept.
    pub tokens_after: u64,
    /// The reason.
    pub why: String,
}

/// The context of one model call.
#[derive(Serialize, ToSchema)]
pub struct ModelCallContext {
    /// The number of the event that began the call.
    pub seq: u64,
    /// The message that the call brought.
    pub message_id: Uuid,
    /// Counts from 1.
    pub attempt: u32,
    /// The time of the call.
    pub at: String,
    /// The purpose of the call: `analysis` or `answer`.
    pub purpose: String,
    /// The subject of a session; none in any other chat.
    pub location: Option<ContextLocation>,
    /// The model that answered, where that is known.
    pub model: Option<String>,
    /// Tokens as the provider counted them; none before the answer.
    pub input_tokens: Option<u64>,
    /// The estimated size of all parts, in tokens.
    pub tokens: u64,
    /// The context budget, in tokens.
    pub budget: u64,
    /// The parts, in the order of the request.
    pub parts: Vec<ContextPart>,
    /// The parts that were cut, so that the context fits.
    #[schema(required = false)]
    pub cut: Vec<ContextTruncation>,
    /// Whole turns that were left out right before this call.
    pub cut_turns: u64,
    /// All turns that the model does not read word for word.
    pub left_out_turns: u64,
    /// Their last line in the chat's file.
    pub left_out_lines: u64,
}

/// A part of a context.
#[derive(Serialize, ToSchema)]
pub struct ContextPart {
    /// `system`, `tools`, `summary`, `calls`, `history` or `turn`.
    pub part: String,
    /// Its size in tokens, estimated.
    pub tokens: u64,
    /// Its messages, or for tools their number.
    #[schema(required = false)]
    pub count: u64,
    /// Its first line in the chat's file, where it is there.
    #[schema(required = false)]
    pub first_line: u64,
    /// Its last line in the chat's file.
    #[schema(required = false)]
    pub last_line: u64,
    /// The reason that the model was given it.
    pub why: String,
}
