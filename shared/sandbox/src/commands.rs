//! Commands by their calls: each waits for a place, runs once, and whoever asks for it again follows it or gets its result once more.

use crate::{
    lock,
    options::Options,
    places::{Asked, KEPT, Key, Places, Rules},
    run::Run,
    scratch, supervise,
};
use domain::{CallId, WorkspaceId};
use futures::future::join_all;
use ports::{Exec, Execution, Place, Reserve, Result};
use std::{
    collections::{HashMap, VecDeque},
    path::Path,
    pin::pin,
    sync::{Arc, Mutex, Once},
};
use tokio::{
    runtime::Handle,
    time::{Instant, sleep_until, timeout_at},
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
}

struct Calls {
    known: HashMap<Key, Arc<Run>>,
    /// In the order in which they came.
    order: VecDeque<Key>,
    /// Calls whose results are no longer kept: they must not run again either.
    forgotten: VecDeque<Key>,
    /// Calls that were ended before they began.
    killed: VecDeque<Key>,
    places: Places,
}

/// What a call is here.
enum Found {
    Known(Arc<Run>),
    New(Arc<Run>),
    NotBegun(String),
    Unknown(String),
}

impl Commands {
    /// Commands that run so.
    pub fn new(options: Options) -> Self {
        let rules = Rules { at_once: options.at_once.max(1), share: options.share, waiting: options.waiting };
        let calls = Calls {
            known: HashMap::new(),
            order: VecDeque::new(),
            forgotten: VecDeque::new(),
            killed: VecDeque::new(),
            places: Places::new(rules, Uuid::now_v7(), Instant::now()),
        };
        Self(Arc::new(Inner { options: Arc::new(options), calls: Mutex::new(calls), swept: Once::new() }))
    }

