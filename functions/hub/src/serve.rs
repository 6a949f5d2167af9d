//! `buildscale serve`: starts the hub, says where it is, and ends it in good order.

use crate::{
    HubError, address_in_use, assemble, assemble::Hub, backup, connections, crashes, notify::Notifier, preflight,
    secrets, sweeping, transcripts,
};
use assembly::{Config, Sources, log::Format};
use embedded::OpenError;
use ports::{KnownSecrets, crash};
use std::{
    io::{ErrorKind, IsTerminal, Write},
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    pin::pin,
    sync::Arc,
    time::Duration,
};
use telemetry::TaskMetrics;
use tokio::{
    net::TcpListener,
    runtime::{Handle, Runtime},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;
use tracing::level_filters::LevelFilter;

/// How to serve.
#[derive(Clone, Debug, clap::Args)]
pub struct ServeArgs {
    /// The address to listen on; port 0 picks a free one [default: 127.0.0.1:8686]
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,
    /// The data folder
    #[arg(long, value_name = "DIR", env = "BUILDSCALE_DATA_DIR", default_value = "data")]
    pub data_dir: PathBuf,
    /// The configuration file [default: buildscale.toml in the data folder]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print one JSON line {"address": …, "console": …} when ready, instead of a text for people
    #[arg(long)]
    pub json: bool,
    /// The bearer token that requests must have; better put into the configuration or BUILDSCALE__SERVER__AUTH_TOKEN
    #[arg(long, value_name = "TOKEN", hide_env_values = true)]
    pub auth_token: Option<String>,
    /// Allow an address that other machines can reach; needs a token
    #[arg(long, value_name = "true|false", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = str::parse::<bool>)]
    pub allow_public: Option<bool>,
    /// A folder below which threads may work; may be given more than once [default: the folder it is started in; with accounts none]
    #[arg(long = "allowed-root", value_name = "DIR")]
    pub allowed_roots: Vec<PathBuf>,
    /// How long the process of a coding agent stays without a turn, in seconds [default: 900]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub agent_idle_ttl: Option<u64>,
    /// How many turns of coding agents run at once; others wait [default: no limit]
    #[arg(long, value_name = "N", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    pub max_active: Option<usize>,
    /// How long a request for permission waits for an answer, in seconds; after that it is a no [default: 3600]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub permission_timeout: Option<u64>,
    /// How long running turns may take to end after Ctrl-C, before they are checkpointed, in seconds [default: 10]
    #[arg(long, value_name = "SECONDS")]
    pub shutdown_timeout: Option<u64>,
}

impl ServeArgs {
    /// Sets what the command line says; folders are added to those of the configuration.
    fn set(&self, config: &mut Config) {
        if let Some(token) = &self.auth_token {
            config.server.auth_token = Some(models::Secret::new(token.clone()));
        }
        config.server.allow_public = self.allow_public.unwrap_or(config.server.allow_public);
        config.hub.allowed_roots.extend(self.allowed_roots.iter().cloned());
        config.hub.agent_idle_seconds = self.agent_idle_ttl.unwrap_or(config.hub.agent_idle_seconds);
        config.hub.max_active = self.max_active.or(config.hub.max_active);
        config.ai.permission_timeout_seconds = self.permission_timeout.unwrap_or(config.ai.permission_timeout_seconds);
        config.server.drain_seconds = self.shutdown_timeout.or(config.server.drain_seconds);
    }

    /// The address to listen on: the one of the command line, else that of the configuration, else [`DEFAULT_ADDRESS`].
    fn address(&self, config: &Config) -> String {
        self.listen.clone().or_else(|| config.server.listen.clone()).unwrap_or_else(|| DEFAULT_ADDRESS.into())
    }
}

const DEFAULT_ADDRESS: &str = "127.0.0.1:8686";
/// How long observers may take for the last events.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// Serves until SIGINT or SIGTERM.
///
/// # Errors
/// Before it serves: [`HubError::Config`] for a configuration or an address that is not allowed, [`HubError::Listen`] when the address
/// cannot be had, [`HubError::Repair`] when a workspace cannot be repaired, and those of [`assemble`](assemble::assemble). Later:
/// [`HubError::Io`] when the server fails or the worker ends by itself.
pub async fn run(args: ServeArgs) -> Result<(), HubError> {
    let environment = assembly::process::environment();
    let mut config = configure(&args, &environment)?;
    backup::refuse(&args.data_dir)?;
    let descriptors = connections::raise_descriptors();
    let listener = listen(&args.address(&config), &config, &args.data_dir).await?;
    let address = listener.local_addr()?;
    config.server.listen = Some(address.to_string());
    let shutdown = CancellationToken::new();
    let hub = assemble::assemble(&args.data_dir, &config, &environment, shutdown.clone())?;
    crashes::begin(&args.data_dir);
    repair(&hub, &args.data_dir).await?;
    if hub.models.no_model_configured() {
        tracing::warn!("no model is configured: an offline demo script answers");
    }
    announce(&args, address, &config, &hub)?;

    let (router, origins) = (hub.front.router(), config.auth.console_origins()?);
    let mut server = pin!(stream::serve(
        listener,
        if console::is_built() { console::before(router, &origins) } else { api::without_console(router) },
        connections::within(descriptors, config.server.connections_per_address),
        hub.feeds.metrics().clone(),
        shutdown.clone(),
    ));
    let engine = Engine::start()?;
    let worker = hub.worker.clone();
    let mut working = engine.spawn({
        let shutdown = shutdown.clone();
        async move { worker.run(shutdown).await }
    });
    let background = start_background(&engine, &hub, &args.data_dir, &config.secrets, &shutdown);
    let notifying = Notifier::of(&environment).map(|notifier| {
        tokio::spawn(notifier.follow(address, engine.handle(), hub.watchdog.clone(), shutdown.clone()))
    });
    let signals = tokio::spawn(shut_down_on_signals(shutdown.clone()));
    let (served, worked) = tokio::select! {
        served = &mut server => {
            shutdown.cancel();
            (served, working.await)
        }
        // On shutdown both end. Otherwise: a hub that accepts commands and runs none would be worse than none.
        worked = &mut working => {
            let asked = shutdown.is_cancelled();
            shutdown.cancel();
            // A worker without a turn ends at once, and requests in flight go on.
            let served = server.await;
            (if asked { served } else { Err(std::io::Error::other("the worker ended")) }, worked)
        }
    };
    signals.abort();
    if let Err(error) = worked {
        tracing::error!(%error, "the worker ended badly");
    }
    close(&hub, background).await;
    // Until here it gives signs of life: its end may take longer than the service manager waits for one.
    notifying.inspect(JoinHandle::abort);
    tracing::info!("ended");
    served.map_err(HubError::Io)
}

/// Reads the configuration with the options of the command line, begins the log, and checks both before anything is opened.
fn configure(args: &ServeArgs, environment: &[(String, String)]) -> Result<Config, HubError> {
    let sources = Sources::find(args.config.as_deref(), &args.data_dir, environment)?;
    let mut config = sources.read()?;
    let format = Format::chosen(std::io::stderr().is_terminal());
    assembly::log::begin(std::io::stderr, LevelFilter::INFO, format, config.secrets.clone());
    for unknown in assembly::unknown_variables(environment) {
        tracing::warn!("{unknown}");
    }
    if let Some(token) = &args.auth_token {
        config.secrets.learn([&ports::Secret::new(token.clone())]);
    }
    args.set(&mut config);
    for note in preflight::checked(&sources, &config, environment)? {
        tracing::warn!("{note}");
    }
    Ok(config)
}

/// Brings `latest/` of all workspaces in line with the index.
async fn repair(hub: &Hub, data: &Path) -> Result<(), HubError> {
    let repaired = hub.workspaces.repair_all().await.map_err(HubError::Repair)?;
    tracing::info!(
        checked = repaired.checked,
        fixed = repaired.fixed,
        rebuilt = repaired.rebuilt,
        "workspaces are in line with the index"
    );
    transcripts::note(data, &repaired).map_err(|source| OpenError::Folder { path: data.to_owned(), source })?;
    Ok(())
}

/// Starts the work beside requests and actors. Each part ends at the shutdown.
fn start_background(
    engine: &Engine,
    hub: &Hub,
    data: &Path,
    known: &KnownSecrets,
    shutdown: &CancellationToken,
) -> [JoinHandle<()>; 5] {
    let (context, data) = (hub.front.context(), data.to_owned());
    [
        engine.spawn(checkpoint_mirrors(hub.workspaces.clone(), shutdown.clone())),
        engine.spawn(transcripts::mend(data.clone(), context.clone(), hub.transcript.clone(), shutdown.clone())),
        engine.spawn(sweeping::sweep(hub.sweeps.clone(), shutdown.clone())),
        tokio::spawn(learn_secrets(data, known.clone(), shutdown.clone())),
        engine.spawn(count_tasks(hub.observing.metrics.clone(), context.clone(), shutdown.clone())),
    ]
}

/// The first signal lets running turns finish, and a second one ends the process at once.
async fn shut_down_on_signals(shutdown: CancellationToken) {
    ended_by_signal().await;
    tracing::info!("ending: running turns may finish");
    crash::installed().into_iter().for_each(|crashes| crashes.close());
    shutdown.cancel();
    ended_by_signal().await;
    // Nothing is lost by it: all progress is in the log. Commands end with the process.
    tracing::warn!("ending at once");
    std::process::exit(130);
}

/// Ends all parts of a hub that neither serves nor works any more, the store last.
async fn close(hub: &Hub, background: [JoinHandle<()>; 5]) {
    // Turns and tasks that waited for them have ended, or go on at the next start without them.
    if let Some(sandboxes) = &hub.sandboxes {
        sandboxes.end().await;
    }
    let traced = async {
        if let Some(traces) = &hub.traces {
            traces.close(LAST_WORDS).await;
        }
    };
    tokio::join!(hub.observing.observers.close(LAST_WORDS), traced);
    for task in background {
        if let Err(error) = task.await {
            tracing::error!(%error, "a part of the hub ended badly");
        }
    }
    if let Err(error) = hub.workspaces.checkpoint().await {
        tracing::warn!(%error, "the next start compares more files than it had to");
    }
    hub.store.close().await;
}

/// The threads of the workers, apart from those of requests: a decision or an effect that computes holds up no request.
struct Engine(Option<Runtime>);

impl Engine {
    fn start() -> std::io::Result<Self> {
        let threads = tokio::runtime::Builder::new_multi_thread().thread_name("engine").enable_all().build()?;
        Ok(Self(Some(threads)))
    }

    fn spawn<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        self.handle().spawn(work)
    }

    fn handle(&self) -> Handle {
        self.0.as_ref().map_or_else(Handle::current, |threads| threads.handle().clone())
    }
}

