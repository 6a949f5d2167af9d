//! One life of a hub, of the same parts.

use crate::{
    agent::SimulatedAgents,
    network::Link,
    sabotage::{self, Safeguard},
    world::World,
};
use actor::NoObserver;
use assembly::{Base, Engine, ModelSetup, Services, Settings, sweeps::Handoffs};
use chat::Chats;
use engine::Tasks;
use ports::{Blobs, Bus, Clock, Spilling, Table};
use std::{sync::Arc, time::Duration};
use testkit::{Queue, crash::Crash};
use tokio::{task::JoinHandle, time::sleep};
use tokio_util::sync::CancellationToken;
use worker::Worker;
use workspace::Workspaces;

/// How long people have for an answer: short, so that a run ends soon.
pub const PATIENCE: Duration = Duration::from_secs(90);
/// After this time a chat at rest is flushed and forgotten.
pub const INACTIVITY: Duration = Duration::from_secs(40);

/// How and when a process ends.
#[derive(Clone)]
pub struct Fate {
    /// Its end.
    pub crash: Crash,
    /// Its line to the world.
    pub link: Link,
    /// The step of its coding agents at which the process of one dies.
    pub agent_dies_at: Option<u64>,
}

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
    /// The same for files.
    pub workspaces: Workspaces,
    /// Its sweep for versions whose message was lost.
    pub handoffs: Handoffs,
    shutdown: CancellationToken,
    work: JoinHandle<()>,
}

impl Process {
    /// Begins a process on the machine number `machine`, with one safeguard taken out if so.
    pub fn start(world: &World, machine: usize, fate: Fate, without: Option<Safeguard>) -> Self {
        let Fate { crash, link, agent_dies_at } = fate;
        let clock: Arc<dyn Clock> = world.clock.clone();
        let blobs: Arc<dyn Blobs> = link.blobs(crash.blobs(world.blobs.clone()));
        let table: Arc<dyn Table> = Arc::new(Spilling::new(
            link.table(crash.table(sabotage::table(world.table.clone(), without))),
            blobs.clone(),
        ));
        let queue: Arc<dyn Queue> = link.queue(crash.queue(sabotage::queue(world.queue.clone(), without)));
        let bus: Arc<dyn Bus> = link.bus(crash.bus(world.bus.clone()));
        let model = crash.model(world.model.clone());
        let agents = SimulatedAgents::new(world.book.clone(), world.clock.clone(), crash.clone(), agent_dies_at);

        let files = world.folder(machine);
        let base = Base { table, bus, blobs, clock, files, keeps_mirrors: true, indexes: None, embedder: None };
        let settings = Settings {
            inactivity: INACTIVITY,
            context_cache: world.context_cache,
            question_timeout: PATIENCE,
            permission_timeout: PATIENCE,
            ..Settings::default()
        };
        let engine = Engine::new(base, queue.clone(), ModelSetup::alone(model), settings);
        let engine = engine.with_agents(crash.agents(agents));
        let options = worker::Options { drain: Duration::from_millis(150), ..worker::Options::default() };
        let worker = Worker::new(engine.kinds(Arc::new(NoObserver)), queue, options).on(engine.executor.clone());
        let Services { base, queue, chats, tasks, workspaces, .. } = engine.services;
        let patience = Duration::from_secs(60);
        let handoffs = Handoffs { workspaces: workspaces.clone(), queue, patience, clock: base.clock };
        let shutdown = CancellationToken::new();
        let work = tokio::spawn(work(worker, workspaces.clone(), shutdown.clone()));
        Self { crash, link, chats, tasks, workspaces, handoffs, shutdown, work }
    }

    /// Ends it in good order. Returns when it has ended, or died over it.
    pub async fn stop(mut self) {
        self.shutdown.cancel();
        tokio::select! {
            biased;
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

/// The rest of a process that is no more: no part of it may run on.
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
