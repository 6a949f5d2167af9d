//! Puts the hub together: the one place that knows which adapter stands behind which port.

use crate::{
    Failure,
    config::{Config, Durability},
    observing::Observing,
    parts, providers, secrets,
};
use actor::{Kind, Mailbox, Runtime, Slots};
use chat::{ChatEffects, ChatMachine, Chats, Settings, SimpleGate, Transcript};
use embedded::{LocalBlobs, LocalBus, Store};
use flow::artifact::Artifacts;
use flow::{
    Evaluations, FlowCache, Flows, TaskEffects, TaskMachine, Tasks, Understudy,
    load::Known,
    memory::Memory,
    op::Functions,
    provider::{FlowModels, FlowProviders},
};
use ports::{Blobs, Bus, Clock, Model, Queue, Spilling, SystemClock, Table};
use std::{path::Path, sync::Arc, time::Duration};
use stream::{FeedOptions, Feeds};
use tokio_util::sync::CancellationToken;
use tools::Registry;
use worker::Worker;
use workspace::Workspaces;

/// The parts of a hub, not yet running.
pub struct Hub {
    /// Table and queue.
    pub store: Arc<Store>,
    /// Files.
    pub workspaces: Workspaces,
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
    /// Drives the actors of every kind.
    pub worker: Worker,
    /// Holds the event streams.
    pub feeds: Feeds,
    /// What handlers need.
    pub context: Arc<api::Context>,
}

