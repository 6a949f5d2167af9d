//! A cluster, a table, and a worker's view of both.

use async_trait::async_trait;
use aws::{Config, Connect, EcsSandboxes};
use aws_config::retry::RetryConfig;
use bytes::Bytes;
use domain::{CallId, Sha256, Timestamp, WorkspaceId};
use emulators::{
    Calls, account,
    ecs::{Deployed, Ecs},
};
use parking_lot::Mutex;
use ports::{
    Clock, Error, Exec, Execution, Manifest, Mirrored, Reservation, Reserve, Result, Sandbox, SandboxState,
    SandboxView, Sandboxes, Secret, SystemClock, Table,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    time::Duration,
};
use testkit::fakes::{FakeTable, Faults};
use tokio::sync::Barrier;
use uuid::Uuid;

/// Ends in order when it is told to, as a sandbox does.
const PROGRAM: &str = "trap 'exit 0' TERM; echo up; while :; do sleep 1000 & wait; done";

/// A clock that goes when it is told to, with ids of its own.
#[derive(Default)]
pub struct Clockwork(AtomicI64);

impl Clock for Clockwork {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_800_000_000_000 + self.0.load(Ordering::SeqCst))
    }
    fn id(&self) -> Uuid {
        SystemClock.id()
    }
}

pub struct World {
    pub ecs: Ecs,
    pub calls: Calls,
    pub clock: Arc<Clockwork>,
    pub table: Arc<FakeTable>,
    /// Whether the sandboxes answer.
    pub answers: Arc<AtomicBool>,
    /// Where the sandboxes wait for each other before they answer, if they do.
    pub meets: Arc<Mutex<Option<Arc<Barrier>>>>,
    /// The URLs and tokens that sandboxes were spoken to with.
    pub spoken: Arc<Mutex<Vec<(String, String)>>>,
}

impl World {
    pub async fn new() -> Self {
        Self::with_page(100).await
    }

    pub async fn with_page(page: usize) -> Self {
        let program = ["sh", "-c", PROGRAM].map(str::to_owned).into();
        let provider = Some("nvme".to_owned());
        let deployed = Deployed { program, environment: Vec::new(), capacity_provider: provider, page };
        let ecs = Ecs::start(deployed).await.unwrap();
        let calls = Calls::of(ecs.endpoint()).await.unwrap();
        let clock: Arc<Clockwork> = Arc::default();
        // Workers race, and pages are short.
        let table =
            Arc::new(FakeTable::new(clock.clone(), 1, Faults { yields: 0.5, short_pages: 0.3, ..Faults::none() }));
        let answers = Arc::new(AtomicBool::new(true));
        Self { ecs, calls, clock, table, answers, meets: Arc::default(), spoken: Arc::default() }
    }

    /// The adapter of a worker.
    pub fn worker(&self) -> EcsSandboxes {
        self.worker_at(self.calls.endpoint(), self.table.clone())
    }

    /// One that asks ECS elsewhere.
    pub fn worker_at(&self, endpoint: &str, table: Arc<dyn Table>) -> EcsSandboxes {
        let sdk = account::sdk(endpoint);
        // Lost messages are lost for all attempts, so there is nothing to wait for.
        let retries = RetryConfig::standard().with_initial_backoff(Duration::from_millis(1));
        let client =
            aws_sdk_ecs::Client::from_conf(aws_sdk_ecs::config::Builder::from(&sdk).retry_config(retries).build());
        let variables = self.ecs.variables();
        let find = |name: &str| variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        let deployed = Config::from_variables(find).unwrap().sandbox().unwrap().clone();
        let (answers, meets, spoken) = (self.answers.clone(), self.meets.clone(), self.spoken.clone());
        let connect: Connect = Arc::new(move |url: &str, token: &Secret, _: WorkspaceId| {
            spoken.lock().push((url.to_owned(), token.expose().to_owned()));
            Ok(Arc::new(Stub { answers: answers.clone(), meets: meets.clone() }) as Arc<dyn Sandbox>)
        });
        EcsSandboxes::new(client, deployed, table, self.clock.clone(), connect)
    }

    pub fn pass(&self, time: Duration) {
        self.clock.0.fetch_add(i64::try_from(time.as_millis()).unwrap(), Ordering::SeqCst);
    }

    /// Looks every five seconds of this world's time until the start is over; returns the view then. Says how long that took.
    pub async fn until_settled(&self, worker: &EcsSandboxes, workspace: WorkspaceId) -> SandboxView {
        for _ in 0..200 {
            match worker.look(workspace).await {
                Ok(view) if view.state != SandboxState::Starting => return view,
                _ => self.pass(Duration::from_secs(5)),
            }
        }
        panic!("it is never settled: {:?}", worker.look(workspace).await);
    }

    /// Tells the process of a task to end, once it listens, or kills it, and waits until it has ended.
    pub async fn end(&self, task: &str, kills: bool) {
        until(|| std::fs::read_to_string(self.ecs.log(task)).is_ok_and(|said| said.contains("up"))).await;
        match kills {
            true => self.ecs.kill(task),
            false => self.ecs.end(task),
        }
        until(|| self.ecs.tasks().iter().all(|known| known.task != task || known.status == "STOPPED")).await;
    }
}

async fn until(holds: impl Fn() -> bool) {
    let held = async {
        while !holds() {
            // poll: a process tells only its parent about its end
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), held).await.unwrap();
}

pub fn workspace() -> WorkspaceId {
    WorkspaceId(SystemClock.id())
}

/// Answers, or not, and does nothing else.
struct Stub {
    answers: Arc<AtomicBool>,
    meets: Arc<Mutex<Option<Arc<Barrier>>>>,
}

#[async_trait]
impl Sandbox for Stub {
    fn mirror(&self) -> Option<&dyn Mirrored> {
        Some(self)
    }
    async fn reserve(&self, _: Reserve) -> Result<Reservation> {
        Err(Error::Invalid("it does nothing".into()))
    }
    async fn exec(&self, _: Exec) -> Result<Execution> {
        Err(Error::Invalid("it does nothing".into()))
    }
    async fn kill(&self, _: CallId) -> Result<()> {
        Ok(())
    }
}

#[async_trait]
impl Mirrored for Stub {
    async fn mark(&self) -> Result<Option<String>> {
        let meets = self.meets.lock().clone();
        if let Some(meets) = meets {
            meets.wait().await;
        }
        match self.answers.load(Ordering::SeqCst) {
            true => Ok(None),
            false => Err(Error::unavailable("the sandbox", "there is none")),
        }
    }
    async fn apply(&self, _: Manifest) -> Result<Vec<Sha256>> {
        Ok(Vec::new())
    }
    async fn provide(&self, _: Vec<Bytes>) -> Result<()> {
        Ok(())
    }
    async fn content(&self, _: Sha256) -> Result<Option<Bytes>> {
        Ok(None)
    }
    async fn search(&self, _: &str, _: &str) -> Result<String> {
        Err(Error::Invalid("it does nothing".into()))
    }
}
