//! The runtime: takes deliveries of the queue, drives their actors, and says how to settle them.

use crate::{
    ActorId, EffectRunner, EntryObserver, Executor, Machine, OutboxContributor,
    actor_cache::{ActorCache, CacheCounts, CacheLimits, CacheSize, RestingActor},
    delivery_attempt::{self, DeliveryAttempt, Quarantine},
    drive::{Drive, Ended, Ports},
    failure::DriveError,
    load::Loaded,
    log::next_number,
    newer_version,
    retry::while_unavailable,
    truncate::{is_too_old, truncate},
};
use domain::{CommandId, panic_text};
use futures::FutureExt;
use ports::{Bus, Clock, Delivery, KnownSecrets, QueueSender, Table};
use std::{future::Future, panic::AssertUnwindSafe, sync::Arc, time::Duration};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How to settle deliveries of one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// To be acknowledged, counted from the first one: all that these asked for is done or durable.
    pub done: usize,
    /// The others are given back, to come again after this time.
    pub again: Duration,
}

/// The result of one delivery.
enum Settled {
    Done,
    Again(Duration),
}

/// The result of an attempt. Numbers count the deliveries that are done.
enum Attempted {
    Driven(usize, Ended),
    /// The memory was behind the log, so the attempt had no effect.
    Outdated,
    /// The delivery behind those that are done is to be settled like this.
    Failed(usize, Settled),
}

/// How far a drive got.
struct Driven {
    /// Deliveries that all is done for.
    done: usize,
    outcome: Result<Ended, NotDriven>,
}

enum NotDriven {
    /// The memory was behind the log, so the attempt had no effect.
    Outdated,
    Failed(DriveError),
}

/// How the runtime behaves.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// An actor that failed this often by itself, without a step forward in between, is paused; [`crate::delivery_attempt`] says which failures count.
    /// The queue's own limit has to be far above it: a turn may be delivered again and again for reasons that are not its own, and dead
    /// letters are only for deliveries that even a pause could not settle.
    pub max_attempts: u32,
    /// How long an actor stays at rest, until it is shut down (spec 000 §3).
    pub inactivity: Duration,
    /// The most actors that stay at rest.
    pub warm_actors: usize,
    /// The cache of actors that were shut down; by default it keeps nothing.
    pub cache: CacheLimits,
}

impl Default for Options {
    fn default() -> Self {
        Self { max_attempts: 6, inactivity: Duration::from_secs(600), warm_actors: 1024, cache: CacheLimits::default() }
    }
}

/// Drives the actors of one machine.
///
/// # Example
/// ```
/// use buildscale_actor::{Machine, Runtime};
/// use ports::QueueReceiver;
/// use std::time::Duration;
/// use tokio_util::sync::CancellationToken;
///
/// /// Takes a batch of one group from the queue, and settles it.
/// async fn work<M: Machine>(runtime: &Runtime<M>, queue: &dyn QueueReceiver) -> ports::Result<()> {
///     let batch = queue.receive(1, Duration::from_secs(60)).await?;
///     let verdict = runtime.deliver(&batch, &CancellationToken::new()).await;
///     let receipts: Vec<_> = batch.into_iter().map(|delivery| delivery.receipt).collect();
///     let (done, again) = receipts.split_at(verdict.done);
///     queue.ack(done).await?;
///     queue.reject(again, verdict.again).await?;
///     Ok(())
/// }
/// ```
pub struct Runtime<M: Machine> {
    ports: Ports<M>,
    cache: ActorCache<M>,
    quarantine: Quarantine,
    options: Options,
}

impl<M: Machine> Runtime<M> {
    /// A runtime over these ports.
    #[expect(clippy::too_many_arguments, reason = "one per port, named where they are put together")]
    pub fn new(
        machine: M,
        perform: Arc<dyn EffectRunner<M>>,
        table: Arc<dyn Table>,
        queue: Arc<dyn QueueSender>,
        bus: Arc<dyn Bus>,
        clock: Arc<dyn Clock>,
        follow: Arc<dyn EntryObserver<M>>,
        options: Options,
    ) -> Self {
        let (contributor, secrets, executor) = Default::default();
        let ports = Ports { machine, perform, table, queue, bus, clock, follow, contributor, secrets, executor };
        let cache = ActorCache::new(options.warm_actors, options.cache);
        Self { ports, cache, quarantine: Quarantine::default(), options }
    }

