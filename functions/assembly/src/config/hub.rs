//! The keys of coding agents: `[hub]`, and a table per agent.

use serde::Deserialize;
use std::{collections::BTreeMap, path::PathBuf, time::Duration};

/// `[hub]`: coding agents, which run as programs of the person who runs the hub.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Hub {
    /// The folders in which coding agents may work: the `cwd` of a chat with an agent has to be in one of them after symbolic links are resolved.
    /// The folder that the hub was started in when none is named, but never `/`. With accounts none when none is named, since every account sees the names
    /// of the folders in them.
    pub allowed_roots: Vec<PathBuf>,
    /// How long the process of an agent stays without a turn, in seconds; 1 or more.
    pub agent_idle_seconds: u64,
    /// How long an agent may take for each answer of its start, in seconds; 1 or more.
    pub agent_start_seconds: u64,
    /// How many turns of coding agents run at once; others wait for a place. 1 or more; without it there is no limit.
    pub max_active: Option<usize>,
}

impl Default for Hub {
    fn default() -> Self {
        Self { allowed_roots: Vec::new(), agent_idle_seconds: 900, agent_start_seconds: 60, max_active: None }
    }
}

impl Hub {
    /// The allowed roots. `here` is the folder that the hub was started in.
    pub fn roots(&self, here: Option<PathBuf>) -> Vec<PathBuf> {
        if !self.allowed_roots.is_empty() {
            return self.allowed_roots.clone();
        }
        here.filter(|here| here.parent().is_some()).into_iter().collect()
    }

    /// See [`Hub::agent_idle_seconds`].
    pub fn idle(&self) -> Duration {
        Duration::from_secs(self.agent_idle_seconds)
    }

    /// See [`Hub::agent_start_seconds`].
    pub fn start(&self) -> Duration {
        Duration::from_secs(self.agent_start_seconds)
    }
}

/// `[agents.NAME]`: a coding agent that speaks the Agent Client Protocol. One with the name of an agent of the box changes the keys that it has.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Agent {
    /// Its name for people.
    pub name: Option<String>,
    /// The program: a name on the `PATH`, or an absolute path.
    pub command: Option<String>,
    /// Its arguments.
    pub args: Option<Vec<String>>,
    /// Variables of its environment. Of the hub's own it has those of its user alone, such as `PATH` and `HOME`, and no key.
    pub env: BTreeMap<String, String>,
    /// The method of the protocol by which it signs in, such as `gemini-api-key`; none for an agent that is signed in already.
    pub auth: Option<String>,
    /// Whether its process is confined, by Landlock, to the allowed roots and to the files that it needs to run. Without it: whether it is one of
    /// Claude Code, Codex, Gemini CLI and OpenCode on a machine that can. With `true`, an agent that this machine cannot confine is not available.
    pub confined: Option<bool>,
    /// More files and folders that it can read and run when it is confined. Relative ones are in its home.
    pub readable: Vec<PathBuf>,
    /// More folders that it can change when it is confined. Relative ones are in its home.
    pub writable: Vec<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_the_hub_is_the_root_when_none_is_named() {
        let here = PathBuf::from("/srv/app");
        assert_eq!(Hub::default().roots(Some(here.clone())), std::slice::from_ref(&here));
        assert!(Hub::default().roots(Some("/".into())).is_empty(), "the whole machine has to be named");
        let named = Hub { allowed_roots: vec!["/srv".into()], ..Hub::default() };
        assert_eq!(named.roots(Some(here)), [PathBuf::from("/srv")]);
    }
}
