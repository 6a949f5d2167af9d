//! The coding agent that performs the turns of a chat in place of the loop of the system (spec 004 §2): such a chat is called a thread at
//! the door of the code agent hub.

use crate::Sha256;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The agent of a thread, and the folder that it works in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadAgent {
    /// Its name in the configuration, such as `codex`.
    pub agent: String,
    /// The absolute path of the folder on the machine that runs it, after symbolic links are resolved.
    pub cwd: String,
    /// The agent's own settings.
    #[serde(default, skip_serializing_if = "AgentOptions::is_empty")]
    pub options: AgentOptions,
}

/// The settings that an agent of its own process understands. Each is a name that the agent has offered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentOptions {
    /// The mode of its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// The model that it asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_id: Option<String>,
    /// The agent's own session: set by it once it has begun one, or by a client that wants to go on with another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Options of its configuration, by their ids.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub config_overrides: BTreeMap<String, String>,
}

impl AgentOptions {
    /// Whether the agent's own defaults apply.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// An answer that a coding agent offers for its request for permission.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentOption {
    /// The agent's id of it.
    pub id: String,
    /// Its words for people.
    pub name: String,
    /// `allow_once`, `allow_always`, `reject_once` or `reject_always`.
    pub kind: String,
}

impl AgentOption {
    /// Whether it lets the agent go on with what it asks for.
    pub fn allows(&self) -> bool {
        matches!(self.kind.as_str(), "allow_once" | "allow_always")
    }

    /// Whether it is a no. An option of a kind that is not known is neither.
    pub fn rejects(&self) -> bool {
        matches!(self.kind.as_str(), "reject_once" | "reject_always")
    }
}

/// The request of a coding agent behind a permission.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentAsk {
    /// Its id in the process that asks. No other request of any process has it.
    pub request: String,
    /// The answers that the agent offers.
    pub options: Vec<AgentOption>,
    /// The SHA-256 of what was shown: the category, the call and the options.
    pub digest: Sha256,
}

/// An answer to the request of a coding agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentReply {
    /// The request.
    pub request: String,
    /// The option of the agent; none cancels the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub option: Option<String>,
    /// The source of the answer: a principal, `timeout`, or the rule that covers the call.
    pub by: String,
}
