//! The machine of one workspace, in its container. It has a role that reads contents, and nothing else of what was deployed.

use crate::Failure;
use aws::Cloud;
use futures::FutureExt;
use machine::{Machine, Options, Search};
use ports::SystemClock;
use std::sync::Arc;
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::{
    filter::{LevelFilter, Targets},
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

/// Serves by the variables of this process, until SIGTERM, with which ECS ends a task, or until nobody uses it. It logs JSON lines; of
/// its token it has only the digest, so there is no secret that a line could have in it.
///
/// # Errors
/// When a variable is missing, or the disk or the socket cannot be had.
pub async fn serve() -> Result<(), Failure> {
    drop(rustls::crypto::ring::default_provider().install_default());
    let asked: Option<Targets> = std::env::var("BUILDSCALE_LOG").ok().and_then(|text| text.parse().ok());
    let filter = asked.unwrap_or_else(|| Targets::new().with_default(LevelFilter::INFO));
    drop(tracing_subscriber::registry().with(tracing_subscriber::fmt::layer().json()).with(filter).try_init());
    let options = Options::from_variables(|name| std::env::var(name).ok())?;
    let mut terminated = signal(SignalKind::terminate())?;
    let cloud = Cloud::connect(aws::Config::from_env()?, Arc::new(SystemClock)).await;
    let search: Search = Arc::new(|latest, tool, args| {
        async move {
            let outcome = tools::search_folder(&latest, &tool, &args).await;
            serde_json::to_string(&outcome).unwrap_or_default()
        }
        .boxed()
    });
    let listener = TcpListener::bind(&options.listen).await?;
    let machine = Machine::open(options, Arc::new(cloud.blobs()?), search).await?;
    tracing::info!(address = %listener.local_addr()?, "serving");
    let shutdown = CancellationToken::new();
    tokio::spawn({
        let shutdown = shutdown.clone();
        async move {
            terminated.recv().await;
            shutdown.cancel();
        }
    });
    Ok(machine::serve(listener, machine, shutdown).await?)
}
