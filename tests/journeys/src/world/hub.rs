//! The hub: one process, killed, ended and started as a person would.

use super::{OPERATOR, SCRIPT, SIGNS_TICKETS, SIGNS_TOKENS, Settings, process::Process};
use crate::{Binaries, Client, PATIENCE, Result};
use reqwest::Url;
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
    sync::watch,
    time::timeout,
};

/// The file that a hub logs to if it is in its data folder.
pub const LOG: &str = "hub.log";

/// A running hub, and its data.
pub struct Deployed {
    pub(super) hub: Hub,
    folder: TempDir,
}

impl Deployed {
    pub(super) fn put_secret(&self, name: &str, secret: &str) -> Result {
        let secrets = self.folder.path().join("secrets");
        fs::create_dir_all(&secrets)?;
        Ok(fs::write(secrets.join(name), secret)?)
    }
}

/// One for people with tokens, as the other worlds are, and with limits that no journey reaches.
pub(super) async fn deploy(binaries: &Binaries, settings: Settings<'_>) -> Result<Deployed> {
    let folder = tempfile::tempdir()?;
    let accounts = [
        ("BUILDSCALE__AUTH__SECRET", SIGNS_TOKENS),
        ("BUILDSCALE__AUTH__TICKET_SECRET", SIGNS_TICKETS),
        ("BUILDSCALE__SERVER__AUTH_TOKEN", OPERATOR),
        ("BUILDSCALE__AUTH__REQUESTS_PER_MINUTE", "100000"),
        ("BUILDSCALE__AUTH__TOKENS_PER_MINUTE", "100000000"),
    ];
    let binary = binaries.get("buildscale")?;
    let hub = Hub::start_scripted(&binary, folder.path(), &[&accounts, settings].concat()).await?;
    Ok(Deployed { hub, folder })
}

/// A running hub. It is killed, and has ended, when it is dropped.
pub struct Hub {
    binary: PathBuf,
    child: Process,
    data: PathBuf,
    environment: Vec<(String, String)>,
    url: watch::Sender<Url>,
}

impl Hub {
    /// Starts this binary on this data folder with [`SCRIPT`] as its model and with these variables.
    ///
    /// # Errors
    /// When it does not start.
    pub async fn start_scripted(binary: &Path, data: &Path, settings: Settings<'_>) -> Result<Self> {
        let script = data.join("script.yaml");
        fs::create_dir_all(data)?;
        fs::write(&script, SCRIPT)?;
        let script = script.display().to_string();
        let scripted = [("BUILDSCALE__AI__SCRIPT", script.as_str()), ("BUILDSCALE__AI__MODEL", "scripted/script")];
        Self::start_with(binary, data, &[&scripted, settings].concat()).await
    }

    /// Starts it with these variables and no others that it would look at.
    ///
    /// # Errors
    /// When it does not start.
    pub async fn start_with(binary: &Path, data: &Path, environment: Settings<'_>) -> Result<Self> {
        let environment: Vec<_> = environment.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let (child, url) = launch(binary, data, &environment).await?;
        Ok(Self { binary: binary.into(), child, data: data.into(), environment, url: watch::Sender::new(url) })
    }

    /// Ends it as a power cut would: SIGKILL.
    ///
    /// # Errors
    /// When it has ended before.
    pub async fn kill(&mut self) -> Result {
        Ok(self.child.kill().await?)
    }

    /// The most memory that it has had, in bytes.
    ///
    /// # Errors
    /// When it has ended before.
    pub fn most_memory(&self) -> Result<u64> {
        let id = self.child.id().ok_or("it has ended")?;
        let status = fs::read_to_string(format!("/proc/{id}/status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
        Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? * 1024)
    }

    /// Asks it to end, and waits until it has.
    ///
    /// # Errors
    /// When it does not.
    pub async fn terminate(&mut self) -> Result<ExitStatus> {
        let id = self.child.id().ok_or("it has ended")?;
        let sent = Command::new("kill").args(["-TERM", &id.to_string()]).status().await?;
        assert!(sent.success());
        Ok(timeout(PATIENCE, self.child.wait()).await??)
    }

    /// Starts it again on the same data folder, at another address.
    ///
    /// # Errors
    /// When it does not start.
    pub async fn restart(&mut self) -> Result {
        let (child, url) = launch(&self.binary, &self.data, &self.environment).await?;
        self.child = child;
        self.url.send_replace(url);
        Ok(())
    }

    /// A client without a token, which follows it to its next address.
    pub fn client(&self) -> Client {
        Client::new(self.url.subscribe(), None)
    }
}

async fn launch(binary: &Path, data: &Path, environment: &[(String, String)]) -> Result<(Process, Url)> {
    let mut command = Command::new(binary);
    command.args(["serve", "--listen", "127.0.0.1:0", "--json", "--data-dir"]).arg(data).env_clear();
    command.env("BUILDSCALE_LOG", "warn").envs(environment.iter().cloned());
    // A test that reads the log gives it a file.
    let log = fs::OpenOptions::new().append(true).open(data.join(LOG));
    let stderr = log.map_or_else(|_| Stdio::inherit(), Stdio::from);
    let mut child = Process::spawn(command.stdout(Stdio::piped()).stderr(stderr))?;
    let mut lines = BufReader::new(child.stdout.take().ok_or("no stdout")?).lines();
    let line = timeout(PATIENCE, lines.next_line()).await??.ok_or("it ended before it was ready")?;
    let ready: Value = serde_json::from_str(&line)?;
    let address = ready["address"].as_str().ok_or("no address")?;
    Ok((child, format!("http://{address}").parse()?))
}
