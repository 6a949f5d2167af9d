//! The routes, but for commands.

use crate::{
    answer::{Answer, Refused, no_method, no_route},
    door::guard,
    exec,
    idle::Idle,
    options::Options,
};
use axum::{
    Json, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, FromRequest, Path, Request, State},
    middleware,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use domain::{Code, Error, Sha256};
use futures::{FutureExt, future::BoxFuture};
use http::{StatusCode, header};
use ports::{Blobs, Manifest};
use sandbox::{
    Budget, Commands, Mirror,
    wire::{self, Health, MAX_BODY, Marked, Missing},
};
use serde::de::DeserializeOwned;
use std::{path::PathBuf, sync::Arc, time::Duration};

/// How long a request may take, but for commands and manifests.
const PATIENCE: Duration = Duration::from_secs(50);

/// Searches a folder: with a tool and its arguments as JSON; the tool's answer as JSON.
pub type Search = Arc<dyn Fn(PathBuf, String, String) -> BoxFuture<'static, String> + Send + Sync>;

/// The state that all routes share.
#[derive(Clone)]
pub struct Machine(Arc<Inner>);

struct Inner {
    options: Options,
    mirror: Mirror,
    commands: Commands,
    search: Search,
    idle: Idle,
}

impl Machine {
    /// Opens the mirror that is on the disk; contents that it lacks are read from `blobs`.
    ///
    /// # Errors
    /// When the disk does not let it.
    pub async fn open(options: Options, blobs: Arc<dyn Blobs>, search: Search) -> std::io::Result<Self> {
        let space = options.workspace.to_string();
        let mirror = Mirror::open(options.folder.clone(), blobs, space, Budget::default()).await?;
        let mut how = sandbox::Options::new(options.scratch.join("scratch"));
        how.hidden = vec![options.folder.clone()];
        // There is no other workspace here to leave some to.
        how.shared = false;
        // The task's container is the outer barrier around its commands.
        how.outer = sandbox::Outer::Container;
        Ok(Self::with(options, mirror, Commands::new(how), search))
    }

    /// With parts that somebody made.
    pub fn with(options: Options, mirror: Mirror, commands: Commands, search: Search) -> Self {
        Self(Arc::new(Inner { options, mirror, commands, search, idle: Idle::new() }))
    }

    pub(crate) fn options(&self) -> &Options {
        &self.0.options
    }
    pub(crate) fn mirror(&self) -> &Mirror {
        &self.0.mirror
    }
    pub(crate) fn commands(&self) -> &Commands {
        &self.0.commands
    }
    pub(crate) fn idle(&self) -> &Idle {
        &self.0.idle
    }
    /// For how long there was no request and no command.
    pub(crate) fn unused(&self) -> Duration {
        if self.commands().running() > 0 { Duration::ZERO } else { self.idle().elapsed() }
    }
}

/// The routes ([`sandbox::wire`]).
pub fn router(machine: Machine) -> Router {
    let inside = Router::new()
        .route("/manifest", get(mark).post(apply))
        .route("/contents", post(provide))
        .route("/contents/{sha256}", get(content))
        .route("/search", post(search))
        .route("/places", post(exec::reserve))
        .route("/exec", post(exec::exec))
        .route("/exec/{call}/kill", post(exec::kill))
        .method_not_allowed_fallback(no_method)
        .layer(middleware::from_fn_with_state(machine.clone(), guard))
        .layer(DefaultBodyLimit::max(MAX_BODY));
    Router::new()
        .route("/health", get(health))
        .nest("/workspaces/{workspace}", inside)
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .with_state(machine)
}

async fn health(State(machine): State<Machine>) -> Json<Health> {
    Json(Health {
        workspace: machine.options().workspace,
        mark: machine.mirror().mark(),
        idle_seconds: machine.unused().as_secs(),
        running: machine.commands().running(),
    })
}

async fn mark(State(machine): State<Machine>) -> Json<Marked> {
    Json(Marked { mark: machine.mirror().mark() })
}

async fn apply(State(machine): State<Machine>, Body(manifest): Body<Manifest>) -> Answer<Json<Missing>> {
    let used = machine.idle().used();
    // It goes on after its caller has gone: the next one then finds that much less to do.
    let applying = tokio::spawn(async move {
        let _used = used;
        machine.mirror().apply(manifest).await
    });
    let missing = applying.await.map_err(|error| ports::Error::unavailable("the mirror", error))??;
    Ok(Json(Missing { missing }))
}

async fn provide(State(machine): State<Machine>, Raw(body): Raw) -> Answer<StatusCode> {
    let contents = wire::unpacked(body).ok_or_else(|| malformed("these are no packed contents"))?;
    machine.mirror().provide(contents).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn content(State(machine): State<Machine>, Path((_, sha256)): Path<(String, String)>) -> Answer<Response> {
    let digest: Sha256 = sha256.parse().map_err(malformed)?;
    match patiently(machine.mirror().content(digest)).await?? {
        Some(content) => Ok(([(header::CONTENT_TYPE, "application/octet-stream")], content).into_response()),
        None => Err(Error::not_found("content", digest).into()),
    }
}

async fn search(State(machine): State<Machine>, Body(asked): Body<wire::Search>) -> Answer<Response> {
    let answer = (machine.0.search)(machine.mirror().latest(), asked.tool, asked.args);
    let answer = patiently(answer.map(Ok::<_, Refused>)).await??;
    Ok(([(header::CONTENT_TYPE, "application/json")], answer).into_response())
}

async fn patiently<T>(work: impl Future<Output = T>) -> Answer<T> {
    let late = |_| Refused(Error::new(Code::Timeout, "this takes too long"));
    tokio::time::timeout(PATIENCE, work).await.map_err(late)
}

pub(crate) fn malformed(what: impl std::fmt::Display) -> Refused {
    Error::new(Code::InvalidArgument, what.to_string()).into()
}

/// A body, whole.
pub(crate) struct Raw(pub Bytes);

impl<S: Send + Sync> FromRequest<S> for Raw {
    type Rejection = Refused;
    async fn from_request(request: Request, state: &S) -> Answer<Self> {
        let refused = |rejection: axum::extract::rejection::BytesRejection| {
            let is_large = rejection.status() == StatusCode::PAYLOAD_TOO_LARGE;
            let code = if is_large { Code::PayloadTooLarge } else { Code::InvalidArgument };
            Refused(Error::new(code, rejection.body_text()))
        };
        patiently(Bytes::from_request(request, state)).await?.map(Self).map_err(refused)
    }
}

/// A body as JSON.
pub(crate) struct Body<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Refused;
    async fn from_request(request: Request, state: &S) -> Answer<Self> {
        let Raw(body) = Raw::from_request(request, state).await?;
        serde_json::from_slice(&body).map(Self).map_err(malformed)
    }
}
