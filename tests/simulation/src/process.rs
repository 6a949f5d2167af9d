//! One life of a hub, as `functions/hub` puts it together.

use crate::{
    link::Link,
    sabotage::{self, Safeguard},
    world::World,
};
use actor::{Kind, Mailbox, NobodyFollows, Runtime};
use chat::{ChatEffects, ChatMachine, Chats, Settings, SimpleGate, Transcript};
use flow::{
    FlowCache, Flows, TaskEffects, TaskMachine, Tasks, artifact::Artifacts, load::Known, memory::Memory, op::Functions,
};
use ports::{Blobs, Bus, Clock, Queue, Spilling, Table};
use std::{sync::Arc, time::Duration};
use testkit::crash::Crash;
use tokio::{task::JoinHandle, time::sleep};
use tokio_util::sync::CancellationToken;
use tools::Registry;
use worker::Worker;
use workspace::Workspaces;

/// How long people have for an answer: short, so that a run ends soon.
pub const PATIENCE: Duration = Duration::from_secs(90);
/// After this time a chat at rest is flushed and forgotten.
pub const INACTIVITY: Duration = Duration::from_secs(40);

/// One life of a hub.
pub struct Process {
    /// Its end.
    pub crash: Crash,
    /// Its line to the world.
    pub link: Link,
    /// Its way in for people.
    pub chats: Chats,
    /// The same for tasks.
    pub tasks: Tasks,
    shutdown: CancellationToken,
    work: JoinHandle<()>,
}

impl Process {
    /// Begins a process on the machine number `machine`, with one safeguard taken out if so.
    pub fn start(world: &World, machine: usize, crash: Crash, link: Link, without: Option<Safeguard>) -> Self {
        let clock: Arc<dyn Clock> = world.clock.clone();
        let blobs: Arc<dyn Blobs> = link.blobs(crash.blobs(world.blobs.clone()));
        let table: Arc<dyn Table> = Arc::new(Spilling::new(
            link.table(crash.table(sabotage::table(world.table.clone(), without))),
            blobs.clone(),
        ));
        let queue: Arc<dyn Queue> = link.queue(crash.queue(sabotage::queue(world.queue.clone(), without)));
        let bus: Arc<dyn Bus> = link.bus(crash.bus(world.bus.clone()));
        let model = crash.model(world.model.clone());

        let workspaces = Workspaces::new(table.clone(), blobs, clock.clone(), world.folder(machine));
        let functions = Arc::new(Functions::builtin());
        let tools = Arc::new(Registry::builtin().with_functions(functions.clone()));
        let transcript = Arc::new(Transcript::new(table.clone(), workspaces.clone()));
        let machine = ChatMachine {
            gate: Arc::new(SimpleGate { timeout: PATIENCE }),
            tools: tools.clone(),
            question_timeout: PATIENCE,
        };
        let effects = ChatEffects {
            model,
            tools: tools.clone(),
            workspaces: workspaces.clone(),
            clock: clock.clone(),
            slots: actor::Slots::new(),
        };
        let options = actor::Options { inactivity: INACTIVITY, ..actor::Options::default() };
        let runtime = Runtime::new(
            machine,
            Arc::new(effects),
            table.clone(),
            queue.clone(),
            bus.clone(),
            clock.clone(),
            transcript,
            options,
        );
        let options = worker::Options { drain: Duration::from_millis(150), ..worker::Options::default() };
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
        let task_runtime = Runtime::new(
            TaskMachine { flows: cache },
            Arc::new(effects),
            table.clone(),
            queue.clone(),
            bus.clone(),
            clock.clone(),
            Arc::new(NobodyFollows),
            actor::Options { inactivity: INACTIVITY, ..actor::Options::default() },
        );
        let kinds: [Arc<dyn Kind>; 2] = [Arc::new(runtime), Arc::new(task_runtime)];
        let worker = Worker::new(kinds, queue.clone(), options);
        let settings = Settings { inactivity: INACTIVITY, ..Settings::default() };
        let tasks = Tasks::new(table.clone(), queue.clone(), bus.clone(), clock.clone(), workspaces.clone(), flows);
        let chats = Chats::new(table, queue, bus, clock, workspaces.clone(), settings);
        let shutdown = CancellationToken::new();
        let work = tokio::spawn(work(worker, workspaces, shutdown.clone()));
        Self { crash, link, chats, tasks, shutdown, work }
    }

    /// Ends it in good order. Returns when it has ended, or died over it.
    pub async fn stop(mut self) {
        self.shutdown.cancel();
        tokio::select! {
            () = self.crash.died() => {}
            _ = &mut self.work => {}
        }
    }

    /// Ends it at once: nothing of it runs on.
    pub fn kill(&self) {
        self.crash.kill();
        self.work.abort();
    }
}

/// What is left of a process that is no more: nothing of it may run on.
impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

async fn work(worker: Worker, workspaces: Workspaces, shutdown: CancellationToken) {
    while workspaces.repair_all().await.is_err() {
        sleep(Duration::from_millis(100)).await;
    }
    worker.run(shutdown).await;
    // Only saves work at the next start.
    let _ = workspaces.checkpoint().await;
}
