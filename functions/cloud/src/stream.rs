//! Watching: in the container, out of its own feeds; from the API, by sending the client there.

use crate::{Failure, assemble::Account};
use actor::ActorId;
use async_trait::async_trait;
use axum::{body::Body, response::Response};
use http::{HeaderMap, StatusCode, header};
use stream::ServeOptions;
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};
use tokio_util::sync::CancellationToken;

/// Where it listens when nothing is said: inside a container, behind the load balancer.
const LISTEN: &str = "0.0.0.0:8080";

/// The container that holds the streams is elsewhere: a client is sent there, with the same path.
pub(crate) struct Elsewhere {
    /// Empty when the streams have the same address as the API, and the load balancer tells them apart.
    pub url: String,
}

#[async_trait]
impl api::Streams for Elsewhere {
    async fn open(&self, actor: &ActorId, first: u64, _: &HeaderMap, after: Option<&str>) -> ports::Result<Response> {
        // `chat/<workspace>/<chat>` is /workspaces/<workspace>/chats/<chat>, and so for tasks.
        let text = actor.to_string();
        let mut parts = text.splitn(3, '/');
        let (Some(kind), Some(workspace), Some(id)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(ports::Error::Invalid(format!("{text} is no actor that can be watched")));
        };
        let after = after.map_or_else(|| first.saturating_sub(1).to_string(), str::to_owned);
        let location = format!("{}/api/v1/workspaces/{workspace}/{kind}s/{id}/events?after={after}", self.url);
        let response = Response::builder().status(StatusCode::TEMPORARY_REDIRECT).header(header::LOCATION, location);
        response.body(Body::empty()).map_err(|error| ports::Error::Invalid(error.to_string()))
    }
}

/// Serves until SIGTERM, with which ECS ends a task; then each stream ends with a word on when to come back.
///
/// # Errors
/// When a variable is missing, or the socket cannot be had.
pub async fn serve(account: Account) -> Result<(), Failure> {
    let shutdown = CancellationToken::new();
    let (router, metrics) = account.watching(shutdown.clone())?;
    let listener = TcpListener::bind(account.config.server.listen.as_deref().unwrap_or(LISTEN)).await?;
    tracing::info!(address = %listener.local_addr()?, "serving");
    let mut terminated = signal(SignalKind::terminate())?;
    tokio::spawn({
        let shutdown = shutdown.clone();
        async move {
            terminated.recv().await;
            tracing::info!("draining");
            shutdown.cancel();
        }
    });
    stream::serve(listener, router, ServeOptions::default(), metrics, shutdown).await?;
    Ok(())
}
