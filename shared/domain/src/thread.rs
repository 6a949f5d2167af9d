//! The coding agent that performs the turns of a chat in place of the loop of the system (spec 004 §2): such a chat is called a thread at
//! the door of the code agent hub.

use crate::{FilePath, Sha256};
use serde::{Deserialize, Serialize};
use serde_json::Value;
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
    /// The agent's own session: set by it once it has begun one, or by a client that wants to go on with another. Empty: a new one is to begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Options of its configuration, by their ids.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub config_overrides: BTreeMap<String, String>,
}

impl AgentOptions {
    /// How many options of the configuration are followed, and how long a value may be, in bytes.
    const MOST: usize = 64;
    const LONGEST: usize = 1024;

    /// Whether the agent's own defaults apply.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The mode, which an agent may have as an option, too.
    pub fn chosen_mode(&self) -> Option<&str> {
        self.mode.as_deref().or_else(|| self.config_overrides.get("mode").map(String::as_str))
    }

    /// Whether a session update of the Agent Client Protocol tells of a mode or of options that the agent has chosen by itself.
    pub fn is_choice(update: &Value) -> bool {
        matches!(update["sessionUpdate"].as_str(), Some("current_mode_update" | "config_option_update"))
    }

    /// Follows such an update: whether these options have changed. An update of options lists all of them; those are followed that were chosen
    /// here, and those that `changed` names, as the adapter writes it.
    pub fn follow(&mut self, update: &Value) -> bool {
        let before = self.clone();
        match update["sessionUpdate"].as_str() {
            Some("current_mode_update") => {
                let mode = update["currentModeId"].as_str().filter(|mode| mode.len() <= Self::LONGEST);
                let Some(mode) = mode else { return false };
                // An agent may have its modes as an option, too: one of the two is kept.
                let known = self.config_overrides.get_mut("mode");
                if self.mode.is_some() || known.is_none() {
                    self.mode = Some(mode.to_owned());
                }
                if let Some(known) = known {
                    mode.clone_into(known);
                }
            }
            Some("config_option_update") => {
                let changed: Vec<&str> = texts(&update["changed"]).collect();
                for (id, value) in Self::current(&update["configOptions"]) {
                    let same = match id.as_str() {
                        "mode" => self.mode.as_mut(),
                        "model" => self.model_id.as_mut(),
                        _ => None,
                    };
                    let (is_changed, is_apart) = (changed.contains(&id.as_str()), same.is_none());
                    if let Some(same) = same.filter(|_| is_changed) {
                        same.clone_from(&value);
                    }
                    let is_known = self.config_overrides.contains_key(&id);
                    let is_new = is_changed && is_apart && self.config_overrides.len() < Self::MOST;
                    if is_known || is_new {
                        self.config_overrides.insert(id, value);
                    }
                }
            }
            _ => {}
        }
        *self != before
    }

    /// The values of options of a configuration, as the protocol lists them, by their ids. One that is no text is left out.
    pub fn current(options: &Value) -> BTreeMap<String, String> {
        let of = |option: &Value| {
            let (id, value) = (option["id"].as_str()?, option["currentValue"].as_str()?);
            (id.len() <= Self::LONGEST && value.len() <= Self::LONGEST).then(|| (id.to_owned(), value.to_owned()))
        };
        options.as_array().into_iter().flatten().filter_map(of).collect()
    }
}

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn options_follow_the_choices_of_an_agent_and_nothing_else() {
        let mut options = AgentOptions {
            mode: Some("plan".into()),
            config_overrides: [("effort".to_owned(), "low".to_owned())].into(),
            ..AgentOptions::default()
        };
        let mode = json!({ "sessionUpdate": "current_mode_update", "currentModeId": "code" });
        assert!(AgentOptions::is_choice(&mode) && options.follow(&mode));
        assert!(!options.follow(&mode), "it is no news");
        assert!(!options.follow(&json!({ "sessionUpdate": "current_mode_update", "currentModeId": 7 })));
        assert_eq!(options.mode.as_deref(), Some("code"));
        let option = |id: &str, value: Value| json!({ "id": id, "currentValue": value });
        let all = [
            option("effort", json!("high")),
            option("model", json!("large")),
            option("voice", json!("warm")),
            option("web", json!(true)),
        ];
        let told =
            json!({ "sessionUpdate": "config_option_update", "configOptions": all, "changed": ["model", "web"] });
        assert!(AgentOptions::is_choice(&told) && options.follow(&told));
        let expected = [("effort", "high"), ("model", "large")].map(|(id, value)| (id.to_owned(), value.to_owned()));
        assert_eq!(options.config_overrides, expected.into());
        let mode = json!([option("mode", json!("ask"))]);
        let both = json!({ "sessionUpdate": "config_option_update", "configOptions": mode, "changed": ["mode"] });
        assert!(options.follow(&both));
        assert_eq!((options.mode.as_deref(), options.config_overrides.contains_key("mode")), (Some("ask"), false));
        let mut pinned =
            AgentOptions { config_overrides: [("mode".into(), "plan".into())].into(), ..Default::default() };
        assert!(pinned.follow(&json!({ "sessionUpdate": "current_mode_update", "currentModeId": "code" })));
        assert_eq!((pinned.mode, pinned.config_overrides["mode"].as_str()), (None, "code"));
        let call = json!({ "sessionUpdate": "tool_call", "currentModeId": "ask" });
        assert!(!AgentOptions::is_choice(&call) && !options.follow(&call));
    }
}
