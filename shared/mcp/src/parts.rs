//! The parts that servers are reached with.

use crate::{AccountParts, Egress};
use async_trait::async_trait;
use domain::{FilePath, WorkspaceId};
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
    /// Whether it may open sockets, where commands may.
    pub network: bool,
}

/// The pipes of a program that runs.
pub struct Talk {
    /// Its standard input.
    pub input: Box<dyn AsyncWrite + Send + Unpin>,
    /// Its standard output.
    pub output: Box<dyn AsyncRead + Send + Unpin>,
    /// Its errors.
    pub errors: Box<dyn AsyncRead + Send + Unpin>,
    /// It ends when this is dropped, with all that it started.
    pub held: Box<dyn Send + Sync>,
}

/// Starts programs.
#[async_trait]
pub trait Programs: Send + Sync {
    /// Starts a program beside the files of a workspace.
    ///
    /// # Errors
    /// The reason, for people.
    async fn start(&self, workspace: WorkspaceId, program: Program) -> Result<Talk, String>;
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
