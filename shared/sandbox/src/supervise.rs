//! From a command's start to its end.

use crate::{
    confined_process::{self, ConfinedCommand},
    http_proxy::{Forwarder, ProxyPolicy},
    kept,
    namespaces::{self, NamespacedCommand},
    options::{Isolation, Limits, Options},
    output::Decoder,
    path_hint,
    plan::Plan,
    run::{ProcessEnd, Refusal, Run, Used},
};
use domain::{FilePath, WorkspaceId, task::Resources};
use ports::{Exec, ExecEnd, ExecEvent, RunningProgram};
use std::{
    fs::File,
    io::{self, PipeReader, PipeWriter, pipe},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::unix::pipe::{Receiver, Sender},
    task::{JoinHandle, spawn_blocking},
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

/// How much is read at once.
const READ: usize = 16 * 1024;
/// For how long the end of its output is waited for after its processes have ended: another process may hold the other end.
const DRAIN: Duration = Duration::from_secs(5);

/// Runs a command, and tells `run` all about it. Returns when nothing is left of it.
///
/// # Errors
/// When nothing ran.
pub(crate) async fn run(
    run: &Arc<Run>,
    options: &Options,
    workspace: WorkspaceId,
    latest: &Path,
    command: Exec,
) -> Result<(), Refusal> {
    let start = start(options.clone(), workspace, latest.to_owned(), command.clone());
    let started = spawn_blocking(start).await.map_err(|error| Refusal::Failed(error.to_string()))??;
    run.began();
    let (end, held) = started.until_its_end(run, &options.limits, latest, &command).await;
    // Before the end is told: then nothing is left, not even files.
    if let Err(error) = spawn_blocking(move || drop(held)).await {
        tracing::error!(%error, "a scratch folder could not be removed");
    }
    run.ended(end);
    Ok(())
}

/// Runs a program that is spoken to by its pipes, until it ends or its [`RunningProgram::end`] is dropped.
///
/// # Errors
/// When nothing runs.
pub(crate) async fn start_program(
    options: &Options,
    workspace: WorkspaceId,
    latest: &Path,
    command: Exec,
) -> Result<RunningProgram, Refusal> {
    let start = start(options.clone(), workspace, latest.to_owned(), command);
    let started = spawn_blocking(start).await.map_err(|error| Refusal::Failed(error.to_string()))??;
    let Started { mut held, pipes, .. } = started;
    let (stop, limits) = (CancellationToken::new(), options.limits.clone());
    let (stopped, end) = (stop.clone(), stop.drop_guard());
    tokio::spawn(async move {
        tokio::select! {
            _ = held.comes_to(&limits) => {}
            () = stopped.cancelled() => {}
        }
        held.end().await;
        if let Err(error) = spawn_blocking(move || drop(held)).await {
            tracing::error!(%error, "a scratch folder could not be removed");
        }
    });
    let failed = |error: io::Error| Refusal::Failed(format!("there are no pipes: {error}"));
    let Some(input) = pipes.input else { return Err(Refusal::Failed("there is no input".into())) };
    Ok(RunningProgram {
        input: Box::new(Sender::from_owned_fd(input.into()).map_err(failed)?),
        output: Box::new(Receiver::from_owned_fd(pipes.output.into()).map_err(failed)?),
        errors: Box::new(Receiver::from_owned_fd(pipes.errors.into()).map_err(failed)?),
        is_outdated: Box::new(|| false),
        is_there: None,
        end: Box::new(end),
    })
}

/// A command that runs.
struct Started {
    held: HeldProcesses,
    pipes: Pipes,
    at: Instant,
}

/// The holder of a command's processes.
enum HeldProcesses {
    Namespaced(NamespacedCommand, Option<Forwarder>),
    Confined(ConfinedCommand),
}

/// This process's ends of the pipes to a command.
struct Pipes {
    input: Option<PipeWriter>,
    output: PipeReader,
    errors: PipeReader,
}

impl Pipes {
    fn new(has_input: bool) -> io::Result<(Self, [OwnedFd; 3])> {
        let (reads, input) = if has_input {
            let (reads, writes) = pipe()?;
            (reads.into(), Some(writes))
        } else {
            (File::open("/dev/null")?.into(), None)
        };
        let (output, writes_output) = pipe()?;
        let (errors, writes_errors) = pipe()?;
        Ok((Self { input, output, errors }, [reads, writes_output.into(), writes_errors.into()]))
    }
}

fn start(
    options: Options,
    workspace: WorkspaceId,
    latest: PathBuf,
    command: Exec,
) -> impl FnOnce() -> Result<Started, Refusal> {
    move || {
        let failed = |error: io::Error| Refusal::Failed(format!("there are no pipes: {error}"));
        let (pipes, files) = Pipes::new(command.stdin.is_some()).map_err(failed)?;
        let held = match &options.isolation {
            Isolation::Namespaces(program) => {
                let plan = Plan::new(&command, Path::new(namespaces::TMP))?;
                let (namespaced, listener) =
                    namespaces::launch(program, &options, workspace, &latest, &plan, &command, files)?;
                let reach = ProxyPolicy { private: options.private, closed: options.closed };
                let forwarder = listener.map(|listener| Forwarder::new(listener, reach));
                HeldProcesses::Namespaced(namespaced, forwarder.transpose().map_err(failed)?)
            }
            Isolation::Missing(why) => return Err(Refusal::Refused(why.clone())),
            // Its loopback would be the host's, where callers need no key.
            Isolation::Nothing if command.network => {
                let why = "commands get a network only where they have a network namespace of their own, and this \
                           machine gives none: turn `sandbox.network` off";
                return Err(Refusal::Refused(why.into()));
            }
            Isolation::Nothing | Isolation::Container => {
                let scratch = confined_process::scratch(&options, &command)?;
                let plan = Plan::new(&command, scratch.path())?;
                HeldProcesses::Confined(ConfinedCommand::start(&options, &latest, scratch, &plan, &command, files)?)
            }
        };
        Ok(Started { held, pipes, at: Instant::now() })
    }
}

/// Why a command ends.
enum Why {
    ByItself(ProcessEnd),
    TimeUp,
    Killed,
    /// It exceeds a limit; readers of its output see it.
    TooMuch(String),
}

impl HeldProcesses {
    async fn comes_to(&mut self, limits: &Limits) -> Why {
        match self {
            Self::Namespaced(command, _) => match command.comes_to().await {
                namespaces::CommandOutcome::Ended(ended) => Why::ByItself(ended),
                namespaces::CommandOutcome::Over(what) => Why::TooMuch(what),
            },
            Self::Confined(command) => {
                let too_much = command.takes_too_much(limits);
                tokio::select! {
                    ended = command.ends() => Why::ByItself(ended),
                    what = too_much => Why::TooMuch(what.into()),
                }
            }
        }
    }

    /// Its scratch folder; none when it cannot be opened.
    fn scratch(&mut self) -> Option<OwnedFd> {
        match self {
            Self::Namespaced(command, _) => command.scratch(),
            Self::Confined(command) => command.scratch().ok(),
        }
    }

    /// Ends all of it, when nothing has ended it yet.
    async fn end(&mut self) -> ProcessEnd {
        match self {
            Self::Namespaced(command, forwarder) => {
                *forwarder = None;
                command.end().await;
                ProcessEnd { code: None, signal: Some(9), used: None }
            }
            Self::Confined(command) => command.end().await,
        }
    }
}

impl Started {
    async fn until_its_end(
        self,
        run: &Arc<Run>,
        limits: &Limits,
        latest: &Path,
        command: &Exec,
    ) -> (ExecEnd, HeldProcesses) {
        let Self { mut held, pipes, at } = self;
        let mut tasks = Tasks::default();
        if let Some(text) = command.stdin.clone() {
            tasks.0.push(feed(pipes.input, text));
        }
        let mut reading = read(run.clone(), pipes.output, pipes.errors);
        // A far deadline in place of one that overflows.
        let deadline = at.checked_add(command.timeout).unwrap_or(at + Duration::from_secs(30 * 24 * 3600));
        let why = tokio::select! {
            why = held.comes_to(limits) => why,
            () = sleep_until(deadline) => Why::TimeUp,
            () = run.stop.cancelled() => Why::Killed,
        };
        let duration = at.elapsed();
        let killed = held.end().await;
        if timeout(DRAIN, &mut reading).await.is_err() {
            tracing::warn!(call = %command.call, "the output of a command does not end with it");
            reading.abort();
        }
        let files = match &why {
            _ if command.keep.is_empty() => Vec::new(),
            // The usage is unknown of a command whose process 1 was ended from outside.
            Why::ByItself(ProcessEnd { used: Some(_), .. }) => left(held.scratch(), &command.keep).await,
            Why::ByItself(_) | Why::TimeUp | Why::Killed | Why::TooMuch(_) => {
                kept::nothing(&command.keep, "the command did not end by itself")
            }
        };
        run.leaves(files);
        let bytes_out = run.written();
        let timed_out = matches!(why, Why::TimeUp);
        let ProcessEnd { code, signal, used } = match why {
            Why::ByItself(ended) => ended,
            Why::TimeUp | Why::Killed => killed,
            Why::TooMuch(what) => {
                run.wrote(true, &format!("\n[ended: {what}]\n"));
                killed
            }
        };
        let has_namespaces = matches!(held, HeldProcesses::Namespaced(..));
        if code != Some(0)
            && let Some(hint) = run.errors(|text| path_hint::hint(text, has_namespaces, latest))
        {
            run.wrote(true, &format!("\n[{hint}]\n"));
        }
        let resources = used.map(|Used { cpu_ms, memory }| Resources {
            cpu_ms,
            peak_memory_bytes: memory,
            bytes_in: command.stdin.as_ref().map_or(0, |text| text.len() as u64),
            bytes_out,
        });
        (ExecEnd { code, signal, timed_out, duration, resources }, held)
    }
}

/// The events about the files at these paths of a scratch folder, in which nothing runs any more.
async fn left(scratch: Option<OwnedFd>, keep: &[FilePath]) -> Vec<ExecEvent> {
    let Some(scratch) = scratch else { return kept::nothing(keep, "the scratch folder cannot be opened") };
    let asked = keep.to_vec();
    spawn_blocking(move || kept::collect(&scratch, &asked)).await.unwrap_or_else(|error| {
        tracing::error!(%error, "the files that a command left could not be read");
        kept::nothing(keep, "the files could not be read")
    })
}

/// Tasks that end with this.
#[derive(Default)]
struct Tasks(Vec<JoinHandle<()>>);

impl Drop for Tasks {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

/// Writes the command's standard input. A command need not read all of it.
fn feed(input: Option<PipeWriter>, text: String) -> JoinHandle<()> {
    tokio::spawn(async move {
        if let Some(mut input) = input.and_then(|input| Sender::from_owned_fd(input.into()).ok()) {
            let _ = input.write_all(text.as_bytes()).await;
        }
    })
}

/// Reads both outputs in the order in which they come.
fn read(run: Arc<Run>, output: PipeReader, errors: PipeReader) -> JoinHandle<()> {
    tokio::spawn(async move {
        tokio::join!(copy(&run, output, false), copy(&run, errors, true));
    })
}

async fn copy(run: &Run, pipe: PipeReader, error: bool) {
    let Ok(mut pipe) = Receiver::from_owned_fd(pipe.into()) else { return };
    let (mut buffer, mut decoder) = (vec![0; READ], Decoder::default());
    loop {
        match pipe.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(length) => {
                run.wrote(error, &decoder.decode(buffer.get(..length).unwrap_or_default()));
            }
        }
    }
    run.wrote(error, &decoder.end());
}
