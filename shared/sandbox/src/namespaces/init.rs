//! Process 1 of the namespaces: it makes the root, starts the command, keeps the limits, and ends everything by ending itself.

use super::{ChildMessage, PORT, Spec, TMP, WORKSPACE, channel, root};
use crate::{
    confine::{self, Confinement, Readable},
    options::over,
    plan,
    run::{Refusal, Used},
    usage::Usage,
};
use processes::ProcessStat;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{Mode, open},
    net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with},
    param::clock_ticks_per_second,
    process::{
        Pid, Resource, Rlimit, Signal, WaitOptions, WaitStatus, set_parent_process_death_signal, setrlimit, wait,
    },
};
use std::{
    fs,
    io::{self, stdin},
    net::{Ipv4Addr, TcpListener},
    os::{
        fd::{AsFd, OwnedFd},
        unix::process::CommandExt,
    },
    path::Path,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

/// The pause between two looks at the command's usage.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
/// The most memory that was seen, in bytes.
static PEAK: AtomicU64 = AtomicU64::new(0);
/// Looking may take this part of the time: it is done less often the longer it takes.
const PART: i64 = 8;

pub(super) fn run() -> i32 {
    let begun = set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| Refusal::Failed(error.to_string()))
        .and_then(|()| begin());
    match begun {
        Ok(begun) => {
            let listener = begun.listener.iter().map(AsFd::as_fd);
            let beside: Vec<_> = listener.chain(begun.scratch.iter().map(AsFd::as_fd)).collect();
            tell(&ChildMessage::Began, &beside);
            drop(beside);
            drop((begun.listener, begun.scratch));
            let limits = begun.limits;
            // It ends with this process.
            if thread::Builder::new().name("keeps".into()).spawn(move || keep(&limits)).is_err() {
                return 1;
            }
            until_its_end(begun.command)
        }
        Err(Refusal::Refused(why)) => {
            tell(&ChildMessage::Refused(why), &[]);
            1
        }
        Err(Refusal::Failed(why)) => {
            tell(&ChildMessage::Failed(why), &[]);
            1
        }
    }
}

/// Says something to the host. When that is gone, so is this process in a moment.
fn tell(message: &ChildMessage, files: &[std::os::fd::BorrowedFd<'_>]) {
    let line = serde_json::to_vec(message).unwrap_or_default();
    let _ = channel::tell(stdin(), &[line.as_slice(), b"\n"].concat(), files);
}

struct Begun {
    command: Pid,
    listener: Option<TcpListener>,
    scratch: Option<OwnedFd>,
    limits: super::Limits,
}

fn begin() -> Result<Begun, Refusal> {
    let failed = |what: &str, error: &dyn std::fmt::Display| Refusal::Failed(format!("{what}: {error}"));
    let (spec, files) =
        hear().map_err(|error| failed("process 1 of the namespaces did not get its specification", &error))?;
    let mut files = files.into_iter();
    let mut next =
        || files.next().ok_or_else(|| Refusal::Failed("process 1 of the namespaces is given too little".into()));
    let (input, output, errors) = (next()?, next()?, next()?);
    root::make(&spec, files.next()).map_err(Refusal::Failed)?;
    let listener = if spec.network {
        let listener = up().and_then(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, PORT)));
        Some(listener.map_err(|error| failed("there is no loopback", &error))?)
    } else {
        None
    };
    confine::harden().map_err(|error| failed("this process can be looked into", &error))?;
    bound(&spec.limits).map_err(|error| failed("a limit cannot be set", &error))?;
    // Before the command begins, which may close it.
    let scratch = spec.keep.then(|| open(TMP, plan::FOLDER, Mode::empty())).transpose();
    let scratch = scratch.map_err(|error| failed("its /tmp cannot be opened", &error))?;
    let command = start(&spec, [input, output, errors])?;
    let command =
        Pid::from_raw(command.id().cast_signed()).ok_or_else(|| Refusal::Failed("it has no number".into()))?;
    Ok(Begun { command, listener, scratch, limits: spec.limits })
}

fn hear() -> io::Result<(Spec, Vec<OwnedFd>)> {
    let mut length = [0; 8];
    let files = channel::hear(stdin(), &mut length)?;
    let mut text = vec![0; usize::try_from(u64::from_le_bytes(length)).map_err(io::Error::other)?];
    channel::hear(stdin(), &mut text)?;
    Ok((serde_json::from_slice(&text)?, files))
}

