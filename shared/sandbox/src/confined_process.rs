//! A command among the host's processes, behind the inner wall alone: in a process group by which it is ended, with a scratch folder.

use crate::{
    confine::{Confinement, Readable, launch},
    group::Group,
    options::{Limits, Options, over},
    plan::{Plan, find, open_folder},
    run::{ProcessEnd, Refusal, Used},
    scratch::{self, Scratch},
    usage::Usage,
};
use ports::Exec;
use rustix::process::{Pid, Resource};
use std::{
    io,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::process::{CommandExt, ExitStatusExt},
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    task::{JoinHandle, spawn_blocking},
    time::{Instant, MissedTickBehavior, interval, sleep},
};
use wait4::{ResUse, Wait4};

/// How often it is looked whether there are too many processes.
const LOOK: Duration = Duration::from_millis(20);
/// At every which look the memory is added up.
const ADD_UP: u32 = 10;
/// At every which look the scratch folder is measured.
const MEASURE: u32 = 25;
/// After this many looks the processes are counted in any case.
const COUNT: u32 = 100;
/// After this time it is said that something of it cannot be ended.
const STUCK: Duration = Duration::from_secs(10);
/// The pause before the next look whether all of it has ended. Each look reads all processes of the machine, so the pause is longer after [`STUCK`].
const ENDING: Duration = Duration::from_millis(2);
const ENDING_WHEN_STUCK: Duration = Duration::from_secs(1);

/// A command that runs.
#[derive(Debug)]
pub(crate) struct ConfinedCommand {
    group: Arc<Group>,
    scratch: Scratch,
    /// A thread that waits; when the group is ended, so is this.
    exit: JoinHandle<io::Result<ResUse>>,
    /// The most memory that was seen.
    peak: Arc<AtomicU64>,
    ended: Option<ProcessEnd>,
}

/// Makes its scratch folder.
pub(crate) fn scratch(options: &Options, command: &Exec) -> Result<Scratch, Refusal> {
    Scratch::make(&options.scratch, command.call)
        .map_err(|error| Refusal::Failed(format!("there is no scratch folder: {error}")))
}

impl ConfinedCommand {
    /// Starts a command behind the inner wall.
    ///
    /// # Errors
    /// [`Refusal::Refused`] when a folder or the program is not there, or this machine cannot confine or run it; [`Refusal::Failed`] when
    /// the process group, a thread or memory is not to be had. Nothing runs then.
    pub fn start(
        options: &Options,
        latest: &Path,
        scratch: Scratch,
        plan: &Plan,
        command: &Exec,
        [input, output, errors]: [OwnedFd; 3],
    ) -> Result<Self, Refusal> {
        if command.hidden.iter().any(|hidden| hidden.is_within(&command.root)) {
            let why =
                "the files of others cannot be hidden from a command on this machine, which gives it no namespaces";
            return Err(Refusal::Refused(why.into()));
        }
        // By open descriptors: a folder that is put in their place meanwhile is not entered.
        let (folder, root) = (open_folder(latest, &command.folder)?, open_folder(latest, &command.root)?);
        let mut program = Command::new(find(&plan.words, &plan.env, &latest.join(command.folder.relative()))?);
        program
            .arg0(plan.words.first().map(String::as_str).unwrap_or_default())
            .args(plan.words.iter().skip(1))
            .current_dir(format!("/proc/self/fd/{}", folder.as_raw_fd()))
            .env_clear()
            .envs(plan.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::from(input))
            .stdout(Stdio::from(output))
            .stderr(Stdio::from(errors));
        let confinement = Confinement {
            readable: Readable::new(&options.system, &options.hidden),
            root,
            scratch: scratch.path().to_owned(),
            network: command.network,
            landlock: options.landlock,
        };
        // Its leader is a process of the host, which nothing confines.
        let group = Group::new().map_err(|error| Refusal::Failed(format!("there is no process group: {error}")))?;
        let mut child = launch(confinement, program, Some(group.id()))?;
        drop(folder);
        group.limit(&most(&options.limits, command.timeout));
        let exit = spawn_blocking(move || child.wait4());
        Ok(Self { group: Arc::new(group), scratch, exit, peak: Arc::default(), ended: None })
    }

