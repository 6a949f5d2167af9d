//! The arguments of `buildscale sandbox`.

use super::{Connection, work::WorkspaceChoice};
use clap::{Args, Subcommand};
use std::time::Duration;

#[derive(Debug, Args)]
pub struct SandboxArgs {
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(flatten)]
    pub(crate) place: WorkspaceChoice,
    #[command(subcommand)]
    pub(crate) command: Option<SandboxCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SandboxCommand {
    /// Show the state of the sandbox, and start nothing (as `sandbox` alone does)
    Status,
    /// Start the sandbox, so that the next command need not wait for it
    Start,
    /// Run a command in the sandbox, beside the workspace's files; exit code 1 when it fails
    ///
    /// The files are read-only to it; scratch work goes to $TMPDIR, which is gone afterwards but for what --keep names. Its output comes
    /// when it has ended. Ctrl-C leaves it: it then runs to its end, or until its time is up.
    Run {
        /// The folder of the workspace to run it in
        #[arg(long, value_name = "PATH", default_value = "/")]
        folder: String,
        /// How long it may run: a number with s, m or h [default: as the hub is configured]
        #[arg(long, value_parser = super::duration, value_name = "TIME")]
        timeout: Option<Duration>,
        /// Give it the standard input
        #[arg(long)]
        stdin: bool,
        /// Write a file or a folder that it leaves in $TMPDIR to the workspace, such as out/chart.png=/projects/app/chart.png; may be repeated
        #[arg(long, value_parser = kept, value_name = "FROM=TO")]
        keep: Vec<(String, String)>,
        /// The program and its arguments, behind --; no shell is between
        #[arg(value_name = "WORD", required = true, last = true)]
        words: Vec<String>,
    },
    /// End the sandbox, with all that runs in it; the workspace's files stay
    Stop,
}

fn kept(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((from, to)) if !from.is_empty() && !to.is_empty() => Ok((from.into(), to.into())),
        _ => Err("a path below $TMPDIR, =, and a path of the workspace, such as out=/projects/app/out".into()),
    }
}
