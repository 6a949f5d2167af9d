//! Tasks on the real runtime, over ports in memory that choose by seed the order of messages.

use actor::{ActorId, Entry, EntryObserver, Mailbox, Runtime};
use async_trait::async_trait;
use domain::{CommandId, FilePath, Principal, TaskEvent, TaskId, TaskPhase, TaskView, WorkspaceId};
use engine::{
    FlowCache, Flows, NewTask, RerunOptions, TaskEffects, TaskMachine, Tasks, artifact::Artifacts, machine::TaskState,
    memory::Memory,
};
use flow::{load::KnownNames, op::Functions};
use futures::future::join_all;
use parking_lot::Mutex;
use ports::{Clock, Delivery, MAX_BATCH, QueueReceiver, Receipt, Table};
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use tempfile::TempDir;
use testkit::{
    TestClock,
    fakes::{FakeBlobs, FakeBus, FakeQueue, FakeTable, Faults},
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use workspace::{Expect, Workspaces, Writer};

/// All followers, one after the other.
#[derive(Clone, Default)]
pub struct All(Arc<Mutex<Vec<Arc<dyn EntryObserver<TaskMachine>>>>>);

#[async_trait]
impl EntryObserver<TaskMachine> for All {
    async fn loaded(&self, _: &ActorId, _: &TaskState) {}

    async fn committed(&self, actor: &ActorId, state: &TaskState, entry: &Entry<TaskEvent>) {
        let all = self.0.lock().clone();
        for each in all {
            each.committed(actor, state, entry).await;
        }
    }
}

pub struct Rig {
    pub tasks: Tasks,
    pub workspace: WorkspaceId,
    pub cache: FlowCache,
    pub table: Arc<FakeTable>,
    workspaces: Workspaces,
    queue: Arc<FakeQueue>,
    runtime: Runtime<TaskMachine>,
    followers: All,
    clock: Arc<TestClock>,
    _folder: TempDir,
}

impl Rig {
    pub async fn new(seed: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(TestClock::new(seed));
        let time: Arc<dyn Clock> = clock.clone();
        let faults = if seed == 0 { Faults::none() } else { Faults::interleaving() };
        let table = Arc::new(FakeTable::new(time.clone(), seed, faults.clone()));
        let queue = Arc::new(FakeQueue::new(time.clone(), seed, faults.clone(), 1_000));
        let bus = Arc::new(FakeBus::new(seed, Faults::none()));
        let blobs = Arc::new(FakeBlobs::new(seed, Faults::none()));
        let workspaces = Workspaces::new(table.clone(), blobs, time.clone(), folder.path().to_owned());
        let cache = FlowCache::default();
        let flows = Flows::new(table.clone(), workspaces.clone(), cache.clone(), KnownNames::default());
        let tasks =
            Tasks::new(table.clone(), queue.clone(), bus.clone(), time.clone(), workspaces.clone(), flows.clone());
        let mailbox = Mailbox { queue: queue.clone(), table: table.clone(), bus: bus.clone() };
        let effects = TaskEffects {
            flows,
            tools: Arc::new(tools::Registry::builtin()),
            functions: Arc::new(Functions::builtin()),
            workspaces: workspaces.clone(),
            memory: Memory::new(table.clone()),
            artifacts: Artifacts::new(table.clone(), workspaces.clone()),
            table: table.clone(),
            mailbox,
            clock: time.clone(),
            context_tokens: 10_000,
        };
        let followers = All::default();
        let runtime = Runtime::new(
            TaskMachine { flows: cache.clone(), places: None },
            Arc::new(effects),
            table.clone(),
            queue.clone(),
            bus,
            time,
            Arc::new(followers.clone()),
            actor::Options::default(),
        );
        let workspace = WorkspaceId(Uuid::from_u128(7));
        workspaces.create(workspace, "observed", &Principal::local()).await.unwrap();
        Self { tasks, workspace, cache, table, workspaces, queue, runtime, followers, clock, _folder: folder }
    }

    pub fn follow(&self, follower: Arc<dyn EntryObserver<TaskMachine>>) {
        self.followers.0.lock().push(follower);
    }

    pub async fn write(&self, path: &str, text: &str) {
        let files = self.workspaces.open(self.workspace, workspace::Access::platform("a test")).await.unwrap();
        let writer = Writer::new(Principal::local());
        files.write(&FilePath::parse(path).unwrap(), text.to_owned(), Expect::Any, &writer).await.unwrap();
    }

    pub async fn flow(&self, name: &str, files: &[(&str, &str)]) {
        for (path, text) in files {
            self.write(&format!("/system/flows/{name}/{path}"), text).await;
        }
    }

    pub fn workspaces(&self) -> &Workspaces {
        &self.workspaces
    }

    pub fn id(&self) -> Uuid {
        self.clock.id()
    }

    pub async fn begin(&self, flow: &str, input: Value) -> TaskId {
        let task = TaskId(self.id());
        let new = NewTask { input, ..NewTask::default() };
        self.tasks.create(self.workspace, task, flow, new, &Principal::local()).await.unwrap();
        task
    }

    /// Makes a task and works until all is at rest.
    pub async fn run(&self, flow: &str, input: Value) -> TaskView {
        let task = self.begin(flow, input).await;
        self.work().await;
        self.finished(task).await
    }

    /// Runs a task again, on its recorded answers or from a node.
    pub async fn replay(&self, of: TaskId, from: Option<&str>) -> TaskView {
        let task = TaskId(self.id());
        self.tasks.replay(self.workspace, of, task, from, RerunOptions::default(), &Principal::local()).await.unwrap();
        self.work().await;
        self.finished(task).await
    }

    /// Runs the failed nodes again; none when nothing did.
    pub async fn retry(&self, of: TaskId) -> Option<TaskView> {
        let task = TaskId(self.id());
        self.tasks.retry(self.workspace, of, task, RerunOptions::default(), &Principal::local()).await.ok()?;
        self.work().await;
        Some(self.finished(task).await)
    }

    pub async fn answer(&self, task: TaskId, node: &str, answers: Value) {
        let answers = engine::Answers { answers: answers.as_object().unwrap().clone(), may_approve: true };
        let command = CommandId(self.id());
        self.tasks.answer(self.workspace, task, node, answers, command, &Principal::local()).await.unwrap();
        self.work().await;
    }

    pub async fn finished(&self, task: TaskId) -> TaskView {
        let view = self.tasks.get(self.workspace, task).await.unwrap();
        assert_eq!(view.phase, TaskPhase::Finished, "{view:?}");
        view
    }

    /// Works until nothing is in the queue.
    pub async fn work(&self) {
        let visibility = Duration::from_secs(3600);
        let cut = CancellationToken::new();
        while !self.queue.is_empty() {
            let Ok(deliveries) =
                tokio::time::timeout(Duration::from_secs(60), self.queue.receive(MAX_BATCH, visibility)).await
            else {
                return;
            };
            let deliveries = deliveries.unwrap();
            let batches = deliveries.chunk_by(|one, next| one.group == next.group);
            join_all(batches.map(|batch| self.settle(batch, &cut))).await;
        }
    }

    async fn settle(&self, batch: &[Delivery], cut: &CancellationToken) {
        let receipts: Vec<Receipt> = batch.iter().map(|delivery| delivery.receipt.clone()).collect();
        let verdict = self.runtime.deliver(batch, cut).await;
        let (done, again) = receipts.split_at(verdict.done.min(receipts.len()));
        if !done.is_empty() {
            self.queue.ack(done).await.unwrap();
        }
        if !again.is_empty() {
            self.queue.reject(again, verdict.again).await.unwrap();
        }
    }

    pub async fn trace(&self, task: TaskId) -> String {
        buildscale_telemetry::trace(&self.tasks, self.workspace, task).await.unwrap()
    }
}

/// Puts an event log into a table, as if the task had written it.
pub async fn keep(table: &dyn Table, workspace: WorkspaceId, task: TaskId, events: Vec<TaskEvent>) {
    let actor = engine::machine::actor_id(workspace, task);
    for (first, event) in (1..).zip(events) {
        let entry = Entry {
            first,
            next: first + 1,
            at: TestClock::BEGINNING,
            step: Uuid::nil(),
            commands: Vec::new(),
            events: vec![event],
            outbox: Vec::new(),
            parking: None,
        };
        let body = serde_json::to_string(&entry).unwrap();
        let put = ports::Write::put(actor.entry_key(first), body, ports::Expect::Absent);
        table.commit(vec![put]).await.unwrap();
    }
}
