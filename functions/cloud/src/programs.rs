//! Programs of MCP servers on AWS: each in the sandbox of its workspace, which is started for it.

use assembly::programs;
use async_trait::async_trait;
use domain::WorkspaceId;
use mcp::{Program, Programs};
use ports::{RunningProgram, Sandbox, Sandboxes};
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

    async fn start(&self, workspace: WorkspaceId, program: Program) -> Result<RunningProgram, String> {
        let command = programs::command(Program { hidden: Vec::new(), ..program }, self.network);
        let prepare = |sandbox: Arc<dyn Sandbox>| async move { self.bring(workspace, &*sandbox).await };
        let running = sandbox::start_program_in(&*self.sandboxes, workspace, command, prepare).await;
        running.map_err(|error| error.to_string())
    }

    async fn refresh(&self, workspace: WorkspaceId) -> Result<(), String> {
        let refreshed = async {
            match self.sandboxes.ready(workspace).await? {
                Some(sandbox) => self.bring(workspace, &*sandbox).await,
                // It went a moment ago, and the program with it: the call finds that out.
                None => Ok(()),
            }
        };
        refreshed.await.map_err(|error: ports::Error| error.to_string())
    }
}
