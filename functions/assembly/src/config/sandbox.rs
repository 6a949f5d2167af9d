//! `[sandbox]`: the commands of agents, flows and people.

use serde::Deserialize;
use std::{path::PathBuf, time::Duration};
use tools::Commands;

/// `[sandbox]`
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sandbox {
    /// Whether commands run at all: those of agents (the tool `exec`), of flows and of people.
    pub commands: bool,
    /// Whether they may reach the network: public addresses, through a proxy that programs find in `https_proxy`. Those of flows
    /// need their own permission, too.
    pub network: bool,
    /// Whether they then reach private networks and services of this machine, too; never the hub itself. The hub's alone.
    pub allow_private: bool,
    /// How long a command may run that names no time-out, in seconds; 1 or more.
    pub timeout_s: u64,
    /// The longest time-out that a command may name, in seconds; `timeout_s` where that is longer.
    pub longest_s: u64,
    /// How long to wait for a sandbox that starts, in seconds; 1 or more.
    pub start_timeout_s: u64,
    /// Folders of this machine that commands may read and run from, beside those of the system, such as a toolchain's. The hub's
    /// alone.
    pub readable: Vec<PathBuf>,
}

impl Default for Sandbox {
    fn default() -> Self {
        let Commands { network, timeout, longest, start_timeout } = Commands::default();
        Self {
            commands: true,
            network,
            allow_private: false,
            timeout_s: timeout.as_secs(),
            longest_s: longest.as_secs(),
            start_timeout_s: start_timeout.as_secs(),
            readable: Vec::new(),
        }
    }
}

impl Sandbox {
    /// How commands are run; none where none are.
    pub fn commands(&self) -> Option<Commands> {
        let seconds = Duration::from_secs;
        self.commands.then(|| Commands {
            network: self.network,
            timeout: seconds(self.timeout_s),
            longest: seconds(self.longest_s.max(self.timeout_s)),
            start_timeout: seconds(self.start_timeout_s),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SetupError, Sources};

    #[test]
    fn commands_run_unless_somebody_says_no() -> Result<(), SetupError> {
        let commands = |environment: &[(&str, &str)]| {
            let environment: Vec<_> =
                environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            Sources::of_environment(&environment, |_| false).read().map(|config| config.sandbox.commands())
        };
        assert_eq!(commands(&[])?, Some(Commands::default()));
        assert_eq!(commands(&[("BUILDSCALE__SANDBOX__COMMANDS", "false")])?, None);
        let long = [
            ("BUILDSCALE__SANDBOX__TIMEOUT_S", "900"),
            ("BUILDSCALE__SANDBOX__NETWORK", "true"),
            ("BUILDSCALE__SANDBOX__START_TIMEOUT_S", "7"),
        ];
        let (fifteen, start_timeout) = (Duration::from_secs(900), Duration::from_secs(7));
        let expected = Commands { network: true, timeout: fifteen, longest: fifteen, start_timeout };
        assert_eq!(commands(&long)?, Some(expected));
        let longest = commands(&[("BUILDSCALE__SANDBOX__LONGEST_S", "900")])?.map(|commands| commands.longest);
        assert_eq!(longest, Some(fifteen));
        Ok(())
    }
}
