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
/// Working copies are in the folder `copies` of the data directory.
pub(crate) fn of(data: &Path, config: &Config, environment: &[(String, String)]) -> Arc<dyn Agents> {
    if config.auth.has_accounts() {
        return Arc::new(NoAgents::because(ACCOUNTS));
    }
    let options = Options {
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
    };
    Arc::new(ChildAgents::new(options))
}
