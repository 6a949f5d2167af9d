//! Sandboxes on ECS: one task per workspace, and an item of the table that says which one it is.
//!
//! The item decides. A worker that wants a sandbox first writes an item with an attempt of its own, on condition that there is none, and
//! then asks ECS for a task under that attempt, which ECS takes for a client token: however often it is asked, by any worker, and with any
//! answers lost, there is one task. No process waits for it: the next look asks ECS how it is, and moves the item on ([`settle`]). Items
//! without a look are moved on by the [sweep](EcsSandboxes::sweep), which also ends tasks that no item wants.
//!
//! A sandbox is ready when it answers to its token, at the address of its own network interface. ECS is asked only when it does not answer.
//! Looking at one (`look`, the sweep) never calls it, because an idle sandbox ends itself.

mod record;
mod settle;
mod sweep;
mod tasks;
mod unavailable_reason;

use crate::config;
use async_trait::async_trait;
use domain::WorkspaceId;
use parking_lot::{Mutex, MutexGuard};
use ports::{Clock, Error, Expect, Result, Sandbox, SandboxState, SandboxView, Sandboxes, Secret, Table, Write};
use record::{KeptRecord, Phase, Record};
use settle::{Call, Standing};
use std::{
    collections::HashMap,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};
pub use sweep::Swept;
use tasks::Tasks;
use tokio::time::Instant;

const WHAT: &str = "ECS";
/// A machine with NVMe takes two to three minutes to come, the image another; one that takes twice as long is given up.
const DEADLINE: Duration = Duration::from_secs(6 * 60);
/// How long a sandbox that answered is taken for ready. Then it is asked itself once more, which costs a millisecond, and ECS only if
/// it does not answer: it may be gone at any moment, and a command should find that out before it begins.
const READY_FOR: Duration = Duration::from_secs(1);
/// How long one that is not there is taken for absent.
const ABSENT_FOR: Duration = Duration::from_secs(10);
/// How long one that starts is: somebody waits for it.
const COMES_FOR: Duration = Duration::from_secs(1);
/// How long idle connections are kept.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(10 * 60);
/// How often a lost race is run again.
const TRIES: usize = 4;

/// Makes the client of the sandbox at a URL such as `http://10.80.12.7:8080`, with its token.
pub type Connect = Arc<dyn Fn(&str, &Secret, WorkspaceId) -> Result<Arc<dyn Sandbox>> + Send + Sync>;

/// Sandboxes as tasks of ECS.
pub struct EcsSandboxes {
    tasks: Tasks,
    table: Arc<dyn Table>,
    clock: Arc<dyn Clock>,
    connect: Connect,
    failures: Arc<AtomicU64>,
    known: Mutex<HashMap<WorkspaceId, KnownSandbox>>,
}

/// The state that this process last found.
struct KnownSandbox {
    until: Instant,
    /// Its client, and the attempt that the client belongs to; kept for its connections.
    sandbox: Option<(String, Arc<dyn Sandbox>)>,
    is_ready: bool,
}

impl EcsSandboxes {
    /// Started by `client` as `deployed` says. `table` keeps their items, with their tokens; `clock` says when one is too late.
    pub fn new(
        client: aws_sdk_ecs::Client,
        deployed: config::Sandbox,
        table: Arc<dyn Table>,
        clock: Arc<dyn Clock>,
        connect: Connect,
    ) -> Self {
        let tasks = Tasks::new(client, deployed);
        Self { tasks, table, clock, connect, failures: Arc::default(), known: Mutex::default() }
    }

    /// The same, with this counter of sandboxes that failed. Several of them may share it.
    #[must_use]
    pub fn counting_failures(self, failures: Arc<AtomicU64>) -> Self {
        Self { failures, ..self }
    }

    async fn kept(&self, workspace: WorkspaceId) -> Result<Option<KeptRecord>> {
        self.table.get(&Record::key(workspace)).await?.as_ref().map(KeptRecord::read).transpose()
    }

