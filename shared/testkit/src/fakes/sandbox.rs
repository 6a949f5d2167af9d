//! Sandboxes in memory, as strict as their port: nothing runs twice under one call, and invalid requests are refused.

mod mirror;

use async_trait::async_trait;
use domain::{CallId, WorkspaceId};
use futures::{StreamExt, future::BoxFuture};
pub use mirror::FakeMirror;
use parking_lot::{Mutex, MutexGuard};
use ports::{
    Error, Exec, ExecEnd, ExecEvent, Execution, Grant, Mirrored, Reservation, Reserve, Result, Sandbox, SandboxState,
    SandboxView, Sandboxes,
};
use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::sync::watch;

/// Searches a folder: the tool, its arguments, its outcome as JSON.
pub type Search = fn(PathBuf, String, String) -> BoxFuture<'static, String>;

/// The behaviour of a command: its standard output, and its exit code; none for one that runs until it is killed.
pub type Play = fn(&Exec) -> (String, Option<i32>);

/// A sandbox for whichever workspace asks, once [`FakeSandboxes::come_up`] or after so many looks.
pub struct FakeSandboxes {
    folder: Option<PathBuf>,
    search: Search,
    play: Play,
    inner: Mutex<Inner>,
}

type Takes = std::result::Result<u32, String>;

struct Inner {
    boxes: HashMap<WorkspaceId, Arc<FakeSandbox>>,
    /// How many looks it still takes, of those that were asked for; none for one that cannot start, and why.
    starting: HashMap<WorkspaceId, Takes>,
    takes: Takes,
    asked: u32,
}

impl Default for FakeSandboxes {
    fn default() -> Self {
        Self::new(|exec| (exec.words.join(" "), Some(0)))
    }
}

impl FakeSandboxes {
    /// Sandboxes that see the workspace's own folder, and play commands so.
    pub fn new(play: Play) -> Self {
        let search: Search = |_, _, _| Box::pin(async { String::new() });
        let inner = Inner { boxes: HashMap::new(), starting: HashMap::new(), takes: Ok(0), asked: 0 };
        let inner = Mutex::new(inner);
        Self { folder: None, search, play, inner }
    }

    /// The same, with a mirror each, below this folder.
    #[must_use]
    pub fn with_mirrors(self, folder: &Path, search: Search) -> Self {
        Self { folder: Some(folder.into()), search, ..self }
    }

    /// From now on one is ready when it was looked at so often after it was asked for.
    pub fn takes(&self, looks: u32) {
        self.inner().takes = Ok(looks);
    }

    /// From now on none can start.
    pub fn cannot_start(&self, why: &str) {
        self.inner().takes = Err(why.into());
    }

    /// The workspace's sandbox is ready.
    pub fn come_up(&self, workspace: WorkspaceId) -> Arc<FakeSandbox> {
        let mirror =
            self.folder.as_ref().map(|folder| FakeMirror::new(folder.join(workspace.to_string()), self.search));
        let machine = uuid::Uuid::now_v7();
        let sandbox = Arc::new(FakeSandbox { mirror, play: self.play, machine, inner: Mutex::default() });
        self.inner().boxes.insert(workspace, sandbox.clone());
        sandbox
    }

    /// It is gone, with all that ran in it; its users get errors.
    pub fn vanish(&self, workspace: WorkspaceId) {
        if let Some(sandbox) = self.inner().boxes.remove(&workspace) {
            let mut inner = sandbox.inner();
            inner.gone = true;
            // The streams of running commands end.
            inner.runs.clear();
        }
    }

    /// It does not answer, and its commands go on, until it is [shown](Self::show).
    pub fn hide(&self, workspace: WorkspaceId) {
        self.inner().boxes.remove(&workspace);
    }

    /// This one answers.
    pub fn show(&self, workspace: WorkspaceId, sandbox: &Arc<FakeSandbox>) {
        self.inner().boxes.insert(workspace, sandbox.clone());
    }

    /// How often one was asked for whether it is ready.
    pub fn asked(&self) -> u32 {
        self.inner().asked
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }

