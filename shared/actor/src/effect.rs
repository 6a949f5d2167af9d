//! Runs the effects of a machine, each in a task of its own that can report.

use crate::{ActorId, EffectKey, Executor, Job, Machine, watchdog::watched};
use async_trait::async_trait;
use domain::panic_text;
use futures::{FutureExt, future::BoxFuture};
use std::{collections::HashMap, future::ready, panic::AssertUnwindSafe, sync::Arc};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

/// Carries out the effects of machines.
#[async_trait]
pub trait EffectRunner<M: Machine>: Send + Sync {
    /// Runs one effect to its end and returns its last report. It may run again after a crash, with a new attempt in its key: so its
    /// actions outside have to tolerate a repetition.
    async fn perform(&self, effect: M::Effect, context: EffectContext<M>) -> M::Report;

    /// Loads data that the machine's decisions need and cannot wait for: immutable things, named by `state` and by `next`, the command that
    /// is decided next. Called before each command is decided and before work in flight is resumed, also for an actor that was in memory,
    /// so it has to be quick when there is nothing to do.
    ///
    /// # Errors
    /// Those of the ports that it reads. An error fails the delivery, which comes again; in the end the actor is paused. So the inputs that
    /// pause and resume an actor need nothing of it, and before a command that ends the actor, or a resume that gives its work up, an error
    /// is only logged.
    async fn prepare(&self, actor: &ActorId, state: &M::State, next: Option<&M::Command>) -> ports::Result<()> {
        let _ = (actor, state, next);
        Ok(())
    }
}

/// The context of a running effect.
pub struct EffectContext<M: Machine> {
    /// The effect, and its attempt.
    pub key: EffectKey,
    /// Set when the machine has no use for the effect's reports. An effect that must not be cut short ignores it.
    pub cancelled: CancellationToken,
    reports: mpsc::Sender<(EffectKey, Message<M>)>,
}

impl<M: Machine> EffectContext<M> {
    /// Reports something before the end. Waits while the reports before it are still being made durable.
    pub async fn report(&self, report: M::Report) {
        // Without a receiver the worker is gone, and this task is about to be aborted.
        let _ = self.reports.send((self.key.clone(), Message::Progress(report))).await;
    }
}

pub(crate) enum Message<M: Machine> {
    Progress(M::Report),
    Finished(M::Report),
    Panicked(String),
}

/// One effect that runs.
struct Task {
    job: Job,
    cancelled: CancellationToken,
    waits: bool,
}

/// A report of an effect, and whether it is the last one.
pub(crate) struct Reported<M: Machine> {
    pub report: M::Report,
    pub is_last: bool,
}

/// The effects that run for one drive. Dropping it aborts them.
pub(crate) struct Running<M: Machine> {
    perform: Arc<dyn EffectRunner<M>>,
    executor: Executor,
    actor: ActorId,
    tasks: HashMap<EffectKey, Task>,
    sender: mpsc::Sender<(EffectKey, Message<M>)>,
    receiver: mpsc::Receiver<(EffectKey, Message<M>)>,
}

impl<M: Machine> Running<M> {
    pub fn new(perform: Arc<dyn EffectRunner<M>>, executor: Executor, actor: ActorId) -> Self {
        // Small: an effect that reports faster than its reports become durable has to wait, and joins them meanwhile.
        let (sender, receiver) = mpsc::channel(4);
        Self { perform, executor, actor, tasks: HashMap::new(), sender, receiver }
    }

    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Whether all that runs does its work elsewhere.
    pub fn only_waits(&self) -> bool {
        self.tasks.values().all(|task| task.waits)
    }

    /// Starts an effect. `waits` comes from [`Machine::waits`].
    pub fn start(&mut self, key: EffectKey, effect: M::Effect, waits: bool) {
        let (work, cancelled) = self.work(&key, effect);
        self.spawn(key, work, cancelled, waits);
    }

    /// Starts an effect that reports once, and polls it here first. Returns its report if it has ended by then. Otherwise the effect runs on, and a panic
    /// is reported as that of any other.
    pub fn start_here(&mut self, key: EffectKey, effect: M::Effect, waits: bool) -> Option<M::Report> {
        let (mut work, cancelled) = self.work(&key, effect);
        let work = match (&mut work).now_or_never() {
            Some(Message::Finished(report)) => return Some(report),
            Some(message) => ready(message).boxed(),
            None => work,
        };
        self.spawn(key, work, cancelled, waits);
        None
    }

    /// Delivers a report later, as that of a running effect.
    pub fn report_later(&mut self, key: EffectKey, report: M::Report) {
        self.spawn(key, ready(Message::Finished(report)).boxed(), CancellationToken::new(), false);
    }

    /// The work of an effect, which ends with its last message, and the token that cancels it.
    fn work(&self, key: &EffectKey, effect: M::Effect) -> (BoxFuture<'static, Message<M>>, CancellationToken) {
        let cancelled = CancellationToken::new();
        let context = EffectContext { key: key.clone(), cancelled: cancelled.clone(), reports: self.sender.clone() };
        let perform = self.perform.clone();
        // Log lines of an effect name the actor, as the lines of the worker that drives it do.
        let work = watched(Arc::<str>::from(self.actor.as_str()), async move {
            match AssertUnwindSafe(perform.perform(effect, context)).catch_unwind().await {
                Ok(report) => Message::Finished(report),
                Err(panic) => Message::Panicked(panic_text(panic.as_ref())),
            }
        });
        (work.in_current_span().boxed(), cancelled)
    }

    fn spawn(
        &mut self,
        key: EffectKey,
        work: BoxFuture<'static, Message<M>>,
        cancelled: CancellationToken,
        waits: bool,
    ) {
        let (sender, name) = (self.sender.clone(), key.clone());
        let job = self.executor.spawn(self.actor.as_str(), async move {
            let message = work.await;
            let _ = sender.send((name, message)).await;
        });
        self.tasks.insert(key, Task { job, cancelled, waits });
    }

    /// Cancels an effect and drops its further reports. One that must not be cut short runs to its end.
    pub fn cancel(&mut self, key: &EffectKey) {
        if let Some(task) = self.tasks.remove(key) {
            task.cancelled.cancel();
            task.job.detach();
        }
    }

    /// The next report of an effect that was not cancelled. Waits for ever when no effect reports.
    ///
    /// # Errors
    /// The text of a panic of an effect, which has ended by it.
    pub async fn next(&mut self) -> Result<Reported<M>, String> {
        loop {
            let Some((key, message)) = self.receiver.recv().await else { std::future::pending().await };
            if !self.tasks.contains_key(&key) {
                continue;
            }
            match message {
                Message::Progress(report) => return Ok(Reported { report, is_last: false }),
                Message::Finished(report) => {
                    self.tasks.remove(&key);
                    return Ok(Reported { report, is_last: true });
                }
                Message::Panicked(text) => {
                    self.tasks.remove(&key);
                    return Err(text);
                }
            }
        }
    }
}
