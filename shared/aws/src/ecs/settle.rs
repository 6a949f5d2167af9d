//! The current state of a sandbox: from ECS and the sandbox itself, and its effect on the item.

use super::{
    DEADLINE, EcsSandboxes, KeptRecord, cold,
    record::{Phase, Record},
    tasks::{Run, Seen, Status},
};
use crate::fault::{AwsFault, Class};
use ports::{Error, Expect, Result, Sandbox, SandboxState, SandboxView};
use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

/// ECS may know nothing of a task for a moment after it made it.
const UNKNOWN_FOR: Duration = Duration::from_secs(60);
/// After this time another worker repeats the request: the first one may be dead.
const ASK_AGAIN: Duration = Duration::from_secs(15);
/// A sandbox that runs and does not answer for so long never will.
const SILENT_FOR: Duration = Duration::from_secs(2 * 60);
/// How long it may take to answer: somebody waits to know, and has other means.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whether a sandbox is called to see if it answers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    /// Until it has answered once: later calls would keep it from ending itself.
    UntilReady,
    /// Always.
    Always,
}

/// How a sandbox stands.
#[derive(Default)]
pub(super) struct Standing {
    /// Its item; none when it is gone.
    pub kept: Option<KeptRecord>,
    /// A remark that is not in the item.
    pub note: Option<String>,
    /// Its client, if it has just answered.
    pub sandbox: Option<Arc<dyn Sandbox>>,
}

impl Standing {
    fn of(kept: KeptRecord) -> Self {
        Self { kept: Some(kept), ..Self::default() }
    }

    fn noting(kept: KeptRecord, note: impl Into<String>) -> Self {
        Self { note: Some(note.into()), ..Self::of(kept) }
    }

    /// For people.
    pub fn view(self) -> SandboxView {
        let Some(KeptRecord { record, .. }) = &self.kept else { return cold() };
        let (state, reason) = record.state();
        let since = if state == SandboxState::Starting { record.asked_at } else { record.since };
        let reason = self.note.or_else(|| reason.map(str::to_owned));
        SandboxView { state, since: Some(since), reason }
    }
}

impl EcsSandboxes {
    /// Moves an item on, as far as it goes now.
    pub(super) async fn settle(&self, kept: KeptRecord, call: Call) -> Result<Standing> {
        match &kept.record.phase {
            Phase::Failed { .. } | Phase::Ended { .. } => Ok(Standing::of(kept)),
            Phase::Asked { .. } => self.press(kept).await,
            Phase::Ready { url, silent_since, .. } if call == Call::Always => {
                let (sandbox, was_silent) = (self.speaker(&kept, url)?, silent_since.is_some());
                if !answers(sandbox.as_ref()).await {
                    return self.inquire(kept, call).await;
                }
                let standing = match was_silent {
                    true => self.silent(kept, None).await?,
                    false => Standing::of(kept),
                };
                Ok(Standing { sandbox: Some(sandbox), ..standing })
            }
            Phase::Started { .. } | Phase::Ready { .. } => self.inquire(kept, call).await,
        }
    }

    /// Asks ECS for the task of an item.
    pub(super) async fn ask(&self, kept: KeptRecord) -> Result<Standing> {
        let (workspace, attempt) = (kept.workspace, kept.record.attempt.clone());
        match self.tasks.run(workspace, &kept.record).await {
            Ok(Run::Task(task)) => {
                let standing = self.enter(kept, Phase::Started { task: task.clone() }).await?;
                let is_ours = |kept: &KeptRecord| kept.record.attempt == attempt && kept.record.is_wanted();
                if !standing.kept.as_ref().is_some_and(is_ours) {
                    // It was released meanwhile. If this fails, too, the sweep finds the task.
                    self.end(&task, "released before it was there").await;
                }
                Ok(standing)
            }
            Ok(Run::Refused(reason)) => self.enter(kept, Phase::Failed { reason }).await,
            Err(fault) => {
                tracing::warn!(%workspace, %fault, "a sandbox could not be asked for");
                let trouble = Some(format!("{}; it is asked again", in_words(&fault)));
                self.enter(kept, Phase::Asked { trouble }).await
            }
        }
    }

