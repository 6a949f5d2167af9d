//! Programs that run for long and are spoken to by their standard input and output, such as servers of tools. They are confined as commands are,
//! and have none of their places: a program mostly waits.

use crate::{local::Local, supervise, talking::Talking};
use domain::{CallId, FilePath, WorkspaceId};
use ports::{Exec, Grant, Result};
use std::{collections::BTreeMap, time::Duration};
use uuid::Uuid;

/// Each of its processes may take this times eight of CPU: days.
const LONG: Duration = Duration::from_secs(24 * 3600);

impl Local {
    /// Starts a program beside the files of a workspace. It sees `folder` of them, and runs there.
    ///
    /// # Errors
    /// `Invalid` for a program that makes no sense here, and when this machine cannot confine it; `Unavailable` when it may work another time.
    pub async fn talk(
        &self,
        workspace: WorkspaceId,
        words: Vec<String>,
        env: BTreeMap<String, String>,
        folder: FilePath,
        network: bool,
    ) -> Result<Talking> {
        let command = Exec {
            call: CallId(Uuid::now_v7()),
            grant: Grant::default(),
            words,
            root: folder.clone(),
            folder,
            env,
            // It has an input, which is written later.
            stdin: Some(String::new()),
            timeout: LONG,
            network,
            max_output: 0,
        };
        let talking = supervise::talk(self.options(), workspace, &self.latest(workspace), command).await;
        talking.map_err(Into::into)
    }
}
