//! The ports and settings that servers are reached with.

use crate::{AccountDependencies, Egress};
use async_trait::async_trait;
use domain::{FilePath, WorkspaceId};
use ports::{RunningProgram, Secrets};
use std::{collections::BTreeMap, sync::Arc};

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

/// Starts programs.
#[async_trait]
pub trait Programs: Send + Sync {
    /// Whether files of the workspace can be hidden from programs.
    fn hides(&self) -> bool;
    /// Starts a program beside the files of a workspace.
    ///
    /// # Errors
    /// The reason, for people; for a program from which something must be hidden, where that cannot be.
    async fn start(&self, workspace: WorkspaceId, program: Program) -> Result<RunningProgram, String>;
    /// Brings the files that the programs of a workspace see up to date, where those are not the workspace's own.
    ///
    /// # Errors
    /// The reason, for people.
    async fn refresh(&self, _: WorkspaceId) -> Result<(), String> {
        Ok(())
    }
}

/// The ports and settings that servers are reached with.
pub struct ServerDependencies {
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
    pub accounts: Option<AccountDependencies>,
}
