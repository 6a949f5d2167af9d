//! The parts that act, and their ingredients.

use crate::{
    Activity, Base, ModelMetrics, Services, Settings, TurnTraces,
    model_metrics::{MeteredModel, metered, metered_describer},
    rights::{MemberCalls, MemberRights},
    services::{SandboxSetup, load_script, tools},
};
use actor::{
    ActorDriver, EffectRunner, EntryObserver, EntryObservers, Executor, Machine, Mailbox, Options, Quarantine, Runtime,
};
use async_trait::async_trait;
use chat::{ChatEffects, ChatMachine, SimpleGate, StandingRuleObserver, Transcript};
use documents::Documents;
use engine::{
    FlowModels, Flows, Handoffs, TaskEffects, TaskMachine,
    artifact::Artifacts,
    memory::{Bm25, Memory, Ranker, SemanticRanker},
    provider::FlowProviders,
};
use evaluation::ScriptedOverride;
use flow::op::Functions;
use identity::Members;
use ports::{
    Agents, Converter, Describer, Endpoint, KnownSecrets, Model, ModelAdapters, ModelError, QueueSender, Recipient,
    Secret, SecretRef, Secrets, ToolServers,
};
use schedule::{ScheduleEffects, ScheduleMachine};
use sinks::Otlp;
use slots::{NoEffects, Places, SlotsMachine};
use std::sync::Arc;
use tools::{Registry, organizer::CalendarSync};
use webhooks::{Deliveries, HookSetup, WebhookOutbox};

/// How much of chats that were shut down is kept in memory, by the sizes of their snapshots: some hundred contexts of 100,000 tokens.
const CONTEXT_CACHE: usize = 64 * 1024 * 1024;

/// The models that answer, and the secrets to redact.
#[derive(Clone)]
pub struct ModelSetup {
    /// The models that this system is configured with.
    pub model: Arc<dyn Model>,
    /// Opens the providers that flows bring.
    pub adapters: Arc<dyn ModelAdapters>,
    /// The source of the providers' keys.
    pub secrets: Arc<dyn Secrets>,
    /// Secrets that are taken out of all that is written down or sent.
    pub known: KnownSecrets,
}

impl ModelSetup {
    /// One model, where flows reach nothing of their own and nothing has to be hidden.
    pub fn alone(model: Arc<dyn Model>) -> Self {
        Self { model, adapters: Arc::new(NoProvider), secrets: Arc::new(NoProvider), known: KnownSecrets::default() }
    }
}

/// No provider, and no secret.
struct NoProvider;

impl ModelAdapters for NoProvider {
    fn open(&self, _: &Endpoint) -> Result<Arc<dyn Model>, ModelError> {
        Err(ModelError::Rejected("flows reach no providers of their own here".into()))
    }
}

#[async_trait]
impl Secrets for NoProvider {
    async fn get(&self, _: &SecretRef, _: Recipient<'_>) -> ports::Result<Option<Secret>> {
        Ok(None)
    }
}

/// The parts: the ways in, and the actors behind them.
pub struct Engine {
    /// The ways in.
    pub services: Services,
    /// The models as actors see them: with the scripts of evaluations, the providers of flows, and without secrets.
    pub model: Arc<dyn Model>,
    /// The tools of agents and people.
    pub tools: Arc<Registry>,
    /// The flows that tasks run, with the providers that they bring.
    flows: Flows,
    /// Keeps the chats' files.
    pub transcript: Arc<Transcript>,
    /// The activity of the actors so far.
    pub activity: Arc<Activity>,
    /// The latency and the cost of models so far.
    pub models: Arc<ModelMetrics>,
    /// The traces of turns that have ended.
    pub traces: Option<Arc<TurnTraces>>,
    /// The pool that runs deliveries and effects of all actors.
    pub executor: Executor,
    ranker: Arc<dyn Ranker>,
    known: KnownSecrets,
    settings: Settings,
    /// The machines of commands.
    places: Option<Places>,
}

impl Engine {
    /// Puts them together; nothing runs yet.
    pub fn new(base: Base, queue: Arc<dyn QueueSender>, setup: ModelSetup, settings: Settings) -> Self {
        Self::with_machines(base, queue, setup, settings, None)
    }

