//! The machine of one workspace, in its container. It has no role, and so no right to any resource of the deployment.

use agents::{ChildAgents, ConfineThread};
use futures::FutureExt;
use machine::{Machine, Options, Search};
use ports::{Agents, KnownSecrets, NoAgents};
use sandbox::LocalCopies;
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

/// The coding agents, as a JSON object with the fields of `[agents.NAME]` by name.
const AGENTS: &str = "BUILDSCALE__SANDBOX__AGENTS";

/// Why a sandbox does not start. Its own, so that nothing is linked to say why others do not.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A fault of its own options.
    #[error(transparent)]
    Machine(#[from] machine::OptionsError),
    /// The disk, or the socket.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// Becomes the user of its workspace, if root started it, and serves as [`serve`] does. To be called while there is one thread.
///
/// # Errors
/// Those of [`serve`], and that it cannot become that user.
pub fn run() -> Result<(), ServeError> {
    let options = variables()?;
    let user = sandbox::become_user_of(options.workspace, &[&options.folder, &options.scratch])?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(options, user))
}

fn variables() -> Result<Options, machine::OptionsError> {
    Options::from_variables(|name| std::env::var(name).ok())
}

/// Serves by the variables of this process, until SIGTERM, with which ECS ends a task, or until it has been idle for long enough. It logs
/// JSON lines; of its token it has only the digest, and the keys of coding agents are taken out of all that they tell.
///
/// # Errors
/// When a variable is missing, or the disk or the socket cannot be had.
async fn serve(options: Options, user: Option<u32>) -> Result<(), ServeError> {
    drop(rustls::crypto::ring::default_provider().install_default());
    let asked = std::env::var("BUILDSCALE_LOG").ok().filter(|text| !text.trim().is_empty());
    let asked: Option<Targets> = asked.and_then(|text| text.parse().ok());
    let filter = asked.unwrap_or_else(|| Targets::new().with_default(LevelFilter::INFO));
    drop(tracing_subscriber::registry().with(tracing_subscriber::fmt::layer().json()).with(filter).try_init());
    let mut terminated = signal(SignalKind::terminate())?;
    let search: Search = Arc::new(|latest, tool, args| {
        async move {
            let outcome = tools::search_folder(&latest, &tool, &args).await;
            serde_json::to_string(&outcome).unwrap_or_default()
        }
        .boxed()
    });
    let listener = TcpListener::bind(&options.listen).await?;
    let agents = coding_agents(&options)?;
    let machine = Machine::open(options, search, agents).await?;
    tracing::info!(address = %listener.local_addr()?, user, "serving");
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

/// The coding agents that this image has, and that its variable names. They work in copies of the workspace's files, beside the mirror, where no
/// command reads.
fn coding_agents(options: &Options) -> Result<Arc<dyn Agents>, machine::OptionsError> {
    let told = std::env::var(AGENTS).unwrap_or_default();
    if told.trim().is_empty() {
        return Ok(Arc::new(NoAgents::default()));
    }
    let malformed = |error: serde_json::Error| {
        // The text may have keys in it.
        let what = format!("is no JSON object of coding agents: line {}, column {}", error.line(), error.column());
        machine::OptionsError::Variable { name: AGENTS, what }
    };
    let agents = assembly::coding_agents::of_sandbox(&told).map_err(malformed)?;
    let secrets = KnownSecrets::default();
    let theirs: Vec<(String, String)> = agents.iter().flat_map(|agent| agent.env.clone()).collect();
    assembly::secrets::learn_environment(&theirs, &secrets);
    let home = options.folder.join("agents");
    std::fs::create_dir_all(&home)?;
    let mut environment: Vec<(String, String)> = std::env::vars().filter(|(name, _)| name != "HOME").collect();
    environment.push(("HOME".to_owned(), home.display().to_string()));
    Ok(Arc::new(ChildAgents::new(agents::Options {
        agents,
        environment,
        known: secrets,
        confine: sandbox::can_confine().map(|()| sandbox::confine as ConfineThread),
        copies: Some(Arc::new(LocalCopies::new(options.folder.join("copies")))),
        ..agents::Options::default()
    })))
}
