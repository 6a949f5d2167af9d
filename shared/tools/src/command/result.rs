//! The result of a command: its output, and how it ended.

use domain::{Code, Error, Timestamp, text::counted};
use ports::{ExecEnd, ExecEvent, KeptFile, LeftOut};
use serde_json::{Value, json};

/// The result of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandResult {
    /// A moment before it was given the workspace's files: it may not know later changes of them.
    pub began: Timestamp,
    /// How it ended.
    pub end: ExecEnd,
    /// The output, in the order of arrival, with a line in place of dropped parts if it was too long.
    pub output: String,
    /// The parts of it that went to standard output, and to standard error.
    pub stdout: String,
    /// See [`CommandResult::stdout`].
    pub stderr: String,
    /// How many bytes were dropped from the middle.
    pub dropped: u64,
    /// The files that are kept of it.
    pub kept: Vec<KeptFile>,
    /// The entries that are not.
    pub left_out: Vec<LeftOut>,
}

impl CommandResult {
    /// The result as data.
    pub fn data(&self) -> Value {
        json!({
            "exit_code": self.end.code,
            "signal": self.end.signal,
            "timed_out": self.end.timed_out,
            "duration_ms": u64::try_from(self.end.duration.as_millis()).unwrap_or(u64::MAX),
            "stdout": self.stdout,
            "stderr": self.stderr,
            "dropped_bytes": self.dropped,
        })
    }

    /// Why it is no success; none when it is one.
    pub fn failure(&self) -> Option<Error> {
        let after = self.end.duration.as_secs_f64();
        Some(match &self.end {
            ExecEnd { timed_out: true, .. } => {
                Error::new(Code::Timeout, format!("the command's time was up after {after:.1} s, and it was ended"))
                    .hint("give it more time by timeout_s, or less to do")
            }
            ExecEnd { code: Some(0), .. } => return None,
            ExecEnd { code: Some(code), .. } => {
                Error::new(Code::Unprocessable, format!("the command ended with exit code {code}"))
                    .detail("exit_code", *code)
            }
            ExecEnd { signal: Some(signal), .. } => {
                Error::new(Code::Unprocessable, format!("the command was ended by a signal ({signal})"))
                    .detail("signal", *signal)
            }
            ExecEnd { signal: None, .. } => Error::new(Code::Unprocessable, "the command was ended by a signal"),
        })
    }

    /// How it ended, on one line.
    pub fn summary(&self) -> String {
        let how = match &self.end {
            ExecEnd { timed_out: true, .. } => "time was up".to_owned(),
            ExecEnd { code: Some(code), .. } => format!("exit code {code}"),
            ExecEnd { signal: Some(signal), .. } => format!("signal {signal}"),
            ExecEnd { .. } => "ended".to_owned(),
        };
        format!("[{how}, {:.1} s]", self.end.duration.as_secs_f64())
    }

    /// Takes in the next event of the command.
    pub(super) fn add(&mut self, event: ExecEvent) {
        match event {
            ExecEvent::Output { error, text } => {
                self.output.push_str(&text);
                if error { self.stderr.push_str(&text) } else { self.stdout.push_str(&text) }
            }
            ExecEvent::Dropped { bytes } => {
                self.dropped += bytes;
                self.output.push_str(&format!("\n[… dropped here: {} …]\n", counted(bytes, "byte")));
            }
            ExecEvent::Kept(file) => self.kept.push(file),
            ExecEvent::LeftOut(left) => self.left_out.push(left),
            ExecEvent::Ended(end) => self.end = end,
        }
    }
}
