//! The values in events that have a name of their own.

use super::ChatEvent;
use crate::{CallId, CommandId, Error, FilePath, Timestamp, TurnId, UserId};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

impl ChatEvent {
    /// Whether it is only of interest until the message that it belongs to is complete.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Chunk { .. } | Self::Thought { .. })
    }

    /// Whether it ends a turn.
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::Done { .. } | Self::Stopped { .. })
    }
}

/// A call that a program elsewhere answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HandedOut {
    /// The call that waits.
    pub call_id: CallId,
    /// The tool.
    pub tool: String,
    /// Its arguments, as the model wrote them.
    pub args: String,
    /// Whether programs may run it more than once; else one program takes it, once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeatable: bool,
    /// When it was handed out.
    pub at: Timestamp,
    /// When no answer becomes a failure.
    pub expires_at: Timestamp,
}

/// Words that a person adds to a turn that runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SteeringWords {
    /// The command that brought them.
    pub command_id: CommandId,
    /// When they were sent.
    pub at: Timestamp,
    /// The person's words.
    pub content: String,
    /// Attached files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FilePath>,
    /// The text that the model reads after the words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub context: String,
    /// The person who wrote them; none where a program did. Older logs lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<UserId>,
}

/// Why a turn ended by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
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

/// A fact about a turn that is taken back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum RollbackFact {
    /// The turn before is being taken back, and the turn that has begun waits: requests to the model have none of its messages any more.
    Began {
        /// The turn that is taken back.
        turn_id: TurnId,
        /// Counts from 1.
        attempt: u32,
        /// Its tool calls, whose changes of files are taken back.
        calls: Vec<CallId>,
        /// The time of its first message.
        since: Timestamp,
    },
    /// The turn before was taken back, as far as it could be.
    Ended {
        /// The turn that was taken back.
        turn_id: TurnId,
        /// The rewind of its files, which another rewind takes back; none where it changed no file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rewind_id: Option<Uuid>,
        /// How many changes were taken back.
        changes: u64,
        /// The files that stay as they are, because others changed them since or their earlier content is lost: the first 100.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        kept: Vec<FilePath>,
        /// Why nothing was taken back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<Error>,
        /// The time of it.
        at: Timestamp,
    },
}