    /// Repeats a request that was not answered.
    async fn press(&self, kept: KeptRecord) -> Result<Standing> {
        if self.is_late(&kept.record) {
            let Phase::Asked { trouble } = &kept.record.phase else { return Ok(Standing::of(kept)) };
            let reason = too_late(trouble.as_deref().unwrap_or("the worker that asked for it did not finish"));
            // A task that ECS made all the same is ended by the sweep.
            return self.enter(kept, Phase::Failed { reason }).await;
        }
        match self.clock.now().since(kept.record.since) < ASK_AGAIN {
            true => Ok(Standing::of(kept)),
            false => self.ask(kept).await,
        }
    }

    async fn inquire(&self, kept: KeptRecord, call: Call) -> Result<Standing> {
        let Some(task) = kept.record.task().map(str::to_owned) else { return Ok(Standing::of(kept)) };
        let mut tasks = match self.tasks.describe(std::slice::from_ref(&task)).await {
            Ok(tasks) => tasks,
            Err(fault) => {
                tracing::warn!(workspace = %kept.workspace, %fault, "ECS does not say how a sandbox is");
                return self.unknown(kept, &in_words(&fault)).await;
            }
        };
        self.judge(kept, tasks.remove(&task), call).await
    }

    /// Draws the conclusion from the state of the item's task in ECS; nothing when ECS knows none.
    pub(super) async fn judge(&self, kept: KeptRecord, seen: Option<Seen>, call: Call) -> Result<Standing> {
        let is_ready = matches!(kept.record.phase, Phase::Ready { .. });
        match seen.map(|seen| seen.status) {
            None if !is_ready && self.clock.now().since(kept.record.since) < UNKNOWN_FOR => {
                Ok(Standing::noting(kept, "ECS has taken the request"))
            }
            None => self.over(kept, "ECS does not know its task".into(), is_ready).await,
            Some(Status::Over { reason, in_order }) => self.over(kept, reason, is_ready || in_order).await,
            Some(Status::Coming(why)) => self.unknown(kept, why).await,
            Some(Status::Runs(_)) if is_ready && call == Call::UntilReady => Ok(Standing::of(kept)),
            // It was called, and did not answer.
            Some(Status::Runs(_)) if is_ready => self.listen(kept).await,
            Some(Status::Runs(None)) => self.unknown(kept, "it runs, and has no address").await,
            Some(Status::Runs(Some(address))) => {
                let Some(task) = kept.record.task().map(str::to_owned) else { return Ok(Standing::of(kept)) };
                let url = self.tasks.url(&address);
                let sandbox = self.speaker(&kept, &url)?;
                if answers(sandbox.as_ref()).await {
                    tracing::info!(workspace = %kept.workspace, task, "a sandbox is ready");
                    let standing = self.enter(kept, Phase::Ready { task, url, silent_since: None }).await?;
                    return Ok(Standing { sandbox: Some(sandbox).filter(|_| standing.is_ready()), ..standing });
                }
                let why = format!("it runs, and nothing answers on its port {}", self.tasks.port());
                self.unknown(kept, &why).await
            }
        }
    }

    /// It is not there yet, for this reason; or, when it is too late, it will not be.
    async fn unknown(&self, kept: KeptRecord, why: &str) -> Result<Standing> {
        let Phase::Started { task } = &kept.record.phase else { return Ok(Standing::noting(kept, why)) };
        if !self.is_late(&kept.record) {
            return Ok(Standing::noting(kept, why));
        }
        let reason = too_late(why);
        self.end(task, &reason).await;
        self.enter(kept, Phase::Failed { reason }).await
    }

