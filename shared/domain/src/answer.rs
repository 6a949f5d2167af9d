//! The answers of agents, and the tool calls for them and for nodes.

use crate::{ChatId, Code, Error, Status, Usage};
use serde::{Deserialize, Serialize};

/// The answer of an agent: the reply of the chat that a node talks to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentAnswer {
    /// The chat.
    pub chat: ChatId,
    /// The round of the chat: the same as in the request.
    pub round: u32,
    /// The agent's last words.
    pub text: String,
    /// Why its turn ended: a stop reason of `done`, or `stopped`.
    pub stop_reason: String,
    /// Its usage.
    pub usage: Usage,
    /// The model that answered, as its provider names it; where that is not known, none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
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
    /// Its status: a misuse is a failure; a call that merely met a problem is recorded as partial.
    pub status: Status,
    /// The answer of the tool; cut when it is long.
    pub output: String,
    /// The error code, for programs: `NOT_BEGUN` says that nothing of it happened, `OUTCOME_UNKNOWN` that it was begun and its outcome is
    /// not known, anything else that it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// How long it waited before for slots, for a place on its machine and for the machine itself, in milliseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub queue_ms: u64,
    /// The resources that it used, if it ran as processes of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
}

/// The resources that a command used (spec 002 §10.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    /// CPU time, of the kernel's too, in milliseconds: of the command and of those of its processes that it waited for.
    pub cpu_ms: u64,
    /// The most memory that one of its processes had, in bytes. It is looked at ten times a second.
    pub peak_memory_bytes: u64,
    /// The bytes of standard input.
    pub bytes_in: u64,
    /// The bytes that it wrote to standard output and standard error, including dropped ones.
    pub bytes_out: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