impl Drop for Engine {
    /// Work that still runs then is cut off: a thread of a runtime may not wait for the end of another one.
    fn drop(&mut self) {
        if let Some(threads) = self.0.take() {
            threads.shutdown_background();
        }
    }
}

async fn listen(address: &str, config: &Config, data: &Path) -> Result<TcpListener, HubError> {
    let failed = |source| HubError::Listen { address: address.to_owned(), source, hint: None };
    let addresses: Vec<SocketAddr> = match tokio::net::lookup_host(address).await {
        Ok(addresses) => addresses.collect(),
        Err(source) => {
            let hint = Some(preflight::ADDRESS_HINT.to_owned());
            return Err(HubError::Listen { address: address.to_owned(), source, hint });
        }
    };
    let public = addresses.iter().any(|address| !address.ip().is_loopback());
    if public && !preflight::may_be_public(config) {
        return Err(HubError::Config(preflight::not_public(address)));
    }
    match TcpListener::bind(addresses.as_slice()).await {
        Err(source) if source.kind() == ErrorKind::AddrInUse => {
            let hint = Some(address_in_use::hint(&addresses, data).await);
            Err(HubError::Listen { address: address.to_owned(), source, hint })
        }
        bound => bound.map_err(failed),
    }
}

/// Says where the hub is, once it is ready: one JSON line for programs, a text with something to try for people.
fn announce(args: &ServeArgs, address: SocketAddr, config: &Config, hub: &Hub) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::json!({ "address": address.to_string(), "console": console::is_built() }))?;
        return out.flush();
    }
    let bold =
        |text: &str| if std::io::stdout().is_terminal() { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() };
    writeln!(out, "BuildScale is at {}", bold(&format!("http://{address}")))?;
    if !console::is_built() {
        writeln!(out, "This build has no console for browsers: scripts/console builds it, with Node.js.")?;
    }
    if hub.models.no_model_configured() {
        writeln!(
            out,
            "No model is configured: an offline demo script answers. Set OPENAI_API_KEY (or another provider's"
        )?;
        writeln!(out, "key), or OPENAI_BASE_URL for any compatible server, and start again.")?;
    } else {
        writeln!(out, "Model: {}", hub.models.default_model())?;
    }
    let host = called_at(address);
    writeln!(out, "Try it:")?;
    let is_guarded = config.is_guarded();
    let header = if is_guarded { " -H \"authorization: Bearer $BUILDSCALE_TOKEN\"" } else { "" };
    if is_guarded {
        writeln!(out, "  export BUILDSCALE_TOKEN=…   # the hub's token, or one of yours")?;
    }
    // As it was started: it need not be on the path.
    let program = std::env::args().next().unwrap_or_else(|| "buildscale".into());
    writeln!(out, "  {program} chat --url http://{host} \"Show me what you can do\"")?;
    writeln!(
        out,
        "  curl -s -X POST http://{host}/api/v1/workspaces{header} -H 'content-type: application/json' -d '{{\"name\": \"demo\"}}'"
    )?;
    out.flush()
}

