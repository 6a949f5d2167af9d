//! The parts that servers are reached with.

use crate::{AccountParts, Egress};
use async_trait::async_trait;
use domain::{FilePath, WorkspaceId};
use futures::future::BoxFuture;
use ports::Secrets;
use std::{collections::BTreeMap, sync::Arc};
use tokio::io::{AsyncRead, AsyncWrite};

/// A program that is spoken to by its standard input and output.
#[derive(Clone, Debug)]
pub struct Program {
    /// The program and its arguments.
    pub words: Vec<String>,
    /// Its variables, beside those that every program gets.
    pub env: BTreeMap<String, String>,
    /// The folder of the workspace that it sees and runs in.
    pub folder: FilePath,
    /// The files and folders of the workspace that must not exist for it.
    pub hidden: Vec<FilePath>,
    /// Whether it may open sockets, where commands may.
    pub network: bool,
}

/// Asks whether a program is still there.
pub type Probe = Box<dyn Fn() -> BoxFuture<'static, bool> + Send + Sync>;

/// The pipes of a program that runs.
pub struct Talk {
    /// Its standard input.
    pub input: Box<dyn AsyncWrite + Send + Unpin>,
    /// Its standard output.
    pub output: Box<dyn AsyncRead + Send + Unpin>,
    /// Its errors.
    pub errors: Box<dyn AsyncRead + Send + Unpin>,
    /// Whether the files that it sees are not the present ones any more: it has to be started again for those.
    pub is_outdated: Box<dyn Fn() -> bool + Send + Sync>,
    /// Asks about a program whose end may not have reached the pipes yet. None where the pipes end with the program.
    pub is_there: Option<Probe>,
    /// It ends when this is dropped, with all that it started.
    pub held: Box<dyn Send + Sync>,
}

/// Starts programs.
#[async_trait]
pub trait Programs: Send + Sync {
    /// Whether files of the workspace can be hidden from programs.
    fn hides(&self) -> bool;
    /// Starts a program beside the files of a workspace.
    ///
    /// # Errors
    /// The reason, for people; for a program from which something must be hidden, where that cannot be.
    async fn start(&self, workspace: WorkspaceId, program: Program) -> Result<Talk, String>;
    /// Brings the files that the programs of a workspace see up to date, where those are not the workspace's own.
    ///
    /// # Errors
    /// The reason, for people.
    async fn refresh(&self, _: WorkspaceId) -> Result<(), String> {
        Ok(())
    }
}

/// The parts that servers are reached with.
pub struct Parts {
    /// Programs in the sandbox of their workspace; none where there are no sandboxes.
    pub confined: Option<Arc<dyn Programs>>,
    /// Programs as children of this process, for the operator's own servers.
    pub children: Option<Arc<dyn Programs>>,
    /// Addresses.
    pub egress: Arc<dyn Egress>,
    /// The secrets that are granted to workspaces.
    pub secrets: Arc<dyn Secrets>,
    /// The secrets of the operator, for their own servers.
    pub host_secrets: Arc<dyn Secrets>,
    /// The accounts at servers that need a sign-in; none where none are kept.
    pub accounts: Option<AccountParts>,
}
