//! What agents answer, and what tools did for them and for nodes.

use super::Status;
use crate::{ChatId, Code, Error, Usage};
use serde::{Deserialize, Serialize};

/// The answer of an agent: the reply of the chat that a node talks to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentAnswer {
    /// The chat.
    pub chat: ChatId,
    /// Which round of it: the same as asked.
    pub round: u32,
    /// The agent's last words.
    pub text: String,
    /// Why its turn ended: a stop reason of `done`, or `stopped`.
    pub stop_reason: String,
    /// Its usage.
    pub usage: Usage,
    /// Model calls.
    pub steps: u32,
    /// The tools it called, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolUse>,
    /// The failure, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Error>,
}

/// One use of a tool, as history shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolUse {
    /// The tool.
    pub tool: String,
    /// Its arguments; cut when they are long, the whole is in the chat's log.
    pub args: String,
    /// Its status: a misuse is a failure; what merely went wrong is recorded as partial.
    pub status: Status,
    /// The answer of the tool; cut when it is long.
    pub output: String,
    /// Why it is no success, for programs: `NOT_BEGUN` says that nothing of it happened, `OUTCOME_UNKNOWN` that it was begun and what
    /// became of it is not known, anything else that it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
}