/// Limits each process from its first moment on; and all together if the kernel counts them by namespace (Linux 5.14), because the watcher
/// that ends a command with too many of them has to look first.
fn bound(limits: &super::Limits) -> rustix::io::Result<()> {
    let bounds = [
        (Resource::Cpu, limits.cpu),
        (Resource::Fsize, limits.scratch),
        (Resource::Nofile, limits.files),
        (Resource::Core, 0),
        (Resource::Data, limits.memory),
        (Resource::Nproc, 2 * limits.tasks as u64),
    ];
    for (resource, most) in bounds {
        // More than the host has may not be asked for.
        let most = rustix::process::getrlimit(resource).maximum.map_or(most, |has| has.min(most));
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    Ok(())
}

fn start(spec: &Spec, [input, output, errors]: [OwnedFd; 3]) -> Result<Child, Refusal> {
    let workspace = Path::new(WORKSPACE);
    let (folder, root) = (plan::open_folder(workspace, &spec.folder)?, plan::open_folder(workspace, &spec.root)?);
    let at = workspace.join(spec.folder.relative());
    let program = plan::find(&spec.words, &spec.env, &at)?;
    let mut command = Command::new(program);
    command
        .arg0(spec.words.first().map(String::as_str).unwrap_or_default())
        .args(spec.words.iter().skip(1))
        .current_dir(at)
        .env_clear()
        .envs(spec.env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::from(input))
        .stdout(Stdio::from(output))
        .stderr(Stdio::from(errors));
    if spec.network {
        for name in ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
            if !spec.env.iter().any(|(given, _)| given == name) {
                command.env(name, format!("http://127.0.0.1:{PORT}"));
            }
        }
    }
    drop(folder);
    let confinement = Confinement {
        readable: Readable::seen(&spec.shown),
        root,
        scratch: TMP.into(),
        network: spec.network,
        landlock: spec.landlock,
    };
    confine::launch(confinement, command, None)
}

/// Ends this process, and the namespaces with it, when the host is gone or the command takes more than it may.
fn keep(limits: &super::Limits) {
    let mut pause = LOOK;
    loop {
        let host = stdin();
        let mut events = [PollFd::new(&host, PollFlags::IN)];
        let _ = poll(&mut events, Some(&pause));
        if !events.iter().all(|event| event.revents().is_empty()) {
            std::process::exit(1);
        }
        #[expect(
            clippy::disallowed_methods,
            reason = "there is no runtime in this process, and nothing that turns time"
        )]
        let began = std::time::Instant::now();
        // Its own memory is the host's business.
        let processes: Vec<i32> = numbers().filter(|number| *number != 1).collect();
        let used = Usage::of(&processes, limits.memory);
        PEAK.fetch_max(used.memory, Ordering::Relaxed);
        let what = if used.tasks > limits.tasks {
            over::TASKS
        } else if used.memory > limits.memory {
            over::MEMORY
        } else {
            let taken = i64::try_from(began.elapsed().as_nanos()).unwrap_or(i64::MAX);
            pause.tv_nsec = taken.saturating_mul(PART).clamp(LOOK.tv_nsec, 500_000_000);
            continue;
        };
        tell(&ChildMessage::Over(what.into()), &[]);
        std::process::exit(1);
    }
}

/// Of all processes here.
fn numbers() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Reaps ended processes, until the command is one.
fn until_its_end(command: Pid) -> i32 {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((process, status))) if process == command => {
                tell(&ended(status), &[]);
                return 0;
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return 1,
        }
    }
}

fn ended(status: WaitStatus) -> ChildMessage {
    let used = waited_for().map(|cpu_ms| Used { cpu_ms, memory: PEAK.load(Ordering::Relaxed) });
    ChildMessage::Ended { code: status.exit_status(), signal: status.terminating_signal(), used }
}

/// The CPU time of all processes that were reaped here, in milliseconds.
fn waited_for() -> Option<u64> {
    Some(ProcessStat::of("self")?.children_cpu_ticks * 1000 / clock_ticks_per_second())
}

/// Sets the loopback up: the only interface that there is, and the first.
fn up() -> io::Result<()> {
    // A head: length, RTM_NEWLINK, NLM_F_REQUEST and NLM_F_ACK, the first one, to the kernel. Then the interface: of no family, the
    // first, and of its flags IFF_UP, which is the only one that is to be changed (rtnetlink(7)).
    let (head, asks): (u32, u16) = (32, 0x1 | 0x4);
    let mut message = head.to_ne_bytes().to_vec();
    message.extend([16_u16.to_ne_bytes(), asks.to_ne_bytes()].as_flattened());
    message.extend([1_u32.to_ne_bytes(), 0_u32.to_ne_bytes()].as_flattened());
    message.extend([0; 4]);
    message.extend([1_u32.to_ne_bytes(), 1_u32.to_ne_bytes(), 1_u32.to_ne_bytes()].as_flattened());
    let kernel = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    send(&kernel, &message, SendFlags::empty())?;
    let mut answer = [0; 64];
    recv(&kernel, &mut answer, RecvFlags::empty())?;
    // Behind the head is the error, if any.
    match answer.get(16..20).and_then(|error| error.try_into().ok()).map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(error) => Err(io::Error::from_raw_os_error(-error)),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
