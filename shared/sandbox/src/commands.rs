//! Commands by their calls: each runs once, in a place of its own, and a repeated request follows it or gets its result once more.

use crate::{
    options::Options,
    places::{Key, Places, Rules},
    run::Run,
    scratch, supervise,
};
use domain::{CallId, WorkspaceId};
use futures::future::join_all;
use parking_lot::Mutex;
use ports::{Exec, Execution, Reservation, Reserve, Result};
use std::{
    collections::{HashMap, VecDeque},
    path::Path,
    pin::pin,
    sync::{Arc, Once},
};
use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};
use uuid::Uuid;

/// How many calls are remembered to have been, after their results were forgotten, and how many to have been ended before they began.
const FORGOTTEN: usize = 65_536;

/// The commands of this process.
#[derive(Clone)]
pub struct Commands(Arc<Inner>);

struct Inner {
    options: Arc<Options>,
    calls: Mutex<Calls>,
    swept: Once,
    /// A place may be free.
    freed: Notify,
}

struct Calls {
    known: HashMap<Key, Arc<Run>>,
    /// In the order in which they came.
    order: VecDeque<Key>,
    /// Calls whose results were dropped: they must not run again either.
    forgotten: VecDeque<Key>,
    /// Calls that were ended before they began.
    killed: VecDeque<Key>,
    places: Places,
}

/// The state of a call on this machine.
enum FoundRun {
    Known(Arc<Run>),
    New(Arc<Run>),
    NotBegun(String),
    Unknown(String),
}

impl Commands {
    /// Commands that run so.
    pub fn new(options: Options) -> Self {
        let direct = options.direct.max(1);
        let direct_of_one = if options.shared { direct.div_ceil(2) } else { direct };
        let rules = Rules { queued: options.at_once.max(1), direct, direct_of_one };
        let calls = Calls {
            known: HashMap::new(),
            order: VecDeque::new(),
            forgotten: VecDeque::new(),
            killed: VecDeque::new(),
            places: Places::new(rules, Uuid::now_v7()),
        };
        let (options, calls) = (Arc::new(options), Mutex::new(calls));
        Self(Arc::new(Inner { options, calls, swept: Once::new(), freed: Notify::new() }))
    }

    pub(crate) fn options(&self) -> &Options {
        &self.0.options
    }

    /// Asks for a place, as [`ports::Sandbox::reserve`] says.
    pub async fn reserve(&self, workspace: WorkspaceId, asked: &Reserve) -> Reservation {
        let key = (workspace, asked.call);
        let deadline = Instant::now() + asked.wait;
        loop {
            let freed = self.0.freed.notified();
            let mut freed = pin!(freed);
            // From here on nothing is missed.
            freed.as_mut().enable();
            let place = self.0.calls.lock().place(key, asked.direct);
            if place != Reservation::Busy || timeout_at(deadline, freed).await.is_err() {
                return place;
            }
        }
    }

    /// Begins or follows a command beside the files in `latest`, as [`ports::Sandbox::exec`] says. Its call is the workspace's own: the
    /// same id in another one is another call.
    ///
    /// # Errors
    /// `Invalid` as the port says.
    pub async fn exec(&self, workspace: WorkspaceId, latest: &Path, command: Exec) -> Result<Execution> {
        let inner = &self.0;
        inner.swept.call_once(|| scratch::sweep(&inner.options.scratch));
        let key = (workspace, command.call);
        let found = inner.calls.lock().find(key, &command, &inner.options);
        let run = match found {
            FoundRun::NotBegun(why) => return Ok(Execution::NotBegun(why)),
            FoundRun::Unknown(why) => return Ok(Execution::Unknown(why)),
            FoundRun::Known(run) => run,
            FoundRun::New(run) => {
                // On a task of its own: it goes on when its caller goes away.
                let (held, options, latest) = (run.clone(), inner.options.clone(), latest.to_owned());
                let ends = Ends { commands: self.clone(), key, number: command.grant.number, run: held.clone() };
                tokio::spawn(async move {
                    if let Err(refusal) = supervise::run(&held, &options, workspace, &latest, command).await {
                        // Nothing ran, so the call may come again; the place is given back before the caller gets the refusal.
                        ends.commands.change(|calls| {
                            calls.forget(&key);
                            calls.places.ended(&key, ends.number);
                        });
                        held.refused(refusal);
                    }
                    drop(ends);
                });
                run
            }
        };
        match run.begun().await {
            Ok(None) => Ok(Execution::Begun(run.follow())),
            Ok(Some(why)) => Ok(Execution::NotBegun(why)),
            Err(error) => Err(error),
        }
    }

