//! The front: the HTTP of a deployable, the same in both worlds. The source of streams, the accepted credentials, the probes and the counters differ.

use crate::{Config, Readers, Services, changes::WorkspaceChanges, secrets};
use api::{Auth, Counters, Followed, HasRoom, Note, Probe, StreamContext, Streams};
use async_trait::async_trait;
use axum::{Router, middleware::from_fn_with_state, response::Response};
use domain::{ActorRef, ChatEvent, TaskEvent, WorkspaceId};
use http::HeaderMap;
use ports::{DeadLetterQueue, Folders, KnownSecrets, ModelInfo, ServerAccounts};
use protocols::{Projection, Span};
use std::sync::Arc;
use stream::{Cursor, Feeds, Start};
use tools::Registry;

/// The parts that a deployable adds of its own.
pub struct FrontendDeps {
    /// The source of event streams.
    pub streams: Arc<dyn Streams>,
    /// The accepted credentials.
    pub auth: Auth,
    /// The parts that have to answer before it is ready.
    pub ready: Vec<Probe>,
    /// Whether there is room for requests that add.
    pub has_room: HasRoom,
    /// The dead letters, where this process may read and send them again.
    pub dead_letters: Option<Arc<dyn DeadLetterQueue>>,
    /// Faults that do not stop the service, for `/ready`.
    pub notes: Vec<Note>,
    /// The folders of the machine that threads may work in.
    pub folders: Option<Arc<dyn Folders>>,
    /// The servers of tools and the accounts at them, where any are reached.
    pub accounts: Option<Arc<dyn ServerAccounts>>,
    /// Its counters beside those of requests.
    pub counters: Vec<Counters>,
}

/// The front of a deployable.
#[derive(Clone)]
pub struct HttpFrontend {
    context: Arc<api::Context>,
    known: KnownSecrets,
}

impl HttpFrontend {
    /// In front of these ways, with the tools that people may call, the models that they may choose, and whether another name is one of a model, too.
    pub fn new(
        services: &Services,
        tools: Arc<Registry>,
        models: Vec<ModelInfo>,
        knows_model: chat::KnowsModel,
        config: &Config,
        mut outside: FrontendDeps,
    ) -> Self {
        let (folders, accounts) = (outside.folders.take(), outside.accounts.take());
        let context = api::Context {
            base: Arc::new(stream_context(Readers::of(services), config, outside)),
            chats: services.chats.clone().with_models(knows_model.clone()),
            tasks: services.tasks.clone(),
            evaluations: services.evaluations.clone(),
            schedules: services.schedules.clone(),
            webhooks: services.webhooks.clone(),
            tools,
            models,
            knows_model,
            agents: services.agents.clone(),
            folders,
            accounts,
        };
        Self { context: Arc::new(context), known: config.secrets.clone() }
    }

    /// The parts that its handlers work with.
    pub fn context(&self) -> &Arc<api::Context> {
        &self.context
    }

    /// All routes, kept clean of known secrets.
    pub fn router(&self) -> Router {
        redacted(api::router(self.context.clone()), &self.known)
    }
}

/// The routes of event streams alone, kept as clean.
pub fn streams(readers: Readers, config: &Config, outside: FrontendDeps) -> Router {
    redacted(api::streams(Arc::new(stream_context(readers, config, outside))), &config.secrets)
}

fn redacted(router: Router, known: &KnownSecrets) -> Router {
    router.layer(from_fn_with_state(known.clone(), secrets::redact))
}

fn stream_context(readers: Readers, config: &Config, outside: FrontendDeps) -> StreamContext {
    let Readers { table, bus, clock, workspaces, chats, tasks } = readers;
    let FrontendDeps { streams, auth, ready, has_room, dead_letters, notes, folders: _, accounts: _, counters } =
        outside;
    let origins = config.server.cors_origins.clone();
    let metrics = counters;
    StreamContext {
        chats,
        tasks,
        workspaces,
        streams,
        table,
        bus,
        clock,
        auth,
        origins,
        ready,
        has_room,
        dead_letters,
        notes,
        metrics,
    }
}

/// Streams out of this process's own feeds.
pub struct OwnFeeds {
    /// The feeds.
    pub feeds: Feeds,
    /// The files, chats and tasks whose changes are streamed.
    pub readers: Readers,
    /// Whether the process learns that a client has gone.
    pub see_clients_go: bool,
}

#[async_trait]
impl Streams for OwnFeeds {
    fn see_clients_go(&self) -> bool {
        self.see_clients_go
    }
    async fn open(
        &self,
        actor: ActorRef,
        first: u64,
        headers: &HeaderMap,
        after: Option<&str>,
    ) -> ports::Result<Response> {
        stream::events(&self.feeds, actor, Start::Turn(first), headers, after).await
    }
    async fn open_projected(
        &self,
        actor: ActorRef,
        projection: Box<dyn Projection<Event = ChatEvent>>,
        span: Span,
        headers: &HeaderMap,
        after: Option<&str>,
    ) -> ports::Result<Response> {
        self.feeds.projected(actor, projection, span, Cursor::from_request(headers, after)).await
    }
    async fn open_task(
        &self,
        actor: ActorRef,
        projection: Box<dyn Projection<Event = TaskEvent>>,
        span: Span,
        headers: &HeaderMap,
    ) -> ports::Result<Response> {
        self.feeds.projected(actor, projection, span, Cursor::from_request(headers, None)).await
    }
    async fn open_changes(
        &self,
        workspace: WorkspaceId,
        access: workspace::Access,
        followed: Vec<Followed>,
        headers: &HeaderMap,
        after: Option<&str>,
    ) -> ports::Result<Response> {
        let changes = Arc::new(WorkspaceChanges::new(workspace, access, self.readers.clone()));
        let followed = followed.into_iter().map(|Followed { actor, after, first }| stream::Followed {
            actor,
            cursor: after.map_or(Cursor::None, Cursor::After),
            start: Start::Turn(first),
        });
        self.feeds.merged(changes, Cursor::from_request(headers, after), followed.collect()).await
    }
}
