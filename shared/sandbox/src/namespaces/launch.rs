//! The host's end of the namespaces of a command.

use super::{ChildMessage, Limits, NAME, Spec, UNSHARE, channel};
use crate::{
    cgroup::Cgroup,
    confine::{self, Readable},
    options::{Options, over},
    own_user,
    plan::Plan,
    run::{ProcessEnd, Refusal},
};
use domain::{CallId, FilePath, WorkspaceId};
use ports::{Exec, Grant};
use rustix::{
    fs::CWD,
    mount::{OpenTreeFlags, open_tree},
};
use std::{
    collections::BTreeMap,
    fmt::Display,
    fs::File,
    net::{Shutdown, TcpListener},
    os::{
        fd::{AsFd, OwnedFd},
        unix::{net::UnixStream, process::CommandExt},
    },
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    net,
    task::spawn_blocking,
};
use uuid::Uuid;

/// How long the namespaces of a command may take to begin.
const START: Duration = Duration::from_secs(60);

/// A command that runs in namespaces of its own. They end when this is dropped.
#[derive(Debug)]
pub(crate) struct NamespacedCommand {
    unsharer: Option<Child>,
    socket: UnixStream,
    heard: BufReader<net::UnixStream>,
    cgroup: Option<Cgroup>,
    /// Its `/tmp`, which is there for as long as this is open.
    scratch: Option<OwnedFd>,
}

/// How a command in its namespaces ended.
pub(crate) enum CommandOutcome {
    /// By itself.
    Ended(ProcessEnd),
    /// It took more than it may.
    Over(String),
}

/// Starts a command in namespaces that `program` makes, with `files` as its input, output and errors. With it comes the listener of its
/// proxy, if it has a network.
pub(crate) fn launch(
    program: &Path,
    options: &Options,
    workspace: WorkspaceId,
    latest: &Path,
    plan: &Plan,
    command: &Exec,
    files: [OwnedFd; 3],
) -> Result<(NamespacedCommand, Option<TcpListener>), Refusal> {
    confine::harden().map_err(failed("this process can be looked into"))?;
    let user = own_user::of(workspace);
    let latest = latest.canonicalize().map_err(failed("there are no files"))?;
    // Another user may not have access to their path, so that one gets them as a mount.
    let mounted =
        user.map(|_| open_tree(CWD, &latest, OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC));
    let mounted = mounted.transpose().map_err(failed("the workspace cannot be mounted"))?;
    let shown = Readable::new(&options.system, &options.hidden);
    let limits = &options.limits;
    let spec = Spec {
        words: plan.words.clone(),
        env: plan.env.clone(),
        folder: command.folder.clone(),
        root: command.root.clone(),
        hidden: command.hidden.clone(),
        latest: mounted.is_none().then_some(latest),
        shown: shown.outermost(),
        links: shown.links,
        network: command.network,
        keep: !command.keep.is_empty(),
        landlock: options.landlock,
        limits: Limits {
            memory: limits.memory,
            scratch: limits.scratch,
            files: limits.files,
            tasks: limits.processes,
            cpu: limits.cpu(command.timeout),
        },
    };
    let (socket, theirs) = UnixStream::pair().map_err(failed("there is no socket"))?;
    let mut unsharer = Command::new(program);
    unsharer.arg0(NAME).arg(UNSHARE).args(user.map(|user| user.to_string())).env_clear().current_dir("/");
    // Ctrl-C signals the host's group, and the host decides how long its commands run on.
    unsharer.process_group(0);
    unsharer.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(Stdio::null()).stderr(Stdio::null());
    let unsharer = unsharer.spawn().map_err(failed("the namespaces of a command cannot be made"))?;
    let number = unsharer.id();
    let begins = Begins { unsharer: Some(unsharer), socket, cgroup: Cgroup::make(command.call, limits) };
    if let Some(cgroup) = &begins.cgroup {
        cgroup.add(number).map_err(failed("a process does not get into its cgroup"))?;
    }
    let told = begins.tell(&spec, &files, mounted.as_ref());
    drop((files, mounted));
    let heard = begins.hear();
    match (told, heard) {
        (_, Ok((ChildMessage::Began, files))) => {
            // In the order in which process 1 sends them.
            let mut files = files.into_iter();
            let listener = if spec.network { files.next().map(TcpListener::from) } else { None };
            Ok((begins.begun(files.next())?, listener))
        }
        (_, Ok((ChildMessage::Refused(why), _))) => Err(Refusal::Refused(why)),
        (_, Ok((ChildMessage::Failed(why), _))) => Err(Refusal::Failed(why)),
        (_, Ok((ChildMessage::Over(_) | ChildMessage::Ended { .. }, _))) => {
            Err(Refusal::Failed("the namespaces of a command ended before they began".into()))
        }
        (Err(error), Err(_)) | (Ok(()), Err(error)) => Err(failed("the namespaces of a command do not begin")(error)),
    }
}