/// The address at which a client of this machine calls a hub that listens at `address`: one that stands for all of the machine's addresses cannot be
/// called everywhere.
fn called_at(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        ip if ip.is_unspecified() => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), address.port()),
        _ => address,
    }
}

/// `latest/` is never synced by writes. From time to time everything is, and the mark moves on from which a start after a crash
/// has to compare.
async fn checkpoint_mirrors(workspaces: workspace::Workspaces, shutdown: CancellationToken) {
    const EVERY: Duration = Duration::from_secs(60);
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(EVERY) => {}
        }
        if let Err(error) = workspaces.checkpoint().await {
            tracing::warn!(%error, "the mirrors' mark did not move on");
        }
    }
}

/// A secret that somebody puts into the folder while the hub runs is known soon, also before a flow refers to it.
async fn learn_secrets(data: PathBuf, known: KnownSecrets, shutdown: CancellationToken) {
    const EVERY: Duration = Duration::from_secs(30);
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(EVERY) => {}
        }
        let (data, known) = (data.clone(), known.clone());
        if let Err(error) = tokio::task::spawn_blocking(move || secrets::learn_folder(&data, &known)).await {
            tracing::warn!(%error, "the folder of secrets was not read");
        }
    }
}

/// Tasks that no worker drives now are counted, too: those that wait since before the start.
async fn count_tasks(metrics: Arc<TaskMetrics>, context: Arc<api::Context>, shutdown: CancellationToken) {
    tokio::select! {
        () = shutdown.cancelled() => {}
        counted = metrics.count_earlier(&context.base.workspaces, &context.tasks) => {
            if let Err(error) = counted {
                tracing::warn!(%error, "some tasks of before the start are not counted until they go on");
            }
        }
    }
}

