//! The machine of a workspace: the state that all routes share.

use crate::{batches::Batches, copy_leases::CopyLeases, idle::Idle, options::Options, pipes::Programs};
use futures::future::BoxFuture;
use ports::Agents;
use sandbox::{Budget, Commands, Mirror};
use std::{path::PathBuf, sync::Arc, time::Duration};

/// Searches a folder: with a tool and its arguments as JSON; the tool's answer as JSON.
pub type Search = Arc<dyn Fn(PathBuf, String, String) -> BoxFuture<'static, String> + Send + Sync>;

/// The state that all routes share.
#[derive(Clone)]
pub struct Machine(Arc<Inner>);

struct Inner {
    options: Options,
    mirror: Mirror,
    commands: Commands,
    search: Search,
    idle: Idle,
    agents: Arc<dyn Agents>,
    batches: Batches,
    copy_leases: CopyLeases,
    programs: Programs,
}

impl Machine {
    /// Opens the mirror that is on the disk. Threads of the workspace work with `agents`.
    ///
    /// # Errors
    /// When the disk does not let it.
    pub async fn open(options: Options, search: Search, agents: Arc<dyn Agents>) -> std::io::Result<Self> {
        let mirror = Mirror::open(options.folder.clone(), Budget::default()).await?;
        let mut how = sandbox::Options::new(options.scratch.join("scratch"));
        how.hidden = vec![options.folder.clone()];
        // There is no other workspace here to leave some to.
        how.shared = false;
        // The task's container isolates its commands.
        how.isolation = sandbox::Isolation::Container;
        Ok(Self::with(options, mirror, Commands::new(how), search, agents))
    }

    /// With parts that somebody made.
    pub fn with(options: Options, mirror: Mirror, commands: Commands, search: Search, agents: Arc<dyn Agents>) -> Self {
        let (idle, batches, copy_leases) = (Idle::new(), Batches::default(), CopyLeases::default());
        let programs = Programs::default();
        Self(Arc::new(Inner { options, mirror, commands, search, idle, agents, batches, copy_leases, programs }))
    }

    pub(crate) fn options(&self) -> &Options {
        &self.0.options
    }
    pub(crate) fn mirror(&self) -> &Mirror {
        &self.0.mirror
    }
    pub(crate) fn commands(&self) -> &Commands {
        &self.0.commands
    }
    pub(crate) fn search(&self) -> &Search {
        &self.0.search
    }
    pub(crate) fn agents(&self) -> &Arc<dyn Agents> {
        &self.0.agents
    }
    pub(crate) fn batches(&self) -> &Batches {
        &self.0.batches
    }
    pub(crate) fn copy_leases(&self) -> &CopyLeases {
        &self.0.copy_leases
    }
    pub(crate) fn programs(&self) -> &Programs {
        &self.0.programs
    }
    pub(crate) fn idle(&self) -> &Idle {
        &self.0.idle
    }
    /// For how long there was no request and no command.
    pub(crate) fn unused(&self) -> Duration {
        if self.commands().running() > 0 { Duration::ZERO } else { self.idle().elapsed() }
    }
}
