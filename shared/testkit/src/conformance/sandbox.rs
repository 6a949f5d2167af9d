//! The sandboxes' suite. Attacks by hostile commands are in the tests of the crate that confines them.

mod commands;
mod mirror;
mod places;

use super::table::ok;
use bytes::Bytes;
use domain::{CallId, FilePath, Sha256};
use futures::{StreamExt, stream::BoxStream};
use ports::{
    Error, Exec, ExecEnd, ExecEvent, Execution, Grant, KeptFile, LeftOut, Manifest, ManifestEntry, Mirrored,
    Reservation, Reserve, Sandbox, SandboxState, Sandboxes,
};
use std::{
    collections::BTreeMap,
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use uuid::Uuid;

/// How long anything may take here, on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(120);

/// Puts a file into the folder of a sandbox.
pub type Put = Box<dyn Fn(&FilePath, &[u8]) + Send + Sync>;

/// A sandbox with nothing in it.
pub struct Bench {
    /// The sandbox.
    pub sandbox: Arc<dyn Sandbox>,
    /// Puts a file into the workspace's own folder, for a sandbox that sees that one.
    pub put: Put,
    /// The folder with the files, as commands name it.
    pub latest: String,
}

/// Holds a sandbox to its documentation. Commands are programs that every Linux has.
pub async fn sandbox<F: Future<Output = Bench>>(fresh: impl Fn() -> F) {
    commands::hold(&fresh).await;
    places::hold(&fresh).await;
    if fresh().await.sandbox.mirror().is_some() {
        mirror::hold(&fresh).await;
    }
}

/// Holds sandboxes to their documentation, with one for `workspace` that may take a while to come.
pub async fn sandboxes(sandboxes: &dyn Sandboxes, workspace: domain::WorkspaceId) {
    for _ in 0..2 {
        ok(sandboxes.warm(workspace).await);
        let ready = tokio::time::timeout(PATIENCE, async {
            while ok(sandboxes.look(workspace).await).state != SandboxState::Ready {
                // poll: a machine does not announce its start.
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            ok(sandboxes.ready(workspace).await).expect("a sandbox that is ready is there")
        });
        let sandbox = ready.await.expect("it does not come");
        assert_eq!(ok(sandboxes.warm(workspace).await).state, SandboxState::Ready, "one that is there stays");
        let running = begun(&*sandbox, command(&["sleep", "1000"])).await;
        for _ in 0..2 {
            ok(sandboxes.release(workspace).await);
        }
        // It is ended, or gone with its machine.
        let last = tokio::time::timeout(PATIENCE, running.collect::<Vec<_>>()).await.expect("it runs on").pop();
        assert!(
            matches!(
                &last,
                Some(Err(Error::Unavailable { .. }) | Ok(ExecEvent::Ended(ExecEnd { signal: Some(9), .. })))
            ),
            "{last:?}"
        );
    }
}

/// A call that no other has.
fn call() -> CallId {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let upper = 0x0199_0000_0000_7000_8000_0000_0000_0000_u128;
    CallId::from(Uuid::from_u128(upper | u128::from(NEXT.fetch_add(1, Ordering::Relaxed))))
}

fn command(words: &[&str]) -> Exec {
    Exec {
        call: call(),
        grant: Grant::default(),
        words: words.iter().map(|word| (*word).into()).collect(),
        folder: FilePath::root(),
        root: FilePath::root(),
        hidden: Vec::new(),
        env: BTreeMap::new(),
        stdin: None,
        timeout: PATIENCE,
        network: false,
        max_output: 64 * 1024,
        keep: Vec::new(),
    }
}

fn script(text: &str) -> Exec {
    command(&["sh", "-c", text])
}

fn path(text: &str) -> FilePath {
    FilePath::parse(text).expect("a path")
}

/// The result of a command.
#[derive(Debug, PartialEq)]
struct Did {
    output: String,
    errors: String,
    dropped: u64,
    kept: Vec<KeptFile>,
    left_out: Vec<LeftOut>,
    end: ExecEnd,
}

impl Did {
    /// Its output, when it ended well.
    fn well(self) -> String {
        assert_eq!((self.end.code, self.end.signal, self.errors.as_str()), (Some(0), None, ""), "{self:?}");
        self.output
    }
}

async fn all_of(events: impl futures::Stream<Item = ports::Result<ExecEvent>>) -> Did {
    let mut did = Did {
        output: String::new(),
        errors: String::new(),
        dropped: 0,
        kept: Vec::new(),
        left_out: Vec::new(),
        end: ExecEnd { code: None, signal: None, timed_out: false, duration: Duration::ZERO, resources: None },
    };
    let mut ended = false;
    let events = tokio::time::timeout(PATIENCE, events.collect::<Vec<_>>()).await.expect("a command ends");
    for event in events {
        assert!(!ended, "the end is the last of all");
        match ok(event) {
            ExecEvent::Output { error, text } if error => did.errors.push_str(&text),
            ExecEvent::Output { text, .. } => did.output.push_str(&text),
            ExecEvent::Dropped { bytes } => did.dropped += bytes,
            ExecEvent::Kept(file) => did.kept.push(file),
            ExecEvent::LeftOut(left) => did.left_out.push(left),
            ExecEvent::Ended(end) => (ended, did.end) = (true, end),
        }
    }
    assert!(ended, "the stream ends with the command");
    did
}

/// The place that a call is granted.
async fn granted(sandbox: &dyn Sandbox, call: CallId) -> Grant {
    let asked = Reserve { call, direct: false, wait: PATIENCE };
    let granted = async {
        loop {
            match ok(sandbox.reserve(asked.clone()).await) {
                Reservation::Granted(grant) => return grant,
                Reservation::Busy => {}
                other => panic!("it is granted no place: {other:?}"),
            }
        }
    };
    tokio::time::timeout(PATIENCE, granted).await.expect("it is granted a place")
}

/// Begins a command in a place of its own, or follows it.
async fn execution(sandbox: &dyn Sandbox, command: Exec) -> ports::Result<Execution> {
    let grant = granted(sandbox, command.call).await;
    sandbox.exec(Exec { grant, ..command }).await
}

async fn begun(sandbox: &dyn Sandbox, command: Exec) -> BoxStream<'static, ports::Result<ExecEvent>> {
    match ok(execution(sandbox, command).await) {
        Execution::Begun(events) => events,
        Execution::NotBegun(why) | Execution::Unknown(why) => panic!("it is not begun: {why}"),
    }
}

async fn run(sandbox: &dyn Sandbox, command: Exec) -> Did {
    all_of(begun(sandbox, command).await).await
}

async fn refused(sandbox: &dyn Sandbox, command: Exec) -> String {
    match execution(sandbox, command).await {
        Err(Error::Invalid(reason)) => reason,
        Err(error) => panic!("refused, but not as it should be: {error:?}"),
        Ok(Execution::Begun(events)) => panic!("it is not refused: {:?}", all_of(events).await),
        Ok(Execution::NotBegun(why) | Execution::Unknown(why)) => panic!("it is put off and not refused: {why}"),
    }
}

/// Files by their paths.
fn manifest(mark: &str, files: &[(&str, &[u8])]) -> Manifest {
    let entry = |content: &[u8]| {
        let (sha256, size) = (Sha256::of(content), content.len() as u64);
        ManifestEntry::File { sha256, size }
    };
    let entries = files.iter().map(|(at, content)| (path(at), entry(content))).collect();
    Manifest { whole: true, entries, mark: mark.into(), ..Manifest::default() }
}

/// Applies a manifest and provides the missing ones of `contents`, as a user of a mirror does.
async fn applied(mirror: &dyn Mirrored, manifest: Manifest, contents: &[&[u8]]) {
    let missing = ok(mirror.apply(manifest.clone()).await);
    let asked = contents.iter().filter(|content| missing.contains(&Sha256::of(content)));
    ok(mirror.provide(asked.map(|content| Bytes::copy_from_slice(content)).collect()).await);
    assert_eq!(ok(mirror.apply(manifest).await), [], "all that was asked for was provided");
}

impl Bench {
    /// With these files.
    async fn with(self, files: &[(&str, &[u8])]) -> Self {
        match self.sandbox.mirror() {
            Some(mirror) => {
                let contents: Vec<&[u8]> = files.iter().map(|(_, content)| *content).collect();
                applied(mirror, manifest("files", files), &contents).await;
            }
            None => files.iter().for_each(|(at, content)| (self.put)(&path(at), content)),
        }
        self
    }
}
