//! The coding agent that performs the turns of a chat in place of the loop of the system (spec 004 §2): such a chat is called a thread at
//! the door of the code agent hub.

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