    /// Asks for a place, as [`ports::Sandbox::reserve`] says.
    pub async fn reserve(&self, workspace: WorkspaceId, asked: &Reserve) -> Place {
        let key = (workspace, asked.call);
        let deadline = Instant::now() + asked.wait;
        let wake = match self.change(|calls| calls.ask(key, asked.priority)) {
            Ok(place) => return place,
            Err(wake) => wake,
        };
        let _listens = Listens { commands: self, key };
        loop {
            let woken = wake.notified();
            let mut woken = pin!(woken);
            // From here on nothing is missed.
            woken.as_mut().enable();
            if let Some(place) = self.change(|calls| calls.place(&key)) {
                return place;
            }
            if timeout_at(deadline, woken).await.is_err() {
                return self.change(|calls| match (calls.place(&key), calls.places.ahead(&key)) {
                    (Some(place), _) => place,
                    (None, ahead) => Place::Waiting { ahead: ahead.unwrap_or(0) },
                });
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
        let run = match self.change(|calls| calls.find(key, &command, &inner.options)) {
            Found::NotBegun(why) => return Ok(Execution::NotBegun(why)),
            Found::Unknown(why) => return Ok(Execution::Unknown(why)),
            Found::Known(run) => run,
            Found::New(run) => {
                // On a task of its own: it goes on when whoever asked for it goes away.
                let (held, options, latest) = (run.clone(), inner.options.clone(), latest.to_owned());
                let ends = Ends { commands: self.clone(), key, number: command.grant.number, run: held.clone() };
                tokio::spawn(async move {
                    if let Err(refusal) = supervise::run(&held, &options, workspace, &latest, command).await {
                        // Nothing ran, so the call may come again; whoever hears of it finds the place given back.
                        ends.commands.change(|calls| {
                            calls.forget(&key);
                            calls.places.ended(&key, ends.number, Instant::now());
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

    /// Does something to the calls, and looks after the places that are granted by it.
    fn change<T>(&self, change: impl FnOnce(&mut Calls) -> T) -> T {
        let (result, granted) = {
            let mut calls = lock(&self.0.calls);
            let result = change(&mut calls);
            (result, calls.places.granted())
        };
        // Without a runtime there is nobody left to begin anything.
        if let Ok(runtime) = Handle::try_current() {
            for (key, number) in granted {
                let commands = self.clone();
                drop(runtime.spawn(async move { commands.lapses(key, number).await }));
            }
        }
        result
    }

    /// Gives a place to the next one when nothing begins under it.
    async fn lapses(&self, key: Key, number: u64) {
        let mut until = Instant::now() + KEPT;
        loop {
            sleep_until(until).await;
            match self.change(|calls| calls.places.lapse(&key, number, Instant::now())) {
                Some(later) => until = later,
                None => return,
            }
        }
    }

    /// Ends a command with all that it started; returns when nothing is left of it. One that has not begun will not.
    pub async fn kill(&self, workspace: WorkspaceId, call: CallId) {
        if let Some(run) = self.change(|calls| calls.kill((workspace, call))) {
            run.stop.cancel();
            run.gone().await;
        }
    }

    /// Ends all commands that run, and begins none any more; or ends those of one workspace, where what waits goes on waiting. Returns
    /// when nothing is left of them.
    pub async fn end(&self, of: Option<WorkspaceId>) {
        let is_meant = |key: &Key| of.is_none_or(|workspace| workspace == key.0);
        let runs: Vec<Arc<Run>> = {
            let mut calls = lock(&self.0.calls);
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
        lock(&self.0.calls).known.values().filter(|run| run.runs()).count()
    }

    /// How many wait for a place.
    pub fn waiting(&self) -> usize {
        lock(&self.0.calls).places.waiting()
    }
}

impl Calls {
    /// Asks for a place: what came of it, or what wakes whoever waits for it.
    fn ask(&mut self, key: Key, priority: i8) -> std::result::Result<Place, Arc<tokio::sync::Notify>> {
        if let Some(place) = self.place(&key) {
            return Ok(place);
        }
        match self.places.ask(key, priority, Instant::now()) {
            Asked::Granted(grant) => Ok(Place::Granted(grant)),
            Asked::Full(waiting) => Ok(Place::Full { waiting }),
            Asked::Waits(wake) => Err(wake),
        }
    }

    /// The place of a call that does not wait for one (any more).
    fn place(&mut self, key: &Key) -> Option<Place> {
        if self.known.contains_key(key) || self.forgotten.contains(key) {
            // It needs none: it is followed, or said to be forgotten.
            return Some(Place::Granted(self.places.grant(0)));
        }
        if self.killed.contains(key) {
            return Some(Place::Killed);
        }
        self.places.renew(key, Instant::now()).map(Place::Granted)
    }

    /// What a call is here, and where it is kept from now on when it is new.
    fn find(&mut self, key: Key, command: &Exec, options: &Options) -> Found {
        self.expire(options);
        if let Some(run) = self.known.get(&key) {
            return Found::Known(run.clone());
        }
        if self.forgotten.contains(&key) {
            return Found::Unknown("the command ran, and its result is no longer kept".into());
        }
        if command.grant.machine != self.places.grant(0).machine {
            return Found::Unknown("the command was begun elsewhere, and what became of it is not known here".into());
        }
        if self.killed.contains(&key) {
            return Found::NotBegun("it was ended before it began".into());
        }
        if !self.places.begin(&key, command.grant.number) {
            return Found::NotBegun("its place was given to another".into());
        }
        let run = Run::new(command.max_output.min(options.limits.output));
        self.known.insert(key, run.clone());
        self.order.push_back(key);
        Found::New(run)
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
        self.places.release(&key, Instant::now());
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

/// Whoever waits in a queue.
struct Listens<'a> {
    commands: &'a Commands,
    key: Key,
}

impl Drop for Listens<'_> {
    fn drop(&mut self) {
        lock(&self.commands.0.calls).places.done_listening(&self.key);
    }
}

/// A command that runs, until nothing of it is left: then its place is another's. Tells those who follow when what looks after it ends
/// before it does.
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
        self.commands.change(|calls| calls.places.ended(&self.key, self.number, Instant::now()));
    }
}
