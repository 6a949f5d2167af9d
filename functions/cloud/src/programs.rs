//! Programs of MCP servers on AWS: each in the sandbox of its workspace, which is started for it.

use async_trait::async_trait;
use domain::WorkspaceId;
use mcp::{Program, Programs, Talk};
use ports::{Sandbox, Sandboxes};
use std::sync::Arc;
use workspace::{Access, Workspaces};

/// Programs in sandboxes, where commands run, too.
pub(crate) struct InSandboxes {
    /// The workspaces, with these sandboxes.
    pub workspaces: Workspaces,
    pub sandboxes: Arc<dyn Sandboxes>,
    /// Whether commands may open sockets there at all.
    pub network: bool,
}

impl InSandboxes {
    /// Brings the files of a sandbox in line with the workspace.
    async fn bring(&self, workspace: WorkspaceId, sandbox: &dyn Sandbox) -> ports::Result<()> {
        let access = Access::platform("the mirror of a sandbox gets what everybody may read");
        let brought = async { self.workspaces.open(workspace, access).await?.bring_to(sandbox, None).await };
        brought.await.map_err(sandbox::wire::heard)
    }
}

#[async_trait]
impl Programs for InSandboxes {
    /// A mirror has only the files that everybody may read. A party from whom one of them is hidden gets no program.
    fn hides(&self) -> bool {
        true
    }

    async fn start(&self, workspace: WorkspaceId, program: Program) -> Result<Talk, String> {
        let Program { words, env, folder, hidden: _, network } = program;
        let program = sandbox::program(words, env, folder, Vec::new(), network && self.network);
        let prepare = |sandbox: Arc<dyn Sandbox>| async move { self.bring(workspace, &*sandbox).await };
        let talking = sandbox::talk_in(&*self.sandboxes, workspace, program, prepare).await;
        let sandbox::Talking { input, output, errors, is_outdated, end } =
            talking.map_err(|error| error.to_string())?;
        Ok(Talk { input, output, errors, is_outdated, held: end })
    }

    async fn refresh(&self, workspace: WorkspaceId) -> Result<(), String> {
        let refreshed = async {
            match self.sandboxes.ready(workspace).await? {
                Some(sandbox) => self.bring(workspace, &*sandbox).await,
                // The program has gone with it, which the call finds out.
                None => Ok(()),
            }
        };
        refreshed.await.map_err(|error: ports::Error| error.to_string())
    }
}