/// Opens the data directory and puts everything together. `shutdown` ends the event streams.
pub fn assemble(
    data: &Path,
    config: &Config,
    environment: &[(String, String)],
    shutdown: CancellationToken,
) -> Result<Hub, Failure> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let durability = match config.store.durability {
        Durability::Full => embedded::Durability::Full,
        Durability::Normal => embedded::Durability::Normal,
    };
    // The runtime pauses what does not move on; only what even that cannot settle becomes a dead letter.
    let options = embedded::Options { durability, max_attempts: 1_000 };
    let store = Arc::new(Store::open(data.join("buildscale.sqlite3"), clock.clone(), options)?);
    let files = data.join("workspaces");
    let blobs: Arc<dyn Blobs> = Arc::new(LocalBlobs::new(&files));
    let table: Arc<dyn Table> = Arc::new(Spilling::new(store.table(), blobs.clone()));
    let queue: Arc<dyn Queue> = store.queue();
    let bus: Arc<dyn Bus> = Arc::new(LocalBus::new());

    let workspaces = Workspaces::new(table.clone(), blobs, clock.clone(), files);
    let known_secrets = config.secrets.clone();
    secrets::learn_environment(environment, &known_secrets);
    secrets::learn_folder(data, &known_secrets);
    let keys = secrets::of_host(data, environment, &known_secrets);

    let models = Arc::new(models::Router::new(config.ai.models(environment)?)?);
    // A model whose key is not configured yet is no fault of a flow; a provider that nobody serves is.
    let served = ["openai/*", "anthropic/*", "gemini/*", "openrouter/*", "ollama/*", "scripted/*"].map(str::to_owned);
    let models_known = models.catalog().into_iter().map(|info| info.id).chain(served);
    let known = Known { models: Some(models_known.collect()), ..Known::default() };
    let cache = FlowCache::default();
    let within = Arc::new(providers::Within { allow_private: config.providers.allow_private });
    let flow_providers = FlowProviders::new(keys.clone(), Arc::new(models::Adapters::new(models.clone(), within)));
    let flows =
        Flows::new(table.clone(), workspaces.clone(), cache.clone(), known).with_providers(Arc::new(flow_providers));
    // Cases of evaluations may bring a script that plays the model, and flows may bring providers; everything else goes to ours.
    // None of them is told a secret of this host, and what they know of one is not written down.
    let own = Arc::new(FlowModels::new(models.clone(), flows.clone()));
    let model: Arc<dyn Model> = Arc::new(Understudy::new(own, table.clone(), play));
    let model: Arc<dyn Model> = Arc::new(models::Redacting::new(model, known_secrets.clone()));
    let functions = Arc::new(Functions::builtin());
    let tools = Arc::new(Registry::builtin().with_functions(functions.clone()));

    let transcript = Arc::new(Transcript::new(table.clone(), workspaces.clone()));
    let machine = ChatMachine {
        gate: Arc::new(SimpleGate { timeout: Duration::from_secs(config.ai.permission_timeout_seconds) }),
        tools: tools.clone(),
        question_timeout: Duration::from_secs(config.ai.question_timeout_seconds),
    };
    let slots = Slots::new();
    let effects = ChatEffects {
        slots: slots.clone(),
        model: model.clone(),
        tools: tools.clone(),
        workspaces: workspaces.clone(),
        clock: clock.clone(),
    };
    let runtime = Runtime::new(
        machine,
        Arc::new(effects),
        table.clone(),
        queue.clone(),
        bus.clone(),
        clock.clone(),
        transcript.clone(),
        actor::Options { inactivity: config.ai.inactivity(), ..actor::Options::default() },
    )
    .without(known_secrets.clone());
    let mut working = worker::Options::default();
    if let Some(seconds) = config.server.drain_seconds {
        working.drain = Duration::from_secs(seconds);
    }
    let effects = TaskEffects {
        slots,
        flows: flows.clone(),
        tools: tools.clone(),
        functions,
        workspaces: workspaces.clone(),
        memory: Memory::new(table.clone()).without(known_secrets.clone()),
        artifacts: Artifacts::new(table.clone(), workspaces.clone()),
        table: table.clone(),
        mailbox: Mailbox { queue: queue.clone(), table: table.clone(), bus: bus.clone() },
        clock: clock.clone(),
        context_tokens: config.ai.context_tokens,
    };
    let observing = Observing::new(data, config, environment, &cache, keys, clock.clone())?;
    // Fewer than of chats: tasks come in thousands, and what one has to say when it is loaded again is short.
    let task_runtime = Runtime::new(
        TaskMachine { flows: cache },
        Arc::new(effects),
        table.clone(),
        queue.clone(),
        bus.clone(),
        clock.clone(),
        Arc::new(observing.followers()),
        actor::Options { inactivity: config.ai.inactivity(), warm_actors: 256, ..actor::Options::default() },
    )
    .without(known_secrets.clone());
    let kinds: [Arc<dyn Kind>; 2] = [Arc::new(runtime), Arc::new(task_runtime)];
    let worker = Worker::new(kinds, queue.clone(), working);

    let feeds = Feeds::new(table.clone(), bus.clone(), FeedOptions::default(), Arc::default(), shutdown);
    let settings = Settings {
        inactivity: config.ai.inactivity(),
        context_tokens: config.ai.context_tokens,
        limits: config.ai.limits,
    };
    let chats = Chats::new(table.clone(), queue.clone(), bus.clone(), clock.clone(), workspaces.clone(), settings);
    let tasks = Tasks::new(table.clone(), queue, bus.clone(), clock.clone(), workspaces.clone(), flows);
    let evaluations = Evaluations::new(tasks.clone(), workspaces.clone(), table.clone(), clock.clone(), play);
    let auth = match &config.server.auth_token {
        Some(token) => api::Auth::token(token.expose()),
        None => api::Auth::loopback(),
    };
    let context = api::Context {
        chats,
        tasks: tasks.clone(),
        evaluations,
        workspaces: workspaces.clone(),
        tools,
        model,
        streams: Arc::new(parts::OwnFeeds(feeds.clone())),
        table,
        clock,
        auth,
        origins: config.server.cors_origins.clone(),
        ready: parts::probes(&store, &bus),
        metrics: parts::counters(&store, &feeds, &worker).into_iter().chain(observing.counters()).collect(),
    };
    Ok(Hub { store, workspaces, models, bus, tasks, transcript, observing, worker, feeds, context: Arc::new(context) })
}

/// The model that plays a script.
fn play(script: &str) -> Result<Arc<dyn Model>, String> {
    match models::Scripted::from_yaml(script) {
        Ok(model) => Ok(Arc::new(model)),
        Err(error) => Err(error.to_string()),
    }
}
