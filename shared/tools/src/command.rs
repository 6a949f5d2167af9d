//! Running a command in the workspace's sandbox: waiting for one and for a place in it, running it once, following it through failures.
//!
//! ```text
//!   ready, with the files ── a place (reserve) ── noted under its grant (begin) ── exec, and followed ── its end
//!        not begun: anybody may try again            begun: its end, or OUTCOME_UNKNOWN
//! ```
//!
//! No command silently runs twice. Before it is handed over, its beginning is noted durably under its call, with the place that it was granted;
//! the worker that comes after a crash, or after a checkpoint, finds the note and asks the machine of that grant, which begins a command once
//! under it or follows the running one. A machine that answers that nothing was begun under the grant is believed: the note is removed, and the
//! command waits for another place. If that machine is gone, the outcome of the command is unknown, and the caller gets that as an error.

mod result;

pub use result::CommandResult;

use crate::caps::{MAX_BYTES, end_of, plain};
use domain::{CallId, Code, Error, FilePath, Timestamp};
use futures::StreamExt;
use ports::{
    Exec, ExecEnd, ExecEvent, Execution, Grant, Listener, Reservation, Reserve, Sandbox, SandboxState, SandboxView,
    Sandboxes,
};
use serde_json::Value;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::time::Instant;
use workspace::{Beginning, Workspace};

/// How often a sandbox that starts is looked at: first, and at most.
const LOOKED_AT: Duration = Duration::from_millis(250);
const LOOKED_AT_MOST: Duration = Duration::from_secs(5);
/// How often a sandbox is asked for: one may be let go, or end, while it starts for somebody else.
const ASKED_FOR: u32 = 3;
/// How often a command whose sandbox does not answer is asked for again before it is given up.
const FOLLOWED: u32 = 5;
/// How long a worker waits for a sandbox that starts, or for a place, before it asks to be called again: about the cost of an entry and a
/// delayed letter.
const A_SECOND: Duration = Duration::from_secs(1);
/// The longest time after which to come again. A sandbox on AWS takes two to three minutes.
const COME_AGAIN_MOST: Duration = Duration::from_secs(15);
/// The detail of `NOT_BEGUN` that says when the call is to be made again, in milliseconds.
const RETRY_AFTER_MS: &str = "retry_after_ms";
/// How often another place is asked for when nothing came of the one before.
const PLACES: u32 = 5;
/// How long a person's request waits for a sandbox to start, and for a place in it.
const A_MOMENT: Duration = Duration::from_secs(15);

/// How commands are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commands {
    /// Whether commands may open sockets; a flow's tool also needs its own permission.
    pub network: bool,
    /// How long a command runs when nothing is said.
    pub timeout: Duration,
    /// How long it runs at most.
    pub longest: Duration,
    /// How long a command waits for a sandbox that starts, and for a place in one.
    pub start_timeout: Duration,
}

/// How a command waits for its sandbox, and for a place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SandboxWait {
    /// In a person's request: for a moment.
    Here,
    /// As rows of an actor, which holds a place of the machine's semaphore. It has waited for so long already, and is told by
    /// [`retry_after`] when to make the call again.
    AsRows(Duration),
}

impl Default for Commands {
    fn default() -> Self {
        Self {
            network: false,
            timeout: Duration::from_secs(120),
            longest: Duration::from_secs(600),
            start_timeout: Duration::from_secs(300),
        }
    }
}

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The call under which it runs once.
    pub call: CallId,
    /// The program and its arguments.
    pub words: Vec<String>,
    /// The folder of the workspace that it runs in.
    pub folder: FilePath,
    /// The only folder that it can read.
    pub root: FilePath,
    /// The standard input.
    pub stdin: Option<String>,
    /// How long it runs.
    pub timeout: Duration,
    /// Whether it may open sockets.
    pub network: bool,
    /// How long it waits for a sandbox that starts, and for a place in one.
    pub start_timeout: Duration,
    /// The way it waits.
    pub waits: SandboxWait,
    /// The files and folders that are kept of its scratch folder, by their paths from there.
    pub keep: Vec<FilePath>,
}

/// Runs a command to its end, or follows the one that runs under this call.
///
/// # Errors
/// `NOT_BEGUN` with the reason when there was no sandbox in time, or no place in it, with the time to [try again](retry_after) if there is some
/// left; `CANCELLED` when it was ended before it began; `OUTCOME_UNKNOWN` when a command was begun and its end is not known; `INVALID_ARGUMENT`
/// for a command that makes no sense, or that this machine cannot confine.
pub async fn run_command(workspace: &Workspace, command: &Command) -> Result<CommandResult, Error> {
    run_told(workspace, command, None).await
}