    /// The same, with these secrets redacted from each event before it is written: so no log, stream, view or message has one, and an actor
    /// that is read from its log again has the same state as the one in memory.
    #[must_use]
    pub fn redacting(mut self, secrets: KnownSecrets) -> Self {
        self.ports.secrets = secrets;
        self
    }

    /// The same, with the messages of this contributor in the outboxes of its entries.
    #[must_use]
    pub fn with_contributor(mut self, contributor: Option<Arc<dyn OutboxContributor<M>>>) -> Self {
        self.ports.contributor = contributor;
        self
    }

    /// The same, with the quarantine that it shares with the other runtimes of the process.
    #[must_use]
    pub fn sharing(mut self, quarantine: Quarantine) -> Self {
        self.quarantine = quarantine;
        self
    }

    /// The same, with effects that run on this executor, which it shares with the worker of the process.
    #[must_use]
    pub fn on(mut self, executor: Executor) -> Self {
        self.ports.executor = executor;
        self
    }

    /// See [`crate::ActorDriver::deliver`].
    pub async fn deliver(&self, deliveries: &[Delivery], cut: &CancellationToken) -> Settlement {
        let Some(first) = deliveries.first() else { return Settlement { done: 0, again: Duration::ZERO } };
        let actor = ActorId::from_group(&first.group);
        let (mut done, mut rereads) = (0, false);
        while let Some(rest) = deliveries.get(done..).filter(|rest| !rest.is_empty()) {
            if done > 0 && cut.is_cancelled() {
                return Settlement { done, again: Duration::ZERO };
            }
            let now = self.ports.clock.now();
            let cached = if rereads { None } else { self.cache.take(&actor).filter(|one| !is_too_old(one, now)) };
            rereads = false;
            let settled = match self.attempt(&actor, delivery_attempt::driven_together(rest), cached, cut).await {
                Attempted::Driven(more, Ended::AtRest) => {
                    done += more;
                    continue;
                }
                Attempted::Driven(more, Ended::CutShort) => {
                    return Settlement { done: done + more, again: Duration::ZERO };
                }
                Attempted::Outdated => {
                    self.cache.count_outdated();
                    rereads = true;
                    continue;
                }
                Attempted::Failed(more, settled) => {
                    done += more;
                    settled
                }
            };
            match settled {
                Settled::Done => done += 1,
                Settled::Again(again) => return Settlement { done, again },
            }
        }
        Settlement { done, again: Duration::ZERO }
    }

    /// One attempt at deliveries that are driven together, unless the first of them still has to rest, or failed often enough.
    async fn attempt(
        &self,
        actor: &ActorId,
        deliveries: &[Delivery],
        cached: Option<Loaded<M>>,
        cut: &CancellationToken,
    ) -> Attempted {
        let Some(first) = deliveries.first() else { return Attempted::Driven(0, Ended::AtRest) };
        let Ports { table, clock, .. } = &self.ports;
        let mut attempt = match DeliveryAttempt::open(table, clock, &self.quarantine, actor, first).await {
            Ok(attempt) => attempt,
            Err(error) => {
                tracing::warn!(%actor, error = %error.with_causes(), "the record about this delivery could not be read");
                return Attempted::Failed(0, Settled::Again(Duration::from_secs(1)));
            }
        };
        if let Some(reason) = attempt.pause_reason(self.options.max_attempts) {
            return Attempted::Failed(0, self.park(actor, first, reason, &mut attempt).await);
        }
        let rests = attempt.remaining_backoff();
        if rests > Duration::ZERO {
            return Attempted::Failed(0, Settled::Again(rests));
        }
        let Driven { done, outcome } = self.drive(actor, deliveries, cached, &mut attempt, cut).await;
        match outcome {
            Ok(ended) => {
                attempt.record_progress().await;
                Attempted::Driven(done, ended)
            }
            Err(NotDriven::Outdated) => {
                attempt.leave_quarantine().await;
                Attempted::Outdated
            }
            Err(NotDriven::Failed(failure)) => {
                let rest = deliveries.get(done..).unwrap_or_default();
                let Some(delivery) = rest.first() else {
                    return Attempted::Failed(done, Settled::Again(Duration::from_secs(1)));
                };
                attempt.record_failure(&delivery.id, &failure).await;
                Attempted::Failed(done, self.failed(actor, delivery, failure, &mut attempt).await)
            }
        }
    }

