//! Puts a function together: the one place that knows which adapter stands behind which port.

use crate::{
    FunctionError, bus::CountedBus, faults, origin, programs::InSandboxes, sandbox_sweep::StoppedSandboxes,
    stream_redirect::StreamRedirect,
};
use api::Counters;
use assembly::{
    Base, Config, Emf, Engine, FrontendDeps, HostEgress, HttpFrontend, ModelMetrics, ModelSetup, Observing, OwnFeeds,
    Places, Readers, SandboxSetup, Services, Sources, TurnTraces, counters,
    grants::Granted,
    log, probes, process, secrets,
    sweeps::{Sweep, Sweeps},
};
use aws::{Cloud, Connect, EcsSandboxes, SqsQueue};
use embedded::ArchivedIndexes;
use ports::{
    AgentInfo, Agents, Blobs, Bus, Clock, Converter, JoinedServers, NoAgents, QueueSender, RememberedSecrets,
    STOCK_AGENTS, Sandbox, SearchIndexes, Secrets, ServerAccounts, Spilling, SystemClock, Table,
};
use sandbox::SandboxAgents;
use std::{
    path::PathBuf,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};
use stream::{FeedOptions, Feeds};
use telemetry::Observers;
use tokio_util::sync::CancellationToken;
use tracing::level_filters::LevelFilter;
use worker::Worker;

/// The prefix of variables that name deployed resources; [`aws::Config`] reads them.
const DEPLOYED: &str = "BUILDSCALE__AWS__";
/// The token in CloudFront's header; without it any address is as good.
const ORIGIN_TOKEN: &str = "BUILDSCALE__AWS__ORIGIN_TOKEN";
/// Whether the function that answers people is deployed as one whose answers stream.
const ANSWERS_STREAM: &str = "BUILDSCALE__AWS__ANSWERS_STREAM";
/// How long one stream that does not end by itself may last in a function: well within its time-out. A function is paid for until its answer ends,
/// also without a reader, and a client that resumes costs one query.
const LIFE_IN_A_FUNCTION: Duration = Duration::from_secs(5 * 60);
/// The variable in which Lambda names the function.
const FUNCTION_NAME: &str = "AWS_LAMBDA_FUNCTION_NAME";
/// The variable in which Lambda says how many megabytes of memory the function has.
const FUNCTION_MEMORY: &str = "AWS_LAMBDA_FUNCTION_MEMORY_SIZE";
/// How long a message stays invisible without a sign of life; a worker that died is replaced after this time.
const LEASE: Duration = Duration::from_secs(60);
/// Why a deployment has no coding agents.
const NO_AGENTS: &str = "the sandboxes of this deployment have no coding agents: its operator names those of their image in the parameter CodingAgents";
/// Lost with the instance, and behind whenever another one has written: contents are compared with the index when they are read.
const SCRATCH: &str = "/tmp";

/// One account, with its deployed resources.
pub struct Account {
    cloud: Cloud,
    pub(crate) config: Config,
    environment: Vec<(String, String)>,
    clock: Arc<dyn Clock>,
    /// The number of messages and subscriptions of this process that the bus did not take.
    bus_failures: Arc<AtomicU64>,
    /// The number of sandboxes that this process asked for and did not get.
    sandbox_failures: Arc<AtomicU64>,
}