    fn progress(&self, workspace: WorkspaceId) -> SandboxView {
        let view = |state, reason| SandboxView { state, since: None, reason };
        let mut inner = self.inner();
        if inner.boxes.contains_key(&workspace) {
            return view(SandboxState::Ready, None);
        }
        let starts = match inner.starting.get_mut(&workspace) {
            None => return view(SandboxState::Cold, None),
            Some(Err(why)) => return view(SandboxState::Failed, Some(why.clone())),
            Some(Ok(0)) => true,
            Some(Ok(looks)) => {
                *looks -= 1;
                false
            }
        };
        if !starts {
            return view(SandboxState::Starting, Some("a machine is looked for".into()));
        }
        inner.starting.remove(&workspace);
        drop(inner);
        self.come_up(workspace);
        view(SandboxState::Ready, None)
    }
}

#[async_trait]
impl Sandboxes for FakeSandboxes {
    async fn look(&self, workspace: WorkspaceId) -> Result<SandboxView> {
        Ok(self.progress(workspace))
    }

    async fn warm(&self, workspace: WorkspaceId) -> Result<SandboxView> {
        {
            let mut inner = self.inner();
            let takes = inner.takes.clone();
            let there = inner.boxes.contains_key(&workspace) || matches!(inner.starting.get(&workspace), Some(Ok(_)));
            if !there {
                inner.starting.insert(workspace, takes);
            }
        }
        Ok(self.progress(workspace))
    }

    async fn release(&self, workspace: WorkspaceId) -> Result<()> {
        self.vanish(workspace);
        self.inner().starting.remove(&workspace);
        Ok(())
    }

    async fn ready(&self, workspace: WorkspaceId) -> Result<Option<Arc<dyn Sandbox>>> {
        self.inner().asked += 1;
        self.progress(workspace);
        Ok(self.inner().boxes.get(&workspace).cloned().map(|sandbox| sandbox as Arc<dyn Sandbox>))
    }
}

/// One sandbox.
pub struct FakeSandbox {
    mirror: Option<FakeMirror>,
    play: Play,
    machine: uuid::Uuid,
    inner: Mutex<Runs>,
}

#[derive(Default)]
struct Runs {
    gone: bool,
    /// The answers to requests for a place before there is one.
    says: VecDeque<Reservation>,
    /// The places that were granted, and not begun under.
    granted: HashMap<CallId, u64>,
    grants: u64,
    /// The requests for places.
    asked: Vec<Reserve>,
    /// Calls that were ended before they began.
    killed: BTreeSet<CallId>,
    runs: HashMap<CallId, Ran>,
    /// The commands that were begun, in order, each once.
    begun: Vec<Exec>,
    /// The events about files of a command that is asked to keep some.
    files: Vec<ExecEvent>,
}

#[derive(Clone)]
struct Ran {
    words: Vec<String>,
    output: String,
    end: watch::Receiver<Option<ExecEnd>>,
    ends: Arc<watch::Sender<Option<ExecEnd>>>,
}

impl FakeSandbox {
    /// The commands that ran here, in the order in which they began.
    pub fn begun(&self) -> Vec<Exec> {
        self.inner().begun.clone()
    }

    /// The id of the machine.
    pub fn machine(&self) -> uuid::Uuid {
        self.machine
    }

    /// Sets the answers to the next requests for a place, in order.
    pub fn says(&self, places: impl IntoIterator<Item = Reservation>) {
        self.inner().says.extend(places);
    }

    /// The requests for places, in order.
    pub fn asked(&self) -> Vec<Reserve> {
        self.inner().asked.clone()
    }

    /// The granted places lapse: nothing can begin under them.
    pub fn lapse(&self) {
        self.inner().granted.clear();
    }

    /// From now on these are the events about files of each command that is asked to keep some.
    pub fn leaves(&self, files: Vec<ExecEvent>) {
        self.inner().files = files;
    }

    /// Ends a command that runs.
    pub fn finish(&self, call: CallId, code: i32) {
        self.end(
            call,
            ExecEnd {
                code: Some(code),
                signal: None,
                timed_out: false,
                duration: Duration::from_millis(5),
                resources: None,
            },
        );
    }

    /// Its mirror.
    pub fn fake_mirror(&self) -> Option<&FakeMirror> {
        self.mirror.as_ref()
    }

