//! The context of a model call as the log keeps it: its parts by size and place, without their texts; and its compactions.

use crate::{Error, MessageId, SessionContext, Timestamp, session::Cut};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The context that a model was given. The texts are in the log and in the chat's file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextRecord {
    /// The parts, in the order of the request.
    pub parts: Vec<ContextPart>,
    /// The context budget, in tokens.
    pub budget: u64,
    /// Turns that are left out: the model is told of them and does not read them word for word.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out_turns: u64,
    /// Their last line in the chat's file.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out_lines: u64,
    /// The parts that were cut, so that the context fits: of the system text, and the earlier words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cut: Vec<Cut>,
    /// Whether it is the context of the analysis of a message, and not of an answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub analysis: bool,
    /// The kind of work of a session; none for any other chat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_type: Option<SessionContext>,
    /// The entity that the session is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entity: Option<String>,
    /// The focus of the session, as the client says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub focus: Option<Value>,
}

impl ContextRecord {
    /// The size of all parts in tokens, estimated.
    pub fn tokens(&self) -> u64 {
        self.parts.iter().map(|part| part.tokens).sum()
    }

    /// The size of the tools in tokens, estimated.
    pub fn tools(&self) -> u64 {
        self.parts.iter().filter(|part| part.part == ContextKind::Tools).map(|part| part.tokens).sum()
    }
}

/// A part of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextPart {
    /// The kind of the part.
    pub part: ContextKind,
    /// Its size in tokens, estimated.
    pub tokens: u64,
    /// Its messages, or for tools their number.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub count: u64,
    /// Its first line in the chat's file; 0 where it is not in that file.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub first_line: u64,
    /// Its last line in the chat's file.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub last_line: u64,
}

/// The kinds of parts of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContextKind {
    /// The system text: persona, skills, mode and the place of the turns that are left out.
    System,
    /// The specifications of the tools. Those of tool servers are not in it: they are known when the model is asked.
    Tools,
    /// The summary of turns that were compacted.
    Summary,
    /// The calls of those turns, each with its result.
    Calls,
    /// The whole turns before the one that runs.
    History,
    /// The turn that runs.
    Turn,
}

/// A compaction: the oldest turns give way to a summary of their words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CompactionRecord {
    /// The id of the message that is the summary.
    pub message_id: MessageId,
    /// Turns compacted, counted from the oldest one that was still sent.
    pub turns: u32,
    /// The last line of these turns in the chat's file; 0 for a chat without a file.
    pub last_line: u64,
    /// The summary. None if no model gave one: then the turns are left out as they are, with their calls.
    pub summary: Option<String>,
    /// The failure of the model, if it gave no summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Error>,
    /// The size of the context before, in tokens.
    pub tokens_before: u64,
    /// The size of the context after, in tokens.
    pub tokens_after: u64,
    /// The time of it.
    pub at: Timestamp,
}

impl CompactionRecord {
    /// The size of the context after the compaction as a part of its size before, to three decimals.
    pub fn ratio(&self) -> f64 {
        if self.tokens_before == 0 {
            return 1.0;
        }
        (self.tokens_after as f64 / self.tokens_before as f64 * 1_000.0).round() / 1_000.0
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