/// The parts of the worker.
pub struct WorkerParts {
    /// Drives the actors of every kind.
    pub worker: Worker,
    /// The source of the commands.
    pub queue: Arc<SqsQueue>,
    /// The observers of tasks' events.
    pub observers: Arc<Observers>,
    /// The traces of turns that have ended.
    pub traces: Option<Arc<TurnTraces>>,
    /// The metrics for the log.
    pub emf: Emf,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

/// The parts of the timer.
pub struct TimerParts {
    /// The queue that due messages go to.
    pub queue: Arc<SqsQueue>,
    /// Looks after stranded work.
    pub sweeps: Sweeps,
    /// The metrics for the log.
    pub emf: Emf,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

/// Feeds of a function whose answers stream: the runtime of Lambda writes a failure into the answer, as text, and a function lives for 15 minutes.
pub fn in_a_function() -> FeedOptions {
    FeedOptions { max_life: LIFE_IN_A_FUNCTION, may_break_off: false, ..FeedOptions::default() }
}

impl Account {
    /// By the variables of this process. From here on it logs JSON lines to standard output, where Lambda and ECS collect them, without secrets;
    /// `BUILDSCALE_LOG` sets the levels, as in `info,buildscale_actor=debug`.
    ///
    /// # Errors
    /// When a variable is malformed. A missing one is reported when it is needed.
    pub fn from_env() -> Result<Self, FunctionError> {
        // With two providers linked rustls would not know which one is meant, and with none nothing has TLS.
        drop(rustls::crypto::ring::default_provider().install_default());
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let environment = process::environment();
        let sources = Sources::of_environment(&environment, |name| name.starts_with(DEPLOYED));
        let config = sources.read()?;
        secrets::learn_environment(&environment, &config.secrets);
        log::begin(std::io::stdout, LevelFilter::INFO, log::Format::Json, config.secrets.clone());
        // Once per start of a function.
        for note in sources.without_effect(&config) {
            tracing::warn!("{note}");
        }
        let cloud = Cloud::connect(aws::Config::from_env()?, clock.clone());
        let (bus_failures, sandbox_failures) = Default::default();
        Ok(Self { cloud, config, environment, clock, bus_failures, sandbox_failures })
    }

    /// For `buildscale-worker`.
    ///
    /// # Errors
    /// When a variable is missing.
    pub fn working(&self) -> Result<WorkerParts, FunctionError> {
        let queue = Arc::new(self.cloud.queue()?);
        let (engine, keys) = self.engine(queue.clone())?;
        let observing = Observing::new(
            None,
            &self.config,
            &self.environment,
            &engine.services.cache,
            keys.clone(),
            self.clock.clone(),
        )?;
        let engine = engine.traced(observing.collector.clone());
        let engine = engine.with_webhooks(self.config.webhooks(None)?);
        let options = worker::Options { visibility: LEASE, ..worker::Options::default() };
        // One at a time: the function's memory is for its actors, too.
        let mut converter = sandbox::ChildConverter::default();
        if let Some(memory) = self.variable(FUNCTION_MEMORY).and_then(|megabytes| megabytes.parse::<u64>().ok()) {
            converter = converter.beside(memory << 20);
        }
        let converter: Arc<dyn Converter> = Arc::new(converter);
        let calendars = assembly::calendars(&self.config, keys.clone(), self.clock.clone());
        let servers = self.servers(keys.clone(), &engine.services)?;
        let web = assembly::web(&self.config, keys, converter.clone(), self.clock.clone())?;
        let servers = JoinedServers(vec![Arc::new(servers), Arc::new(web)]);
        let engine = engine.with_servers(Arc::new(servers)).with_calendars(calendars);
        let documents = engine.documents(converter, 1, self.config.describer(&self.environment)?);
        let kinds = engine.kinds(observing.of_entries()).into_iter().chain([documents]);
        let worker = Worker::new(kinds, queue.clone(), options);
        let counted = [
            counters::worker(&worker),
            counters::activity(engine.activity.clone()),
            counters::models(engine.models.clone()),
            counters::traces(engine.traces.clone()),
            counters::webhooks(&engine.services.webhooks),
            counters::archive(engine.services.workspaces.clone()),
        ];
        let emf = self.emf(counted.into_iter().chain(observing.counters()).collect());
        let (observers, traces) = (observing.observers, engine.traces);
        Ok(WorkerParts { worker, queue, observers, traces, emf, clock: self.clock.clone() })
    }

