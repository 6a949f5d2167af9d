//! Programs that run for long and are spoken to by their standard input and output, such as servers of tools. They are confined as commands are,
//! and have none of their places: a program mostly waits.

use crate::{Commands, Isolation, hidden_paths::MaskedFolders, local::Local, supervise};
use domain::{CallId, FilePath, WorkspaceId};
use ports::{Exec, Grant, Result, RunningProgram};
use std::{collections::BTreeMap, path::Path, time::Duration};
use uuid::Uuid;

/// Each of its processes may take this times eight of CPU: days.
const LONG: Duration = Duration::from_secs(24 * 3600);

/// A program, as a command. It sees `folder` of a workspace without the files in `hidden`, and runs there.
pub fn program(
    words: Vec<String>,
    env: BTreeMap<String, String>,
    folder: FilePath,
    hidden: Vec<FilePath>,
    network: bool,
) -> Exec {
    Exec {
        call: CallId(Uuid::now_v7()),
        grant: Grant::default(),
        words,
        root: folder.clone(),
        hidden,
        folder,
        env,
        // It has an input, which is written later.
        stdin: Some(String::new()),
        timeout: LONG,
        network,
        max_output: 0,
        keep: Vec::new(),
    }
}

impl Commands {
    /// Starts a [`program`] beside the files in `latest`.
    ///
    /// # Errors
    /// `Invalid` for a program that makes no sense here, and when this machine cannot confine it, or hide the files; `Unavailable` when it may work
    /// another time.
    pub async fn start_program(&self, workspace: WorkspaceId, latest: &Path, program: Exec) -> Result<RunningProgram> {
        // Before it starts: a change meanwhile is one more.
        let masked = MaskedFolders::new(latest, &program.hidden);
        let running = supervise::start_program(self.options(), workspace, latest, program).await?;
        Ok(RunningProgram { is_outdated: Box::new(move || masked.have_changed()), ..running })
    }
}

impl Local {
    /// Whether files of a workspace can be hidden from its programs.
    pub fn hides(&self) -> bool {
        matches!(self.options().isolation, Isolation::Namespaces(_))
    }

    /// Starts a [`program`] beside the files of a workspace.
    ///
    /// # Errors
    /// Those of [`Commands::start_program`].
    pub async fn start_program(&self, workspace: WorkspaceId, program: Exec) -> Result<RunningProgram> {
        self.commands().start_program(workspace, &self.latest(workspace), program).await
    }
}