    /// Drives the actor with these deliveries as far as it goes.
    async fn drive(
        &self,
        actor: &ActorId,
        deliveries: &[Delivery],
        cached: Option<Loaded<M>>,
        attempt: &mut DeliveryAttempt,
        cut: &CancellationToken,
    ) -> Driven {
        let was_cached = cached.is_some();
        let reading = async {
            attempt.begin().await?;
            match cached {
                Some(loaded) => Ok(loaded),
                None => self.read(actor).await,
            }
        };
        let loaded = match caught(reading).await {
            Ok(Ok(loaded)) => loaded,
            Ok(Err(error)) => return Driven { done: 0, outcome: Err(NotDriven::Failed(error.into())) },
            Err(panicked) => return Driven { done: 0, outcome: Err(NotDriven::Failed(panicked)) },
        };
        let mut drive = Drive::new(&self.ports, actor, loaded, attempt);
        let ended = caught(drive.run(deliveries, cut)).await.unwrap_or_else(Err);
        let Drive { mut loaded, done, committed, .. } = drive;
        // A decision without events wrote nothing, so no condition has told yet whether the memory is behind the log.
        let outdated = match &ended {
            Err(DriveError::Lost | DriveError::Removed) => Ok(was_cached && committed == 0),
            _ if was_cached && committed == 0 => self.is_behind(actor, &loaded).await,
            _ => Ok(false),
        };
        let outcome = match (outdated, ended) {
            // Once more from the log, with all of them.
            (Ok(true), _) => return Driven { done: 0, outcome: Err(NotDriven::Outdated) },
            (Err(error), Ok(_)) => return Driven { done: 0, outcome: Err(NotDriven::Failed(error.into())) },
            (_, ended) => ended,
        };
        if let Ok(ended) = &outcome {
            if loaded.wants_snapshot() {
                self.snapshot(actor, &mut loaded).await;
            }
            if *ended == Ended::AtRest
                && !M::is_over(&loaded.state)
                && let Some((actor, mut oldest)) = self.cache.put(actor.clone(), loaded)
            {
                self.snapshot(&actor, &mut oldest).await;
            }
        }
        Driven { done, outcome: outcome.map_err(NotDriven::Failed) }
    }

    /// Settles a delivery that could not be driven to its end.
    async fn failed(
        &self,
        actor: &ActorId,
        delivery: &Delivery,
        failure: DriveError,
        attempt: &mut DeliveryAttempt,
    ) -> Settled {
        if failure.is_for_another_version() {
            return self.leave(actor, delivery, failure, attempt).await;
        }
        match failure {
            DriveError::Poison(reason) => self.park(actor, delivery, reason, attempt).await,
            DriveError::Lost => {
                tracing::info!(%actor, "another worker drives this actor");
                Settled::Again(Duration::from_millis(200))
            }
            DriveError::Removed => {
                tracing::info!(%actor, "the log of this actor was removed, and its step with it");
                // Earlier steps that changed no view may have written entries after the removal.
                if let Err(error) = self.ports.table.clear(actor.as_str()).await {
                    tracing::warn!(%actor, error = %error.with_causes(), "late entries of a removed log stay");
                }
                Settled::Done
            }
            failure => {
                if let Some(reason) = attempt.pause_reason(self.options.max_attempts) {
                    return self.park(actor, delivery, format!("{reason}: {failure}"), attempt).await;
                }
                let error: &dyn std::error::Error = &failure;
                tracing::error!(%actor, attempt = delivery.attempt, error, "a delivery failed");
                let rests = Duration::from_millis(100 << delivery.attempt.min(9));
                Settled::Again(if failure.is_own() { attempt.remaining_backoff() } else { rests })
            }
        }
    }

    /// Settles a delivery that this version cannot handle: it rests until a worker of a newer version comes. After long enough the actor is
    /// paused, if its log can be read; else the delivery goes on resting, until the queue puts it aside.
    async fn leave(
        &self,
        actor: &ActorId,
        delivery: &Delivery,
        failure: DriveError,
        attempt: &mut DeliveryAttempt,
    ) -> Settled {
        if attempt.times_unread() >= newer_version::MAX_DELIVERIES {
            return self.park(actor, delivery, failure.to_string(), attempt).await;
        }
        tracing::warn!(%actor, attempt = delivery.attempt, error = %failure, "given back for another version");
        Settled::Again(newer_version::REDELIVERY_DELAY)
    }

