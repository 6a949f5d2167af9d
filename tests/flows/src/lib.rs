//! A whole hub without its front: an embedded store in a folder of its own, real files, the real effects of tasks and chats, a scripted model, and a
//! worker that drives both kinds of actors. Only the model's answers are fake; or, for tests of time, all stores are in memory, and time jumps.
#![expect(clippy::missing_errors_doc, reason = "helpers of tests: any error ends the test")]
#![expect(clippy::unwrap_used, missing_docs, reason = "means of tests")]

mod slow;

pub use slow::Slow;

use actor::NoObserver;
use assembly::{
    Base, Config, Engine, ModelSetup, Places, SandboxSetup, Services, Settings,
    sweeps::{Lists, Sweeps},
};
use domain::{CommandId, Error, EvaluationId, FilePath, Principal, TaskId, TaskPhase, TaskView, WorkspaceId};
use embedded::{LocalBlobs, LocalBus, Store};
use engine::{
    NewTask, TaskFilter, Tasks,
    memory::{Bm25, Ranker},
};
use evaluation::{Evaluation, Evaluations, Progress, Selection};
use models::Scripted;
use ports::{Blobs, Bus, Clock, Model, Sandboxes, Spilling, SystemClock, Table};
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use tempfile::TempDir;
use testkit::{
    Queue, TestClock,
    fakes::{FakeBlobs, FakeBus, FakeQueue, FakeTable, Faults},
};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use worker::Worker;
use workspace::{Expect, Workspaces};

/// How long a test waits for something that should take milliseconds.
const PATIENCE: Duration = Duration::from_secs(120);

pub struct Hub {
    pub tasks: Tasks,
    pub evaluations: Evaluations,
    pub workspaces: Workspaces,
    pub workspace: WorkspaceId,
    pub table: Arc<dyn Table>,
    pub by: Principal,
    pub sweeps: Sweeps,
    /// The lists that sweeps go through.
    pub lists: Lists,
    shutdown: CancellationToken,
    working: JoinHandle<()>,
    _store: Option<Arc<Store>>,
}

/// The stores and the clock of a hub.
#[derive(Clone)]
pub struct Ground {
    pub table: Arc<dyn Table>,
    pub queue: Arc<dyn Queue>,
    pub bus: Arc<dyn Bus>,
    pub blobs: Arc<dyn Blobs>,
    pub clock: Arc<dyn Clock>,
    pub model: Arc<dyn Model>,
    pub ranker: Arc<dyn Ranker>,
}

impl Ground {
    /// Nothing but memory, and a time that jumps over waits: for tests that say `start_paused`. The seed chooses the order of
    /// concurrent calls; 0 stands for the order of asking.
    pub fn in_memory(seed: u64, model: Arc<dyn Model>) -> Self {
        let clock = Arc::new(TestClock::new(seed));
        let faults = || if seed == 0 { Faults::none() } else { Faults::interleaving() };
        Self {
            table: Arc::new(FakeTable::new(clock.clone(), seed, faults())),
            queue: Arc::new(FakeQueue::new(clock.clone(), seed, faults(), 1_000)),
            bus: Arc::new(FakeBus::new(seed, Faults::none())),
            blobs: Arc::new(FakeBlobs::new(seed, Faults::none())),
            clock,
            model,
            ranker: Arc::new(Bm25),
        }
    }
}

