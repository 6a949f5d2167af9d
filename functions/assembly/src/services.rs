//! The ways in: the facades that a front and the sweeps use. Nothing here acts: a deployable that accepts, watches or looks after links no model, and
//! one that loads no flow links neither its check nor its expressions.

use crate::remains::{Semaphores, TableDependents};
use actor::Mailbox;
use chat::{Chats, SessionSettings, Transcript};
use domain::Limits;
use engine::{
    FlowCache, Flows, FunctionTools, Tasks, Triggers,
    handoff::{HandoffLimits, Outbox},
};
use evaluation::Evaluations;
use flow::{
    load::{KnownNames, SERVED},
    op::Functions,
};
use ports::{
    Agents, Blobs, Bus, Clock, Embedder, Model, ModelInfo, NoAgents, QueueSender, Sandboxes, SearchIndexes, Table,
};
use schedule::Schedules;
use search::Search;
use slots::Places;
use std::{path::PathBuf, sync::Arc, time::Duration};
use tools::{Commands, Registry};
use webhooks::{HookSetup, Webhooks};
use workspace::Workspaces;

/// Why no coding agent runs where nobody says otherwise.
const ELSEWHERE: &str = "this deployment has no machine on which coding agents run";

/// The parts that all others use.
#[derive(Clone)]
pub struct Base {
    /// Logs, indexes, small contents.
    pub table: Arc<dyn Table>,
    /// Hints to watchers.
    pub bus: Arc<dyn Bus>,
    /// Contents.
    pub blobs: Arc<dyn Blobs>,
    /// Time and ids.
    pub clock: Arc<dyn Clock>,
    /// The folder with the mirrors of workspaces; it may be lost.
    pub files: PathBuf,
    /// Whether the mirrors are kept up to date as chats go on. With mirrors that do not last, a chat's file is written when it is read.
    pub keeps_mirrors: bool,
    /// The indexes of texts, for those that search.
    pub indexes: Option<Arc<dyn SearchIndexes>>,
    /// The model that embeds texts, for searches by meaning.
    pub embedder: Option<Arc<dyn Embedder>>,
}

impl Base {
    /// The files of all workspaces.
    pub fn workspaces(&self) -> Workspaces {
        let Self { table, bus, blobs, clock, files, keeps_mirrors, .. } = self.clone();
        let workspaces = Workspaces::new(table, blobs, clock, files).announcing(bus);
        if keeps_mirrors { workspaces } else { workspaces.caching(workspace::Budget::default()) }
    }
}

/// The machines of workspaces.
#[derive(Clone)]
pub struct SandboxSetup {
    /// The sandboxes whose mirrors are searched, and contents read.
    pub sandboxes: Arc<dyn Sandboxes>,
    /// How commands are run on them; none where none are.
    pub commands: Option<Commands>,
    /// How many run on one at once.
    pub places: Places,
}

/// How agents are kept.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How long an idle actor stays at rest, until it is shut down (spec 000 §3).
    pub inactivity: Duration,
    /// How long the context of an idle chat is kept in memory (spec 003 §14).
    pub context_cache: Duration,
    /// The context budget of new chats, in tokens.
    pub context_tokens: u64,
    /// How long a question of an agent waits for an answer.
    pub question_timeout: Duration,
    /// How long a request for permission waits for an answer.
    pub permission_timeout: Duration,
    /// The limits of a turn.
    pub limits: Limits,
    /// How sessions of the planner chat are set up.
    pub sessions: SessionSettings,
    /// How many messages of tasks one workspace may have waiting.
    pub most_waiting: usize,
    /// How many tasks files may start in a workspace.
    pub handoffs: HandoffLimits,
    /// Whether documents are converted to Markdown. Some worker needs a converter then.
    pub converts: bool,
}

/// The ways in.
#[derive(Clone)]
pub struct Services {
    /// The parts that they use.
    pub base: Base,
    /// The way to mailboxes.
    pub queue: Arc<dyn QueueSender>,
    /// Files.
    pub workspaces: Workspaces,
    /// The flows that tasks run.
    pub flows: Flows,
    /// Those in memory.
    pub cache: FlowCache,
    /// The way in to chats.
    pub chats: Chats,
    /// The way in to tasks.
    pub tasks: Tasks,
    /// The way in to evaluations.
    pub evaluations: Evaluations,
    /// The files that start tasks.
    pub triggers: Triggers,
    /// The way in to schedules.
    pub schedules: Schedules,
    /// The way in to webhooks.
    pub webhooks: Webhooks,
    /// Searches, where there are indexes.
    pub search: Option<Search>,
    /// The coding agents of threads.
    pub agents: Arc<dyn Agents>,
}

impl Services {
    /// For deployables that look after work begun elsewhere: they accept no task.
    pub fn new(base: Base, queue: Arc<dyn QueueSender>, settings: Settings) -> Self {
        Self::over(base, queue, settings, KnownNames::default(), None)
    }