/// The same. `told` hears the end of the output so far, each time that there is more of it.
///
/// # Errors
/// Those of [`run_command`].
pub(crate) async fn run_told(
    workspace: &Workspace,
    command: &Command,
    told: Option<&Listener>,
) -> Result<CommandResult, Error> {
    let mut told = told.map(|told| (told, 0));
    let sandboxes = workspace.sandboxes().ok_or_else(none_configured)?;
    let mut reason = String::new();
    for _ in 0..PLACES {
        let (sandbox, exec, began) = match workspace.begun(command.call).await? {
            Some(Beginning { grant, at }) => {
                // A command that was begun is in the present sandbox, or nowhere.
                let sandbox = sandboxes.ready(workspace.id()).await.ok().flatten();
                let hidden = match hidden(workspace, sandbox.as_deref(), command).await {
                    Err(error) if error.code == Code::Forbidden => {
                        kill_command(workspace, command.call).await;
                        return Err(unknown("it was ended, because it could see files that policies now keep from it"));
                    }
                    hidden => hidden?,
                };
                (sandbox, command.exec(grant, hidden), at)
            }
            None => {
                let at = workspace.now();
                let (sandbox, grant, hidden) = placed(workspace, &*sandboxes, command).await?;
                let Beginning { grant, at } = workspace.begin(command.call, Beginning { grant, at }).await?;
                (Some(sandbox), command.exec(grant, hidden), at)
            }
        };
        let came = follow(workspace, &*sandboxes, sandbox, &exec, &mut told).await;
        if !matches!(came, Ok(Followed::Ended(_) | Followed::Unknown(_))) {
            workspace.not_begun(command.call, exec.grant).await?;
        }
        match came? {
            Followed::Ended(mut ran) => {
                ran.began = began;
                return Ok(*ran);
            }
            Followed::Unknown(why) => return Err(unknown(&why)),
            Followed::NotBegun(why) => {
                tracing::info!(call = %command.call, why, "a command was not begun; it asks for another place");
                reason = why;
            }
        }
    }
    Err(not_begun(format!("the sandbox did not begin the command: {reason}")).hint("try again in a minute"))
}

/// When to make a call again that was not begun, because its sandbox starts or has no place for it now.
pub fn retry_after(error: &Error) -> Option<Duration> {
    let is_early = error.code == Code::NotBegun;
    error.details.get(RETRY_AFTER_MS).and_then(Value::as_u64).filter(|_| is_early).map(Duration::from_millis)
}

