//! The hub's sandbox: the machine that it runs on, with the workspace's own folder.

use crate::{Commands, Options};
use async_trait::async_trait;
use domain::{CallId, WorkspaceId};
use ports::{Exec, Execution, Mirrored, Reservation, Reserve, Result, Sandbox, SandboxState, SandboxView, Sandboxes};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// Sandboxes on this machine. They are always ready, and see `latest/` itself.
#[derive(Clone)]
pub struct Local {
    files: PathBuf,
    commands: Commands,
}

impl Local {
    /// For workspaces in `{files}/{workspace}/latest`, with scratch folders in `scratch`.
    pub fn new(files: impl Into<PathBuf>, scratch: impl Into<PathBuf>) -> Self {
        Self::with(files, Options::new(scratch))
    }

    /// The same, with these options for commands.
    pub fn with(files: impl Into<PathBuf>, mut options: Options) -> Self {
        let files = files.into();
        options.hidden.push(files.clone());
        Self { files, commands: Commands::new(options) }
    }

    /// Ends all commands, as a hub does that ends itself.
    pub async fn end(&self) {
        self.commands.end(None).await;
    }

    pub(crate) fn commands(&self) -> &Commands {
        &self.commands
    }

    pub(crate) fn options(&self) -> &Options {
        self.commands.options()
    }

    pub(crate) fn latest(&self, workspace: WorkspaceId) -> PathBuf {
        self.files.join(workspace.to_string()).join("latest")
    }
}

fn ready() -> SandboxView {
    SandboxView { state: SandboxState::Ready, since: None, reason: None }
}

#[async_trait]
impl Sandboxes for Local {
    async fn look(&self, _: WorkspaceId) -> Result<SandboxView> {
        Ok(ready())
    }

    async fn warm(&self, _: WorkspaceId) -> Result<SandboxView> {
        Ok(ready())
    }

    async fn release(&self, workspace: WorkspaceId) -> Result<()> {
        self.commands.end(Some(workspace)).await;
        Ok(())
    }

    async fn ready(&self, workspace: WorkspaceId) -> Result<Option<Arc<dyn Sandbox>>> {
        let (commands, latest) = (self.commands.clone(), self.latest(workspace));
        Ok(Some(Arc::new(Here { commands, workspace, latest })))
    }
}

/// The sandbox of one workspace.
struct Here {
    commands: Commands,
    workspace: WorkspaceId,
    latest: PathBuf,
}

#[async_trait]
impl Sandbox for Here {
    fn mirror(&self) -> Option<&dyn Mirrored> {
        None
    }

    async fn reserve(&self, asked: Reserve) -> Result<Reservation> {
        Ok(self.commands.reserve(self.workspace, &asked).await)
    }

    async fn exec(&self, command: Exec) -> Result<Execution> {
        let latest: &Path = &self.latest;
        self.commands.exec(self.workspace, latest, command).await
    }

    async fn kill(&self, call: CallId) -> Result<()> {
        self.commands.kill(self.workspace, call).await;
        Ok(())
    }
}
