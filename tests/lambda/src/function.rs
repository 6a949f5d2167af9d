//! A function: as many instances of one binary as are needed at once, up to a bound.

use crate::instance::Instance;
use bytes::Bytes;
use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::sync::Semaphore;

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
    /// Where its standard output and error go.
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

/// A deployed function.
#[derive(Clone)]
pub struct Function(Arc<Inner>);

struct Inner {
    settings: Settings,
    idle: Mutex<Vec<Instance>>,
    /// Process ids of instances that run an invocation.
    busy: Mutex<Vec<u32>>,
    places: Semaphore,
    inits: Mutex<Vec<Duration>>,
}

impl Function {
    pub fn new(settings: Settings) -> Self {
        let places = Semaphore::new(settings.concurrency);
        Self(Arc::new(Inner {
            settings,
            idle: Mutex::default(),
            busy: Mutex::default(),
            places,
            inits: Mutex::default(),
        }))
    }

    /// Runs one invocation on an idle instance, or on a new one.
    pub async fn invoke(&self, event: impl Into<Bytes>) -> Result<Bytes, Failure> {
        let inner = &self.0;
        let _place = inner.places.acquire().await.expect("never closed");
        let idle = inner.idle.lock().unwrap().pop();
        let mut instance = match idle {
            Some(instance) => instance,
            None => {
                let instance = Instance::start(&inner.settings).await?;
                inner.inits.lock().unwrap().push(instance.init);
                instance
            }
        };
        let pid = instance.pid();
        inner.busy.lock().unwrap().push(pid);
        let answer = instance.invoke(event.into(), inner.settings.timeout).await;
        inner.busy.lock().unwrap().retain(|busy| *busy != pid);
        if matches!(answer, Ok(_) | Err(Failure::Function(_))) {
            inner.idle.lock().unwrap().push(instance);
        }
        answer
    }

    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// Kills every instance that runs an invocation now; returns how many there were.
    pub fn kill_busy(&self) -> usize {
        let busy = self.0.busy.lock().unwrap().clone();
        for pid in &busy {
            // Their own `wait` sees the end.
            drop(std::process::Command::new("kill").args(["-9", &pid.to_string()]).status());
        }
        busy.len()
    }

    /// Ends the idle instances, as Lambda does with those that nobody needs.
    pub fn forget_idle(&self) {
        self.0.idle.lock().unwrap().clear();
    }

    /// How many invocations run now.
    pub fn running(&self) -> usize {
        self.0.busy.lock().unwrap().len()
    }

    /// From process start to the first poll, one for each instance that was started.
    pub fn inits(&self) -> Vec<Duration> {
        self.0.inits.lock().unwrap().clone()
    }
}