/// Ends a command, and all processes that it started. A command that is not known, or gone, counts as ended.
pub async fn kill_command(workspace: &Workspace, call: CallId) {
    let Some(sandboxes) = workspace.sandboxes() else { return };
    let mut pause = LOOKED_AT;
    for _ in 0..FOLLOWED {
        let killed = async {
            match sandboxes.ready(workspace.id()).await? {
                Some(sandbox) => sandbox.kill(call).await.map(|()| true),
                None => {
                    let view = sandboxes.look(workspace.id()).await?;
                    Ok(matches!(view.state, SandboxState::Cold | SandboxState::Failed))
                }
            }
        };
        match killed.await {
            Ok(true) => return,
            // It is there, and too busy to say so.
            Ok(false) => tracing::info!(%call, "a command's sandbox does not answer; it is tried again"),
            Err(error) => {
                tracing::warn!(%call, error = %error.with_causes(), "a command could not be ended; it is tried again")
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LOOKED_AT_MOST);
    }
    tracing::warn!(%call, "a command could not be ended; its time will be up");
}

impl Command {
    /// The files of chats that it runs among; others are not brought up to date for it.
    fn folder_of_chats(&self) -> Option<&FilePath> {
        (self.folder.names().next() == Some("chats")).then_some(&self.folder)
    }

    /// How long the caller waits at once.
    fn waits_here(&self) -> Duration {
        match self.waits {
            SandboxWait::Here => self.start_timeout.min(A_MOMENT),
            SandboxWait::AsRows(_) => A_SECOND,
        }
    }

    /// The error of a command that has not begun yet, with the time to come again if it may wait longer.
    fn later(&self, error: Error) -> Error {
        let SandboxWait::AsRows(waited) = self.waits else { return error };
        if waited >= self.start_timeout {
            return error;
        }
        // The longer it takes, the rarer it is looked at.
        let after = (waited / 3).clamp(A_SECOND, COME_AGAIN_MOST);
        error.detail(RETRY_AFTER_MS, u64::try_from(after.as_millis()).unwrap_or(u64::MAX))
    }

    fn exec(&self, grant: Grant, hidden: Vec<FilePath>) -> Exec {
        Exec {
            call: self.call,
            grant,
            words: self.words.clone(),
            folder: self.folder.clone(),
            root: self.root.clone(),
            hidden,
            env: BTreeMap::new(),
            stdin: self.stdin.clone(),
            timeout: self.timeout,
            network: self.network,
            max_output: MAX_BYTES,
            keep: self.keep.clone(),
        }
    }
}

/// The files and folders that must not exist for the command.
async fn hidden(
    workspace: &Workspace,
    sandbox: Option<&dyn Sandbox>,
    command: &Command,
) -> Result<Vec<FilePath>, Error> {
    workspace.hidden_from_commands(&command.root, sandbox.is_some_and(|it| it.mirror().is_some())).await
}

/// A sandbox with the workspace's files, and those of them that must not exist for the command. One may go away while it is given them: then there is another one.
async fn hydrated(
    workspace: &Workspace,
    sandboxes: &dyn Sandboxes,
    command: &Command,
) -> Result<(Arc<dyn Sandbox>, Vec<FilePath>), Error> {
    let mut tries = 2;
    loop {
        let sandbox = started(workspace, sandboxes, command).await?;
        let hidden = hidden(workspace, Some(&*sandbox), command).await?;
        tries -= 1;
        match workspace.bring_to(&*sandbox, command.folder_of_chats()).await {
            Ok(()) => return Ok((sandbox, hidden)),
            Err(error) if tries > 0 && may_pass(&error) => {
                tracing::warn!(%error, "a sandbox was not given the files");
            }
            Err(error) => return Err(not_hydrated(error)),
        }
    }
}

/// The sandbox, once it is ready.
async fn started(
    workspace: &Workspace,
    sandboxes: &dyn Sandboxes,
    command: &Command,
) -> Result<Arc<dyn Sandbox>, Error> {
    let (begun, mut pause) = (Instant::now(), LOOKED_AT);
    let (mut view, mut asked_for) = (None::<SandboxView>, 0);
    loop {
        match sandboxes.ready(workspace.id()).await {
            Ok(Some(sandbox)) => return Ok(sandbox),
            Ok(None) => {
                let comes = match &view {
                    Some(SandboxView { state, .. }) => *state != SandboxState::Cold,
                    // It was asked for when the call was first made; one that has failed since is not asked for anew.
                    None => matches!(command.waits, SandboxWait::AsRows(waited) if !waited.is_zero()),
                };
                let asked = match comes || asked_for == ASKED_FOR {
                    true => sandboxes.look(workspace.id()).await,
                    false => sandboxes.warm(workspace.id()).await.inspect(|_| asked_for += 1),
                };
                match asked {
                    Ok(now) if now.state == SandboxState::Failed => return Err(not_started(now.reason)),
                    Ok(now) if now.state == SandboxState::Cold && asked_for == ASKED_FOR => {
                        return Err(not_started(now.reason.or_else(|| Some("somebody has let it go".into()))));
                    }
                    Ok(now) => view = Some(now),
                    Err(error) => {
                        tracing::warn!(error = %error.with_causes(), "a sandbox was asked for and did not answer")
                    }
                }
            }
            Err(error) => tracing::warn!(error = %error.with_causes(), "a sandbox was asked for and did not answer"),
        }
        if begun.elapsed() + pause > command.waits_here() {
            return Err(command.later(not_started(view.and_then(|view| view.reason))));
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LOOKED_AT_MOST);
    }
}

/// A sandbox with the workspace's files, a place in it, and the files that must not exist for the command. Nothing of the command has begun then, or when this is an error.
async fn placed(
    workspace: &Workspace,
    sandboxes: &dyn Sandboxes,
    command: &Command,
) -> Result<(Arc<dyn Sandbox>, Grant, Vec<FilePath>), Error> {
    let (mut sandbox, mut hidden) = hydrated(workspace, sandboxes, command).await?;
    let mut silent = 0;
    let (direct, wait) = (command.waits == SandboxWait::Here, command.waits_here());
    loop {
        match sandbox.reserve(Reserve { call: command.call, direct, wait }).await {
            Ok(Reservation::Granted(grant)) => return Ok((sandbox, grant, hidden)),
            Ok(Reservation::Busy) => {
                let why = "the sandbox has no place for the command now, so it did not run";
                let hint = "try again when some of the commands that run there have ended";
                return Err(command.later(not_begun(why.into()).hint(hint)));
            }
            Ok(Reservation::Killed) => {
                return Err(Error::new(Code::Cancelled, "the command was ended before it began, so it did not run"));
            }
            Err(ports::Error::Invalid(why)) => return Err(Error::new(Code::InvalidArgument, why)),
            Err(error) => {
                silent += 1;
                if silent == FOLLOWED {
                    return Err(not_begun(format!("the sandbox does not answer, so the command did not run: {error}"))
                        .hint("try again in a minute"));
                }
                tracing::warn!(call = %command.call, error = %error.with_causes(), "a sandbox was asked for a place and did not answer");
                tokio::time::sleep(LOOKED_AT * 2_u32.pow(silent)).await;
                (sandbox, hidden) = hydrated(workspace, sandboxes, command).await?;
            }
        }
    }
}

/// The outcome of a command that was handed over.
enum Followed {
    Ended(Box<CommandResult>),
    NotBegun(String),
    Unknown(String),
}

/// Hands a command over under its grant, or follows it: that is the same, and can be asked for again.
async fn follow(
    workspace: &Workspace,
    sandboxes: &dyn Sandboxes,
    mut sandbox: Option<Arc<dyn Sandbox>>,
    exec: &Exec,
    told: &mut Option<(&Listener, usize)>,
) -> Result<Followed, Error> {
    let mut pause = LOOKED_AT;
    for round in 0..FOLLOWED {
        if round > 0 {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LOOKED_AT_MOST);
            sandbox = sandboxes.ready(workspace.id()).await.ok().flatten();
        }
        if let Some(sandbox) = &sandbox {
            match followed(&**sandbox, exec.clone(), told).await {
                Ok(followed) => return Ok(followed),
                Err(ports::Error::Invalid(why)) => return Err(Error::new(Code::InvalidArgument, why)),
                // A sandbox that breaks the protocol tells no more when it is asked again.
                Err(ports::Error::Damaged(why)) => return Ok(Followed::Unknown(why)),
                Err(error) => {
                    tracing::warn!(call = %exec.call, error = %error.with_causes(), "a command is followed anew")
                }
            }
        }
    }
    Ok(Followed::Unknown("the sandbox that it was begun in went away".into()))
}

