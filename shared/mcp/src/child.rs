//! Programs that are children of this process, with the rights of its user: only for servers that the operator declares so, or the person whose
//! process it is.

use crate::dependencies::{Program, Programs};
use async_trait::async_trait;
use domain::WorkspaceId;
use ports::RunningProgram;
use rustix::process::{Pid, Signal, kill_process_group};
use std::{path::PathBuf, process::Stdio};
use tokio::process::{Child, Command};

/// The variables that a child gets of the environment: nothing in them is a key.
const VARIABLES: [&str; 8] = ["PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "XDG_CACHE_HOME"];

/// Starts children of this process, each in a process group of its own.
#[derive(Clone, Debug)]
pub struct Children {
    environment: Vec<(String, String)>,
    folder: PathBuf,
}

impl Children {
    /// With the variables of this environment that hold no keys, in the folder for temporary files.
    pub fn new(environment: &[(String, String)]) -> Self {
        let kept = environment.iter().filter(|(name, _)| VARIABLES.contains(&name.as_str()));
        Self { environment: kept.cloned().collect(), folder: std::env::temp_dir() }
    }

    /// The same in a folder.
    pub fn in_folder(self, folder: PathBuf) -> Self {
        Self { folder, ..self }
    }
}

/// A child, which ends with this, and all that it started in its group.
struct Group(Child, Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        // A child that has ended and was waited for has no number any more.
        if let (Some(group), Ok(None)) = (self.1, self.0.try_wait()) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

#[async_trait]
impl Programs for Children {
    fn hides(&self) -> bool {
        false
    }

    async fn start(&self, _: WorkspaceId, program: Program) -> Result<RunningProgram, String> {
        let Some((name, args)) = program.words.split_first() else { return Err("there is no command".into()) };
        let mut command = Command::new(name);
        command.args(args).env_clear().envs(self.environment.iter().cloned()).envs(program.env);
        command.current_dir(&self.folder).process_group(0).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("{name} does not start: {error}"))?;
        let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let (Some(input), Some(output), Some(errors)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(format!("{name} has no pipes"));
        };
        let (is_outdated, end) = (Box::new(|| false), Box::new(Group(child, group)));
        Ok(RunningProgram {
            input: Box::new(input),
            output: Box::new(output),
            errors: Box::new(errors),
            is_outdated,
            is_there: None,
            end,
        })
    }
}