    /// For `buildscale-timer`.
    ///
    /// # Errors
    /// When a variable is missing.
    pub fn waking(&self) -> Result<TimerParts, FunctionError> {
        let queue = Arc::new(self.cloud.queue()?);
        // It accepts nothing, so nothing that loads or runs flows is linked.
        let services = Services::new(self.base()?, queue.clone(), self.config.agents());
        let machines = self.sandboxes(services.base.table.clone());
        let machines = machines.map(|sandboxes| Arc::new(StoppedSandboxes(sandboxes)) as Arc<dyn Sweep>);
        let sweeps = Sweeps::of(&services, &self.config, machines);
        let emf = self.emf(vec![sweeps.counters(), counters::archive(services.workspaces.clone())]);
        Ok(TimerParts { queue, sweeps, emf, clock: self.clock.clone() })
    }

    /// Whether the answers of `buildscale-api` stream here. The public address leads the protocols of clients to such a function: their requests
    /// command and are answered by a stream, or by the end of a turn.
    pub fn answers_stream(&self) -> bool {
        self.variable(ANSWERS_STREAM).is_some_and(|value| value.trim() == "true")
    }

    fn variable(&self, name: &str) -> Option<&str> {
        process::variable(&self.environment, name)
    }

    /// For `buildscale-api`.
    ///
    /// # Errors
    /// When a variable is missing.
    pub fn answering(&self) -> Result<axum::Router, FunctionError> {
        let queue = Arc::new(self.cloud.queue()?);
        let base = self.searching()?;
        let metrics = Arc::<ModelMetrics>::default();
        let embedder = base.embedder.map(|embedder| assembly::metered(embedder, metrics.clone()));
        let base = Base { embedder, ..base };
        let machines = self.machines(&base);
        let ai = self.config.ai.models(&self.environment)?;
        let (models, knows_model) = (ai.clone().catalog(), Arc::new(ai.name_check()));
        let services = Services::accepting(base, queue.clone(), self.config.agents(), &models, machines.as_ref())
            .with_webhooks(self.config.webhooks(None)?);
        let services = Services { agents: self.coding_agents(machines.as_ref()), ..services };
        let servers = Arc::new(self.servers(self.keys(), &services)?);
        let accounts: Arc<dyn ServerAccounts> = servers.clone();
        let mut counted = vec![
            counters::process(self.clock.now()),
            counters::archive(services.workspaces.clone()),
            counters::contexts(services.chats.clone()),
            counters::models(metrics),
        ];
        let streams: Arc<dyn api::Streams> = match self.answers_stream() {
            true => {
                let (readers, metrics) = (Readers::of(&services), Arc::<stream::Metrics>::default());
                counted.push(counters::streams(metrics.clone()));
                let (table, bus) = (readers.table.clone(), services.base.bus.clone());
                let feeds = Feeds::new(table, bus, in_a_function(), metrics, CancellationToken::new());
                // Lambda goes on with an answer whose client has gone, and says nothing.
                Arc::new(OwnFeeds { feeds, readers, see_clients_go: false })
            }
            false => Arc::new(StreamRedirect),
        };
        let outside = FrontendDeps {
            streams,
            auth: self.config.auth.guarded_door(self.clock.clone())?,
            ready: vec![
                probes::table(services.base.table.clone()),
                probes::queue(queue),
                probes::bus(services.base.bus.clone()),
            ],
            has_room: Box::new(|| true),
            // No function may send them again: `scripts/redrive` does, with the rights of an operator.
            dead_letters: None,
            // The function that delivers to webhooks is another one: its metrics tell of them.
            notes: Vec::new(),
            folders: None,
            accounts: Some(accounts),
            counters: counted,
        };
        let tools = assembly::tools(machines.as_ref(), services.search.as_ref());
        let tools = Arc::new((*tools).clone().with_servers(servers));
        let front = HttpFrontend::new(&services, tools, models, knows_model, &self.config, outside);
        Ok(self.behind_origin(self.counting_faults(front.router())))
    }

