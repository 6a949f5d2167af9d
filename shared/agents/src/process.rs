//! A process of an agent: its start, its output on both streams, and its end with a reason.

use crate::{
    agent_updates::AgentUpdates,
    callbacks::Callbacks,
    confinement::Confinement,
    connection::Connection,
    host_environment::{ENVIRONMENT, HostEnvironment},
    reader,
    registry::KnownAgent,
};
use parking_lot::Mutex;
use ports::{Error, KnownSecrets, Redactor, Result};
use processes::ProcessGroup;
use std::{
    collections::VecDeque,
    path::Path,
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    process::{Child, Command},
    task::JoinHandle,
    time::timeout,
};

/// How much of the error output is told, in lines and in bytes.
const LINES: usize = 20;
const BYTES: usize = 4 * 1024;
/// How much of it is kept, in bytes: a secret that lies across the beginning of the part that is told is whole here.
const KEPT: usize = 3 * BYTES;
/// How long the streams of a process that has ended are read on.
const DRAIN: Duration = Duration::from_millis(500);

/// A process that runs. Dropping it ends it, with all that it started.
#[derive(Debug)]
pub(crate) struct Process {
    pub shared: Arc<AgentUpdates>,
    group: Arc<ProcessGroup>,
}

impl Process {
    /// Starts an agent in a folder.
    pub fn spawn(agent: &KnownAgent, cwd: &Path, host: &HostEnvironment) -> Result<Self> {
        let program = agent.program(host.variable("PATH")).map_err(|why| Error::unavailable("the agent", why))?;
        let failed = |error: std::io::Error| {
            Error::unavailable("the agent", format!("{} cannot be started: {error}", agent.name))
        };
        let walls = Confinement::of(agent, &program, host).map_err(|why| Error::unavailable("the agent", why))?;
        let group = Arc::new(ProcessGroup::new().map_err(failed)?);
        let mut command = Command::new(program);
        command.args(&agent.args).current_dir(cwd).env_clear().kill_on_drop(true);
        let ours = host.environment.iter().filter(|(name, _)| ENVIRONMENT.contains(&name.as_str()));
        command.envs(ours.map(|(name, value)| (name, value))).envs(&agent.env);
        group.take_in(&mut command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let started = match walls {
            Some(walls) => walls.spawn(command),
            None => command.spawn(),
        };
        let mut child = started.map_err(failed)?;
        let (Some(input), Some(output), Some(errors)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(Error::unavailable("the agent", "its streams are not there"));
        };
        let shared = Arc::new(AgentUpdates::new(Connection::new(input)));
        let tail = Arc::<Mutex<Tail>>::default();
        let keeping = tokio::spawn(keep(errors, tail.clone()));
        let (reading, callbacks) = (shared.clone(), Callbacks::new(agent, cwd, host));
        let reader = tokio::spawn(async move { reader::read(output, &reading, &callbacks).await });
        let watch = Watch { name: agent.name.clone(), known: host.known.clone(), tail, group: group.clone() };
        tokio::spawn(watch.until_gone(child, reader, keeping, shared.clone()));
        Ok(Self { shared, group })
    }

    /// Begins to end it.
    pub fn kill(&self) {
        self.group.kill();
    }

    /// Ends it, and waits until it and all that it started have ended.
    pub async fn end(&self) {
        self.group.end().await;
    }

    /// Why it is gone, if it is; a process that was seen to end is waited for a moment.
    pub async fn gone(&self) -> Option<String> {
        for _ in 0..40 {
            if let Some(reason) = self.shared.state().gone.clone() {
                return Some(reason);
            }
            tokio::time::sleep(DRAIN / 20).await;
        }
        None
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The last lines of an error output.
#[derive(Debug, Default)]
struct Tail(VecDeque<u8>);

async fn keep(mut errors: impl AsyncRead + Unpin, tail: Arc<Mutex<Tail>>) {
    let mut piece = [0; 4096];
    while let Ok(read @ 1..) = errors.read(&mut piece).await {
        let mut tail = tail.lock();
        tail.0.extend(&piece[..read]);
        let excess = tail.0.len().saturating_sub(KEPT);
        tail.0.drain(..excess);
    }
}

struct Watch {
    name: String,
    known: KnownSecrets,
    tail: Arc<Mutex<Tail>>,
    group: Arc<ProcessGroup>,
}

impl Watch {
    async fn until_gone(
        self,
        mut child: Child,
        mut reader: JoinHandle<Option<String>>,
        keeping: JoinHandle<()>,
        shared: Arc<AgentUpdates>,
    ) {
        let reason = tokio::select! {
            status = child.wait() => {
                // Its last words may be in the pipes. Its child processes may hold them open.
                let broke = timeout(DRAIN, &mut reader).await.ok().and_then(|read| read.ok()).flatten();
                broke.unwrap_or_else(|| ended(status.ok()))
            }
            broke = &mut reader => match broke.ok().flatten() {
                Some(why) => why,
                None => match timeout(DRAIN * 4, child.wait()).await {
                    Ok(status) => ended(status.ok()),
                    Err(_) => "it closed its output".to_owned(),
                },
            },
        };
        self.group.end().await;
        if timeout(DRAIN, keeping).await.is_err() {
            tracing::debug!(agent = self.name, "the error output of an agent stays open");
        }
        reader.abort();
        let text = self.explain(&reason);
        tracing::info!(agent = self.name, reason, "an agent has ended");
        shared.is_gone(text);
    }

    /// The reason for people, with the end of the error output, without secrets.
    fn explain(&self, reason: &str) -> String {
        let bytes: Vec<u8> = self.tail.lock().0.iter().copied().collect();
        let redactor = self.known.redactor();
        let last = last_words(&String::from_utf8_lossy(&bytes), &redactor);
        let told = match last.is_empty() {
            true => format!("{}: {reason}", self.name),
            false => format!("{}: {reason}. Its last words:\n{last}", self.name),
        };
        redactor.text(&told).into_owned()
    }
}

/// The last lines of an error output, for people, without secrets.
fn last_words(kept: &str, redactor: &Redactor) -> String {
    let text = Redactor::end_of(kept, BYTES, &[redactor]);
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(LINES)..].join("\n");
    last.chars().filter(|c| !c.is_control() || *c == '\n').collect()
}

fn ended(status: Option<ExitStatus>) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    match status.map(|status| (status.code(), status.signal())) {
        Some((Some(code), _)) => format!("it ended with exit code {code}"),
        Some((None, Some(signal))) => format!("it was ended by signal {signal}"),
        _ => "it ended".into(),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use ports::Secret;

    #[tokio::test]
    async fn the_last_words_of_an_agent_have_no_part_of_a_secret_wherever_they_are_cut() {
        let known = KnownSecrets::default();
        known.learn([&Secret::new("hunter2-secret-0123456789")]);
        let group = Arc::new(ProcessGroup::new().unwrap());
        for behind in BYTES - 30..BYTES + 10 {
            let tail = Arc::<Mutex<Tail>>::default();
            let said = format!("{} no hunter2-secret-0123456789\n{}", "y".repeat(BYTES), "x".repeat(behind));
            keep(said.as_bytes(), tail.clone()).await;
            let watch = Watch { name: "Test".into(), known: known.clone(), tail, group: group.clone() };
            let told = watch.explain("it ended");
            assert!(told.ends_with("xxx") && !told.contains("456789"), "{behind}: {told}");
            assert!(told.len() < BYTES + 100, "{}", told.len());
        }
        // What is kept begins inside of one of many secrets, without which the rest is short.
        let long = "part-of-a-key-".repeat(50);
        known.learn([&Secret::new(long.as_str())]);
        for behind in (0..long.len()).step_by(50) {
            let tail = Arc::<Mutex<Tail>>::default();
            let said = format!("no {long}\n").repeat(100) + &"x".repeat(behind);
            keep(said.as_bytes(), tail.clone()).await;
            let watch = Watch { name: "Test".into(), known: known.clone(), tail, group: group.clone() };
            let told = watch.explain("it ended");
            assert!(told.contains("no [redacted]\n") && !told.contains("a-key"), "{behind}: {told}");
        }
    }
}
