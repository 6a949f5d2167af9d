//! The parts, and what they are made from.

use crate::{Activity, activity::Counting};
use actor::{Follow, Kind, Mailbox, NobodyFollows, Runtime, Slots};
use async_trait::async_trait;
use chat::{ChatEffects, ChatMachine, Chats, SimpleGate, Transcript};
use domain::Limits;
use flow::{
    Evaluations, FlowCache, Flows, TaskEffects, TaskMachine, Tasks, Understudy,
    artifact::Artifacts,
    evaluate::Play,
    load::Known,
    memory::{Bm25, Memory, Ranker},
    op::Functions,
    provider::{FlowModels, FlowProviders},
};
use ports::{
    Blobs, Bus, Clock, Endpoint, KnownSecrets, Model, ModelAdapters, ModelError, Queue, Sandboxes, Secret, SecretRef,
    Secrets, Table,
};
use std::{path::PathBuf, sync::Arc, time::Duration};
use tools::{Commands, Registry};
use workspace::Workspaces;

/// What everything stands on.
#[derive(Clone)]
pub struct Base {
    /// Logs, indexes, small contents.
    pub table: Arc<dyn Table>,
    /// Mailboxes.
    pub queue: Arc<dyn Queue>,
    /// Hints to those who watch.
    pub bus: Arc<dyn Bus>,
    /// Contents.
    pub blobs: Arc<dyn Blobs>,
    /// Time and ids.
    pub clock: Arc<dyn Clock>,
    /// The folder with the mirrors of workspaces; it may be lost.
    pub files: PathBuf,
    /// Whether the mirrors are kept up to date as chats go on. Where they do not last, a chat's file is written when it is read.
    pub keeps_mirrors: bool,
}

/// Who answers, and what must not be told.
#[derive(Clone)]
pub struct Voices {
    /// The models that this system is configured with.
    pub model: Arc<dyn Model>,
    /// Opens the providers that flows bring.
    pub adapters: Arc<dyn ModelAdapters>,
    /// Where those find their keys.
    pub secrets: Arc<dyn Secrets>,
    /// Secrets that are taken out of all that is written down or sent.
    pub known: KnownSecrets,
}

impl Voices {
    /// One model, where flows reach nothing of their own and nothing has to be hidden.
    pub fn alone(model: Arc<dyn Model>) -> Self {
        Self { model, adapters: Arc::new(Nothing), secrets: Arc::new(Nothing), known: KnownSecrets::default() }
    }
}

/// No provider, and no secret.
struct Nothing;

impl ModelAdapters for Nothing {
    fn open(&self, _: &Endpoint) -> Result<Arc<dyn Model>, ModelError> {
        Err(ModelError::Rejected("flows reach no providers of their own here".into()))
    }
}

#[async_trait]
impl Secrets for Nothing {
    async fn get(&self, _: &SecretRef) -> ports::Result<Option<Secret>> {
        Ok(None)
    }
}

/// The machines of workspaces.
#[derive(Clone)]
pub struct Machines {
    /// Whose mirrors are searched, and contents read.
    pub sandboxes: Arc<dyn Sandboxes>,
    /// How commands are run on them; none where none are.
    pub commands: Option<Commands>,
}

/// How agents are kept.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How long an idle actor stays in memory (seed 000 §3).
    pub inactivity: Duration,
    /// The context budget of new chats, in tokens.
    pub context_tokens: u64,
    /// How long a question of an agent waits for an answer.
    pub question_timeout: Duration,
    /// How long a request for permission waits for an answer.
    pub permission_timeout: Duration,
    /// What a turn may use.
    pub limits: Limits,
    /// How many messages of tasks one workspace may have waiting.
    pub most_waiting: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            inactivity: Duration::from_secs(600),
            context_tokens: 100_000,
            question_timeout: Duration::from_secs(24 * 3600),
            permission_timeout: Duration::from_secs(3600),
            limits: Limits::default(),
            most_waiting: flow::tasks::MOST_WAITING,
        }
    }
}

/// The parts.
pub struct Parts {
    /// What they stand on.
    pub base: Base,
    /// Files.
    pub workspaces: Workspaces,
    /// The models as actors see them: with the scripts of evaluations, the providers of flows, and without secrets.
    pub model: Arc<dyn Model>,
    /// The tools of agents and people.
    pub tools: Arc<Registry>,
    /// Keeps the chats' files.
    pub transcript: Arc<Transcript>,
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
    /// What the actors did so far.
    pub activity: Arc<Activity>,
    ranker: Arc<dyn Ranker>,
    known: KnownSecrets,
    settings: Settings,
}

impl Parts {
    /// Puts them together; nothing runs yet.
    pub fn new(base: Base, voices: Voices, settings: Settings) -> Self {
        Self::with_machines(base, voices, settings, None)
    }

