//! The front: the HTTP of a deployable, the same in both worlds. The source of streams, the accepted credentials, the probes and the counters differ.

use crate::{Config, Ways, changes::WorkspaceChanges, secrets};
use actor::ActorId;
use api::{Auth, Counters, HasRoom, Probe, Streams};
use async_trait::async_trait;
use axum::{Router, middleware::from_fn_with_state, response::Response};
use domain::WorkspaceId;
use http::HeaderMap;
use ports::{KnownSecrets, ModelInfo};
use std::sync::Arc;
use stream::{Cursor, Feeds, Start};
use telemetry::TaskMetrics;
use tools::Registry;

/// The parts that a deployable adds to its ways.
pub struct Outside {
    /// The source of event streams.
    pub streams: Arc<dyn Streams>,
    /// The accepted credentials.
    pub auth: Auth,
    /// The parts that have to answer before it is ready.
    pub ready: Vec<Probe>,
    /// Whether there is room for requests that add.
    pub has_room: HasRoom,
    /// Its counters beside those of requests.
    pub counters: Vec<Counters>,
    /// The counters that are told of tasks which are accepted: where the process that accepts them drives them, too.
    pub counted_by: Option<Arc<TaskMetrics>>,
}

/// The front of a deployable.
#[derive(Clone)]
pub struct Front {
    context: Arc<api::Context>,
    known: KnownSecrets,
}

impl Front {
    /// In front of these ways, with the tools that people may call and the models that they may choose.
    pub fn new(ways: &Ways, tools: Arc<Registry>, models: Vec<ModelInfo>, config: &Config, outside: Outside) -> Self {
        let Outside { streams, auth, ready, has_room, counters, counted_by } = outside;
        let tasks = ways.tasks.clone();
        let context = api::Context {
            chats: ways.chats.clone(),
            tasks: match counted_by {
                Some(metrics) => tasks.counted_by(metrics),
                None => tasks,
            },
            evaluations: ways.evaluations.clone(),
            workspaces: ways.workspaces.clone(),
            tools,
            models,
            streams,
            table: ways.base.table.clone(),
            clock: ways.base.clock.clone(),
            auth,
            origins: config.server.cors_origins.clone(),
            ready,
            has_room,
            metrics: counters,
        };
        Self { context: Arc::new(context), known: config.secrets.clone() }
    }

    /// The parts that its handlers work with.
    pub fn context(&self) -> &Arc<api::Context> {
        &self.context
    }

    /// All routes, kept clean of known secrets.
    pub fn router(&self) -> Router {
        self.clean(api::router(self.context.clone()))
    }

    /// The routes of event streams alone, kept as clean.
    pub fn streams(&self) -> Router {
        self.clean(api::streams(self.context.clone()))
    }

    fn clean(&self, router: Router) -> Router {
        router.layer(from_fn_with_state(self.known.clone(), secrets::clean))
    }
}

/// Streams out of this process's own feeds.
pub struct OwnFeeds {
    /// The feeds.
    pub feeds: Feeds,
    /// The files, chats and tasks whose changes are streamed.
    pub ways: Ways,
}

#[async_trait]
impl Streams for OwnFeeds {
    async fn open(
        &self,
        actor: &ActorId,
        first: u64,
        headers: &HeaderMap,
        after: Option<&str>,
    ) -> ports::Result<Response> {
        stream::events(&self.feeds, actor, Start::Turn(first), headers, after).await
    }
    async fn open_changes(
        &self,
        workspace: WorkspaceId,
        headers: &HeaderMap,
        after: Option<&str>,
    ) -> ports::Result<Response> {
        let changes = Arc::new(WorkspaceChanges { workspace, ways: self.ways.clone() });
        self.feeds.changes(changes, Cursor::from_request(headers, after)).await
    }
}
