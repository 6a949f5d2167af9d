//! The real binary: as a hub, and as a command against one.

use serde_json::Value;
use std::{
    fs::File,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::Duration,
};
use tempfile::TempDir;
use tokio::time::Instant;

const BINARY: &str = env!("CARGO_BIN_EXE_buildscale");
/// Any free port.
pub const ANYWHERE: &str = "127.0.0.1:0";
/// How long a hub may take for something that it has accepted, before a test fails: far longer than it ever takes.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A hub that runs, with its log in `hub.log`. Ends with the test.
pub struct Hub {
    process: Child,
    pub address: String,
    folder: PathBuf,
}

impl Hub {
    /// Starts one that keeps everything in this folder, with these variables.
    pub fn start(folder: &Path, listen: &str, environment: &[(&str, &str)]) -> Self {
        let log = File::options().create(true).append(true).open(folder.join("hub.log")).unwrap();
        let mut process = command(&["serve", "--json", "--listen", listen, "--data-dir"])
            .arg(folder)
            .envs(environment.iter().copied())
            .env("BUILDSCALE_LOG", "info")
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap();
        Self { address: ready["address"].as_str().unwrap().to_owned(), process, folder: folder.to_owned() }
    }

    /// Ends it as a power cut would.
    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// A command against it. Its state from one time to the next belongs to this hub alone, too.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = command(args);
        command.env("BUILDSCALE_URL", &self.address).env("XDG_STATE_HOME", self.folder.join("state"));
        command
    }

    pub fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    pub fn run_with_input(&self, args: &[&str], input: impl AsRef<[u8]>) -> Output {
        let mut child =
            self.command(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_ref()).unwrap();
        child.wait_with_output().unwrap()
    }

    /// The JSON objects that a command prints, which ends with this code.
    #[track_caller]
    pub fn json(&self, code: i32, args: &[&str]) -> Vec<Value> {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {}", text(&output.stderr));
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The JSON object that a command prints, once it fits.
    #[track_caller]
    pub fn until(&self, args: &[&str], fits: impl Fn(&Value) -> bool) -> Value {
        let late = Instant::now() + PATIENCE;
        loop {
            let shown = self.json(0, args).remove(0);
            if fits(&shown) {
                return shown;
            }
            assert!(Instant::now() < late, "{args:?}: {shown}");
        }
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A hub with a folder of its own.
pub fn hub() -> (TempDir, Hub) {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::start(folder.path(), ANYWHERE, &[]);
    (folder, hub)
}

/// The binary, with nothing in its environment that could reach a model, another hub or somebody's home.
pub fn command(args: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.args(args).env_clear().stdin(Stdio::null());
    for name in ["PATH", "TMPDIR", "LLVM_PROFILE_FILE"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The counters of the hub at this address.
pub fn metrics(address: &str) -> std::io::Result<String> {
    answer(address, "/metrics", "")
}

/// The hub's answer to a GET, with its head. Each line of `headers` ends with CR and LF.
pub fn answer(address: &str, path: &str, headers: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    // HTTP/1.0: the answer ends with the connection, and has no chunks.
    write!(stream, "GET {path} HTTP/1.0\r\nhost: {address}\r\n{headers}\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
