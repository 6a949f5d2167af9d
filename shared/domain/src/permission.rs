//! The calls that a person allows, or denies, in one chat from now on.

use crate::{AgentAsk, FilePath, Sha256};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Calls that a person with the right to approve allows in one chat, until the rule is forgotten; or denies, with [`PermissionRule::Deny`].
///
/// An older process must not overlook a part of a rule, as that would widen it: a field or a kind that it does not know is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum PermissionRule {
    /// Commands that begin with these words and run in this folder.
    CommandPrefix {
        /// The program and its subcommand, behind the words of a program that runs them, as `timeout 10`. Each of them is a whole word of the command.
        words: Vec<String>,
        /// The folder that they run in; left out for the root of the workspace.
        #[serde(default = "FilePath::root", skip_serializing_if = "FilePath::is_root")]
        folder: FilePath,
    },
    /// One command with all of its words, in this folder.
    Command {
        /// The program and its arguments.
        words: Vec<String>,
        /// The folder that it runs in; left out for the root of the workspace.
        #[serde(default = "FilePath::root", skip_serializing_if = "FilePath::is_root")]
        folder: FilePath,
    },
    /// New contents of one file that a policy asks about, such as one under `/system`. Moves and removals are not among them.
    File {
        /// The file.
        path: FilePath,
    },
    /// A tool of a server, with any arguments.
    Tool {
        /// Its name for agents, such as `mcp__github__create_issue`.
        tool: String,
    },
    /// No call that this rule covers. It wins over every rule that allows one.
    Deny {
        /// The rule whose calls are denied, of another kind than this one.
        rule: Box<PermissionRule>,
    },
}

impl PermissionRule {
    /// Its id: 16 hexadecimal digits, the same for the same rule wherever it was granted.
    pub fn id(&self) -> String {
        let text = serde_json::to_string(self).unwrap_or_default();
        Sha256::of(text.as_bytes()).to_string().chars().take(16).collect()
    }

    /// The rule that denies the calls that this one covers.
    pub fn denied(self) -> Self {
        Self::Deny { rule: Box::new(self) }
    }

    /// The rule whose calls it denies; none for a rule that allows.
    pub fn denies(&self) -> Option<&Self> {
        match self {
            Self::Deny { rule } => Some(rule),
            Self::CommandPrefix { .. } | Self::Command { .. } | Self::File { .. } | Self::Tool { .. } => None,
        }
    }

    /// `allow` or `deny`: what it does with the calls that it covers.
    pub fn effect(&self) -> &'static str {
        if self.denies().is_some() { "deny" } else { "allow" }
    }

    /// Whether a shell takes this word as it stands: ASCII letters, digits, and signs without a meaning for it.
    pub fn is_plain(word: &str) -> bool {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%^".contains(c);
        !word.is_empty() && word.chars().all(is_plain)
    }
}

/// The rule in words, as people read it before they grant it. Words that are not plain are quoted, so that no two commands look the same.
impl fmt::Display for PermissionRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (meaning, words, folder) = match self {
            Self::CommandPrefix { words, folder } => ("commands that begin with", words, folder),
            Self::Command { words, folder } => ("the command", words, folder),
            Self::File { path } => return write!(f, "new contents of {path}"),
            Self::Tool { tool } => return write!(f, "the tool {tool} with any arguments"),
            Self::Deny { rule } => return write!(f, "denied: {rule}"),
        };
        let quoted = |word: &String| if Self::is_plain(word) { word.clone() } else { format!("{word:?}") };
        write!(f, "{meaning} `{}`", words.iter().map(quoted).collect::<Vec<_>>().join(" "))?;
        if folder.is_root() { Ok(()) } else { write!(f, " in {folder}") }
    }
}

/// The digest of a request for permission, as people are shown it: of the category, the tool and the arguments, or that of the coding agent's own
/// request. A decision may name it.
pub fn shown_digest(category: &str, tool: &str, args: &str, agent: Option<&AgentAsk>) -> Sha256 {
    match agent {
        Some(agent) => agent.digest,
        None => Sha256::of(serde_json::json!([category, tool, args]).to_string().as_bytes()),
    }
}

/// The decision on a permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PermissionOutcome {
    /// Yes.
    Approved,
    /// No.
    Declined,
    /// Withdrawn: the turn was stopped, or no answer came in time.
    Cancelled,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn people_can_tell_one_rule_from_another() {
        let folder = FilePath::parse("/projects/app").unwrap_or_else(|_| FilePath::root());
        let shown = |rule: PermissionRule| rule.to_string();
        let (command, root) = (words(&["cargo", "test"]), FilePath::root());
        let prefix = PermissionRule::CommandPrefix { words: command, folder: folder.clone() };
        assert_eq!(shown(prefix), "commands that begin with `cargo test` in /projects/app");
        let one = PermissionRule::Command { words: words(&["echo", "a b"]), folder: root.clone() };
        let two = PermissionRule::Command { words: words(&["echo", "a", "b"]), folder: root };
        assert_eq!(
            (shown(one).as_str(), shown(two).as_str()),
            ("the command `echo \"a b\"`", "the command `echo a b`")
        );
        assert_eq!(shown(PermissionRule::File { path: folder }), "new contents of /projects/app");
    }

    #[test]
    fn a_rule_that_denies_is_another_rule_than_the_one_that_allows_the_same() {
        let allows = PermissionRule::Tool { tool: "mcp__mail__send".into() };
        let denies = allows.clone().denied();
        assert_ne!(allows.id(), denies.id());
        assert_eq!((allows.effect(), denies.effect()), ("allow", "deny"));
        assert_eq!((allows.denies(), denies.denies()), (None, Some(&allows)));
        assert_eq!(denies.to_string(), "denied: the tool mcp__mail__send with any arguments");
        let told = json!({ "kind": "deny", "rule": { "kind": "tool", "tool": "mcp__mail__send" } });
        assert_eq!(json!(denies), told);
        assert_eq!(serde_json::from_value::<PermissionRule>(told).ok(), Some(denies));
    }

    #[test]
    fn no_part_of_a_rule_is_overlooked() {
        let rule = json!({ "kind": "command", "words": ["make"] });
        let read = serde_json::from_value::<PermissionRule>(rule.clone());
        assert_eq!(read.ok().map(|rule| json!(rule)), Some(rule.clone()));
        let mut newer = rule;
        newer["hosts"] = json!(["localhost"]);
        assert!(serde_json::from_value::<PermissionRule>(newer).is_err());
    }
}