    /// Until the command's own process ends.
    pub async fn ends(&mut self) -> ProcessEnd {
        let ended = match (&mut self.exit).await.map_err(io::Error::other).flatten() {
            Ok(ResUse { status, rusage }) => {
                let cpu_ms = u64::try_from((rusage.utime + rusage.stime).as_millis()).unwrap_or(u64::MAX);
                // Not `maxrss`, which includes the host's memory at the start of the process.
                let used = Some(Used { cpu_ms, memory: self.peak.load(Ordering::Relaxed) });
                ProcessEnd { code: status.code(), signal: status.signal(), used }
            }
            Err(error) => {
                tracing::error!(%error, "how a command ended is not known");
                ProcessEnd { code: None, signal: None, used: None }
            }
        };
        self.ended = Some(ended);
        ended
    }

    /// Until it takes more than it may.
    pub fn takes_too_much(&self, limits: &Limits) -> impl Future<Output = &'static str> + use<> {
        watch(self.group.clone(), self.scratch.path().to_owned(), limits.clone(), self.peak.clone())
    }

    /// Opens its scratch folder.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn scratch(&self) -> io::Result<OwnedFd> {
        self.scratch.open()
    }

    /// Ends all of it; returns when all processes have ended. The scratch folder goes when this is dropped.
    pub async fn end(&mut self) -> ProcessEnd {
        end(&self.group).await;
        match self.ended {
            Some(ended) => ended,
            None => self.ends().await,
        }
    }
}

/// The limits of each process.
fn most(limits: &Limits, timeout: Duration) -> Vec<(Resource, u64)> {
    vec![
        (Resource::Cpu, limits.cpu(timeout)),
        (Resource::Fsize, limits.scratch),
        (Resource::Nofile, limits.files),
        (Resource::Core, 0),
        (Resource::Data, limits.memory),
    ]
}

async fn watch(group: Arc<Group>, scratch: PathBuf, limits: Limits, peak: Arc<AtomicU64>) -> &'static str {
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut before = tasks_of_the_machine();
    for look in 1_u32.. {
        looks.tick().await;
        let now = tasks_of_the_machine();
        before = before.min(now);
        // Looking at each process takes long, and longer the more there are. So that is done only when there are more than before, and
        // while the command is paused: else a fork bomb would be faster than the count. It is also done now and then: processes of others
        // that ended may hide the ones that this command started.
        if now > before + limits.processes / 2 || look % COUNT == 0 {
            if group.paused(|| used(&group, &limits).tasks) > limits.processes {
                return over::TASKS;
            }
            before = now;
        }
        // The first looks are for those that are over soon.
        if look < ADD_UP / 2 || look % ADD_UP == 0 {
            let (group, most) = (group.clone(), limits.clone());
            let memory = spawn_blocking(move || used(&group, &most).memory).await.unwrap_or_default();
            peak.fetch_max(memory, Ordering::Relaxed);
            if memory > limits.memory {
                return over::MEMORY;
            }
        }
        if look % MEASURE == 0 {
            let (group, folder, most) = (group.clone(), scratch.clone(), limits.scratch);
            if spawn_blocking(move || scratch::is_over(&folder, group.unlinked(), most)).await.unwrap_or(false) {
                return over::SCRATCH;
            }
        }
    }
    std::future::pending().await
}

fn used(group: &Group, limits: &Limits) -> Usage {
    let members: Vec<i32> = group.members().into_iter().map(Pid::as_raw_pid).collect();
    Usage::of(&members, limits.memory)
}

/// The number of processes and threads of the machine; an ever growing one, if the system does not report it.
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
        sleep(if told { ENDING_WHEN_STUCK } else { ENDING }).await;
    }
}
