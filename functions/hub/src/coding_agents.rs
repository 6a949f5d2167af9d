//! The coding agents of the hub: programs of the machine, which act as the person who runs it.

use crate::layout::COPIES;
use agents::{ChildAgents, Confined, Enclose, Known, Options, known};
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
    let agents = config.agents.iter().map(|(id, agent)| {
        let base = known().into_iter().find(|known| known.id == *id);
        let base = base.unwrap_or_else(|| Known { id: id.clone(), name: id.clone(), ..Known::default() });
        let agent = agent.clone();
        Known {
            name: agent.name.unwrap_or(base.name),
            // Another program is installed in another way.
            install: base.install.filter(|_| agent.command.is_none()),
            command: agent.command.unwrap_or(base.command),
            args: agent.args.unwrap_or(base.args),
            env: agent.env,
            auth: agent.auth.or(base.auth),
            confined: match agent.confined {
                Some(true) => Confined::Required,
                Some(false) => Confined::No,
                None => base.confined,
            },
            readable: agent.readable,
            writable: base.writable.into_iter().chain(agent.writable).collect(),
            id: base.id,
        }
    });
    let options = Options {
        agents: agents.collect(),
        roots: config.hub.roots(std::env::current_dir().ok()),
        environment: environment.to_vec(),
        known: config.secrets.clone(),
        idle: config.hub.idle(),
        start: config.hub.start(),
        max_active: config.hub.max_active,
        enclose: sandbox::can_enclose().map(|()| sandbox::enclose as Enclose),
        copies: Some(Arc::new(LocalCopies::new(data.join(COPIES)))),
        ..Options::default()
    };
    Arc::new(ChildAgents::new(options))
}
