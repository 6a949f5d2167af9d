//! `exec`: a command, in the workspace's sandbox (spec 000 §7).

use crate::{
    call::{self, Answer, Call, Done},
    caps::plain,
    command::{Command, CommandResult, Commands, SandboxWait, run_told},
    effects::{Declaration, Declare},
    keep::{self, Keep},
};
use domain::{Error, FilePath};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::time::Duration;
use workspace::Action;

const EXEC: &str = "Run a command beside the workspace's files, such as tests, scripts or builds. The files are \
    read-only to it: scratch work goes to $TMPDIR, which is gone afterwards (and is /tmp where this machine can give each command \
    its own), and lasting changes are made with write, edit and keep. With keep, files that the command leaves in $TMPDIR become \
    versions: to change many, work on a copy, as cp -r src $TMPDIR/src && cd $TMPDIR/src && cargo fmt, and keep \
    [{\"from\": \"src\", \"to\": \"/projects/app/src\"}]. \
    Answers with the output, the exit code and the time it took. There is no terminal, and no process outlives the call.";

/// The description, with the time that a command has.
pub(crate) fn description(commands: Commands) -> String {
    let Commands { timeout, longest, .. } = commands;
    format!("{EXEC} It has {} s, or timeout_s of up to {} s.", timeout.min(longest).as_secs(), longest.as_secs())
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExecArgs {
    /// A line for /bin/sh. Either this or words.
    command: Option<String>,
    /// The program and its arguments, with no shell between. Either this or command.
    words: Option<Vec<String>>,
    /// The folder to run it in; the root of the workspace by default.
    folder: Option<String>,
    /// After so many seconds it is ended.
    #[schemars(range(min = 1, max = 3600))]
    timeout_s: Option<u64>,
    /// The standard input.
    stdin: Option<String>,
    /// Files and folders of $TMPDIR that become versions in the workspace. Nothing is deleted there.
    #[schemars(length(max = ports::MOST_KEEPS))]
    keep: Option<Vec<Keep>>,
}

impl Declare for ExecArgs {
    fn declare(&self, into: &mut Declaration<'_>) -> Result<(), Error> {
        // A command reads all that the fence shows it, and writes to its scratch folder alone. Of that some may be kept.
        self.keep.iter().flatten().try_for_each(|one| one.source().and_then(|_| into.writes("keep", &one.to)))
    }
}

pub(crate) async fn exec(call: &Call<'_>, args: ExecArgs, commands: Commands) -> Answer {
    let words = match (args.command, args.words) {
        (Some(line), None) if !line.trim().is_empty() => vec!["/bin/sh".into(), "-c".into(), line],
        (None, Some(words)) if !words.is_empty() => words,
        (Some(_), Some(_)) => {
            return Err(Error::invalid("words", "there is a command and there are words").hint("give one of them"));
        }
        _ => return Err(Error::invalid("command", "there is nothing to run").hint("give a command, or words")),
    };
    let folder = args.folder.as_deref().map_or(Ok(FilePath::root()), |folder| call::path("folder", folder))?;
    let info = call.workspace.stat(&folder).await?;
    if info.kind != workspace::FileKind::Folder {
        return Err(Error::invalid("folder", format!("{folder} is not a folder")).hint("name the folder that it is in"));
    }
    call.workspace.demand(Action::Execute, &folder)?;
    let keeps = args.keep.unwrap_or_default();
    keep::demand(call, &keeps)?;
    let keep: Vec<FilePath> = keeps.iter().map(Keep::source).collect::<Result<_, _>>()?;
    let timeout = args.timeout_s.map_or(commands.timeout, Duration::from_secs).min(commands.longest);
    let waits = call.waited.map_or(SandboxWait::Here, SandboxWait::AsRows);
    let (root, stdin, network, start_timeout) =
        (FilePath::root(), args.stdin, commands.network, commands.start_timeout);
    let id = call.call_id;
    let command = Command { call: id, words, folder, root, stdin, timeout, network, start_timeout, waits, keep };
    let ran = run_told(&call.workspace, &command, call.told.as_ref()).await?;
    let mut done = report(&ran);
    if ran.end.timed_out {
        done.output.push_str(&about_time(timeout, commands.longest));
    }
    keep::write(call, &keeps, &ran, &mut done).await;
    Ok(done)
}

/// The outcome of a command for a program.
#[derive(Debug)]
pub struct RanCommand {
    /// Its end and its output.
    pub ran: CommandResult,
    /// The same as text, with a line per file.
    pub text: String,
    /// The same as data.
    pub data: Value,
    /// Why it is no success: its end, or a file that could not be kept.
    pub failure: Option<Error>,
}

/// Runs a command as [`crate::run_command`] does, and makes versions of the files that `keep` names: their paths below `$TMPDIR`, and those in the
/// workspace.
///
/// # Errors
/// Those of [`crate::run_command`]; `INVALID_ARGUMENT` and `FORBIDDEN` for a place that is none, or that the caller may not write.
pub async fn run_keeping(
    call: &Call<'_>,
    command: Command,
    keep: impl Iterator<Item = (String, String)> + Send,
) -> Result<RanCommand, Error> {
    let keep: Vec<Keep> = keep.map(|(from, to)| Keep { from, to }).collect();
    keep::demand(call, &keep)?;
    let sources = keep.iter().map(Keep::source).collect::<Result<_, _>>()?;
    let ran = run_told(&call.workspace, &Command { keep: sources, ..command }, None).await?;
    let mut done = report(&ran);
    keep::write(call, &keep, &ran, &mut done).await;
    let Done { output: text, result: data, failed, .. } = done;
    let failure = failed.or_else(|| keep::failure(&data));
    Ok(RanCommand { ran, text, data, failure })
}

/// The note about a command whose time was up.
fn about_time(timeout: Duration, longest: Duration) -> String {
    match timeout < longest {
        true => format!("\n[timeout_s gives it more time, up to {} s]", longest.as_secs()),
        false => "\n[no command has more time here: give it less to do]".to_owned(),
    }
}

/// The result of a command that ran, as text for a model and data for programs, which has the output byte for byte.
pub(crate) fn report(ran: &CommandResult) -> Done {
    let mut output = plain(&ran.output).into_owned();
    if !(output.is_empty() || output.ends_with('\n')) {
        output.push('\n');
    }
    output.push_str(&ran.summary());
    let (truncated, result, failed) = (ran.dropped > 0, ran.data(), ran.failure());
    let resources = ran.end.resources;
    Done { output, truncated, result, failed, resources, capped: true, ..Done::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_whose_time_was_up_is_offered_more_only_where_there_is_more() {
        let second = Duration::from_secs;
        assert_eq!(about_time(second(120), second(600)), "\n[timeout_s gives it more time, up to 600 s]");
        assert_eq!(about_time(second(600), second(600)), "\n[no command has more time here: give it less to do]");
    }
}