    /// The same, where workspaces have sandboxes.
    pub fn with_machines(base: Base, voices: Voices, settings: Settings, machines: Option<Machines>) -> Self {
        let Base { table, queue, bus, blobs, clock, files, keeps_mirrors } = base.clone();
        let mut workspaces = Workspaces::new(table.clone(), blobs, clock.clone(), files);
        if !keeps_mirrors {
            workspaces = workspaces.caching(workspace::Budget::default());
        }
        let commands = machines.as_ref().and_then(|machines| machines.commands);
        if let Some(Machines { sandboxes, .. }) = machines {
            workspaces = workspaces.with_sandboxes(sandboxes);
        }
        // A model whose key is not configured yet is no fault of a flow; a provider that nobody serves is.
        let served = ["openai/*", "anthropic/*", "gemini/*", "openrouter/*", "ollama/*", "bedrock/*", "scripted/*"]
            .map(str::to_owned);
        let known_models = voices.model.catalog().into_iter().map(|info| info.id).chain(served);
        let known = Known { models: Some(known_models.collect()), sandbox: commands.is_some(), ..Known::default() };
        let cache = FlowCache::default();
        let providers = FlowProviders::new(voices.secrets, voices.adapters);
        let flows = Flows::new(table.clone(), workspaces.clone(), cache.clone(), known)
            .with_providers(Arc::new(providers))
            .expiring_by(clock.clone());
        // Cases of evaluations may bring a script that plays the model, and flows may bring providers; everything else goes to
        // ours. None of them is told a secret of this host, and what they know of one is not written down.
        let own = Arc::new(FlowModels::new(voices.model, flows.clone()));
        let played = Arc::new(Understudy::new(own, table.clone(), PLAY));
        let model: Arc<dyn Model> = Arc::new(models::Redacting::new(played, voices.known.clone()));
        let transcript = Arc::new(Transcript::new(table.clone(), workspaces.clone()));
        if !keeps_mirrors {
            workspaces.project_on_read(transcript.clone());
        }
        let of_chats = chat::Settings {
            inactivity: settings.inactivity,
            context_tokens: settings.context_tokens,
            limits: settings.limits,
        };
        let chats = Chats::new(table.clone(), queue.clone(), bus.clone(), clock.clone(), workspaces.clone(), of_chats);
        let tasks = Tasks::new(table.clone(), queue, bus, clock.clone(), workspaces.clone(), flows.clone())
            .with_most_waiting(settings.most_waiting);
        let evaluations = Evaluations::new(tasks.clone(), workspaces.clone(), table, clock, PLAY);
        let mut tools = Registry::builtin().with_functions(Arc::new(Functions::builtin()));
        if let Some(commands) = commands {
            tools = tools.with_commands(commands);
        }
        let tools = Arc::new(tools);
        Self {
            base,
            workspaces,
            model,
            tools,
            transcript,
            flows,
            cache,
            chats,
            tasks,
            evaluations,
            activity: Arc::default(),
            ranker: Arc::new(Bm25),
            known: voices.known,
            settings,
        }
    }

    /// The same with another ranking of what is remembered, such as by embeddings.
    #[must_use]
    pub fn with_ranker(self, ranker: Arc<dyn Ranker>) -> Self {
        Self { ranker, ..self }
    }

    /// The actors: chats, and tasks that `follow` is told about.
    pub fn kinds(&self, follow: Arc<dyn Follow<TaskMachine>>) -> [Arc<dyn Kind>; 2] {
        let Base { table, queue, bus, clock, .. } = &self.base;
        let slots = Slots::new();
        let machine = ChatMachine {
            gate: Arc::new(SimpleGate { timeout: self.settings.permission_timeout }),
            tools: self.tools.clone(),
            question_timeout: self.settings.question_timeout,
        };
        let effects = ChatEffects {
            slots: slots.clone(),
            model: self.model.clone(),
            tools: self.tools.clone(),
            workspaces: self.workspaces.clone(),
            clock: clock.clone(),
        };
        let of_chats: Arc<dyn Follow<ChatMachine>> = match self.base.keeps_mirrors {
            true => self.transcript.clone(),
            false => Arc::new(NobodyFollows),
        };
        let of_chats = Counting { activity: self.activity.clone(), next: of_chats };
        let follow = Counting { activity: self.activity.clone(), next: follow };
        let options = actor::Options { inactivity: self.settings.inactivity, ..actor::Options::default() };
        let chats = Runtime::new(
            machine,
            Arc::new(effects),
            table.clone(),
            queue.clone(),
            bus.clone(),
            clock.clone(),
            Arc::new(of_chats),
            options,
        );
        let effects = TaskEffects {
            slots,
            flows: self.flows.clone(),
            tools: self.tools.clone(),
            functions: Arc::new(Functions::builtin()),
            workspaces: self.workspaces.clone(),
            memory: Memory::new(table.clone()).with_ranker(self.ranker.clone()).without(self.known.clone()),
            artifacts: Artifacts::new(table.clone(), self.workspaces.clone()),
            table: table.clone(),
            mailbox: Mailbox { queue: queue.clone(), table: table.clone(), bus: bus.clone() },
            clock: clock.clone(),
            context_tokens: self.settings.context_tokens,
        };
        // Fewer than of chats: tasks come in thousands, and what one has to say when it is loaded again is short.
        let tasks = Runtime::new(
            TaskMachine { flows: self.cache.clone() },
            Arc::new(effects),
            table.clone(),
            queue.clone(),
            bus.clone(),
            clock.clone(),
            Arc::new(follow),
            actor::Options { warm_actors: 256, ..options },
        );
        [Arc::new(chats.without(self.known.clone())), Arc::new(tasks.without(self.known.clone()))]
    }
}

/// Plays scripts as models.
pub const PLAY: Play = |script| match models::Scripted::from_yaml(script) {
    Ok(model) => Ok(Arc::new(model)),
    Err(error) => Err(error.to_string()),
};
