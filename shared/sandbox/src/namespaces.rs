//! Linux namespaces of its own for each command: the outer wall, around Landlock and seccomp ([`crate::confine`]).
//!
//! ```text
//!   the host ── unsharer: becomes the workspace's user, leaves the host's namespaces   (unshare)
//!      │           └── init: process 1 of the new ones; makes the root, keeps limits  (init, root)
//!      └── a socket ─────┘  └── a thread that confines itself ── the command
//! ```
//!
//! Leaving a user namespace takes a process with one thread, so the host starts its own program once more, whose `main` calls [`enter`]
//! before anything else; nothing has to be installed, and no privilege is needed if the kernel gives namespaces to users. The command is an
//! ordinary process there, and its namespaces end with process 1: when the command ends, when it exceeds a limit, when the host says so, and
//! when the host is gone, since then the socket closes. The kernel ends all other processes in them.
//!
//! | namespace | a command sees |
//! |---|---|
//! | mount | the system's folders and the workspace, read-only; a `/tmp` of bounded size; a `/dev` with six devices |
//! | pid | its own processes, in a `/proc` of its own |
//! | net | nothing; with `network` a loopback, on which a [proxy](crate::http_proxy) goes to public addresses |
//! | ipc, cgroup | its own |
//! | user | one user: the workspace's own if root starts it, else the host's; no other user to become |

mod channel;
mod init;
mod launch;
mod root;
mod unshare;

pub(crate) use launch::{CommandOutcome, NamespacedCommand, launch};

use crate::run::Used;
use domain::FilePath;
use serde::{Deserialize, Serialize};
use std::{ffi::OsStr, path::PathBuf};

/// The name of the program when it makes namespaces.
const NAME: &str = "buildscale-sandbox";
/// Its first argument: which of the two processes it is. A program that knows neither does nothing but say so.
const UNSHARE: &str = "--unshare";
const INIT: &str = "--init";

/// The path of the workspace's files for a command.
pub(crate) const WORKSPACE: &str = "/workspace";
/// The path that it can write to.
pub(crate) const TMP: &str = "/tmp";
/// The port on its loopback behind which the proxy is.
const PORT: u16 = 3128;

/// Makes the namespaces of a command and never returns, in a process that was started for that; does nothing in any other. To be called by `main` before
/// anything else, while there is one thread.
pub fn enter() {
    let mut words = std::env::args_os();
    if words.next().as_deref() != Some(OsStr::new(NAME)) {
        return;
    }
    let stage = words.next();
    let code = match stage.as_deref().and_then(OsStr::to_str) {
        Some(UNSHARE) => unshare::run(words.next().and_then(|user| user.to_str()?.parse().ok())),
        Some(INIT) => init::run(),
        _ => 64,
    };
    std::process::exit(code);
}

/// Whether this program can make namespaces on this machine, found out by making some. Its `main` has to call [`enter`], and there has
/// to be a runtime.
///
/// # Errors
/// The missing part, for people.
pub fn probe_namespaces() -> Result<crate::Isolation, String> {
    let program = PathBuf::from("/proc/self/exe");
    launch::try_out(&program).map_err(|refusal| refusal.to_string())?;
    Ok(crate::Isolation::Namespaces(program))
}

/// The specification of a command and its namespaces.
#[derive(Debug, Serialize, Deserialize)]
struct Spec {
    /// The program and its arguments.
    words: Vec<String>,
    env: Vec<(String, String)>,
    /// The folder of the workspace that it runs in.
    folder: FilePath,
    /// The only folder of the workspace that it can read.
    root: FilePath,
    /// Files and folders in it that do not exist for it.
    hidden: Vec<FilePath>,
    /// The workspace's files, by their path on the host; none if they come as a mount.
    latest: Option<PathBuf>,
    /// The files of the host that are shown, at the same paths.
    shown: Vec<PathBuf>,
    /// Links to it.
    links: Vec<(PathBuf, PathBuf)>,
    network: bool,
    /// Whether the host reads in `/tmp` afterwards.
    keep: bool,
    /// The newest version of Landlock to make use of.
    landlock: u8,
    /// For each process, and for all of them.
    limits: Limits,
}

#[derive(Debug, Serialize, Deserialize)]
struct Limits {
    memory: u64,
    scratch: u64,
    files: u64,
    tasks: usize,
    /// Seconds.
    cpu: u64,
}

/// The messages of the processes that make the namespaces to the host, one line each.
#[derive(Debug, Serialize, Deserialize)]
enum ChildMessage {
    /// The command runs. With it come the listener of the proxy, if there is a network, and `/tmp`, if the host reads in it afterwards.
    Began,
    /// It makes no sense here.
    Refused(String),
    /// It may work another time; or never, if namespaces are missing.
    Failed(String),
    /// It took more than it may, and is ended.
    Over(String),
    /// It came to its end.
    Ended { code: Option<i32>, signal: Option<i32>, used: Option<Used> },
}