    /// Does something to the calls that may free a place.
    fn change<T>(&self, change: impl FnOnce(&mut Calls) -> T) -> T {
        let result = change(&mut self.0.calls.lock());
        self.0.freed.notify_waiters();
        result
    }

    /// Ends a command with all that it started; returns when nothing is left of it. One that has not begun will not.
    pub async fn kill(&self, workspace: WorkspaceId, call: CallId) {
        if let Some(run) = self.change(|calls| calls.kill((workspace, call))) {
            run.stop.cancel();
            run.gone().await;
        }
    }

    /// Ends all commands that run, and refuses new ones; or ends those of one workspace. Returns when nothing is
    /// left of them.
    pub async fn end(&self, of: Option<WorkspaceId>) {
        let is_meant = |key: &Key| of.is_none_or(|workspace| workspace == key.0);
        let runs: Vec<Arc<Run>> = {
            let mut calls = self.0.calls.lock();
            if of.is_none() {
                calls.places.close();
            }
            calls.known.iter().filter(|(key, _)| is_meant(key)).map(|(_, run)| run.clone()).collect()
        };
        runs.iter().for_each(|run| run.stop.cancel());
        join_all(runs.iter().map(|run| run.gone())).await;
    }

    /// How many commands run now.
    pub fn running(&self) -> usize {
        self.0.calls.lock().known.values().filter(|run| run.runs()).count()
    }
}

impl Calls {
    /// The place of a call, if there is one.
    fn place(&mut self, key: Key, direct: bool) -> Reservation {
        if self.known.contains_key(&key) || self.forgotten.contains(&key) {
            // It needs none: it is followed, or said to be forgotten.
            return Reservation::Granted(self.places.grant(0));
        }
        if self.killed.contains(&key) {
            return Reservation::Killed;
        }
        self.places.ask(key, direct, Instant::now()).map_or(Reservation::Busy, Reservation::Granted)
    }

    /// The state of a call, and the run of a new one.
    fn find(&mut self, key: Key, command: &Exec, options: &Options) -> FoundRun {
        self.expire(options);
        if let Some(run) = self.known.get(&key) {
            return FoundRun::Known(run.clone());
        }
        if self.forgotten.contains(&key) {
            return FoundRun::Unknown("the command ran, and its result was dropped".into());
        }
        if command.grant.machine != self.places.grant(0).machine {
            return FoundRun::Unknown("the command was begun elsewhere, and its outcome is not known here".into());
        }
        if self.killed.contains(&key) {
            return FoundRun::NotBegun("it was ended before it began".into());
        }
        if !self.places.begin(&key, command.grant.number, Instant::now()) {
            return FoundRun::NotBegun("its place was given to another".into());
        }
        let run = Run::new(command.max_output.min(options.limits.output));
        self.known.insert(key, run.clone());
        self.order.push_back(key);
        FoundRun::New(run)
    }

    fn forget(&mut self, key: &Key) {
        self.known.remove(key);
        self.order.retain(|other| other != key);
    }

    /// The run to end; none for a call that has not begun, and from now on will not.
    fn kill(&mut self, key: Key) -> Option<Arc<Run>> {
        if let Some(run) = self.known.get(&key) {
            return Some(run.clone());
        }
        if !self.forgotten.contains(&key) && !self.killed.contains(&key) {
            self.killed.push_back(key);
            let over = self.killed.len().saturating_sub(FORGOTTEN);
            self.killed.drain(..over);
        }
        self.places.release(&key);
        None
    }

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

/// A command that runs, until nothing of it is left: then its place is free. Tells its followers if its supervisor ends before it does.
struct Ends {
    commands: Commands,
    key: Key,
    /// Of its grant.
    number: u64,
    run: Arc<Run>,
}

impl Drop for Ends {
    fn drop(&mut self) {
        self.run.lost();
        self.commands.change(|calls| {
            calls.places.ended(&self.key, self.number);
            // Not only when the next one comes: many at once may leave files.
            calls.expire(self.commands.options());
        });
    }
}
