//! Puts the hub together: the one place that knows which adapter stands behind which port.

use crate::{
    HubError, coding_agents, host,
    layout::{STORE, WORKSPACES},
    secrets,
    servers::servers,
};
use actor::watchdog::Watchdog;
use api::Counters;
use assembly::{
    Base, Config, Durability, Engine, FrontendDeps, HostEgress, HttpFrontend, ModelSetup, Observing, OwnFeeds, Readers,
    Services, TurnTraces, counters, sweeps::Sweeps,
};
use chat::Transcript;
use embedded::{LocalBlobs, LocalBus, LocalIndexes, OpenError, Store};
use engine::Tasks;
use ports::{Blobs, Bus, Clock, SearchIndexes, Spilling, SystemClock, Table};
use std::{fs, path::Path, sync::Arc, time::Duration};
use stream::{FeedOptions, Feeds};
use tokio_util::sync::CancellationToken;
use worker::Worker;
use workspace::Workspaces;

/// For how long a computation may hold a thread before that is told.
const HELD: Duration = Duration::from_millis(500);
/// How much of the disk is kept for deletions and the log when it is full, in bytes: enough for some hundred of them.
const RESERVE: u64 = 4 * 1024 * 1024;

/// The parts of a hub, not yet running.
pub struct Hub {
    /// Table and queue.
    pub store: Arc<Store>,
    /// Files.
    pub workspaces: Workspaces,
    /// Commands, where any may run.
    pub sandboxes: Option<sandbox::Local>,
    /// Models.
    pub models: Arc<models::Router>,
    /// Announcements.
    pub bus: Arc<dyn Bus>,
    /// The way in to tasks.
    pub tasks: Tasks,
    /// Keeps the chats' files.
    pub transcript: Arc<Transcript>,
    /// Follows tasks.
    pub observing: Observing,
    /// Sends the traces of turns.
    pub traces: Option<Arc<TurnTraces>>,
    /// Drives the actors of every kind.
    pub worker: Worker,
    /// Holds the event streams.
    pub feeds: Feeds,
    /// Looks after stranded work.
    pub sweeps: Sweeps,
    /// Knows which threads a computation holds.
    pub watchdog: Arc<Watchdog>,
    /// Its HTTP.
    pub front: HttpFrontend,
}