impl Hub {
    /// A hub on this folder, at work. `script` is the script of its model for cases that bring none.
    pub async fn open(folder: &TempDir, script: &str) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let durability = embedded::Durability::Normal;
        let options = embedded::Options { durability, max_attempts: 1_000, ..embedded::Options::default() };
        let path = folder.path().join("hub.sqlite3");
        let store = Arc::new(Store::open(path, clock.clone(), options).unwrap());
        let blobs: Arc<dyn Blobs> = Arc::new(LocalBlobs::new(folder.path().join("workspaces")));
        let ground = Ground {
            table: store.table(),
            queue: store.queue(),
            bus: Arc::new(LocalBus::new()),
            blobs,
            clock,
            model: Arc::new(Scripted::from_yaml(script).unwrap()),
            ranker: Arc::new(Bm25),
        };
        Self { _store: Some(store), ..Self::on(ground, folder).await }
    }

    /// A hub on this ground, at work.
    pub async fn on(ground: Ground, folder: &TempDir) -> Self {
        Self::on_with(ground, folder, worker::Options::default()).await
    }

    /// The same with a worker that works otherwise.
    pub async fn on_with(ground: Ground, folder: &TempDir, working: worker::Options) -> Self {
        Self::make(ground, folder, Some(working), None).await
    }

    /// The same with these machines for commands.
    pub async fn on_machines(
        ground: Ground,
        folder: &TempDir,
        working: worker::Options,
        machines: Arc<dyn Sandboxes>,
    ) -> Self {
        Self::make(ground, folder, Some(working), Some(machines)).await
    }

    /// A hub on this ground without a worker.
    pub async fn idle_on(ground: Ground, folder: &TempDir) -> Self {
        Self::make(ground, folder, None, None).await
    }

    async fn make(
        ground: Ground,
        folder: &TempDir,
        working: Option<worker::Options>,
        machines: Option<Arc<dyn Sandboxes>>,
    ) -> Self {
        let Ground { table, queue, bus, blobs, clock, model, ranker } = ground;
        let table: Arc<dyn Table> = Arc::new(Spilling::new(table, blobs.clone()));
        let files = folder.path().join("workspaces");
        // Commands run on this machine, as on any hub.
        let scratch = folder.path().join("scratch");
        let sandboxes = machines.unwrap_or_else(|| Arc::new(sandbox::Local::new(&files, scratch)));
        let places = Places { at_once: sandbox::AT_ONCE, shared: true };
        let machines = SandboxSetup { sandboxes, commands: Some(tools::Commands::default()), places };
        let base = Base { table, bus, blobs, clock, files, keeps_mirrors: true, indexes: None, embedder: None };
        let minute = Duration::from_secs(60);
        let settings = Settings {
            context_tokens: 10_000,
            question_timeout: minute,
            permission_timeout: minute,
            ..Settings::default()
        };
        let engine = Engine::with_machines(base, queue.clone(), ModelSetup::alone(model), settings, Some(machines))
            .with_ranker(ranker);
        let kinds = engine.kinds(Arc::new(NoObserver));
        let worker = working.map(|options| Worker::new(kinds, queue, options).on(engine.executor.clone()));
        let sweeps = Sweeps::of(&engine.services, &Config::default(), []);
        let shutdown = CancellationToken::new();
        let working = tokio::spawn({
            let shutdown = shutdown.clone();
            async move {
                if let Some(worker) = worker {
                    worker.run(shutdown).await;
                }
            }
        });

        let Services { base: Base { table, .. }, tasks, evaluations, workspaces, chats, .. } = engine.services;
        let lists = Lists { workspaces: workspaces.clone(), tasks: tasks.clone(), chats };
        let (workspace, by) = (WorkspaceId(Uuid::from_u128(7)), Principal::local());
        workspaces.create(workspace, "tests", &by).await.unwrap();
        Self { tasks, evaluations, workspaces, workspace, table, by, sweeps, lists, shutdown, working, _store: None }
    }

    /// Ends its work as a process does that is told to.
    pub async fn close(self) {
        self.shutdown.cancel();
        self.working.await.unwrap();
    }

    pub async fn write(&self, path: &str, text: &str) {
        self.write_in(self.workspace, path, text).await;
    }

    async fn write_in(&self, workspace: WorkspaceId, path: &str, text: &str) {
        let files = self.workspaces.open(workspace, workspace::Access::platform("a test")).await.unwrap();
        let writer = self.by.clone().into();
        files.write(&FilePath::parse(path).unwrap(), text.to_owned(), Expect::Any, &writer).await.unwrap();
    }

    pub async fn read(&self, path: &str) -> Option<String> {
        let files = self.workspaces.open(self.workspace, workspace::Access::platform("a test")).await.unwrap();
        let content = files.read(&FilePath::parse(path).unwrap(), None).await.ok()?;
        String::from_utf8(content.bytes.to_vec()).ok()
    }

    /// Puts a flow into the workspace.
    pub async fn flow<'a>(&self, name: &str, files: impl IntoIterator<Item = (&'a str, &'a str)>) {
        self.flow_in(self.workspace, name, files).await;
    }

    pub async fn flow_in<'a>(
        &self,
        workspace: WorkspaceId,
        name: &str,
        files: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) {
        for (path, text) in files {
            self.write_in(workspace, &format!("/system/flows/{name}/{path}"), text).await;
        }
    }

    /// Another workspace: another tenant.
    pub async fn another(&self) -> WorkspaceId {
        let workspace = WorkspaceId(Uuid::now_v7());
        self.workspaces.create(workspace, "another", &self.by).await.unwrap();
        workspace
    }

    /// Makes a task.
    pub async fn create(&self, flow: &str, input: Value) -> Result<TaskId, Error> {
        self.create_in(self.workspace, flow, NewTask { input, ..NewTask::default() }).await
    }

    pub async fn create_in(&self, workspace: WorkspaceId, flow: &str, new: NewTask) -> Result<TaskId, Error> {
        let accepted = self.tasks.create(workspace, TaskId(Uuid::now_v7()), flow, new, &self.by).await?;
        Ok(accepted.task_id)
    }

    /// Runs a task to its end.
    pub async fn run(&self, flow: &str, input: Value) -> TaskView {
        let task = self.create(flow, input).await.unwrap();
        self.finished(task).await
    }

    pub async fn finished(&self, task: TaskId) -> TaskView {
        self.until(task, |view| view.phase == TaskPhase::Finished).await
    }

    /// Waits until a task is like this.
    pub async fn until(&self, task: TaskId, is_so: impl Fn(&TaskView) -> bool) -> TaskView {
        until(|| async {
            let view = self.tasks.get(self.workspace, task).await.ok()?;
            is_so(&view).then_some(view)
        })
        .await
    }

    /// The children of a task, in their order.
    pub async fn children(&self, task: TaskId) -> Vec<TaskView> {
        let all = TaskFilter::default();
        self.tasks.children(self.workspace, task, &all, 100, None).await.unwrap().tasks
    }

    /// An id for a command.
    pub fn command(&self) -> CommandId {
        CommandId(Uuid::now_v7())
    }

    pub async fn answer(&self, task: TaskId, node: &str, answers: Value) {
        let answers = engine::Answers { answers: answers.as_object().unwrap().clone(), may_approve: true };
        self.tasks.answer(self.workspace, task, node, answers, self.command(), &self.by).await.unwrap();
    }

    /// Runs an evaluation to its end.
    pub async fn evaluate(&self, flow: &str, selection: Selection) -> Evaluation {
        let id = EvaluationId(Uuid::now_v7());
        self.evaluations.start(self.workspace, id, flow, selection, &self.by).await.unwrap();
        self.evaluated(id).await
    }

    pub async fn evaluated(&self, id: EvaluationId) -> Evaluation {
        until(|| async {
            let evaluation = self.evaluations.get(self.workspace, id).await.unwrap();
            (evaluation.status == Progress::Finished).then_some(evaluation)
        })
        .await
    }
}

/// Waits for a condition, and for no time that is known before.
pub async fn until<T, F: Future<Output = Option<T>>>(mut look: impl FnMut() -> F) -> T {
    let looking = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            // poll: the condition is in a store, which notifies no test
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.expect("it happens in time")
}
