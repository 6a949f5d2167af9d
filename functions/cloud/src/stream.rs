//! Watching: out of this process's own feeds, in a container or in a function whose answers stream. The public address leads to one
//! of the two. Streams of the protocols of clients are with their commands (`Account::answers_stream`).

use crate::{
    FunctionError,
    assemble::{Account, in_a_function},
    http_events,
};
use stream::{FeedOptions, ServeOptions};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};
use tokio_util::sync::CancellationToken;

/// The default address: inside a container, behind the load balancer.
const LISTEN: &str = "0.0.0.0:8080";

/// As a Lambda behind a URL that streams: an invocation is one answer.
///
/// # Errors
/// When a variable is missing.
pub async fn answer(account: Account) -> Result<(), lambda_runtime::Error> {
    let (router, _) = account.watching(in_a_function(), CancellationToken::new())?;
    http_events::answer_in_pieces(account.behind_origin(account.counting_faults(router))).await
}

/// As a container: serves until SIGTERM, with which ECS ends a task; then each stream ends with a word on when to come back.
///
/// # Errors
/// When a variable is missing, or the socket cannot be had.
pub async fn serve(account: Account) -> Result<(), FunctionError> {
    let shutdown = CancellationToken::new();
    let (router, metrics) = account.watching(FeedOptions::default(), shutdown.clone())?;
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
