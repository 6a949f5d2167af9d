//! From a command's start to its end.

use crate::{
    confine::{Fence, Readable, Shown, TMP, launch, without_tmp},
    group::Group,
    options::{Limits, Options},
    output::Decoder,
    plan::Plan,
    run::{Refusal, Run},
    scratch::{self, Scratch},
};
use domain::task::Resources;
use ports::{Exec, ExecEnd};
use rustix::process::Resource;
use std::{
    io,
    os::unix::process::{CommandExt, ExitStatusExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    process::{ChildStderr, ChildStdin, ChildStdout},
    task::{JoinHandle, spawn_blocking},
    time::{Instant, MissedTickBehavior, interval, sleep, sleep_until, timeout},
};
use wait4::{ResUse, Wait4};

/// How much is read at once.
const READ: usize = 16 * 1024;
/// How often it is looked whether there are too many processes.
const LOOK: Duration = Duration::from_millis(20);
/// At every which look the scratch folder is measured.
const MEASURE: u32 = 25;
/// At every which look it is seen how much memory they have.
const WEIGH: u32 = 5;
/// Of how many processes that is seen.
const WEIGHED: usize = 32;
/// At every which look the processes are counted, whatever the machine says.
const COUNT: u32 = 100;
/// For how long the end of its output is waited for when nothing runs any more: somebody else may hold the other end.
const DRAIN: Duration = Duration::from_secs(5);
/// After this time it is said that something of it cannot be ended.
const STUCK: Duration = Duration::from_secs(10);

/// Runs a command, and tells `run` all about it. Returns when nothing is left of it.
///
/// # Errors
/// When nothing ran.
pub(crate) async fn run(run: &Arc<Run>, options: &Options, latest: &Path, command: Exec) -> Result<(), Refusal> {
    let started = start(options.clone(), latest.to_owned(), command.clone());
    let started = spawn_blocking(started).await.map_err(|error| Refusal::Failed(error.to_string()))??;
    run.began();
    let (end, scratch) = started.until_its_end(run, &options.limits, &command).await;
    // Before the end is told: then nothing is left, not even files.
    if let Err(error) = spawn_blocking(move || drop(scratch)).await {
        tracing::error!(%error, "a scratch folder could not be removed");
    }
    run.ended(end);
    Ok(())
}

/// A command that runs.
struct Started {
    child: Child,
    group: Arc<Group>,
    scratch: Scratch,
    at: Instant,
}

fn start(options: Options, latest: PathBuf, command: Exec) -> impl FnOnce() -> Result<Started, Refusal> {
    let failed = |what: &str, error: &dyn std::fmt::Display| Refusal::Failed(format!("{what}: {error}"));
    move || {
        let scratch = Scratch::make(&options.scratch, command.call)
            .map_err(|error| failed("there is no scratch folder", &error))?;
        let has_tmp = without_tmp().is_none();
        let plan = Plan::new(&command, &latest, if has_tmp { Path::new(TMP) } else { scratch.path() })?;
        let Exec { folder, root, network, timeout, stdin, .. } = command;
        let has_input = stdin.is_some();
        let shown = has_tmp.then_some(Shown { latest, folder, root });
        let hidden: Vec<PathBuf> = options.hidden.iter().cloned().chain([options.scratch.clone()]).collect();
        let mut program = Command::new(&plan.program);
        program
            .arg0(plan.words.first().map(String::as_str).unwrap_or_default())
            .args(plan.words.iter().skip(1))
            .current_dir(plan.folder_path())
            .env_clear()
            .envs(plan.env.iter().map(|(name, value)| (name, value)))
            .stdin(if has_input { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let fence = Fence {
            readable: Readable::new(&options.system, &hidden),
            root: plan.root,
            scratch: scratch.path().to_owned(),
            network,
            landlock: options.landlock,
        };
        let (child, group) = launch(fence, program, shown)?;
        drop(plan.folder);
        group.limit(&most(&options.limits, timeout));
        Ok(Started { child, group: Arc::new(group), scratch, at: Instant::now() })
    }
}

/// The limits of each process.
fn most(limits: &Limits, timeout: Duration) -> Vec<(Resource, u64)> {
    vec![
        // A process that works all the time on several CPUs is ended by the clock; this is for when nobody looks at the clock.
        (Resource::Cpu, timeout.as_secs().saturating_mul(8).saturating_add(60)),
        (Resource::Fsize, limits.scratch),
        (Resource::Nofile, limits.files),
        (Resource::Core, 0),
        (Resource::Data, limits.memory),
    ]
}

/// Why a command ends.
enum Why {
    ByItself,
    TimeUp,
    Killed,
    /// It takes more than it may; said to whoever reads its output.
    TooMuch(&'static str),
}

impl Started {
    async fn until_its_end(self, run: &Arc<Run>, limits: &Limits, command: &Exec) -> (ExecEnd, Scratch) {
        let Self { mut child, group, scratch, at, .. } = self;
        let mut tasks = Tasks::default();
        if let Some(text) = command.stdin.clone() {
            tasks.0.push(feed(child.stdin.take(), text));
        }
        let mut reading = read(run.clone(), &mut child);
        // A thread that waits; when the group is ended, so is this.
        let process = child.id();
        let mut exit = spawn_blocking(move || child.wait4());
        // Far enough, where it would be too far.
        let deadline = at.checked_add(command.timeout).unwrap_or(at + Duration::from_secs(30 * 24 * 3600));
        let peak = AtomicU64::new(0);
        let (why, status) = tokio::select! {
            status = &mut exit => (Why::ByItself, Some(status)),
            () = sleep_until(deadline) => (Why::TimeUp, None),
            () = run.stop.cancelled() => (Why::Killed, None),
            what = watch(&group, scratch.path(), limits, (process, &peak)) => (Why::TooMuch(what), None),
        };
        end(&group).await;
        if timeout(DRAIN, &mut reading).await.is_err() {
            tracing::warn!(call = %command.call, "the output of a command does not end with it");
            reading.abort();
        }
        if let Why::TooMuch(what) = why {
            run.wrote(true, &format!("\n[ended: {what}]\n"));
        }
        let status = match status {
            Some(status) => status,
            None => exit.await,
        };
        let duration = at.elapsed();
        let (code, signal, resources) = match status.map_err(io::Error::other).flatten() {
            Ok(ResUse { status, rusage }) => {
                let resources = Resources {
                    cpu_ms: u64::try_from((rusage.utime + rusage.stime).as_millis()).unwrap_or(u64::MAX),
                    // Not `maxrss`, in which is what the host had when it started the process.
                    peak_memory_bytes: peak.into_inner(),
                    bytes_in: command.stdin.as_ref().map_or(0, |text| text.len() as u64),
                    bytes_out: run.written(),
                };
                (status.code(), status.signal(), Some(resources))
            }
            Err(error) => {
                tracing::error!(%error, "how a command ended is not known");
                (None, None, None)
            }
        };
        if let Some(why) = without_tmp().filter(|_| code != Some(0) && run.complains_of(TMP)) {
            let hint = "use $TMPDIR, which goes with the command as well";
            run.wrote(true, &format!("\n[commands have no /tmp of their own here: {why}; {hint}]\n"));
        }
        (ExecEnd { code, signal, timed_out: matches!(why, Why::TimeUp), duration, resources }, scratch)
    }
}

/// Until a command takes more than it may. Meanwhile notes the most memory that one of its processes has, the first of which is `process`.
async fn watch(
    group: &Arc<Group>,
    scratch: &Path,
    limits: &Limits,
    (process, peak): (u32, &AtomicU64),
) -> &'static str {
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut before = tasks_of_the_machine();
    for look in 1_u32.. {
        looks.tick().await;
        if look < WEIGH || look % WEIGH == 0 {
            peak.fetch_max(memory_below(process), Ordering::Relaxed);
        }
        let now = tasks_of_the_machine();
        before = before.min(now);
        // To look at each process takes long, the longer the more there are. So that is done only when there are more than there
        // were, and nothing of the command goes on meanwhile: else processes without end would be faster than the one that counts. Now
        // and then it is done all the same: what others ended may hide what this one started.
        if now > before + limits.processes / 2 || look % COUNT == 0 {
            if group.paused(|| group.members().len()) > limits.processes {
                return "more processes than a command may have at once";
            }
            before = now;
        }
        if look % MEASURE == 0 {
            let (group, folder, most) = (group.clone(), scratch.to_owned(), limits.scratch);
            if spawn_blocking(move || scratch::is_over(&folder, group.unlinked(), most)).await.unwrap_or(false) {
                return "more in its scratch folder than a command may have there";
            }
        }
    }
    std::future::pending().await
}

/// The most memory that one of a process and those that it started has had, in bytes: the kernel keeps the peak of each that lives.
fn memory_below(process: u32) -> u64 {
    let (mut processes, mut most) = (vec![process], 0);
    for index in 0..WEIGHED {
        let Some(process) = processes.get(index) else { break };
        let own = format!("/proc/{process}");
        let status = std::fs::read_to_string(format!("{own}/status")).unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
        most = most.max(peak.and_then(|peak| peak.parse::<u64>().ok()).unwrap_or(0) << 10);
        let started = std::fs::read_to_string(format!("{own}/task/{process}/children")).unwrap_or_default();
        processes.extend(started.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
    }
    most
}

/// How many processes and threads there are; as if there were ever more, where the system does not say.
fn tasks_of_the_machine() -> usize {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let tasks = text.split(' ').nth(3).and_then(|tasks| tasks.split_once('/')?.1.parse().ok());
    tasks.unwrap_or_else(|| ASKED.fetch_add(1 << 20, Ordering::Relaxed))
}

/// Ends a group, until nothing of it is left.
async fn end(group: &Arc<Group>) {
    let since = Instant::now();
    let mut told = false;
    loop {
        let looked = group.clone();
        let left = spawn_blocking(move || {
            looked.kill();
            looked.members()
        });
        let Ok(left) = left.await else { return };
        if left.is_empty() {
            return;
        }
        if !told && since.elapsed() > STUCK {
            told = true;
            tracing::error!(processes = left.len(), group = group.id(), "a command does not end, though it was killed");
        }
        // The kernel takes a moment to take a process apart.
        sleep(Duration::from_millis(2)).await;
    }
}

/// Tasks that end with this.
#[derive(Default)]
struct Tasks(Vec<JoinHandle<()>>);

impl Drop for Tasks {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

/// Writes what a command reads. That it does not want to read all of it is its own business.
fn feed(input: Option<std::process::ChildStdin>, text: String) -> JoinHandle<()> {
    tokio::spawn(async move {
        if let Some(mut input) = input.and_then(|input| ChildStdin::from_std(input).ok()) {
            let _ = input.write_all(text.as_bytes()).await;
            let _ = input.shutdown().await;
        }
    })
}

/// Reads both outputs in the order in which they come.
fn read(run: Arc<Run>, child: &mut Child) -> JoinHandle<()> {
    let output = child.stdout.take().and_then(|pipe| ChildStdout::from_std(pipe).ok());
    let errors = child.stderr.take().and_then(|pipe| ChildStderr::from_std(pipe).ok());
    tokio::spawn(async move {
        tokio::join!(copy(&run, output, false), copy(&run, errors, true));
    })
}

async fn copy(run: &Run, pipe: Option<impl AsyncRead + Unpin>, error: bool) {
    let Some(mut pipe) = pipe else { return };
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
