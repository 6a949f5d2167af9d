//! A whole hub without its front: an embedded store in a folder of its own, real files, the real effects of tasks and chats,
//! a scripted model, and a worker that drives both kinds of actors. Nothing of it is a fake but what the model says.
#![expect(clippy::unwrap_used, missing_docs, reason = "means of tests")]

use actor::{Kind, Mailbox, NobodyFollows, Runtime};
use chat::{ChatEffects, ChatMachine, SimpleGate, Transcript};
use domain::{EvaluationId, FilePath, Principal, TaskId, TaskPhase, TaskView, WorkspaceId};
use embedded::{LocalBlobs, LocalBus, Store};
use flow::{
    Evaluations, FlowCache, Flows, NewTask, TaskEffects, TaskMachine, Tasks, Understudy,
    artifact::Artifacts,
    evaluate::{Evaluation, Play, Progress, Selection},
    load::Known,
    memory::Memory,
    op::Functions,
};
use models::Scripted;
use ports::{Blobs, Bus, Clock, Model, Queue, Spilling, SystemClock, Table};
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tools::Registry;
use uuid::Uuid;
use worker::Worker;
use workspace::{Expect, Workspaces};

/// How long a test waits for something that should take milliseconds.
const PATIENCE: Duration = Duration::from_secs(120);

pub const PLAY: Play = |yaml| match Scripted::from_yaml(yaml) {
    Ok(model) => Ok(Arc::new(model)),
    Err(error) => Err(error.to_string()),
};

pub struct Hub {
    pub tasks: Tasks,
    pub evaluations: Evaluations,
    pub workspaces: Workspaces,
    pub workspace: WorkspaceId,
    pub table: Arc<dyn Table>,
    pub by: Principal,
    shutdown: CancellationToken,
    working: JoinHandle<()>,
    _store: Arc<Store>,
}

impl Hub {
    /// A hub on this folder, at work. `script` is what its model plays where a case brings none.
    pub async fn open(folder: &TempDir, script: &str) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let options = embedded::Options { durability: embedded::Durability::Normal, max_attempts: 1_000 };
        let path = folder.path().join("hub.sqlite3");
        let store = Arc::new(Store::open(path, clock.clone(), options).unwrap());
        let files = folder.path().join("workspaces");
        let blobs: Arc<dyn Blobs> = Arc::new(LocalBlobs::new(&files));
        let table: Arc<dyn Table> = Arc::new(Spilling::new(store.table(), blobs.clone()));
        let queue: Arc<dyn Queue> = store.queue();
        let bus: Arc<dyn Bus> = Arc::new(LocalBus::new());
        let workspaces = Workspaces::new(table.clone(), blobs, clock.clone(), files);
        let real: Arc<dyn Model> = Arc::new(Scripted::from_yaml(script).unwrap());
        let model: Arc<dyn Model> = Arc::new(Understudy::new(real, table.clone(), PLAY));
        let functions = Arc::new(Functions::builtin());
        let tools = Arc::new(Registry::builtin().with_functions(functions.clone()));

        let chats = Runtime::new(
            ChatMachine {
                gate: Arc::new(SimpleGate { timeout: Duration::from_secs(60) }),
                tools: tools.clone(),
                question_timeout: Duration::from_secs(60),
            },
            Arc::new(ChatEffects {
                model,
                tools: tools.clone(),
                workspaces: workspaces.clone(),
                clock: clock.clone(),
                slots: actor::Slots::new(),
            }),
            table.clone(),
            queue.clone(),
            bus.clone(),
            clock.clone(),
            Arc::new(Transcript::new(table.clone(), workspaces.clone())),
            actor::Options::default(),
        );
        let cache = FlowCache::default();
        let flows = Flows::new(table.clone(), workspaces.clone(), cache.clone(), Known::default());
        let effects = TaskEffects {
            slots: actor::Slots::new(),
            flows: flows.clone(),
            tools,
            functions,
            workspaces: workspaces.clone(),
            memory: Memory::new(table.clone()),
            artifacts: Artifacts::new(table.clone(), workspaces.clone()),
            table: table.clone(),
            mailbox: Mailbox { queue: queue.clone(), table: table.clone(), bus: bus.clone() },
            clock: clock.clone(),
            context_tokens: 10_000,
        };
        let tasks_runtime = Runtime::new(
            TaskMachine { flows: cache },
            Arc::new(effects),
            table.clone(),
            queue.clone(),
            bus.clone(),
            clock.clone(),
            Arc::new(NobodyFollows),
            actor::Options::default(),
        );
        let kinds: [Arc<dyn Kind>; 2] = [Arc::new(chats), Arc::new(tasks_runtime)];
        let worker = Worker::new(kinds, queue.clone(), worker::Options::default());
        let shutdown = CancellationToken::new();
        let working = tokio::spawn({
            let shutdown = shutdown.clone();
            async move { worker.run(shutdown).await }
        });

        let tasks = Tasks::new(table.clone(), queue, bus, clock.clone(), workspaces.clone(), flows);
        let evaluations = Evaluations::new(tasks.clone(), workspaces.clone(), table.clone(), clock, PLAY);
        let (workspace, by) = (WorkspaceId(Uuid::from_u128(7)), Principal::local());
        workspaces.create(workspace, "tests", &by).await.unwrap();
        Self { tasks, evaluations, workspaces, workspace, table, by, shutdown, working, _store: store }
    }

    /// Ends its work as a process does that is told to.
    pub async fn close(self) {
        self.shutdown.cancel();
        self.working.await.unwrap();
    }

    pub async fn write(&self, path: &str, text: &str) {
        let files = self.workspaces.open(self.workspace).await.unwrap();
        let writer = self.by.clone().into();
        files.write(&FilePath::parse(path).unwrap(), text.to_owned(), Expect::Any, &writer).await.unwrap();
    }

    pub async fn read(&self, path: &str) -> Option<String> {
        let files = self.workspaces.open(self.workspace).await.unwrap();
        let content = files.read(&FilePath::parse(path).unwrap(), None).await.ok()?;
        String::from_utf8(content.bytes.to_vec()).ok()
    }

    /// Puts a flow into the workspace.
    pub async fn flow<'a>(&self, name: &str, files: impl IntoIterator<Item = (&'a str, &'a str)>) {
        for (path, text) in files {
            self.write(&format!("/system/flows/{name}/{path}"), text).await;
        }
    }

    /// Runs a task to its end.
    pub async fn run(&self, flow: &str, input: Value) -> TaskView {
        let task = TaskId(Uuid::now_v7());
        let new = NewTask { input, ..NewTask::default() };
        self.tasks.create(self.workspace, task, flow, new, &self.by).await.unwrap();
        until(|| async {
            let view = self.tasks.get(self.workspace, task).await.unwrap();
            (view.phase == TaskPhase::Finished).then_some(view)
        })
        .await
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
            // poll: the condition is in a store, which tells nobody
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.expect("it happens in time")
}
