//! A command on this machine. It ends with the call that it belongs to.

use rustix::process::{Pid, Signal, kill_process_group};
use std::{collections::VecDeque, io, path::Path, process::Stdio};
use tokio::{io::AsyncReadExt, process::Command};

/// The most output that is kept, in bytes: its end.
const OUTPUT: usize = 50 * 1024;

/// The processes of a command, which end when this is dropped.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // It may have ended by itself.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Runs a command line; an error has its output with the reason.
pub(super) async fn run(folder: &Path, line: &str) -> Result<String, String> {
    // One pipe for both streams keeps the order of their lines.
    let script = format!("exec 2>&1\n{line}");
    let mut command = Command::new("sh");
    command.arg("-c").arg(script).current_dir(folder).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    // The settings and the token of this program are none of the agent's.
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("BUILDSCALE_")) {
        command.env_remove(name);
    }
    let told = |error: io::Error| format!("the command could not be run: {error}");
    let mut child = command.spawn().map_err(told)?;
    let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    let _group = Group(id);
    let (mut kept, mut was_cut, mut piece) = (VecDeque::with_capacity(OUTPUT), false, vec![0; 8192]);
    if let Some(mut output) = child.stdout.take() {
        loop {
            let read = output.read(&mut piece).await.map_err(told)?;
            if read == 0 {
                break;
            }
            kept.extend(piece.get(..read).unwrap_or_default());
            let over = kept.len().saturating_sub(OUTPUT);
            was_cut |= over > 0;
            kept.drain(..over);
        }
    }
    let ended = child.wait().await.map_err(told)?;
    let mut text = String::from_utf8_lossy(kept.make_contiguous()).into_owned();
    if was_cut {
        text.insert_str(0, "(The beginning of the output was cut.)\n");
    }
    match ended.code() {
        Some(0) => Ok(text),
        Some(code) => Err(format!("{text}\n(exit code {code})")),
        None => Err(format!("{text}\n(ended by a signal)")),
    }
}