async fn ended_by_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminated = match signal(SignalKind::terminate()) {
        Ok(signal) => signal,
        Err(error) => {
            tracing::warn!(%error, "SIGTERM is not listened to");
            return drop(tokio::signal::ctrl_c().await);
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminated.recv() => {}
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        serve: ServeArgs,
    }

    #[test]
    fn the_lines_to_try_name_an_address_that_can_be_called() {
        for (listens, called) in [
            ("0.0.0.0:80", "127.0.0.1:80"),
            ("[::]:80", "127.0.0.1:80"),
            ("127.0.0.1:7", "127.0.0.1:7"),
            ("[::1]:7", "[::1]:7"),
            ("192.0.2.1:7", "192.0.2.1:7"),
        ] {
            assert_eq!(called_at(listens.parse().unwrap()).to_string(), called, "{listens}");
        }
    }

    #[test]
    fn section_9_a_hub_listens_on_one_port_of_this_machine_unless_it_is_told_another_address() {
        let listens = |line: &[&str], config: &Config| {
            let line = ["serve"].into_iter().chain(line.iter().copied());
            Line::try_parse_from(line).map(|line| line.serve.address(config))
        };
        let mut config = Config::default();
        assert_eq!(listens(&[], &config).unwrap(), "127.0.0.1:8686");
        config.server.listen = Some("127.0.0.1:7000".into());
        assert_eq!(listens(&[], &config).unwrap(), "127.0.0.1:7000");
        assert_eq!(listens(&["--listen", "127.0.0.1:8000"], &config).unwrap(), "127.0.0.1:8000");
    }

    #[test]
    fn the_command_line_comes_before_the_configuration_and_adds_folders() {
        let mut config = Config::default();
        config.hub.allowed_roots = vec!["/configured".into()];
        let before = (config.hub.max_active, config.ai.permission_timeout_seconds);
        let set = |line: &str, config: &mut Config| {
            let line = ["serve"].into_iter().chain(line.split_whitespace());
            Line::try_parse_from(line).map(|line| line.serve.set(config))
        };
        set("", &mut config).unwrap();
        assert_eq!((config.hub.max_active, config.ai.permission_timeout_seconds), before);
        let line = "--allowed-root /a --allowed-root /b --agent-idle-ttl 7 --max-active 2 --permission-timeout 5 --shutdown-timeout 3 \
                    --allow-public --auth-token t";
        set(line, &mut config).unwrap();
        let roots: Vec<_> = config.hub.allowed_roots.iter().map(|root| root.display().to_string()).collect();
        assert_eq!(roots, ["/configured", "/a", "/b"]);
        assert_eq!((config.hub.agent_idle_seconds, config.hub.max_active), (7, Some(2)));
        assert_eq!((config.ai.permission_timeout_seconds, config.server.drain_seconds), (5, Some(3)));
        assert!(config.server.allow_public && config.server.auth_token.is_some());
        for (said, is_allowed) in [("--allow-public=false", false), ("", false), ("--allow-public=true", true)] {
            set(said, &mut config).unwrap();
            assert_eq!(config.server.allow_public, is_allowed, "{said}");
        }
        assert!(set("--allow-public=maybe", &mut config).is_err());
        assert!(set("--permission-timeout 0", &mut config).is_err(), "a request for permission takes a moment");
        for none in ["--max-active 0", "--agent-idle-ttl 0"] {
            assert!(set(none, &mut config).is_err(), "{none}: in the configuration it is refused, too");
        }
    }
}