async fn followed(sandbox: &dyn Sandbox, exec: Exec, told: &mut Option<(&Listener, usize)>) -> ports::Result<Followed> {
    let end = ExecEnd { code: None, signal: None, timed_out: false, duration: Duration::ZERO, resources: None };
    let (output, stdout, stderr) = (String::new(), String::new(), String::new());
    let (kept, left_out) = (Vec::new(), Vec::new());
    let (began, dropped) = (Timestamp::default(), 0);
    let mut ran = CommandResult { began, end, output, stdout, stderr, dropped, kept, left_out };
    let mut events = match sandbox.exec(exec).await? {
        Execution::Begun(events) => events,
        Execution::NotBegun(why) => return Ok(Followed::NotBegun(why)),
        Execution::Unknown(why) => return Ok(Followed::Unknown(why)),
    };
    while let Some(event) = events.next().await {
        let event = event?;
        let is_end = matches!(event, ExecEvent::Ended(_));
        ran.add(event);
        // A command that is followed anew tells its output from the beginning.
        if let Some((told, so_far)) = told.as_mut().filter(|(_, so_far)| *so_far < ran.output.len() && !is_end) {
            *so_far = ran.output.len();
            (told.0)(end_of(&plain(&ran.output)));
        }
        if is_end {
            return Ok(Followed::Ended(Box::new(ran)));
        }
    }
    Err(ports::Error::unavailable("the sandbox", "the command's output broke off"))
}

/// The error of a command without a configured sandbox.
pub(crate) fn none_configured() -> Error {
    Error::new(Code::Forbidden, "no sandbox is configured, and commands run nowhere else")
        .hint("use another tool, or have a sandbox configured")
}

fn not_started(reason: Option<String>) -> Error {
    let reason = reason.unwrap_or_else(|| "it takes longer than it may".into());
    not_begun(format!("the sandbox is not ready, so the command did not run: {reason}"))
        .hint("it goes on starting: try again in a minute")
}

/// Whether a store or the sandbox did not answer, or others changed the workspace all the time.
fn may_pass(error: &Error) -> bool {
    matches!(error.code, Code::UpstreamUnavailable | Code::Conflict)
}

fn not_hydrated(error: Error) -> Error {
    Error {
        code: if may_pass(&error) { Code::NotBegun } else { error.code },
        message: format!(
            "the sandbox has not got the workspace's files, so the command did not run: {}",
            error.message
        ),
        ..error
    }
}

fn not_begun(message: String) -> Error {
    Error::new(Code::NotBegun, message)
}

fn unknown(why: &str) -> Error {
    Error::new(Code::OutcomeUnknown, format!("interrupted, outcome unknown: {why}"))
        .hint("it may have taken effect or not: look before you run it again")
}