    fn end(&self, call: CallId, end: ExecEnd) {
        if let Some(ran) = self.inner().runs.get(&call) {
            ran.ends.send_if_modified(|found| {
                let first = found.is_none();
                found.get_or_insert(end);
                first
            });
        }
    }

    fn inner(&self) -> MutexGuard<'_, Runs> {
        self.inner.lock()
    }

    fn there(&self) -> Result<()> {
        if self.inner().gone { Err(gone()) } else { Ok(()) }
    }
}

fn gone() -> Error {
    Error::unavailable("the sandbox", "it is gone")
}

#[async_trait]
impl Sandbox for FakeSandbox {
    fn mirror(&self) -> Option<&dyn Mirrored> {
        if let Some(mirror) = &self.mirror
            && self.inner().gone
        {
            mirror.vanish();
        }
        self.mirror.as_ref().map(|mirror| mirror as &dyn Mirrored)
    }

    async fn reserve(&self, asked: Reserve) -> Result<Reservation> {
        self.there()?;
        let wait = asked.wait;
        let said = {
            let mut inner = self.inner();
            let said = inner.says.pop_front();
            if said.is_none() && inner.killed.contains(&asked.call) {
                return Ok(Reservation::Killed);
            }
            inner.asked.push(asked.clone());
            said
        };
        if let Some(said) = said {
            if said == Reservation::Busy {
                tokio::time::sleep(wait).await;
            }
            return Ok(said);
        }
        let mut inner = self.inner();
        let next = inner.grants + 1;
        let number = *inner.granted.entry(asked.call).or_insert(next);
        inner.grants = inner.grants.max(number);
        Ok(Reservation::Granted(Grant { machine: self.machine, number }))
    }

    async fn exec(&self, command: Exec) -> Result<Execution> {
        self.there()?;
        let known = self.inner().runs.get(&command.call).cloned();
        let files = if command.keep.is_empty() { Vec::new() } else { self.inner().files.clone() };
        let ran = match known {
            Some(ran) if ran.words != command.words => {
                return Err(Error::Invalid("another command has this call's id".into()));
            }
            Some(ran) => ran,
            None if command.grant.machine != self.machine => {
                return Ok(Execution::Unknown(format!("no command {} is known", command.call)));
            }
            None if self.inner().granted.get(&command.call) != Some(&command.grant.number) => {
                return Ok(Execution::NotBegun("its place was given to another".into()));
            }
            None if command.words.is_empty() => return Err(Error::Invalid("a command has words".into())),
            None => {
                let (output, code) = (self.play)(&command);
                let end = code.map(|code| ExecEnd {
                    code: Some(code),
                    signal: None,
                    timed_out: false,
                    duration: Duration::from_millis(3),
                    resources: None,
                });
                let (ends, end) = watch::channel(end);
                let ran = Ran { words: command.words.clone(), output, end, ends: Arc::new(ends) };
                let mut inner = self.inner();
                inner.granted.remove(&command.call);
                inner.runs.insert(command.call, ran.clone());
                inner.begun.push(command);
                ran
            }
        };
        let Ran { output, mut end, .. } = ran;
        let wrote = (!output.is_empty()).then_some(Ok(ExecEvent::Output { error: false, text: output }));
        let ended = async move {
            let last: Vec<Result<ExecEvent>> =
                match end.wait_for(Option::is_some).await.ok().and_then(|end| end.clone()) {
                    Some(end) => files.into_iter().chain([ExecEvent::Ended(end)]).map(Ok).collect(),
                    None => vec![Err(gone())],
                };
            futures::stream::iter(last)
        };
        Ok(Execution::Begun(futures::stream::iter(wrote).chain(futures::stream::once(ended).flatten()).boxed()))
    }

    async fn kill(&self, call: CallId) -> Result<()> {
        self.there()?;
        {
            let mut inner = self.inner();
            if !inner.runs.contains_key(&call) {
                inner.killed.insert(call);
                inner.granted.remove(&call);
            }
        }
        let (code, signal, timed_out) = (None, Some(9), false);
        self.end(call, ExecEnd { code, signal, timed_out, duration: Duration::from_millis(4), resources: None });
        Ok(())
    }
}
