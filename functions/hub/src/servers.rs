//! The servers of tools that this hub speaks to: programs in the sandbox of their workspace, children of the hub, services over HTTP, and the web.

use crate::{HubError, secrets};
use assembly::{Config, HostEgress, programs};
use async_trait::async_trait;
use domain::WorkspaceId;
use mcp::{AccountDependencies, Children, Program, Programs, ServerDependencies, Servers};
use ports::{JoinedServers, KnownSecrets, RunningProgram, Secrets, ServerAccounts, SystemClock, Table, ToolServers};
use std::{path::Path, sync::Arc};

/// Programs in the sandbox, where commands run, too.
struct Confined {
    sandbox: sandbox::Local,
    /// Whether commands may open sockets here at all.
    network: bool,
}

#[async_trait]
impl Programs for Confined {
    fn hides(&self) -> bool {
        self.sandbox.hides()
    }

    async fn start(&self, workspace: WorkspaceId, program: Program) -> Result<RunningProgram, String> {
        let command = programs::command(program, self.network);
        self.sandbox.start_program(workspace, command).await.map_err(|error| error.to_string())
    }
}

/// The tools of all servers, and the accounts at those that need a sign-in.
type ToolsAndAccounts = (Arc<dyn ToolServers>, Arc<dyn ServerAccounts>);

/// The servers of the configuration, and those that workspaces declare.
///
/// # Errors
/// [`HubError::Config`] for a declaration that makes no sense.
pub(crate) fn servers(
    data: &Path,
    config: &Config,
    environment: &[(String, String)],
    sandbox: Option<&sandbox::Local>,
    granted: Arc<dyn Secrets>,
    known: &KnownSecrets,
    table: Arc<dyn Table>,
) -> Result<ToolsAndAccounts, HubError> {
    let confined = sandbox.map(|sandbox| {
        Arc::new(Confined { sandbox: sandbox.clone(), network: config.sandbox.network }) as Arc<dyn Programs>
    });
    let converter = Arc::new(sandbox::ChildConverter::default());
    let web = assembly::web(config, granted.clone(), converter, Arc::new(SystemClock))?;
    let key = secrets::accounts_key(data, known);
    let accounts = AccountDependencies { table, key, clock: Arc::new(SystemClock), known: known.clone() };
    let parts = ServerDependencies {
        confined,
        children: Some(Arc::new(Children::new(environment))),
        // A workspace's own servers are public ones, also where flows may reach private providers.
        egress: Arc::new(HostEgress { allow_private: false }),
        secrets: granted,
        host_secrets: secrets::of_operator(data, environment, known),
        accounts: Some(accounts),
    };
    let servers = Arc::new(Servers::new(&config.mcp, parts).map_err(HubError::Config)?);
    Ok((Arc::new(JoinedServers(vec![servers.clone(), Arc::new(web)])), servers))
}
