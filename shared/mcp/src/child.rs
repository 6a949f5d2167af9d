//! Programs that are children of this process, with the rights of its user: only for servers that the operator declares so, or the person whose
//! process it is.

use crate::dependencies::{Program, Programs};
use async_trait::async_trait;
use domain::WorkspaceId;
use ports::RunningProgram;
use processes::ProcessGroup;
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

/// A child, which ends with this, and all that it started.
struct RunningChild {
    _group: ProcessGroup,
    /// The runtime waits for it once it is dropped.
    _child: Child,
}

#[async_trait]
impl Programs for Children {
    fn hides(&self) -> bool {
        false
    }

    async fn start(&self, _: WorkspaceId, program: Program) -> Result<RunningProgram, String> {
        let Some((name, args)) = program.words.split_first() else { return Err("there is no command".into()) };
        let mut command = Command::new(name);
        let failed = |error: std::io::Error| format!("{name} does not start: {error}");
        let group = ProcessGroup::new().map_err(failed)?;
        command.args(args).env_clear().envs(self.environment.iter().cloned()).envs(program.env);
        // Its group ends it, and not the drop of the child: processes below a program are found by their parent, so it must run until then.
        command.current_dir(&self.folder);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        group.take_in(&mut command);
        let mut child = command.spawn().map_err(failed)?;
        let (Some(input), Some(output), Some(errors)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(format!("{name} has no pipes"));
        };
        let (is_outdated, end) = (Box::new(|| false), Box::new(RunningChild { _group: group, _child: child }));
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

    const PATIENCE: Duration = Duration::from_secs(60);

    /// A server that is a line of a shell, which says so many times that it has begun, ends with all that holds its outputs open.
    async fn ends(line: &str, processes: usize) {
        let children = Children::new(&[("PATH".into(), "/usr/bin:/bin".into())]);
        let words = ["sh", "-c", line].map(String::from).to_vec();
        let (env, folder, hidden) = (BTreeMap::new(), FilePath::root(), Vec::new());
        let program = Program { words, env, folder, hidden, network: false };
        let running = children.start(WorkspaceId::from_key("tests", "mcp"), program).await.unwrap();
        let RunningProgram { output, mut errors, end, .. } = running;
        let (mut output, mut said) = (BufReader::new(output), String::new());
        for _ in 0..processes {
            timeout(PATIENCE, output.read_line(&mut said)).await.unwrap().unwrap();
        }
        drop(end);
        // A process that it left holds both of its outputs open for as long as it runs.
        let mut rest = Vec::new();
        timeout(PATIENCE, output.read_to_end(&mut rest)).await.unwrap().unwrap();
        timeout(PATIENCE, errors.read_to_end(&mut rest)).await.unwrap().unwrap();
        assert_eq!((said.as_str(), rest.as_slice()), ("begun\n".repeat(processes).as_str(), b"".as_slice()));
    }

    #[tokio::test]
    async fn a_server_ends_with_all_that_its_first_process_has_left() {
        ends("sleep 100000 & echo begun", 1).await;
    }

    #[tokio::test]
    async fn a_server_ends_with_its_processes_in_sessions_of_their_own() {
        let daemon = "(setsid sh -c 'echo begun; exec sleep 100000' &)";
        ends(&format!("{daemon}; setsid sh -c 'echo begun; exec sleep 100000'"), 2).await;
    }
}
