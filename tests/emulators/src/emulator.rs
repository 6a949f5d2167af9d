//! A process on a free port.

use rustix::process::{Pid, Signal, kill_process_group};
use std::{
    fs::File,
    hash::{BuildHasher as _, Hasher as _, RandomState},
    io,
    os::{
        linux::net::SocketAddrExt as _,
        unix::{
            net::{SocketAddr, UnixListener},
            process::CommandExt as _,
        },
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{Instant, timeout},
};

/// A loaded machine with two cores takes a Python server this long, at worst.
const PATIENCE: Duration = Duration::from_secs(180);
/// The variable with the port of a LocalStack that all tests of a run share; `scripts/test` starts it. Its start takes seven seconds of a core, and
/// each process has an account of its own in it ([`crate::account::id`]).
const SHARED_LOCALSTACK: &str = "BUILDSCALE_LOCALSTACK_PORT";
/// Becomes the command, in a process group of its own, so that its parent notices its end. A process beside it ends the group when the
/// holder of its standard input is gone, however that one ended.
pub(crate) const GUARD: &str = r#"exec 3<&0; (cat <&3 >/dev/null; kill -KILL 0) & exec "$@" </dev/null 3<&-"#;

/// Why there is no emulator.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is not installed.
    #[error("{program} is not installed: run scripts/emulators, which puts it at {}", path.display())]
    Missing {
        /// Its name.
        program: &'static str,
        /// The path that was tried.
        path: PathBuf,
    },
    /// It ended, or did not answer in time.
    #[error("{program} did not start: {why}\n{log}")]
    NotReady {
        /// Its name.
        program: &'static str,
        /// The reason.
        why: String,
        /// The end of its log.
        log: String,
    },
    /// The machine refused.
    #[error("an emulator could not be started")]
    Io(#[from] io::Error),
}

/// A running emulator. Dropping it ends it, and everything that it started, unless others share it.
pub struct Emulator {
    process: Option<Child>,
    /// None of one that was there already.
    recipe: Option<Recipe>,
    port: Port,
    /// The folder of its data and its log.
    folder: TempDir,
}

/// How one is started.
struct Recipe {
    program: &'static str,
    ready: Ready,
    command: Vec<String>,
}

impl Emulator {
    /// DynamoDB, by dynoxide, in memory.
    pub async fn dynamodb() -> Result<Self, Error> {
        let program = installed("dynoxide", "dynoxide/bin/dynoxide")?;
        Self::start("dynoxide", Ready::Http("/"), |port, _| {
            let mut command = vec![text(&program), "serve".into(), "--host".into(), "127.0.0.1".into()];
            command.extend(["-p".into(), port.to_string()]);
            command
        })
        .await
    }

    /// Redis 7, from the distribution, without persistence.
    pub async fn redis() -> Result<Self, Error> {
        let program = installed("redis-server", "redis-server")?;
        Self::start("redis-server", Ready::Port, |port, folder| {
            let mut command = vec![text(&program), "--port".into(), port.to_string()];
            command.extend(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir"].map(str::to_owned));
            command.push(text(folder));
            command
        })
        .await
    }

    /// SQS and S3, by LocalStack in host mode, with the corrections of `python/sqs.py`; and Secrets Manager, SSM's parameters and the
    /// shapes of Scheduler, whose schedules do nothing. It may be shared with other processes, so it is used under [`crate::account::id`] alone.
    pub async fn localstack() -> Result<Self, Error> {
        let shared = std::env::var(SHARED_LOCALSTACK).ok().and_then(|port| port.parse().ok());
        if let Some(port) = shared {
            return Self::shared("localstack", Ready::Http("/_localstack/health"), port).await;
        }
        let python = installed("localstack", "localstack/bin/python")?;
        Self::start("localstack", Ready::Http("/_localstack/health"), |port, folder| {
            let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/sqs.py");
            vec![text(&python), text(&program), port.to_string(), text(folder)]
        })
        .await
    }

    /// The shapes of other services, by moto: their requests have no effect.
    pub async fn moto() -> Result<Self, Error> {
        let program = installed("moto_server", "localstack/bin/moto_server")?;
        Self::start("moto_server", Ready::Http("/moto-api/"), |port, _| {
            vec![text(&program), "-H".into(), "127.0.0.1".into(), "-p".into(), port.to_string()]
        })
        .await
    }

    /// The port that it listens on, on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port.number
    }

    /// The URL for clients: the value of `AWS_ENDPOINT_URL_<SERVICE>`.
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port.number)
    }

    /// The end of its log.
    pub fn log(&self) -> String {
        tail(self.folder.path())
    }

    /// Ends it, in the middle of its work.
    pub fn stop(&mut self) {
        let Some(mut process) = self.process.take() else { return };
        if let Some(group) = i32::try_from(process.id()).ok().and_then(Pid::from_raw) {
            // Nothing of it is kept, so nothing has to be said first.
            _ = kill_process_group(group, Signal::KILL);
        }
        _ = process.wait();
    }

    /// Starts it again after [`Emulator::stop`], at the same address and with nothing in it. Nothing happens to one that others share.
    pub async fn resume(&mut self) -> Result<(), Error> {
        self.stop();
        let Some(Recipe { program, ready, command }) = &self.recipe else { return Ok(()) };
        let log = File::create(self.folder.path().join("log"))?;
        let process = Command::new("sh")
            .args(["-c", GUARD, "emulator"])
            .args(command)
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(0)
            .spawn()?;
        self.process = Some(process);
        let (program, ready) = (*program, *ready);
        let ready = self.wait_until(ready).await;
        ready.map_err(|why| Error::NotReady { program, why, log: self.log() })
    }

    async fn start(
        program: &'static str,
        ready: Ready,
        command: impl Fn(u16, &Path) -> Vec<String>,
    ) -> Result<Self, Error> {
        let mut last = None;
        // The port is free when it is chosen; a program that chooses no port by `Port` may be quicker to take it.
        for _ in 0..3 {
            let port = Port::reserve()?;
            let folder = tempfile::tempdir()?;
            let recipe = Recipe { program, ready, command: command(port.number, folder.path()) };
            let mut emulator = Self { process: None, recipe: Some(recipe), port, folder };
            match emulator.resume().await {
                Ok(()) => return Ok(emulator),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| Error::Io(io::ErrorKind::AddrInUse.into())))
    }

    /// One that was started for several processes, once it answers.
    async fn shared(program: &'static str, ready: Ready, number: u16) -> Result<Self, Error> {
        let answers = async {
            while !matches!(timeout(Duration::from_secs(10), ready.ask(number)).await, Ok(Ok(true))) {
                // poll: a process does not tell others when it listens
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let why = || format!("the shared one at the port {number} does not answer within {} s", PATIENCE.as_secs());
        let waited = timeout(PATIENCE, answers).await;
        waited.map_err(|_| Error::NotReady { program, why: why(), log: String::new() })?;
        let port = Port { number, _name: None };
        Ok(Self { process: None, recipe: None, port, folder: tempfile::tempdir()? })
    }

    async fn wait_until(&mut self, ready: Ready) -> Result<(), String> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            match timeout(Duration::from_secs(10), ready.ask(self.port.number)).await {
                Ok(Ok(true)) => return Ok(()),
                _ if self.log().contains("ddress already in use") => return Err("its port was taken".into()),
                _ => {}
            }
            if self.process.as_mut().is_none_or(|process| process.try_wait().is_ok_and(|ended| ended.is_some())) {
                return Err("it ended".into());
            }
            // poll: a process does not tell others when it listens
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Err(format!("no answer within {} s", PATIENCE.as_secs()))
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A port of 127.0.0.1 that no other emulator of this machine gets while this lives. Emulators need seconds before they listen: two worlds
/// with one port would take each other's messages.
struct Port {
    number: u16,
    /// A name that one socket of the machine has at a time, and that goes with its process; none where another process chose the port.
    _name: Option<UnixListener>,
}

impl Port {
    /// Below the ports that Linux gives to sockets that ask for any (32768 to 60999).
    const RANGE: std::ops::Range<u16> = 15_000..28_000;

    fn reserve() -> io::Result<Self> {
        let count = u64::from(Self::RANGE.end - Self::RANGE.start);
        for _ in 0..1000 {
            let chance = RandomState::new().build_hasher().finish() % count;
            let number = Self::RANGE.start + u16::try_from(chance).unwrap_or_default();
            let name = SocketAddr::from_abstract_name(format!("buildscale-emulator-{number}"))?;
            let Ok(name) = UnixListener::bind_addr(&name) else { continue };
            if std::net::TcpListener::bind(("127.0.0.1", number)).is_ok() {
                return Ok(Self { number, _name: Some(name) });
            }
        }
        Err(io::ErrorKind::AddrInUse.into())
    }
}

/// How an emulator shows that it is there.
#[derive(Clone, Copy)]
enum Ready {
    /// It takes connections.
    Port,
    /// It answers a request for this path.
    Http(&'static str),
}

impl Ready {
    async fn ask(&self, port: u16) -> io::Result<bool> {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
        let Self::Http(path) = self else { return Ok(true) };
        let request = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut status = [0; 5];
        Ok(stream.read_exact(&mut status).await.is_ok() && status == *b"HTTP/")
    }
}

/// The path at which `scripts/emulators` installs a program.
fn installed(program: &'static str, path: &str) -> Result<PathBuf, Error> {
    testkit::install("emulators");
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = set("BUILDSCALE_CACHE").or_else(|| {
        let home = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
        home.map(|home| home.join("buildscale"))
    });
    let path = cache.unwrap_or_default().join("emulators").join(path);
    match path.exists() {
        true => Ok(path),
        false => Err(Error::Missing { program, path }),
    }
}

fn tail(folder: &Path) -> String {
    let log = std::fs::read(folder.join("log")).unwrap_or_default();
    String::from_utf8_lossy(log.get(log.len().saturating_sub(4000)..).unwrap_or_default()).into_owned()
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
