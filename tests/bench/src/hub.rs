//! The hub under test: the release binary in a process of its own.

use crate::{Bench, Result, http::Connection, script};
use serde_json::{Value, json};
use std::{
    fs::{self, File},
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

/// Bytes in a MiB.
pub(crate) const MIB: f64 = 1024.0 * 1024.0;

/// A running hub. Killed when dropped.
pub(crate) struct Hub {
    process: Child,
    pub address: String,
}

impl Hub {
    /// Starts one over the data folder, with these variables set beside those that make it play the script.
    pub fn start(bench: &Bench, data: &Path, settings: &[(&str, &str)]) -> Result<Self> {
        let script = bench.home().join("script.yaml");
        script::write(&script)?;
        let binary = bench.binary("buildscale")?;
        let log = File::options().create(true).append(true).open(bench.home().join("hub.log"))?;
        let mut command = Command::new(binary);
        command.args(["serve", "--listen", "127.0.0.1:0", "--json", "--data-dir"]).arg(data);
        // No key of a provider may change the figures.
        command.env_clear().env("BUILDSCALE__AI__SCRIPT", &script).env("BUILDSCALE__AI__MODEL", "scripted/script");
        command.envs(settings.iter().copied()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        let mut process = command.spawn()?;
        let mut line = String::new();
        if let Some(output) = process.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        let ready: Value = serde_json::from_str(&line).unwrap_or_default();
        match ready["address"].as_str() {
            Some(address) => Ok(Self { process, address: address.into() }),
            None => {
                drop(process.kill());
                drop(process.wait());
                let log = fs::read_to_string(bench.home().join("hub.log")).unwrap_or_default();
                Err(format!("the hub did not start: {}", log.lines().last().unwrap_or("it said nothing")).into())
            }
        }
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Its CPU time so far, in milliseconds. `/proc` counts in hundredths of a second.
    pub fn cpu_ms(&self) -> Result<f64> {
        let stat = fs::read_to_string(self.proc("stat"))?;
        let after_name = stat.rsplit(") ").next().unwrap_or_default();
        let ticks = after_name.split(' ').skip(11).take(2).map(str::parse::<u64>);
        Ok(10.0 * ticks.sum::<std::result::Result<u64, _>>()? as f64)
    }

    /// The bytes that it has written to disks so far.
    pub fn written(&self) -> Result<f64> {
        number(&fs::read_to_string(self.proc("io"))?, "write_bytes:")
    }

    /// Its resident memory, in bytes.
    pub fn resident(&self) -> Result<f64> {
        Ok(1024.0 * number(&fs::read_to_string(self.proc("status"))?, "VmRSS:")?)
    }

    /// The part of it that is no page of a file: the program's own text is such, and the kernel can drop it at any time.
    pub fn anonymous(&self) -> Result<f64> {
        Ok(1024.0 * number(&fs::read_to_string(self.proc("status"))?, "RssAnon:")?)
    }

    fn proc(&self, file: &str) -> PathBuf {
        format!("/proc/{}/{file}", self.process.id()).into()
    }

    /// The work of the store's transactions so far: requests (commits and sends), and transactions.
    pub async fn store(&self) -> Result<(f64, f64)> {
        let (_, text) = Connection::open(&self.address).await?.call("GET", "/metrics", "").await?;
        let text = String::from_utf8(text)?;
        Ok((number(&text, "buildscale_store_requests_total")?, number(&text, "buildscale_store_groups_total")?))
    }

    /// Makes a workspace and returns its path in the API.
    pub async fn workspace(&self) -> Result<String> {
        let body = json!({ "name": "bench" }).to_string();
        let made = Connection::open(&self.address).await?.json("POST", "/api/v1/workspaces", &body).await?;
        let id = made["workspace_id"].as_str().ok_or_else(|| format!("no workspace: {made}"))?;
        Ok(format!("/api/v1/workspaces/{id}"))
    }

    /// Ends it as an operator would, and waits for it.
    pub fn end(mut self) -> Result<()> {
        Command::new("kill").arg(self.process.id().to_string()).status()?;
        self.process.wait()?;
        Ok(())
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// The number after `name` at the start of a line.
fn number(text: &str, name: &str) -> Result<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)).ok_or_else(|| format!("no {name}"))?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}