    /// The same, where workspaces have sandboxes.
    pub fn with_machines(
        base: Base,
        queue: Arc<dyn QueueSender>,
        setup: ModelSetup,
        settings: Settings,
        machines: Option<SandboxSetup>,
    ) -> Self {
        let metrics = Arc::<ModelMetrics>::default();
        let embedder = base.embedder.map(|embedder| metered(embedder, metrics.clone()));
        let base = Base { embedder: embedder.clone(), ..base };
        let services = Services::accepting(base, queue, settings, &setup.model.catalog(), machines.as_ref());
        let ranker: Arc<dyn Ranker> = match embedder {
            Some(embedder) => Arc::new(SemanticRanker::new(embedder, services.workspaces.clone())),
            None => Arc::new(Bm25),
        };
        let providers = FlowProviders::new(setup.secrets, setup.adapters);
        let flows = services.flows.clone().with_providers(Arc::new(providers));
        // Cases of evaluations may bring a script that plays the model, and flows may bring providers; everything else goes to ours. None of them is
        // told a secret of this host, and secrets that they know are redacted.
        let own = Arc::new(FlowModels::new(setup.model, flows.clone()));
        let played = Arc::new(ScriptedOverride::new(own, services.base.table.clone(), load_script));
        let played = Arc::new(MeteredModel { model: played, metrics: metrics.clone() });
        let model: Arc<dyn Model> = Arc::new(models::Redacting::new(played, setup.known.clone()));
        Self {
            model,
            tools: tools(machines.as_ref(), services.search.as_ref()),
            flows,
            transcript: Arc::new(Transcript::new(services.base.table.clone(), services.workspaces.clone())),
            services,
            activity: Arc::default(),
            models: metrics,
            traces: None,
            executor: Executor::default(),
            ranker,
            known: setup.known,
            settings,
            places: machines.filter(|machines| machines.commands.is_some()).map(|machines| machines.places),
        }
    }

    /// The same with another ranking of memories than by meaning, or by words where nothing is embedded.
    #[must_use]
    pub fn with_ranker(self, ranker: Arc<dyn Ranker>) -> Self {
        Self { ranker, ..self }
    }

    /// The same, with the tools of these servers.
    #[must_use]
    pub fn with_servers(self, servers: Arc<dyn ToolServers>) -> Self {
        let tools = Arc::new((*self.tools).clone().with_servers(servers));
        Self { tools, ..self }
    }

    /// The same, with calendars elsewhere.
    #[must_use]
    pub fn with_calendars(self, calendars: Arc<dyn CalendarSync>) -> Self {
        let tools = Arc::new((*self.tools).clone().with_calendars(calendars));
        Self { tools, ..self }
    }

    /// The same, with the traces of turns sent to this collector.
    #[must_use]
    pub fn traced(mut self, collector: Option<Arc<Otlp>>) -> Self {
        let usual = self.model.default_model();
        let table = self.services.base.table.clone();
        self.traces = collector.map(|collector| Arc::new(TurnTraces::new(table, collector, usual)));
        self
    }

    /// The same, with webhooks.
    #[must_use]
    pub fn with_webhooks(mut self, setup: Option<HookSetup>) -> Self {
        self.services = self.services.with_webhooks(setup);
        self
    }

    /// The same, with coding agents.
    #[must_use]
    pub fn with_agents(mut self, agents: Arc<dyn Agents>) -> Self {
        self.services.agents = agents;
        self
    }

    /// The driver of documents, for a worker with a converter: so many conversions run at once.
    pub fn documents(
        &self,
        converter: Arc<dyn Converter>,
        at_once: usize,
        describer: Option<Arc<dyn Describer>>,
    ) -> Arc<dyn ActorDriver> {
        let describer = describer.map(|describer| metered_describer(describer, self.models.clone()));
        Arc::new(Documents::new(self.services.workspaces.clone(), converter, at_once).describing(describer))
    }