    /// For `buildscale-stream`: the feeds, until `shutdown`, and their counters.
    ///
    /// # Errors
    /// When a variable is missing.
    pub fn watching(
        &self,
        options: FeedOptions,
        shutdown: CancellationToken,
    ) -> Result<(axum::Router, Arc<stream::Metrics>), FunctionError> {
        // Neither a queue nor models nor tools nor sandboxes: nothing of them is linked.
        let base = self.base()?;
        let readers = Readers::new(&base);
        let (table, bus, metrics) = (base.table, base.bus, Arc::<stream::Metrics>::default());
        let feeds = Feeds::new(table.clone(), bus.clone(), options, metrics.clone(), shutdown);
        let outside = FrontendDeps {
            streams: Arc::new(OwnFeeds { feeds, readers: readers.clone(), see_clients_go: true }),
            auth: self.config.auth.guarded_door(self.clock.clone())?,
            ready: vec![probes::table(table), probes::bus(bus)],
            has_room: Box::new(|| true),
            dead_letters: None,
            notes: Vec::new(),
            folders: None,
            accounts: None,
            counters: vec![counters::process(self.clock.now()), counters::streams(metrics.clone())],
        };
        Ok((assembly::streams(readers, &self.config, outside), metrics))
    }

    /// These routes, of a function that counts its answers of 5xx by itself: Lambda takes them for successes.
    pub(crate) fn counting_faults(&self, router: axum::Router) -> axum::Router {
        let emf = |counter| self.emf(vec![counter]);
        faults::counted(router, emf, self.sandbox_failures.clone(), self.clock.clone())
    }

    /// These routes, for callers that come by the public address.
    pub(crate) fn behind_origin(&self, router: axum::Router) -> axum::Router {
        origin::behind(router, self.variable(ORIGIN_TOKEN))
    }

    /// Lambda says under which name the function was deployed.
    fn emf(&self, mut counters: Vec<Counters>) -> Emf {
        counters.push(counters::count("bus_failures", self.bus_failures.clone()));
        counters.push(counters::count("sandbox_failures", self.sandbox_failures.clone()));
        Emf::new(self.variable(FUNCTION_NAME).unwrap_or("buildscale"), counters)
    }

    /// The same with indexes of texts, which last as long as the instance and have copies in the bucket, and with the model that embeds texts.
    fn searching(&self) -> Result<Base, FunctionError> {
        let base = self.base()?;
        let indexes = ArchivedIndexes::new(&base.files, base.table.clone(), base.blobs.clone());
        let indexes = Some(Arc::new(indexes) as Arc<dyn SearchIndexes>);
        Ok(Base { indexes, embedder: self.config.embedder(&self.environment)?, ..base })
    }

    fn base(&self) -> Result<Base, FunctionError> {
        let blobs: Arc<dyn Blobs> = Arc::new(self.cloud.blobs()?);
        let clock = self.clock.clone();
        // A deploy goes on for minutes, and functions of the version before read the space of all workspaces alone.
        let spilling = Spilling::beside_earlier(Arc::new(self.cloud.table()?), blobs.clone(), clock.clone());
        let table: Arc<dyn Table> = Arc::new(spilling);
        let bus: Arc<dyn Bus> = Arc::new(CountedBus { bus: self.cloud.bus()?, failures: self.bus_failures.clone() });
        let files = PathBuf::from(SCRATCH).join("workspaces");
        Ok(Base { table, bus, blobs, clock, files, keeps_mirrors: false, indexes: None, embedder: None })
    }