/// Runs a command that does nothing.
pub(super) fn try_out(program: &Path) -> Result<(), Refusal> {
    let nothing = Exec {
        call: CallId::from(Uuid::nil()),
        grant: Grant::default(),
        words: vec!["true".into()],
        folder: FilePath::root(),
        root: FilePath::root(),
        hidden: Vec::new(),
        env: BTreeMap::new(),
        stdin: None,
        timeout: START,
        network: true,
        max_output: 0,
        keep: Vec::new(),
    };
    let files = || File::options().read(true).write(true).open("/dev/null").map(OwnedFd::from);
    let files = || Ok([files()?, files()?, files()?]);
    let files = files().map_err(failed::<std::io::Error>("there is no /dev/null"))?;
    let plan = Plan::new(&nothing, Path::new(super::TMP))?;
    // Any folder that is there.
    let (options, latest) = (Options::new("/tmp"), Path::new("/usr"));
    launch(program, &options, WorkspaceId::from(Uuid::nil()), latest, &plan, &nothing, files).map(drop)
}

fn failed<E: Display>(what: &str) -> impl FnOnce(E) -> Refusal {
    move |error| Refusal::Failed(format!("{what}: {error}"))
}

/// Namespaces that have not got their specification yet.
struct Begins {
    unsharer: Option<Child>,
    socket: UnixStream,
    cgroup: Option<Cgroup>,
}

impl Begins {
    fn tell(&self, spec: &Spec, files: &[OwnedFd; 3], mounted: Option<&OwnedFd>) -> std::io::Result<()> {
        // For the unsharer: it is in its control group now.
        channel::tell(&self.socket, b"g", &[])?;
        let text = serde_json::to_vec(spec)?;
        let files: Vec<_> = files.iter().chain(mounted).map(AsFd::as_fd).collect();
        channel::tell(&self.socket, &(text.len() as u64).to_le_bytes(), &files)?;
        Ok(channel::tell(&self.socket, &text, &[])?)
    }

    fn hear(&self) -> std::io::Result<(ChildMessage, Vec<OwnedFd>)> {
        self.socket.set_read_timeout(Some(START))?;
        let (line, files) = channel::hear_line(&self.socket)?;
        self.socket.set_read_timeout(None)?;
        Ok((serde_json::from_slice(&line)?, files))
    }

    fn begun(mut self, scratch: Option<OwnedFd>) -> Result<NamespacedCommand, Refusal> {
        let begun = || {
            let socket = self.socket.try_clone()?;
            socket.set_nonblocking(true)?;
            Ok::<_, std::io::Error>((net::UnixStream::from_std(socket)?, self.socket.try_clone()?))
        };
        let (heard, socket) = begun().map_err(failed("the namespaces of a command cannot be heard"))?;
        let (unsharer, cgroup) = (self.unsharer.take(), self.cgroup.take());
        Ok(NamespacedCommand { unsharer, socket, heard: BufReader::new(heard), cgroup, scratch })
    }
}

impl Drop for Begins {
    fn drop(&mut self) {
        end(&self.socket, self.unsharer.take());
    }
}

/// Ends the namespaces of a command; returns when nothing is left in them.
fn end(socket: &UnixStream, unsharer: Option<Child>) {
    if let Some(unsharer) = unsharer {
        let _ = socket.shutdown(Shutdown::Both);
        wait_for(unsharer);
    }
}

fn wait_for(mut unsharer: Child) {
    if let Err(error) = unsharer.wait() {
        tracing::error!(%error, "the namespaces of a command do not end");
    }
}

impl NamespacedCommand {
    /// Until the command ends, or takes more than it may.
    pub async fn comes_to(&mut self) -> CommandOutcome {
        let mut line = String::new();
        let heard = self.heard.read_line(&mut line).await;
        match heard.ok().and_then(|_| serde_json::from_str(&line).ok()) {
            Some(ChildMessage::Ended { code, signal, used }) => {
                CommandOutcome::Ended(ProcessEnd { code, signal, used })
            }
            Some(ChildMessage::Over(what)) => CommandOutcome::Over(what),
            _ if self.cgroup.as_ref().is_some_and(Cgroup::ran_out_of_memory) => {
                CommandOutcome::Over(over::MEMORY.into())
            }
            // Process 1 was ended from outside: by the kernel, when there is no memory left.
            _ => CommandOutcome::Ended(ProcessEnd { code: None, signal: Some(9), used: None }),
        }
    }

    /// Its `/tmp`, for the first that asks; none of a command of which nothing is to be kept.
    pub fn scratch(&mut self) -> Option<OwnedFd> {
        self.scratch.take()
    }

    /// Ends it with all that is in it; returns when nothing is left.
    pub async fn end(&mut self) {
        let Some(unsharer) = self.unsharer.take() else { return };
        // Without another descriptor: a host that has none left ends its commands, too.
        let _ = self.socket.shutdown(Shutdown::Both);
        let _ = spawn_blocking(move || wait_for(unsharer)).await;
    }
}

impl Drop for NamespacedCommand {
    fn drop(&mut self) {
        end(&self.socket, self.unsharer.take());
    }
}