    /// The kinds of actors that a worker drives: chats, tasks, the semaphores of both, evaluations, new versions of files that start tasks, schedules,
    /// and webhooks. `of_tasks` observes the entries of tasks.
    pub fn kinds(&self, of_tasks: Arc<dyn EntryObserver<TaskMachine>>) -> [Arc<dyn ActorDriver>; 7] {
        let Services { base, queue, workspaces, cache, evaluations, webhooks, .. } = &self.services;
        let Base { table, bus, clock, .. } = base;
        let (models, quarantine) = (self.model.clone(), Quarantine::default());
        let mailbox = Mailbox { queue: queue.clone(), table: table.clone(), bus: bus.clone() };
        let setup = webhooks.setup().cloned();
        let outbox = setup.as_ref().map(|_| Arc::new(WebhookOutbox { table: table.clone() }));
        let machine = ChatMachine {
            cost: Arc::new(move |model, usage| models.cost(model, usage)),
            gate: Arc::new(SimpleGate { timeout: self.settings.permission_timeout }),
            tools: self.tools.clone(),
            question_timeout: self.settings.question_timeout,
            places: self.places,
        };
        let effects = ChatEffects {
            model: self.model.clone(),
            tools: self.tools.clone(),
            workspaces: workspaces.clone(),
            agents: self.services.agents.clone(),
            clock: clock.clone(),
            mailbox: mailbox.clone(),
        };
        let mut of_chats: Vec<Arc<dyn EntryObserver<ChatMachine>>> = vec![self.activity.clone()];
        if base.keeps_mirrors {
            of_chats.push(self.transcript.clone());
        }
        of_chats.push(Arc::new(StandingRuleObserver(self.services.chats.clone())));
        if let Some(traces) = &self.traces {
            of_chats.push(traces.clone());
        }
        let options = Options { inactivity: self.settings.inactivity, ..Options::default() };
        // People come back to chats after a while. Other actors are driven again within the time-out, or seldom.
        let contexts = actor::CacheLimits { time: self.settings.context_cache, bytes: CONTEXT_CACHE };
        let chats = self.runtime(machine, effects, of_chats, Options { cache: contexts, ..options }, &quarantine);
        let effects = TaskEffects {
            flows: self.flows.clone(),
            tools: self.tools.clone(),
            functions: Arc::new(Functions::builtin()),
            workspaces: workspaces.clone(),
            memory: Memory::new(table.clone()).with_ranker(self.ranker.clone()).redacting(self.known.clone()),
            artifacts: Artifacts::new(table.clone(), workspaces.clone()),
            table: table.clone(),
            mailbox,
            clock: clock.clone(),
            context_tokens: self.settings.context_tokens,
        };
        let machine = TaskMachine { flows: cache.clone(), places: self.places };
        // Fewer than of chats: tasks come in thousands, and loading one again is cheap.
        let few = Options { warm_actors: 256, ..options };
        let of_tasks: Vec<Arc<dyn EntryObserver<TaskMachine>>> = vec![self.activity.clone(), of_tasks];
        let tasks = self.runtime(machine, effects, of_tasks, few, &quarantine);
        let handoffs = Handoffs {
            workspaces: workspaces.clone(),
            tasks: self.services.tasks.clone(),
            triggers: self.services.triggers.clone(),
            limits: self.settings.handoffs,
            clock: clock.clone(),
        };
        let rights = MemberRights(Members::new(table.clone(), clock.clone()));
        let effects = ScheduleEffects {
            chats: self.services.chats.clone(),
            tasks: self.services.tasks.clone(),
            rights: Arc::new(rights.clone()),
            calls: Arc::new(MemberCalls { rights, tools: self.tools.clone(), workspaces: workspaces.clone() }),
        };
        let few = Options { warm_actors: 16, ..options };
        let schedules = self.runtime(ScheduleMachine, effects, Vec::new(), few, &quarantine);
        let few = Options { warm_actors: 64, ..options };
        let semaphores = self.runtime(SlotsMachine, NoEffects, Vec::new(), few, &quarantine);
        let hooks = Deliveries { table: table.clone(), queue: queue.clone(), clock: clock.clone(), setup };
        let chats = chats.with_contributor(outbox.clone().map(|outbox| outbox as _));
        let tasks = tasks.with_contributor(outbox.map(|outbox| outbox as _));
        [
            Arc::new(semaphores),
            Arc::new(chats.redacting(self.known.clone())),
            Arc::new(tasks.redacting(self.known.clone())),
            Arc::new(evaluations.clone()),
            Arc::new(handoffs),
            Arc::new(schedules.redacting(self.known.clone())),
            Arc::new(hooks),
        ]
    }

    /// A runtime over the ports of this engine. All runtimes share its executor and one quarantine.
    fn runtime<M: Machine>(
        &self,
        machine: M,
        effects: impl EffectRunner<M> + 'static,
        observers: Vec<Arc<dyn EntryObserver<M>>>,
        options: Options,
        quarantine: &Quarantine,
    ) -> Runtime<M> {
        let Services { base: Base { table, bus, clock, .. }, queue, .. } = &self.services;
        let (table, queue, bus, clock) = (table.clone(), queue.clone(), bus.clone(), clock.clone());
        let observers = Arc::new(EntryObservers(observers));
        Runtime::new(machine, Arc::new(effects), table, queue, bus, clock, observers, options)
            .sharing(quarantine.clone())
            .on(self.executor.clone())
    }
}