    fn known(&self) -> MutexGuard<'_, HashMap<WorkspaceId, KnownSandbox>> {
        self.known.lock()
    }

    /// The client of a sandbox: the one from before, if it is the same sandbox.
    fn speaker(&self, kept: &KeptRecord, url: &str) -> Result<Arc<dyn Sandbox>> {
        let before = self.known().get(&kept.workspace).and_then(|known| known.sandbox.clone());
        match before {
            Some((attempt, sandbox)) if attempt == kept.record.attempt => Ok(sandbox),
            _ => (self.connect)(url, &kept.record.token, kept.workspace),
        }
    }

    fn remember(&self, workspace: WorkspaceId, standing: &Standing) {
        let attempt = standing.kept.as_ref().map(|kept| kept.record.attempt.clone()).unwrap_or_default();
        let sandbox = standing.sandbox.clone().map(|sandbox| (attempt, sandbox));
        let now = Instant::now();
        let mut known = self.known();
        // Those without a request for a while are forgotten.
        known.retain(|_, known| known.until + FORGOTTEN_AFTER > now);
        let is_ready = sandbox.is_some();
        let until = now
            + match &standing.kept {
                _ if is_ready => READY_FOR,
                // It comes, or it was there a moment ago and was too busy to say so.
                Some(kept) if !matches!(kept.record.state().0, SandboxState::Cold | SandboxState::Failed) => COMES_FOR,
                _ => ABSENT_FOR,
            };
        known.insert(workspace, KnownSandbox { until, is_ready, sandbox });
    }
}

#[async_trait]
impl Sandboxes for EcsSandboxes {
    async fn look(&self, workspace: WorkspaceId) -> Result<SandboxView> {
        let standing = match self.kept(workspace).await? {
            Some(kept) => self.settle(kept, Call::UntilReady).await?,
            None => Standing::default(),
        };
        // The state that this process has cached may be out of date.
        let is_new = self.known().get(&workspace).is_some_and(|known| known.is_ready != standing.is_ready());
        if is_new {
            self.known().remove(&workspace);
        }
        Ok(standing.view())
    }

    async fn warm(&self, workspace: WorkspaceId) -> Result<SandboxView> {
        self.known().remove(&workspace);
        for _ in 0..TRIES {
            let expect = match self.kept(workspace).await? {
                None => Expect::Absent,
                Some(kept) if !kept.record.is_wanted() => Expect::Rev(kept.rev),
                Some(kept) => {
                    let standing = self.settle(kept, Call::UntilReady).await?;
                    match &standing.kept {
                        // It has ended since, unnoticed.
                        Some(KeptRecord { record: Record { phase: Phase::Ended { .. }, .. }, .. }) | None => continue,
                        Some(_) => return Ok(standing.view()),
                    }
                }
            };
            let record = Record::new(self.clock.id().to_string(), fresh_token()?, self.clock.now());
            match self.table.commit(vec![record.put(workspace, expect)?]).await {
                Ok(()) => {}
                Err(Error::Conflict { .. }) => continue,
                Err(error) => return Err(error),
            }
            // Read, since only the table knows its revision.
            if let Some(kept) = self.kept(workspace).await?.filter(|kept| kept.record.attempt == record.attempt) {
                return Ok(self.ask(kept).await?.view());
            }
        }
        self.look(workspace).await
    }

    async fn release(&self, workspace: WorkspaceId) -> Result<()> {
        self.known().remove(&workspace);
        for _ in 0..TRIES {
            let Some(kept) = self.kept(workspace).await? else { return Ok(()) };
            if let Some(task) = kept.record.task() {
                let stopped = self.tasks.stop(task, "released").await;
                stopped.map_err(|fault| fault.into_error(WHAT))?;
            }
            // A worker that is just asking for it finds it gone, and ends the task again.
            match self.table.commit(vec![Write::delete(Record::key(workspace), Expect::Rev(kept.rev))]).await {
                Err(Error::Conflict { .. }) => {}
                other => return other,
            }
        }
        Err(Error::unavailable(WHAT, "the sandbox is changing too quickly"))
    }

    async fn ready(&self, workspace: WorkspaceId) -> Result<Option<Arc<dyn Sandbox>>> {
        if let Some(known) = self.known().get(&workspace).filter(|known| known.until > Instant::now()) {
            let sandbox = known.sandbox.as_ref().filter(|_| known.is_ready);
            return Ok(sandbox.map(|(_, sandbox)| sandbox.clone()));
        }
        let standing = match self.kept(workspace).await? {
            Some(kept) => self.settle(kept, Call::Always).await?,
            None => Standing::default(),
        };
        self.remember(workspace, &standing);
        Ok(standing.sandbox)
    }

    fn have_mirrors(&self) -> bool {
        true
    }
}

/// That there is none.
fn cold() -> SandboxView {
    SandboxView { state: SandboxState::Cold, since: None, reason: None }
}

/// 32 random bytes of the operating system's, in hexadecimal digits.
fn fresh_token() -> Result<Secret> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| Error::unavailable("randomness", error.to_string()))?;
    Ok(Secret::new(bytes.map(|byte| format!("{byte:02x}")).concat()))
}
