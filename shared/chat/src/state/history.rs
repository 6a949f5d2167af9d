//! The past of a chat: the turns that the model reads, and what is known of those that gave way.

use domain::{CompactionView, Message, Timestamp, event::CompactionRecord};
use serde::{Deserialize, Serialize};
use std::{collections::VecDeque, sync::Arc};

/// The messages of one turn.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct PastTurn {
    /// In order.
    pub messages: Vec<Arc<Message>>,
    /// Their size, estimated.
    pub tokens: u64,
    /// The last line of the chat's file that is about it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub last_line: u64,
    /// Whether it is what stayed of turns that were compacted: their calls with results.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_rest: bool,
}

pub(super) fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}

/// The turns that the model reads no more. They are kept in the chat's file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OmittedTurns {
    /// How many.
    pub turns: u64,
    /// Their last line in the chat's file.
    pub last_line: u64,
    /// The time of the first message.
    pub since: Timestamp,
    /// The time of the last message.
    pub until: Timestamp,
}

/// One context, as we estimate its tokens and as the provider of its model counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenCount {
    /// Our estimate: four bytes per token.
    pub estimated: u64,
    /// The count of the provider, which has the model's own tokenizer.
    pub counted: u64,
}

/// The compaction that a turn is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningCompaction {
    /// Whether the turn has nothing else to do.
    pub internal: bool,
    /// The longest summary, in characters.
    pub max_chars: u32,
}

/// The summary that stands for turns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The message that the model reads first.
    pub message: Arc<Message>,
    /// Its size, estimated.
    pub tokens: u64,
}

/// The last compaction, and the state before it.
#[derive(Debug, Serialize, Deserialize)]
pub struct LastCompaction {
    /// Its record.
    pub record: CompactionRecord,
    /// The turns that it replaced, oldest first; none once it cannot be taken back.
    pub turns: VecDeque<PastTurn>,
    /// Whether the first turn of the history has their calls.
    pub has_calls: bool,
    /// The summary before it.
    pub summary: Option<Summary>,
    /// The turns that were left out before it.
    pub left_out: Option<OmittedTurns>,
}

impl LastCompaction {
    /// As people see it.
    pub(crate) fn view(&self) -> CompactionView {
        CompactionView::of(&self.record, !self.turns.is_empty())
    }
}
