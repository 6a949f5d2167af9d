//! A server in this process.

use agents::{ChildAgents, KnownAgent};
use buildscale_machine::{Machine, Options};
use domain::{CallId, FilePath, Sha256, WorkspaceId};
use futures::FutureExt;
use ports::{Agents, Exec, Execution, Grant, Reservation, Reserve, Sandbox};
use sandbox::{LocalCopies, Remote};
use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tempfile::TempDir;
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub const TOKEN: &str = "of-the-task";
pub const WORKSPACE: Uuid = Uuid::from_u128(0x0199_0000_0000_7000_8000_0000_0000_0001);

pub struct Served {
    home: TempDir,
    pub address: SocketAddr,
    pub shutdown: CancellationToken,
    pub serving: JoinHandle<std::io::Result<()>>,
}

impl Served {
    pub async fn new() -> Self {
        Self::idle(Duration::from_secs(3600)).await
    }

    /// One that ends after so long without use.
    pub async fn idle(idle: Duration) -> Self {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().canonicalize().unwrap();
        let options = Options {
            workspace: WorkspaceId::from(WORKSPACE),
            token: Sha256::of(TOKEN.as_bytes()),
            idle,
            folder: root.join("workspace"),
            scratch: root.join("tmp"),
            listen: "127.0.0.1:0".into(),
        };
        let search: buildscale_machine::Search = Arc::new(|latest, tool, args| {
            async move { serde_json::to_string(&tools::search_folder(&latest, &tool, &args).await).unwrap() }.boxed()
        });
        let listener = TcpListener::bind(&options.listen).await.unwrap();
        let address = listener.local_addr().unwrap();
        let agents = agents(&root);
        let machine = Machine::open(options, search, agents).await.unwrap();
        let shutdown = CancellationToken::new();
        let serving = tokio::spawn(buildscale_machine::serve(listener, machine, shutdown.clone()));
        Self { home, address, shutdown, serving }
    }

    pub fn latest(&self) -> PathBuf {
        self.home.path().canonicalize().unwrap().join("workspace/latest")
    }

    pub fn remote(&self) -> Remote {
        at(self.address)
    }
}

/// The agent of the tests of `agents`, which does as it is told.
fn agents(root: &Path) -> Arc<dyn Agents> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/agents/tests/agent.py");
    let agent = KnownAgent {
        id: "test".into(),
        name: "Test".into(),
        command: "python3".into(),
        args: vec![script.into()],
        ..KnownAgent::default()
    };
    let environment = ["PATH", "HOME"].map(|name| (name.to_owned(), std::env::var(name).unwrap_or_default()));
    Arc::new(ChildAgents::new(agents::Options {
        agents: vec![agent],
        environment: environment.into(),
        grace: Duration::from_millis(500),
        copies: Some(Arc::new(LocalCopies::new(root.join("copies")))),
        ..agents::Options::default()
    }))
}

impl Drop for Served {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

/// The sandbox at an address.
pub fn at(address: SocketAddr) -> Remote {
    Remote::new(format!("http://{address}"), TOKEN, WorkspaceId::from(WORKSPACE)).unwrap()
}

/// Begins or follows a command, in a place of its own.
pub async fn execution(sandbox: &dyn Sandbox, command: Exec) -> ports::Result<Execution> {
    let asked = Reserve { call: command.call, direct: false, wait: Duration::from_secs(120) };
    match sandbox.reserve(asked).await? {
        Reservation::Granted(grant) => sandbox.exec(Exec { grant, ..command }).await,
        other => panic!("it is granted no place: {other:?}"),
    }
}

/// A client without a token.
pub fn http() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::new()
}

pub fn command(words: &[&str]) -> Exec {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    Exec {
        call: CallId::from(Uuid::from_u128(NEXT.fetch_add(1, Ordering::Relaxed).into())),
        grant: Grant::default(),
        words: words.iter().map(|word| (*word).into()).collect(),
        folder: FilePath::root(),
        root: FilePath::root(),
        hidden: Vec::new(),
        env: BTreeMap::new(),
        stdin: None,
        timeout: Duration::from_secs(120),
        network: false,
        max_output: 1 << 20,
        keep: Vec::new(),
    }
}