/// Opens the data folder and puts everything together. `shutdown` ends the event streams.
///
/// # Errors
/// [`HubError::Io`] when a thread cannot be made; [`HubError::Store`] when the data folder cannot be made or used, or the store is in
/// use, missing, of a later version, or cannot be opened; [`HubError::Models`] and [`HubError::Config`] for a configuration that makes no sense.
pub fn assemble(
    data: &Path,
    config: &Config,
    environment: &[(String, String)],
    shutdown: CancellationToken,
) -> Result<Hub, HubError> {
    host::keep_private(data).map_err(|source| OpenError::Folder { path: data.to_owned(), source })?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let mut working = worker::Options::default();
    if let Some(seconds) = config.server.drain_seconds {
        working.drain = Duration::from_secs(seconds);
    }
    let files = data.join(WORKSPACES);
    if let Err(error) = fs::create_dir_all(&files) {
        tracing::warn!(%error, folder = %files.display(), "the folder of the workspaces cannot be made yet");
    }
    let store = open_store(data, &files, config, working.concurrency, clock.clone())?;
    let blobs: Arc<dyn Blobs> = Arc::new(LocalBlobs::new(&files));
    let table: Arc<dyn Table> = Arc::new(Spilling::new(store.table(), blobs.clone()));
    let queue = store.queue();
    let bus: Arc<dyn Bus> = Arc::new(LocalBus::new());

    let known = config.secrets.clone();
    assembly::secrets::learn_environment(environment, &known);
    secrets::learn_folder(data, &known);
    let keys = secrets::of_host(data, environment, config.grants(), &known);
    let models = Arc::new(models::Router::new(config.ai.models(environment)?)?);
    let within = Arc::new(HostEgress { allow_private: config.providers.allow_private });
    let adapters = Arc::new(models::Adapters::new(models.clone(), within));
    let (sandboxes, machines) = host::sandboxes(data, &files, config).unzip();
    let indexes = Some(Arc::new(LocalIndexes::new(&files)) as Arc<dyn SearchIndexes>);
    let embedder = config.embedder(environment)?;
    let with_table = table.clone();
    let base =
        Base { table, bus: bus.clone(), blobs, clock: clock.clone(), files, keeps_mirrors: true, indexes, embedder };
    let (servers, accounts) = servers(data, config, environment, sandboxes.as_ref(), keys.clone(), &known, with_table)?;
    let calendars = assembly::calendars(config, keys.clone(), clock.clone());
    let setup = ModelSetup { model: models.clone(), adapters, secrets: keys.clone(), known };
    let engine = Engine::with_machines(base, queue.clone(), setup, config.agents(), machines)
        .with_servers(servers)
        .with_calendars(calendars);
    let observing = Observing::new(Some(data), config, environment, &engine.services.cache, keys, clock.clone())?;
    let engine = engine.traced(observing.collector.clone()).with_agents(coding_agents::of(data, config, environment));
    let engine = engine.with_webhooks(config.webhooks(Some(secrets::webhooks_keys(data, &config.secrets)))?);

    let (converter, describer) = (Arc::new(sandbox::ChildConverter::default()), config.describer(environment)?);
    let documents = engine.documents(converter, host::conversions_at_once(), describer);
    let kinds = engine.kinds(observing.of_entries()).into_iter().chain([documents]);
    let worker = Worker::new(kinds, queue, working).on(engine.executor.clone());
    let table = engine.services.base.table.clone();
    let feeds = Feeds::new(table, bus.clone(), FeedOptions::default(), Arc::default(), shutdown);
    let sweeps = Sweeps::of(&engine.services, config, []);
    let watchdog = Arc::new(Watchdog::start(HELD).map_err(HubError::Io)?);
    let counted = counters_of(&engine, &store, &feeds, &worker, &sweeps, watchdog.clone());
    let outside = FrontendDeps {
        streams: Arc::new(OwnFeeds {
            feeds: feeds.clone(),
            readers: Readers::of(&engine.services),
            see_clients_go: true,
        }),
        auth: config.door(clock)?,
        ready: host::probes(&store, &bus, &data.join(WORKSPACES)),
        has_room: host::room(&store),
        dead_letters: Some(store.queue()),
        notes: vec![counters::failing_webhooks(&engine.services.webhooks)],
        folders: Some(host::folders(config)?),
        accounts: Some(accounts),
        counters: counted.into_iter().chain(observing.counters()).collect(),
    };
    // The front accepts the tasks that have not begun yet.
    let tasks = engine.services.tasks.clone().counted_by(observing.metrics.clone());
    let router = models.clone();
    let front = HttpFrontend::new(
        &Services { tasks, ..engine.services.clone() },
        engine.tools,
        engine.model.catalog(),
        Arc::new(move |model: &str| router.knows(model)),
        config,
        outside,
    );
    let Services { workspaces, tasks, .. } = engine.services;
    let (transcript, traces) = (engine.transcript, engine.traces);
    Ok(Hub {
        store,
        workspaces,
        sandboxes,
        models,
        bus,
        tasks,
        transcript,
        observing,
        traces,
        worker,
        feeds,
        sweeps,
        watchdog,
        front,
    })
}

fn open_store(
    data: &Path,
    files: &Path,
    config: &Config,
    places: usize,
    clock: Arc<dyn Clock>,
) -> Result<Arc<Store>, OpenError> {
    let durability = match config.store.durability {
        Durability::Full => embedded::Durability::Full,
        Durability::Normal => embedded::Durability::Normal,
    };
    let options = embedded::Options {
        durability,
        // The runtime pauses actors that do not move on; only a message that even that cannot settle becomes a dead letter.
        max_attempts: 1_000,
        places,
        has_data: host::has_workspaces(files),
        reserve: RESERVE,
    };
    Ok(Arc::new(Store::open(data.join(STORE), clock, options)?))
}

/// The counters of all parts of a hub, for `/metrics`.
fn counters_of(
    engine: &Engine,
    store: &Arc<Store>,
    feeds: &Feeds,
    worker: &Worker,
    sweeps: &Sweeps,
    watchdog: Arc<Watchdog>,
) -> [Counters; 13] {
    let services = &engine.services;
    [
        counters::process(services.base.clock.now()),
        counters::held(watchdog),
        counters::crashes(),
        host::counters(store),
        counters::streams(feeds.metrics().clone()),
        counters::worker(worker),
        counters::activity(engine.activity.clone()),
        counters::models(engine.models.clone()),
        counters::traces(engine.traces.clone()),
        counters::webhooks(&services.webhooks),
        counters::archive(services.workspaces.clone()),
        counters::contexts(services.chats.clone()),
        sweeps.counters(),
    ]
}
