//! Commands by their calls: each runs once, and whoever asks for it again follows it or gets its result once more.

use crate::{lock, options::Options, run::Run, scratch, supervise};
use domain::{CallId, WorkspaceId};
use futures::{future::join_all, stream::BoxStream};
use ports::{Error, Exec, ExecEvent, Result};
use std::{
    collections::{HashMap, VecDeque},
    path::Path,
    sync::{Arc, Mutex, Once},
};
use tokio::time::Instant;

/// How many calls are remembered to have been, after their results were forgotten.
const FORGOTTEN: usize = 65_536;

type Key = (WorkspaceId, CallId);

/// The commands of this process.
#[derive(Clone)]
pub struct Commands(Arc<Inner>);

struct Inner {
    options: Arc<Options>,
    calls: Mutex<Calls>,
    swept: Once,
}

#[derive(Default)]
struct Calls {
    known: HashMap<Key, Arc<Run>>,
    /// In the order in which they came.
    order: VecDeque<Key>,
    /// Calls whose results are no longer kept: they must not run again either.
    forgotten: VecDeque<Key>,
}

impl Commands {
    /// Commands that run so.
    pub fn new(options: Options) -> Self {
        Self(Arc::new(Inner { options: Arc::new(options), calls: Mutex::default(), swept: Once::new() }))
    }

    /// Runs a command beside the files in `latest`, as [`ports::Sandbox::exec`] says. Its call is the workspace's own: the same id in
    /// another one is another call.
    ///
    /// # Errors
    /// `Invalid` as the port says; `Unavailable` when as many commands run as may at once, or the machine has no room for one more.
    pub async fn exec(
        &self,
        workspace: WorkspaceId,
        latest: &Path,
        command: Exec,
    ) -> Result<BoxStream<'static, Result<ExecEvent>>> {
        let inner = &self.0;
        inner.swept.call_once(|| scratch::sweep(&inner.options.scratch));
        let (run, is_new) = inner.place((workspace, command.call), &command)?;
        if is_new {
            // On a task of its own: it goes on when whoever asked for it goes away.
            let (held, options, latest) = (run.clone(), inner.options.clone(), latest.to_owned());
            let (commands, key) = (self.clone(), (workspace, command.call));
            tokio::spawn(async move {
                let _lost = Unless(&held);
                if let Err(refusal) = supervise::run(&held, &options, &latest, command).await {
                    // Nothing ran, so the call may come again.
                    commands.0.forget(&key);
                    held.refused(refusal);
                }
            });
        }
        run.begun().await?;
        Ok(run.follow())
    }

    /// Ends a command with all that it started; returns when nothing is left of it. One that is not known is fine.
    pub async fn kill(&self, workspace: WorkspaceId, call: CallId) {
        let run = lock(&self.0.calls).known.get(&(workspace, call)).cloned();
        if let Some(run) = run {
            run.stop.cancel();
            run.gone().await;
        }
    }

    /// Ends all commands, or those of one workspace; returns when nothing is left of them.
    pub async fn end(&self, of: Option<WorkspaceId>) {
        let is_meant = |key: &Key| of.is_none_or(|workspace| workspace == key.0);
        let runs: Vec<Arc<Run>> = {
            let calls = lock(&self.0.calls);
            calls.known.iter().filter(|(key, _)| is_meant(key)).map(|(_, run)| run.clone()).collect()
        };
        runs.iter().for_each(|run| run.stop.cancel());
        join_all(runs.iter().map(|run| run.gone())).await;
    }

    /// How many commands run now.
    pub fn running(&self) -> usize {
        lock(&self.0.calls).known.values().filter(|run| run.runs()).count()
    }
}

impl Inner {
    /// Where a call is kept, and whether it is new.
    fn place(&self, key: Key, command: &Exec) -> Result<(Arc<Run>, bool)> {
        let mut calls = lock(&self.calls);
        calls.expire(&self.options);
        if let Some(run) = calls.known.get(&key) {
            return Ok((run.clone(), false));
        }
        if calls.forgotten.contains(&key) {
            return Err(Error::Invalid("the command ran, and its result is no longer kept".into()));
        }
        if command.again {
            return Err(Error::Invalid(
                "the command was begun elsewhere, and what became of it is not known here".into(),
            ));
        }
        if calls.known.values().filter(|run| run.runs()).count() >= self.options.at_once {
            let reason = format!("{} commands run already", self.options.at_once);
            return Err(Error::unavailable("the sandbox", reason));
        }
        let run = Run::new(command.max_output.min(self.options.limits.output));
        calls.known.insert(key, run.clone());
        calls.order.push_back(key);
        Ok((run, true))
    }

    fn forget(&self, key: &Key) {
        let mut calls = lock(&self.calls);
        calls.known.remove(key);
        calls.order.retain(|other| other != key);
    }
}

impl Calls {
    /// Forgets the results of those that ended long ago, and the oldest while there are too many, or too much of them.
    fn expire(&mut self, options: &Options) {
        let now = Instant::now();
        let (mut count, mut bytes) = (0, 0);
        let mut gone = Vec::new();
        // The newest first.
        for key in self.order.iter().rev() {
            let Some((at, kept)) = self.known.get(key).and_then(|run| run.over()) else { continue };
            (count, bytes) = (count + 1, bytes + kept);
            let is_old = now.saturating_duration_since(at) > options.remembered_for;
            if is_old || count > options.remembered || bytes > options.remembered_bytes {
                gone.push(*key);
            }
        }
        if gone.is_empty() {
            return;
        }
        self.order.retain(|key| !gone.contains(key));
        for key in gone {
            self.known.remove(&key);
            self.forgotten.push_back(key);
        }
        let over = self.forgotten.len().saturating_sub(FORGOTTEN);
        self.forgotten.drain(..over);
    }
}

/// Tells those who follow when what looks after a run ends before it does.
struct Unless<'a>(&'a Run);

impl Drop for Unless<'_> {
    fn drop(&mut self) {
        self.0.lost();
    }
}