    /// For those that accept tasks: of flows that name these models, and with commands on these machines.
    pub fn accepting(
        base: Base,
        queue: Arc<dyn QueueSender>,
        settings: Settings,
        models: &[ModelInfo],
        machines: Option<&SandboxSetup>,
    ) -> Self {
        // A model whose key is not configured yet is no fault of a flow; a provider without a server is.
        let served = SERVED.map(|provider| format!("{provider}/*"));
        // The scripts of evaluations are models, too.
        let played = format!("{}/*", evaluation::PROVIDER);
        let default_model = models.iter().find(|info| info.default).map(|info| info.id.clone());
        let models = Some(models.iter().map(|info| info.id.clone()).chain(served).chain([played]).collect());
        let sandbox = machines.is_some_and(|machines| machines.commands.is_some());
        let embeds = Some(base.embedder.is_some());
        // Both need a disk that outlives the process.
        let observer_files = Some(base.keeps_mirrors);
        let known = KnownNames { models, default_model, sandbox, embeds, observer_files, ..KnownNames::default() };
        let sandboxes = machines.map(|machines| machines.sandboxes.clone());
        let mut services = Self::over(base, queue, settings, known, sandboxes);
        services.evaluations = services.evaluations.playing(load_script);
        let outbox = Outbox { queue: services.queue.clone(), triggers: services.triggers.clone() };
        services.workspaces.hand_off_to(Arc::new(outbox));
        if !services.base.keeps_mirrors {
            let transcript = Transcript::new(services.base.table.clone(), services.workspaces.clone());
            services.workspaces.project_on_read(Arc::new(transcript));
        }
        services
    }

    /// The same, with webhooks; without a setup their door says that there are none.
    #[must_use]
    pub fn with_webhooks(mut self, setup: Option<HookSetup>) -> Self {
        self.webhooks = self.webhooks.set_up(setup);
        self
    }

    fn over(
        base: Base,
        queue: Arc<dyn QueueSender>,
        settings: Settings,
        known: KnownNames,
        sandboxes: Option<Arc<dyn Sandboxes>>,
    ) -> Self {
        let mut workspaces = base.workspaces();
        let Base { table, bus, clock, indexes, embedder, .. } = base.clone();
        if settings.converts {
            workspaces = workspaces.converting(queue.clone());
        }
        if let Some(sandboxes) = sandboxes {
            workspaces = workspaces.with_sandboxes(sandboxes);
        }
        let semaphores = Semaphores { table: table.clone(), queue: queue.clone(), clock: clock.clone() };
        workspaces.set_dependents(Arc::new(TableDependents { table: table.clone(), semaphores }));
        let search = indexes.map(|indexes| Search::new(workspaces.clone(), indexes, clock.clone()));
        let search = search.map(|search| search.embedding(embedder));
        let cache = FlowCache::default();
        let known = KnownNames { limits: Some(settings.limits), ..known };
        let flows = Flows::new(table.clone(), workspaces.clone(), cache.clone(), known).expiring_by(clock.clone());
        let of_chats = chat::Settings {
            inactivity: settings.inactivity,
            context_tokens: settings.context_tokens,
            limits: settings.limits,
            sessions: settings.sessions,
        };
        let chats = Chats::new(table.clone(), queue.clone(), bus.clone(), clock.clone(), workspaces.clone(), of_chats);
        let tasks = Tasks::new(table.clone(), queue.clone(), bus, clock.clone(), workspaces.clone(), flows.clone())
            .with_most_waiting(settings.most_waiting);
        let evaluations = Evaluations::new(tasks.clone(), workspaces.clone(), table, queue.clone(), clock);
        let triggers = Triggers::default();
        let mailbox = Mailbox { queue: queue.clone(), table: base.table.clone(), bus: base.bus.clone() };
        let schedules = Schedules::new(base.table.clone(), mailbox, base.clock.clone(), workspaces.clone());
        let webhooks = Webhooks::new(base.table.clone(), queue.clone(), base.clock.clone(), workspaces.clone());
        Self {
            base,
            queue,
            workspaces,
            flows,
            cache,
            chats,
            tasks,
            evaluations,
            triggers,
            schedules,
            webhooks,
            search,
            agents: Arc::new(NoAgents::because(ELSEWHERE)),
        }
    }
}

/// The tools of agents and people: with commands, where there are machines for them, and with searches, where there are indexes.
pub fn tools(machines: Option<&SandboxSetup>, search: Option<&Search>) -> Arc<Registry> {
    let mut tools = Registry::builtin().with_functions(Arc::new(FunctionTools(Functions::builtin())));
    if let Some(commands) = machines.and_then(|machines| machines.commands) {
        tools = tools.with_commands(commands);
    }
    if let Some(search) = search {
        tools = tools.with_search(search.clone());
    }
    Arc::new(tools)
}

/// The model that plays a script, which is YAML.
///
/// # Errors
/// Why it cannot be played, for people.
pub(crate) fn load_script(script: &str) -> Result<Arc<dyn Model>, String> {
    match models::Scripted::from_yaml(script) {
        Ok(model) => Ok(Arc::new(model)),
        Err(error) => Err(error.to_string()),
    }
}
