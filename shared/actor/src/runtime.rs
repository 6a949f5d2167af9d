//! The runtime: takes deliveries of the queue, drives their actors, and says how to settle them.

use crate::{
    ActorId, Follow, Machine, Perform,
    drive::{Drive, Ended, Failure},
    effect::panic_text,
    load::Loaded,
    log::next_number,
    newer,
    retry::while_unavailable,
    warm::Warm,
};
use NotDriven::{Failed, Outdated};
use domain::CommandId;
use futures::FutureExt;
use ports::{Bus, Clock, Delivery, KnownSecrets, Queue, Table};
use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How to settle deliveries of one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// To be acknowledged, counted from the first one: all that these asked for is done or durable.
    pub done: usize,
    /// The others are given back, to come again after this time.
    pub again: Duration,
}

/// What became of one delivery.
enum Settled {
    Done,
    Again(Duration),
}

/// How far a drive got.
struct Driven {
    /// Deliveries that all is done for.
    done: usize,
    /// Entries that the next one led to.
    committed: u32,
    outcome: Result<(), NotDriven>,
}

enum NotDriven {
    /// What was in memory was behind the log, and nothing came of it.
    Outdated,
    Failed(Failure),
}

/// How the runtime behaves.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// What was tried this often without a step forward pauses its actor. The queue's own limit has to be far above it: a
    /// turn that moves on may be delivered again and again, and dead letters are only for what even this could not settle.
    pub max_attempts: u32,
    /// How long a resting actor stays in memory (seed 000 §3).
    pub inactivity: Duration,
    /// The most actors that stay in memory.
    pub warm_actors: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { max_attempts: 6, inactivity: Duration::from_secs(600), warm_actors: 1024 }
    }
}

/// What actors of one kind are driven with.
pub(crate) struct Ports<M: Machine> {
    pub machine: M,
    pub perform: Arc<dyn Perform<M>>,
    pub table: Arc<dyn Table>,
    pub queue: Arc<dyn Queue>,
    pub bus: Arc<dyn Bus>,
    pub clock: Arc<dyn Clock>,
    pub follow: Arc<dyn Follow<M>>,
    pub secrets: KnownSecrets,
}

/// Drives the actors of one machine.
pub struct Runtime<M: Machine> {
    ports: Ports<M>,
    warm: Warm<M>,
    options: Options,
}

impl<M: Machine> Runtime<M> {
    /// A runtime over these ports.
    #[expect(clippy::too_many_arguments, reason = "one a port, named where they are put together")]
    pub fn new(
        machine: M,
        perform: Arc<dyn Perform<M>>,
        table: Arc<dyn Table>,
        queue: Arc<dyn Queue>,
        bus: Arc<dyn Bus>,
        clock: Arc<dyn Clock>,
        follow: Arc<dyn Follow<M>>,
        options: Options,
    ) -> Self {
        let secrets = KnownSecrets::default();
        let ports = Ports { machine, perform, table, queue, bus, clock, follow, secrets };
        Self { ports, warm: Warm::new(options.warm_actors), options }
    }

    /// The same, with these secrets taken out of whatever happens before it is written down: so no log, no stream, no view and
    /// no message has one, and an actor that is read from its log again is the one that was in memory.
    #[must_use]
    pub fn without(mut self, secrets: KnownSecrets) -> Self {
        self.ports.secrets = secrets;
        self
    }

    /// See [`crate::Kind::deliver`].
    pub async fn deliver(&self, deliveries: &[Delivery], cut: &CancellationToken) -> Verdict {
        let Some(first) = deliveries.first() else { return Verdict { done: 0, again: Duration::ZERO } };
        let actor = ActorId::from_group(&first.group);
        let mut warm = self.warm.take(&actor);
        let mut done = 0;
        let tried = match newer::tried(&*self.ports.table, &actor, deliveries, self.options.max_attempts).await {
            Ok(tried) => tried,
            Err(error) => {
                tracing::warn!(%actor, %error, "how often this was tried could not be read");
                return Verdict { done, again: Duration::from_secs(1) };
            }
        };
        while let Some(delivery) = tried.get(done) {
            let rest = tried.get(done..).unwrap_or_default();
            let Driven { done: more, committed, outcome } = self.drive(&actor, rest, warm.take(), cut).await;
            done += more;
            let settled = match outcome {
                Ok(_) => return Verdict { done, again: Duration::ZERO },
                Err(Outdated) => continue,
                Err(Failed(failure)) if failure.is_for_another_version() => {
                    self.leave(&actor, deliveries.get(done..).unwrap_or_default(), failure).await
                }
                Err(Failed(failure)) => {
                    let delivery = tried.get(done).unwrap_or(delivery);
                    self.failed(&actor, delivery, failure, committed).await
                }
            };
            match settled {
                Settled::Done => done += 1,
                Settled::Again(again) => return Verdict { done, again },
            }
        }
        Verdict { done, again: Duration::ZERO }
    }