    /// Pauses the actor and keeps the delivery for when it is resumed.
    async fn park(
        &self,
        actor: &ActorId,
        delivery: &Delivery,
        reason: String,
        attempt: &mut DeliveryAttempt,
    ) -> Settled {
        #[derive(serde::Deserialize)]
        struct Id {
            id: CommandId,
        }
        let id = serde_json::from_str::<Id>(&delivery.body)
            .map_or_else(|_| CommandId::from_key(actor.as_str(), &delivery.id), |envelope| envelope.id);
        drop(self.cache.take(actor));
        let parked = caught(async {
            let loaded = self.read(actor).await?;
            Drive::new(&self.ports, actor, loaded, attempt).park((id, delivery.body.clone()), reason.clone()).await
        });
        match parked.await.unwrap_or_else(Err) {
            Ok(()) => {
                tracing::error!(%actor, reason, "paused");
                attempt.record_progress().await;
                Settled::Done
            }
            Err(failure) => {
                let error: &dyn std::error::Error = &failure;
                tracing::error!(%actor, error, "an actor could not be paused");
                Settled::Again(Duration::from_secs(30))
            }
        }
    }

    async fn read(&self, actor: &ActorId) -> ports::Result<Loaded<M>> {
        let loaded = while_unavailable(|| Loaded::<M>::read(&*self.ports.table, actor)).await?;
        self.ports.follow.loaded(actor, &loaded.state).await;
        Ok(loaded)
    }

    /// Whether another worker has driven the actor since it was kept in memory.
    async fn is_behind(&self, actor: &ActorId, loaded: &Loaded<M>) -> ports::Result<bool> {
        let next = while_unavailable(|| next_number(&*self.ports.table, actor)).await?;
        Ok(next > loaded.next)
    }

    /// A snapshot only saves time: without it the log is read instead.
    async fn snapshot(&self, actor: &ActorId, loaded: &mut Loaded<M>) {
        if loaded.logged_bytes == 0 {
            return;
        }
        if let Err(error) = loaded.write_snapshot(&*self.ports.table, actor).await {
            tracing::warn!(%actor, error = %error.with_causes(), "a snapshot was not written");
        } else if M::TRUNCATES {
            let now = self.ports.clock.now();
            if let Err(error) = truncate(&*self.ports.table, actor, loaded, now).await {
                tracing::warn!(%actor, error = %error.with_causes(), "old entries of a log stay for now");
            }
        }
    }

    /// Shuts the actors down that have rested for the inactivity time-out: they are flushed, and forgotten but for [`Options::cache`]. Returns when to
    /// call it again.
    pub async fn flush_idle(&self) -> Instant {
        let (idle, next) = self.cache.take_idle(self.options.inactivity);
        self.cache.insert_flushed(self.flush(idle).await);
        // An actor that comes to rest in the meantime is at most a quarter of the time-out late.
        let soon = Instant::now() + self.options.inactivity / 4;
        next.map_or(soon, |next| next.min(soon))
    }

    /// Flushes and forgets all actors in memory: the process is about to end.
    pub async fn flush_all(&self) {
        self.flush(self.cache.take_idle(Duration::ZERO).0).await;
    }

    async fn flush(&self, actors: Vec<RestingActor<M>>) -> Vec<RestingActor<M>> {
        // All at once: their commits share a sync.
        let flushing = actors.into_iter().map(|mut resting| async move {
            self.snapshot(&resting.actor, &mut resting.loaded).await;
            tracing::debug!(actor = %resting.actor, "flushed");
            resting
        });
        futures::future::join_all(flushing).await
    }

    /// How many actors are in memory at rest.
    pub fn warm_actors(&self) -> usize {
        self.cache.len()
    }

    /// How often the memory had the actor that a delivery was for.
    pub fn cache_counts(&self) -> CacheCounts {
        self.cache.counts()
    }

    /// How much is kept of actors that were shut down.
    pub fn cache_size(&self) -> CacheSize {
        self.cache.cache_size()
    }
}

/// The result of `work`, or its panic as an error.
async fn caught<T>(work: impl Future<Output = T>) -> Result<T, DriveError> {
    let outcome = AssertUnwindSafe(work).catch_unwind().await;
    outcome.map_err(|panic| DriveError::Panicked(panic_text(panic.as_ref())))
}