    /// A ready one runs and does not answer: for a while that may be, and then it is ended.
    async fn listen(&self, kept: KeptRecord) -> Result<Standing> {
        let Phase::Ready { task, silent_since, .. } = &kept.record.phase else { return Ok(Standing::of(kept)) };
        let now = self.clock.now();
        match silent_since {
            Some(since) if now.since(*since) >= SILENT_FOR => {
                let reason = format!("it ran and did not answer for {} minutes", SILENT_FOR.as_secs() / 60);
                self.end(task, &reason).await;
                self.enter(kept, Phase::Ended { reason }).await
            }
            Some(_) => Ok(Standing::noting(kept, "it does not answer at the moment")),
            None => {
                let standing = self.silent(kept, Some(now)).await?;
                Ok(Standing { note: Some("it does not answer at the moment".into()), ..standing })
            }
        }
    }

    async fn silent(&self, kept: KeptRecord, silent_since: Option<domain::Timestamp>) -> Result<Standing> {
        let Phase::Ready { task, url, .. } = &kept.record.phase else { return Ok(Standing::of(kept)) };
        let phase = Phase::Ready { task: task.clone(), url: url.clone(), silent_since };
        let record = Record { phase, ..kept.record.clone() };
        self.write(kept, record).await
    }

    async fn over(&self, kept: KeptRecord, reason: String, was_ready: bool) -> Result<Standing> {
        tracing::info!(workspace = %kept.workspace, reason, was_ready, "a sandbox is over");
        let phase = if was_ready { Phase::Ended { reason } } else { Phase::Failed { reason } };
        self.enter(kept, phase).await
    }

    async fn enter(&self, kept: KeptRecord, phase: Phase) -> Result<Standing> {
        let record = kept.record.entering(phase, self.clock.now());
        self.write(kept, record).await
    }

    /// Writes an item on; after a lost race, returns the winner's.
    async fn write(&self, kept: KeptRecord, record: Record) -> Result<Standing> {
        match self.table.commit(vec![record.put(kept.workspace, Expect::Rev(kept.rev))?]).await {
            Ok(()) => {
                // Only the winner of the race reports the failure, so it is counted once.
                if let Phase::Failed { reason } = &record.phase {
                    tracing::warn!(workspace = %kept.workspace, reason, "a sandbox could not be had");
                    self.failures.fetch_add(1, Relaxed);
                }
                Ok(Standing::of(KeptRecord { rev: kept.rev + 1, record, ..kept }))
            }
            Err(Error::Conflict { .. }) => {
                Ok(Standing { kept: self.kept(kept.workspace).await?, ..Standing::default() })
            }
            Err(error) => Err(error),
        }
    }

    /// Ends a task that is not wanted. Should this fail, the sweep does it.
    async fn end(&self, task: &str, reason: &str) {
        if let Err(fault) = self.tasks.stop(task, reason).await {
            tracing::warn!(task, %fault, "the task of a sandbox could not be stopped; the sweep will");
        }
    }

    fn is_late(&self, record: &Record) -> bool {
        self.clock.now().since(record.asked_at) >= DEADLINE
    }
}

fn too_late(why: &str) -> String {
    format!("it was not there within {} minutes: {why}", DEADLINE.as_secs().div_ceil(60))
}

impl Standing {
    /// Whether its item says that it is.
    pub(super) fn is_ready(&self) -> bool {
        self.kept.as_ref().is_some_and(|kept| matches!(kept.record.phase, Phase::Ready { .. }))
    }
}

/// Whether it answers to its token.
async fn answers(sandbox: &dyn Sandbox) -> bool {
    let Some(mirror) = sandbox.mirror() else { return true };
    matches!(tokio::time::timeout(PATIENCE, mirror.mark()).await, Ok(Ok(_)))
}

/// The meaning of a fault for people; the log has the rest.
fn in_words(fault: &AwsFault) -> String {
    match (fault.class, &fault.code) {
        (Class::Throttled, _) => "ECS is asked too often".into(),
        (Class::Refused, Some(code)) => format!("ECS refuses ({code})"),
        (Class::Refused, None) => "ECS refuses".into(),
        (Class::Unknown, _) => "ECS does not answer".into(),
    }
}
