//! The routes, but for commands, programs, agents and their copies.

use crate::{
    agents,
    answer::{Answer, ErrorResponse, no_method, no_route},
    auth::guard,
    body::{Body, Raw, malformed, patiently},
    copies, exec,
    machine::Machine,
    programs,
};
use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, Path, State},
    middleware,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use domain::{Error, Sha256};
use futures::FutureExt;
use http::{StatusCode, header};
use ports::Manifest;
use sandbox::wire::{self, Health, MAX_BODY, Marked, Missing};

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
        .route("/agents", post(agents::call))
        .route("/copies", post(copies::call))
        .route("/programs", post(programs::call))
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
    let answer = machine.search()(machine.mirror().latest(), asked.tool, asked.args);
    let answer = patiently(answer.map(Ok::<_, ErrorResponse>)).await??;
    Ok(([(header::CONTENT_TYPE, "application/json")], answer).into_response())
}