    /// Drives the actor with these deliveries as far as it goes.
    async fn drive(
        &self,
        actor: &ActorId,
        deliveries: &[Delivery],
        warm: Option<Loaded<M>>,
        cut: &CancellationToken,
    ) -> Driven {
        let was_warm = warm.is_some();
        let loaded = match warm {
            Some(loaded) => loaded,
            None => match self.read(actor).await {
                Ok(loaded) => loaded,
                Err(error) => return Driven { done: 0, committed: 0, outcome: Err(Failed(error.into())) },
            },
        };
        let mut drive = Drive::new(&self.ports, actor, loaded);
        let run = drive.run(deliveries, self.options.max_attempts, cut);
        let ended = AssertUnwindSafe(run).catch_unwind().await;
        let ended = ended.unwrap_or_else(|panic| Err(Failure::Panicked(panic_text(panic.as_ref()))));
        let Drive { mut loaded, done, committed, committed_since, .. } = drive;
        // What decided nothing wrote nothing, so no condition has told yet whether the memory is behind the log.
        let outdated = match &ended {
            Err(Failure::Lost) => Ok(was_warm && committed == 0),
            _ if was_warm && committed == 0 => self.is_behind(actor, &loaded).await,
            _ => Ok(false),
        };
        let outcome = match (outdated, ended) {
            // Once more from the log, with all of them.
            (Ok(true), _) => return Driven { done: 0, committed: 0, outcome: Err(Outdated) },
            (Err(error), Ok(_)) => return Driven { done: 0, committed: 0, outcome: Err(Failed(error.into())) },
            (_, ended) => ended,
        };
        if let Ok(ended) = &outcome {
            if loaded.wants_snapshot() {
                self.snapshot(actor, &mut loaded).await;
            }
            if *ended == Ended::AtRest
                && let Some((actor, mut oldest)) = self.warm.put(actor.clone(), loaded)
            {
                self.snapshot(&actor, &mut oldest).await;
            }
        }
        Driven { done, committed: committed_since, outcome: outcome.map(drop).map_err(Failed) }
    }

    /// What becomes of a delivery that could not be driven to its end. `committed` counts the entries that it led to.
    async fn failed(&self, actor: &ActorId, delivery: &Delivery, failure: Failure, committed: u32) -> Settled {
        match failure {
            Failure::Poison(reason) => self.park(actor, delivery, reason).await,
            Failure::Lost => {
                tracing::info!(%actor, "another worker drives this actor");
                Settled::Again(Duration::from_millis(200))
            }
            // Nothing was written, for no fault of the stores, again and again: it will not be by itself.
            failure if committed == 0 && delivery.attempt >= self.options.max_attempts && !failure.is_outage() => {
                self.park(actor, delivery, format!("nothing moves on: {failure}")).await
            }
            failure => {
                let error: &dyn std::error::Error = &failure;
                tracing::error!(%actor, attempt = delivery.attempt, error, "a delivery failed");
                Settled::Again(Duration::from_millis(100 << delivery.attempt.min(9)))
            }
        }
    }

    /// What becomes of deliveries that this version cannot do: they rest until a worker comes that can. After long enough the
    /// actor is paused, where its log can be read; else they go on resting, until the queue puts them aside.
    async fn leave(&self, actor: &ActorId, deliveries: &[Delivery], failure: Failure) -> Settled {
        let Some(first) = deliveries.first() else { return Settled::Done };
        if first.attempt >= newer::PATIENCE {
            return self.park(actor, first, failure.to_string()).await;
        }
        tracing::warn!(%actor, attempt = first.attempt, error = %failure, "given back for another version");
        newer::note(&*self.ports.table, &*self.ports.clock, actor, deliveries).await;
        Settled::Again(newer::RESTS)
    }

    /// Pauses the actor and keeps the delivery for when it is resumed.
    async fn park(&self, actor: &ActorId, delivery: &Delivery, reason: String) -> Settled {
        #[derive(serde::Deserialize)]
        struct Id {
            id: CommandId,
        }
        let id = serde_json::from_str::<Id>(&delivery.body)
            .map_or_else(|_| CommandId::from_key(actor.as_str(), &delivery.id), |mail| mail.id);
        drop(self.warm.take(actor));
        let parked = async {
            let mut drive = Drive::new(&self.ports, actor, self.read(actor).await?);
            drive.park((id, delivery.body.clone()), reason.clone()).await
        };
        match parked.await {
            Ok(()) => {
                tracing::error!(%actor, reason, "paused");
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
        if loaded.logged_bytes > 0
            && let Err(error) = loaded.write_snapshot(&*self.ports.table, actor).await
        {
            tracing::warn!(%actor, %error, "a snapshot was not written");
        }
    }

    /// Flushes and forgets the actors that have rested for the inactivity time-out. Returns when to call it again.
    pub async fn flush_idle(&self) -> Instant {
        let (idle, next) = self.warm.take_idle(self.options.inactivity);
        self.flush(idle).await;
        // An actor that comes to rest in the meantime is at most a quarter of the time-out late.
        let soon = Instant::now() + self.options.inactivity / 4;
        next.map_or(soon, |next| next.min(soon))
    }

    /// Flushes and forgets all actors in memory: the process is about to end.
    pub async fn flush_all(&self) {
        self.flush(self.warm.take_idle(Duration::ZERO).0).await;
    }

    async fn flush(&self, actors: Vec<(ActorId, Loaded<M>)>) {
        // All at once: their commits share a sync.
        let flushing = actors.into_iter().map(|(actor, mut loaded)| async move {
            self.snapshot(&actor, &mut loaded).await;
            tracing::debug!(%actor, "flushed");
        });
        futures::future::join_all(flushing).await;
    }

    /// How many actors are in memory at rest.
    pub fn warm_actors(&self) -> usize {
        self.warm.len()
    }
}
