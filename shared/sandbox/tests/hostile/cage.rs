//! A workspace beside others, and a command in it.

use buildscale_sandbox::{Isolation, Local, Options};
use domain::{CallId, FilePath, WorkspaceId};
use futures::StreamExt;
use ports::{Exec, ExecEnd, ExecEvent, Execution, Grant, KeptFile, LeftOut, Reservation, Reserve, Sandboxes};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};
use tempfile::TempDir;
use uuid::Uuid;

/// Every version of Landlock that makes a difference: the least, the one before signals, the newest that there is.
pub const VERSIONS: [u8; 4] = [1, 2, 5, u8::MAX];

/// The workspace that all of it is about.
pub const WORKSPACE: Uuid = Uuid::from_u128(0x0199_0000_0000_7000_8000_0000_0000_0001);

/// The beginning of all attempts: each prints its name and its outcome.
pub const PRELUDE: &str = r#"
import ctypes, errno, fcntl, os, resource, signal, socket, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def tries(name, attempt):
    try: attempt()
    except OSError as error: print(name, errno.errorcode[error.errno], flush=True)
    else: print(name, "DONE", flush=True)
def call(name, number, *arguments):
    result = libc.syscall(ctypes.c_long(number), *(ctypes.c_long(argument) for argument in arguments))
    print(name, "DONE" if result >= 0 else errno.errorcode[ctypes.get_errno()], flush=True)
"#;

/// `files/{workspace}/latest` with a file, and secrets around it.
pub struct Cage {
    home: TempDir,
    options: Options,
    sandboxes: Local,
}

/// The end of a command, and its output.
#[derive(Debug)]
pub struct Did {
    pub output: String,
    pub errors: String,
    pub dropped: u64,
    pub kept: Vec<KeptFile>,
    pub left_out: Vec<LeftOut>,
    pub end: ExecEnd,
}

impl Cage {
    pub fn new(version: u8) -> Self {
        Self::with(|options| options.landlock = version)
    }

    pub fn with(change: impl FnOnce(&mut Options)) -> Self {
        // Not below /tmp, which is another one for a command.
        let home = tempfile::tempdir_in("/var/tmp").unwrap();
        let root = home.path().canonicalize().unwrap();
        let mut options = Options::new(root.join("scratch"));
        // Tests of the inner wall alone.
        options.isolation = Isolation::Container;
        change(&mut options);
        let sandboxes = Local::with(root.join("files"), options.clone());
        let cage = Self { home, options, sandboxes };
        for (file, content) in [
            (cage.latest().join("inside/a.md"), "of this folder"),
            (cage.latest().join("outside/b.md"), "of another folder"),
            (cage.root().join("files/other/latest/c.md"), "of another workspace"),
            (cage.root().join("secret"), "of the host"),
        ] {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, content).unwrap();
        }
        cage
    }

    pub fn root(&self) -> PathBuf {
        self.home.path().canonicalize().unwrap()
    }

    pub fn latest(&self) -> PathBuf {
        self.root().join(format!("files/{WORKSPACE}/latest"))
    }

    pub fn sandboxes(&self) -> &Local {
        &self.sandboxes
    }

    pub fn scratch(&self) -> &Path {
        &self.options.scratch
    }

    /// A command in `/inside`, which is all that it can read of the workspace.
    pub fn command(&self, words: &[&str]) -> Exec {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let inside: FilePath = "/inside".parse().unwrap();
        Exec {
            call: CallId::from(Uuid::from_u128(NEXT.fetch_add(1, Ordering::Relaxed).into())),
            grant: Grant::default(),
            words: words.iter().map(|word| (*word).into()).collect(),
            folder: inside.clone(),
            root: inside,
            hidden: Vec::new(),
            env: BTreeMap::new(),
            stdin: None,
            timeout: Duration::from_secs(120),
            network: false,
            max_output: 64 * 1024,
            keep: Vec::new(),
        }
    }

    pub async fn run(&self, command: Exec) -> Did {
        let sandbox = self.sandboxes.ready(WorkspaceId::from(WORKSPACE)).await.unwrap().unwrap();
        let asked = Reserve { call: command.call, direct: false, wait: Duration::from_secs(240) };
        let Reservation::Granted(grant) = sandbox.reserve(asked).await.unwrap() else {
            panic!("it is granted no place")
        };
        let Execution::Begun(mut events) = sandbox.exec(Exec { grant, ..command }).await.unwrap() else {
            panic!("it has a place")
        };
        let (mut output, mut errors, mut dropped) = (String::new(), String::new(), 0);
        let (mut kept, mut left_out) = (Vec::new(), Vec::new());
        while let Some(event) = tokio::time::timeout(Duration::from_secs(240), events.next()).await.unwrap() {
            match event.unwrap() {
                ExecEvent::Output { error: false, text } => output.push_str(&text),
                ExecEvent::Output { error: true, text } => errors.push_str(&text),
                ExecEvent::Dropped { bytes } => dropped += bytes,
                ExecEvent::Kept(file) => kept.push(file),
                ExecEvent::LeftOut(left) => left_out.push(left),
                ExecEvent::Ended(end) => return Did { output, errors, dropped, kept, left_out, end },
            }
        }
        panic!("it did not end");
    }

    /// The outcomes of attempts behind the fence, by their names.
    pub async fn attempts(&self, network: bool, script: &str, arguments: &[&str]) -> BTreeMap<String, String> {
        let script = format!("{PRELUDE}{script}");
        let command = Exec { network, ..self.command(&[&[PYTHON, "-I", "-c", &script], arguments].concat()) };
        let did = self.run(command).await;
        assert_eq!((did.end.code, did.errors.as_str()), (Some(0), ""), "{did:?}");
        outcomes(&did.output)
    }

    /// The outcomes of the same attempts without one.
    pub fn unconfined(&self, script: &str, arguments: &[&str]) -> BTreeMap<String, String> {
        let folder = tempfile::tempdir_in(self.root()).unwrap();
        let mut python = Command::new(PYTHON);
        python.args(["-I", "-c", &format!("{PRELUDE}{script}")]).args(arguments);
        python.env("TMPDIR", folder.path()).current_dir(self.latest().join("inside"));
        let output = python.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        outcomes(&String::from_utf8(output.stdout).unwrap())
    }
}

pub const PYTHON: &str = "/usr/bin/python3";

pub fn outcomes(output: &str) -> BTreeMap<String, String> {
    output.lines().filter_map(|line| line.rsplit_once(' ')).map(|(name, what)| (name.into(), what.into())).collect()
}

/// That each attempt was made and refused.
#[track_caller]
pub fn all_refused(outcomes: &BTreeMap<String, String>, attempts: usize) {
    assert_eq!(outcomes.len(), attempts, "{outcomes:?}");
    for (name, outcome) in outcomes {
        assert!(["EACCES", "EPERM", "ENOSYS", "EXDEV"].contains(&outcome.as_str()), "{name}: {outcome}");
    }
}

/// Checks that each attempt succeeds without a fence.
#[track_caller]
pub fn all_done(outcomes: &BTreeMap<String, String>, attempts: usize) {
    assert_eq!(outcomes.len(), attempts, "{outcomes:?}");
    assert!(outcomes.values().all(|outcome| outcome == "DONE"), "{outcomes:?}");
}
