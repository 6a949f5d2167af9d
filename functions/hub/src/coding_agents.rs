//! The coding agents of the hub: programs of the machine, which act as the person who runs it.

use crate::layout::COPIES;
use agents::{ChildAgents, ConfineThread, Options};
use assembly::Config;
use ports::{Agents, NoAgents};
use sandbox::LocalCopies;
use std::{path::Path, sync::Arc};

/// Why a hub with accounts has none.
const ACCOUNTS: &str =
    "this hub has accounts, and a coding agent would act as the person who runs the hub, not as its member";

/// The agents of the box and of the configuration. Where there are accounts there are none: each of them would act as the person who runs the hub.
/// Working copies are in the folder `copies` of the data folder.
pub(crate) fn of(data: &Path, config: &Config, environment: &[(String, String)]) -> Arc<dyn Agents> {
    if config.auth.has_accounts() {
        return Arc::new(NoAgents::because(ACCOUNTS));
    }
    Arc::new(ChildAgents::new(options(data, config, environment)))
}

fn options(data: &Path, config: &Config, environment: &[(String, String)]) -> Options {
    Options {
        agents: assembly::coding_agents::known(&config.agents),
        roots: config.hub.roots(std::env::current_dir().ok()),
        environment: environment.to_vec(),
        known: config.secrets.clone(),
        idle: config.hub.idle(),
        start: config.hub.start(),
        max_active: config.hub.max_active,
        confine: sandbox::can_confine().map(|()| sandbox::confine as ConfineThread),
        copies: Some(Arc::new(LocalCopies::new(data.join(COPIES)))),
        ..Options::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{path::PathBuf, time::Duration};

    #[test]
    fn each_key_of_the_hub_reaches_its_agents() {
        let mut config = Config::default();
        config.hub.allowed_roots = vec!["/srv".into()];
        config.hub.agent_idle_seconds = 7;
        config.hub.agent_start_seconds = 8;
        config.hub.max_active = Some(2);
        let options = options(Path::new("/data"), &config, &[]);
        assert_eq!(options.roots, [PathBuf::from("/srv")]);
        let times = [options.idle, options.start];
        assert_eq!((times, options.max_active), ([7, 8].map(Duration::from_secs), Some(2)));
    }
}
