//! The coding agent that performs the turns of a chat in place of the loop of the system (spec 004 §2): such a chat is called a thread at
//! the door of the code agent hub.

use crate::{FilePath, Sha256};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The agent of a thread, and the folder that it works in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadAgent {
    /// Its name in the configuration, such as `codex`.
    pub agent: String,
    /// The absolute path of the folder on the machine that runs it, after symbolic links are resolved. [`WORKSPACE_FOLDER`] or a folder in
    /// it are the files of the workspace.
    pub cwd: String,
    /// The agent's own settings.
    #[serde(default, skip_serializing_if = "AgentOptions::is_empty")]
    pub options: AgentOptions,
}

/// The name of the files of a workspace among folders of a machine (spec 004 §9 (4)).
pub const WORKSPACE_FOLDER: &str = "/workspace";

impl ThreadAgent {
    /// The folder of the workspace that a `cwd` names; none for a folder of the machine.
    pub fn folder(cwd: &str) -> Option<FilePath> {
        let rest = cwd.strip_prefix(WORKSPACE_FOLDER)?;
        if rest.is_empty() { Some(FilePath::root()) } else { FilePath::parse(rest).ok() }
    }

    /// The `cwd` of a folder of the workspace.
    pub fn cwd_of(folder: &FilePath) -> String {
        if folder.is_root() { WORKSPACE_FOLDER.to_owned() } else { format!("{WORKSPACE_FOLDER}{folder}") }
    }
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
