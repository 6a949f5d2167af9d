//! The end of a task and of its nodes, as its state has it.

use super::execution::{Execution, Mode};
use domain::{ChatId, Error, NodeId, Timestamp};
use serde::{Deserialize, Serialize};

/// How a task ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskEnd {
    /// Why it failed.
    pub error: Option<Error>,
    /// The time of the end.
    pub at: Timestamp,
}

/// An agent whose node ended before its turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoppedAgent {
    /// The node.
    pub node: NodeId,
    /// Its chat.
    pub chat: ChatId,
    /// The turn of the chat, from 1.
    pub round: u32,
}

impl StoppedAgent {
    /// The agent that is at work when the node in flight ends.
    pub(super) fn of(ended: Option<Execution>) -> Option<Self> {
        let Execution { node, mode: Mode::Agent { chat, round }, .. } = ended? else { return None };
        Some(Self { node, chat, round })
    }
}
