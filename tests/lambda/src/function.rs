//! A function: as many instances of one binary as are needed at once, up to a bound.

use crate::{
    instance::{Answered, Instance},
    lease::Lease,
    lineage::Lineage,
};
use bytes::Bytes;
use parking_lot::Mutex;
use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::sync::{Semaphore, mpsc, watch};

/// How a function is deployed.
#[derive(Clone, Debug)]
pub struct Settings {
    pub name: String,
    pub binary: PathBuf,
    /// All variables that it sees, but for those of the runtime.
    pub environment: Vec<(String, String)>,
    /// How long one invocation may take.
    pub timeout: Duration,
    /// The most instances at once: its reserved concurrency.
    pub concurrency: usize,
    /// The file of its standard output and error.
    pub log: Option<PathBuf>,
}

/// Why an invocation has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The function said so.
    Function(String),
    /// It took longer than it may, and was killed.
    TimedOut,
    /// The process ended in the middle.
    Exited,
    /// The process never asked for work.
    Init(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Function(said) => write!(f, "the function failed: {said}"),
            Self::TimedOut => f.write_str("the function timed out"),
            Self::Exited => f.write_str("the function's process ended"),
            Self::Init(why) => write!(f, "the function did not start: {why}"),
        }
    }
}

impl std::error::Error for Failure {}

/// A deployed function.
#[derive(Clone)]
pub struct Function(Arc<Inner>);

struct Inner {
    settings: Settings,
    idle: Mutex<Vec<Instance>>,
    /// Process ids of instances that run an invocation.
    busy: Mutex<Vec<u32>>,
    places: Arc<Semaphore>,
    inits: Mutex<Vec<Duration>>,
    /// Whether leases end with the invocations that held them.
    ends_leases: AtomicBool,
    /// The messages that queues have leased to running invocations.
    leases: Mutex<Vec<Lease>>,
    /// The messages that invocations have given back, to rest for as long as they said.
    rests: watch::Sender<Vec<Lease>>,
}

impl Function {
    pub fn new(settings: Settings) -> Self {
        let places = Arc::new(Semaphore::new(settings.concurrency));
        Self(Arc::new(Inner {
            settings,
            idle: Mutex::default(),
            busy: Mutex::default(),
            places,
            inits: Mutex::default(),
            ends_leases: AtomicBool::new(false),
            leases: Mutex::default(),
            rests: watch::Sender::default(),
        }))
    }

    /// Runs one invocation on an idle instance, or on a new one.
    pub async fn invoke(&self, event: impl Into<Bytes>) -> Result<Bytes, Failure> {
        self.invoke_in(&Lineage::default().entering(&self.0.settings.name), event).await
    }

    /// The same, at the end of a chain of messages.
    pub(crate) async fn invoke_in(&self, chain: &Lineage, event: impl Into<Bytes>) -> Result<Bytes, Failure> {
        match self.run(chain, event.into()).await? {
            Answered::Whole(answer) => Ok(answer),
            Answered::Pieces(mut pieces) => {
                let mut answer = Vec::new();
                while let Some(piece) = pieces.recv().await {
                    answer.extend_from_slice(&piece);
                }
                Ok(answer.into())
            }
        }
    }

    /// Runs one invocation whose answer may come in pieces.
    pub(crate) async fn run(&self, chain: &Lineage, event: Bytes) -> Result<Answered, Failure> {
        let inner = &self.0;
        let place = inner.places.clone().acquire_owned().await.expect("never closed");
        let idle = inner.idle.lock().pop();
        let mut instance = match idle {
            Some(instance) => {
                instance.thaw();
                instance
            }
            None => {
                let instance = Instance::start(&inner.settings).await?;
                inner.inits.lock().push(instance.init);
                instance
            }
        };
        let pid = instance.pid();
        inner.busy.lock().push(pid);
        let answer = instance.invoke(event, chain, inner.settings.timeout).await;
        if let Ok(Answered::Pieces(mut pieces)) = answer {
            let (given, read) = mpsc::channel(1);
            let function = self.clone();
            tokio::spawn(async move {
                while let Some(piece) = pieces.recv().await {
                    // The reader may be gone.
                    drop(given.send(piece).await);
                }
                function.is_done(instance).await;
                drop(place);
            });
            return Ok(Answered::Pieces(read));
        }
        if matches!(answer, Ok(_) | Err(Failure::Function(_))) {
            self.is_done(instance).await;
        } else {
            inner.busy.lock().retain(|busy| *busy != pid);
        }
        answer
    }

    /// Freezes an instance, for the next invocation.
    async fn is_done(&self, mut instance: Instance) {
        let pid = instance.pid();
        self.0.busy.lock().retain(|busy| *busy != pid);
        if instance.freeze().await {
            self.0.idle.lock().push(instance);
        }
    }

    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// Kills every instance that runs an invocation now; returns how many there were.
    pub fn kill_busy(&self) -> usize {
        let busy = self.0.busy.lock().clone();
        for pid in &busy {
            // Their own `wait` sees the end.
            drop(std::process::Command::new("kill").args(["-9", &pid.to_string()]).status());
        }
        busy.len()
    }

    /// Ends the idle instances, as Lambda does.
    pub fn forget_idle(&self) {
        self.0.idle.lock().clear();
    }

    /// From now on, messages of an invocation that died come again at once. The rest of their lease is time that a test would only wait
    /// for.
    pub fn end_leases(&self) {
        self.0.ends_leases.store(true, Ordering::Relaxed);
    }

    pub(crate) fn ends_leases(&self) -> bool {
        self.0.ends_leases.load(Ordering::Relaxed)
    }

    /// Has every message that an invocation works on come once more now, as if its lease had run out while it works. Returns how many
    /// batches there were.
    pub async fn expire_leases(&self) -> usize {
        let leases = self.0.leases.lock().clone();
        for lease in &leases {
            lease.end().await;
        }
        leases.len()
    }

    pub(crate) fn gives_back(&self, lease: Lease) {
        self.0.rests.send_modify(|rests| rests.push(lease));
    }

    /// Waits until an invocation has given messages back that rest now.
    pub async fn given_back(&self) {
        drop(self.0.rests.subscribe().wait_for(|rests| !rests.is_empty()).await);
    }

    /// Has messages that were given back come again now, as if they had rested. Returns how many batches that were.
    pub async fn end_rests(&self) -> usize {
        let rests = self.0.rests.send_replace(Vec::new());
        for rest in &rests {
            rest.end().await;
        }
        rests.len()
    }

    pub(crate) fn holds(&self, lease: &Lease) {
        self.0.leases.lock().push(lease.clone());
    }

    pub(crate) fn holds_no_more(&self, lease: &Lease) {
        self.0.leases.lock().retain(|held| !held.is(lease));
    }

    /// How many invocations run now.
    pub fn running(&self) -> usize {
        self.0.busy.lock().len()
    }

    /// From process start to the first poll, one for each instance that was started.
    pub fn inits(&self) -> Vec<Duration> {
        self.0.inits.lock().clone()
    }
}
