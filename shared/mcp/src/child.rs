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
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        // Nothing waits for the child before, so its number is its own also after its end; and it may have left others in its group.
        if let Some(group) = self.0.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?))
            && let Err(error) = kill_process_group(group, Signal::KILL)
        {
            tracing::debug!(%error, "the processes of a server were not ended");
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
        let (Some(input), Some(output), Some(errors)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(format!("{name} has no pipes"));
        };
        let (is_outdated, end) = (Box::new(|| false), Box::new(Group(child)));
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

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use domain::FilePath;
    use std::{collections::BTreeMap, time::Duration};
    use tokio::{
        io::{AsyncBufReadExt, AsyncReadExt, BufReader},
        time::timeout,
    };

    #[tokio::test]
    async fn a_server_ends_with_all_that_its_first_process_has_left() {
        let children = Children::new(&[("PATH".into(), "/usr/bin:/bin".into())]);
        let words = ["sh", "-c", "sleep 100000 & echo begun"].map(String::from).to_vec();
        let (env, folder, hidden) = (BTreeMap::new(), FilePath::root(), Vec::new());
        let program = Program { words, env, folder, hidden, network: false };
        let running = children.start(WorkspaceId::from_key("tests", "mcp"), program).await.unwrap();
        let RunningProgram { output, mut errors, end, .. } = running;
        let (mut output, mut line) = (BufReader::new(output), String::new());
        output.read_line(&mut line).await.unwrap();
        drop(end);
        // What it left holds both of its outputs open for as long as it runs.
        let mut rest = Vec::new();
        timeout(Duration::from_secs(60), output.read_to_end(&mut rest)).await.unwrap().unwrap();
        timeout(Duration::from_secs(60), errors.read_to_end(&mut rest)).await.unwrap().unwrap();
        assert_eq!((line.as_str(), rest.as_slice()), ("begun\n", b"".as_slice()));
    }
}