    fn engine(&self, queue: Arc<dyn QueueSender>) -> Result<(Engine, Arc<dyn Secrets>), FunctionError> {
        let base = self.searching()?;
        let (keys, known) = (self.keys(), self.config.secrets.clone());
        let router = models::Router::new(self.config.ai.models(&self.environment)?);
        let models = Arc::new(router.map_err(assembly::SetupError::from)?);
        let within = Arc::new(HostEgress { allow_private: self.config.providers.allow_private });
        let adapters = Arc::new(models::Adapters::new(models.clone(), within));
        let setup = ModelSetup { model: models, adapters, secrets: keys.clone(), known };
        let machines = self.machines(&base);
        let agents = self.coding_agents(machines.as_ref());
        let engine = Engine::with_machines(base, queue, setup, self.config.agents(), machines);
        Ok((engine.with_agents(agents), keys))
    }

    /// The secrets of the operator, for those to whom they are granted.
    fn keys(&self) -> Arc<dyn Secrets> {
        let of_operator = self.cloud.secrets(self.cloud.config().flow_secrets());
        let granted = Granted::new(Arc::new(of_operator), self.config.grants());
        Arc::new(RememberedSecrets::new(Arc::new(granted), self.config.secrets.clone()))
    }

    /// The servers of tools: those over HTTP, and programs in the sandboxes. Accounts at them are rows of the table, as on a hub.
    fn servers(&self, granted: Arc<dyn Secrets>, services: &Services) -> Result<mcp::Servers, FunctionError> {
        let workspaces = &services.workspaces;
        let of_operator = self.cloud.secrets(self.cloud.config().flow_secrets());
        let confined = workspaces.sandboxes().filter(|_| self.config.sandbox.commands);
        let confined = confined.map(|sandboxes| {
            let (workspaces, network) = (workspaces.clone(), self.config.sandbox.network);
            Arc::new(InSandboxes { workspaces, sandboxes, network }) as Arc<dyn mcp::Programs>
        });
        let parts = mcp::ServerDependencies {
            confined,
            children: None,
            egress: Arc::new(HostEgress { allow_private: false }),
            secrets: granted,
            host_secrets: Arc::new(RememberedSecrets::new(Arc::new(of_operator), self.config.secrets.clone())),
            accounts: self.config.accounts_key().map(|key| mcp::AccountDependencies {
                table: services.base.table.clone(),
                key,
                clock: self.clock.clone(),
                known: self.config.secrets.clone(),
            }),
        };
        Ok(mcp::Servers::new(&self.config.mcp, parts).map_err(assembly::SetupError::Config)?)
    }

    fn machines(&self, base: &Base) -> Option<SandboxSetup> {
        let sandboxes = Arc::new(self.sandboxes(base.table.clone())?);
        let places = Places { at_once: sandbox::AT_ONCE, shared: false };
        Some(SandboxSetup { sandboxes, commands: self.config.sandbox.commands(), places })
    }

    /// The coding agents that the image of the sandboxes has. They work in the files of a workspace, in its sandbox.
    fn coding_agents(&self, machines: Option<&SandboxSetup>) -> Arc<dyn Agents> {
        let ids = self.cloud.config().sandbox().map(|sandbox| sandbox.agents.as_slice()).unwrap_or_default();
        let Some(machines) = machines.filter(|_| !ids.is_empty()) else {
            return Arc::new(NoAgents::because(NO_AGENTS));
        };
        let name =
            |id: &str| STOCK_AGENTS.iter().find(|(stock, _)| *stock == id).map_or(id, |(_, name)| *name).to_owned();
        let info = |id: &String| AgentInfo { id: id.clone(), name: name(id), unavailable: None, install: None };
        let known: Vec<AgentInfo> = ids.iter().map(info).collect();
        Arc::new(SandboxAgents::new(machines.sandboxes.clone(), known))
    }

    fn sandboxes(&self, table: Arc<dyn Table>) -> Option<EcsSandboxes> {
        let connect: Connect = Arc::new(|url, token, workspace| {
            Ok(Arc::new(sandbox::Remote::new(url, token.expose(), workspace)?) as Arc<dyn Sandbox>)
        });
        let sandboxes = self.cloud.sandboxes(table, connect)?;
        Some(sandboxes.counting_failures(self.sandbox_failures.clone()))
    }
}
