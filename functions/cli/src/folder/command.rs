//! A command on this machine. It ends with the call that it belongs to.

use processes::ProcessGroup;
use std::{collections::VecDeque, io, path::Path, pin::pin, process::Stdio, time::Duration};
use tokio::{
    io::AsyncReadExt,
    process::{ChildStdout, Command},
    time::timeout,
};

/// The most output that is kept, in bytes: its end.
const OUTPUT: usize = 50 * 1024;
/// How long the output of a command that has ended is read on.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Runs a command line until its shell ends, and then ends the processes that the shell has left; an error has its output with the reason.
pub(super) async fn run(folder: &Path, line: &str) -> Result<String, String> {
    // One pipe for both streams keeps the order of their lines.
    let script = format!("exec 2>&1\n{line}");
    let told = |error: io::Error| format!("the command could not be run: {error}");
    let group = ProcessGroup::new().map_err(told)?;
    let mut command = Command::new("sh");
    command.arg("-c").arg(script).current_dir(folder);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    // The settings and the token of this program are none of the agent's.
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("BUILDSCALE_")) {
        command.env_remove(name);
    }
    group.take_in(&mut command);
    let mut child = command.spawn().map_err(told)?;
    let mut kept = KeptEnd::default();
    let ended = {
        let mut reading = pin!(read(child.stdout.take(), &mut kept));
        tokio::select! {
            ended = child.wait() => {
                // Its last words are there already. A server that it has started, such as that of a build tool, may hold its output open for hours.
                let _ = timeout(LAST_WORDS, &mut reading).await;
                ended
            }
            () = &mut reading => child.wait().await,
        }
    };
    group.end().await;
    let ended = ended.map_err(told)?;
    let text = kept.text();
    match ended.code() {
        Some(0) => Ok(text),
        Some(code) => Err(format!("{text}\n(exit code {code})")),
        None => Err(format!("{text}\n(ended by a signal)")),
    }
}

/// The end of an output.
#[derive(Default)]
struct KeptEnd {
    bytes: VecDeque<u8>,
    was_cut: bool,
}

impl KeptEnd {
    fn add(&mut self, piece: &[u8]) {
        self.bytes.extend(piece);
        let over = self.bytes.len().saturating_sub(OUTPUT);
        self.was_cut |= over > 0;
        self.bytes.drain(..over);
    }

    fn text(mut self) -> String {
        let text = String::from_utf8_lossy(self.bytes.make_contiguous());
        if self.was_cut { format!("(The beginning of the output was cut.)\n{text}") } else { text.into_owned() }
    }
}

/// Reads an output to its end.
async fn read(output: Option<ChildStdout>, kept: &mut KeptEnd) {
    let Some(mut output) = output else { return };
    let mut piece = vec![0; 8192];
    while let Ok(length @ 1..) = output.read(&mut piece).await {
        kept.add(piece.get(..length).unwrap_or_default());
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_command_ends_with_its_shell_and_not_with_what_that_has_left() {
        let folder = tempfile::tempdir().unwrap();
        let left = run(folder.path(), "sleep 100000 & echo one; echo two >&2");
        let said = timeout(Duration::from_secs(60), left).await.unwrap();
        assert_eq!(said.as_deref(), Ok("one\ntwo\n"));
        let failed = run(folder.path(), "echo no; exit 3").await;
        assert_eq!(failed.unwrap_err(), "no\n\n(exit code 3)");
    }

    /// Whether no such process runs; one that has ended may still wait for its parent.
    #[cfg(target_os = "linux")]
    fn has_ended(process: &str) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_none_or(|(_, state)| state.starts_with(['Z', 'X']))
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_command_ends_with_its_processes_in_sessions_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let stray = "setsid sh -c 'echo $$ > begun; exec sleep 100000' > stray 2>&1";
        let said = run(folder.path(), &format!("mkfifo begun; ({stray} &); cat begun")).await.unwrap();
        let process = said.trim();
        assert!(process.parse::<u32>().is_ok(), "{said}");
        let ending = async {
            while !has_ended(process) {
                // poll: a process ends without telling anybody
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(Duration::from_secs(60), ending).await.unwrap();
    }

    #[tokio::test]
    async fn the_end_of_a_long_output_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let said = run(folder.path(), "seq 100000; echo last").await.unwrap();
        assert!(said.starts_with("(The beginning of the output was cut.)\n") && said.ends_with("100000\nlast\n"));
        assert!(said.len() < OUTPUT + 100);
    }
}
