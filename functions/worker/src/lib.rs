//! The worker: takes deliveries off the queue, has the actor runtime drive them, and settles them as it says.
//!
//! It keeps a delivery invisible for as long as its actor is driven, and runs many actors at once; the queue sees to it that
//! none runs twice. On shutdown it takes no more, lets what runs end for a while, and then has it checkpointed: the actor
//! tells itself to continue, and goes on in the next process.

mod metrics;

pub use metrics::Metrics;

use actor::{Machine, Runtime, Verdict};
use ports::{Delivery, Queue};
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
    time::Instant,
};
use tokio_util::sync::CancellationToken;

/// How a worker works.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The most actors that are driven at once.
    pub concurrency: usize,
    /// How long a delivery stays invisible without a sign of life; a worker that died is replaced after this time.
    pub visibility: Duration,
    /// How long what runs may take to end after a shutdown began, before it is checkpointed.
    pub drain: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { concurrency: 256, visibility: Duration::from_secs(30), drain: Duration::from_secs(10) }
    }
}

/// A worker for the actors of one machine.
pub struct Worker<M: Machine> {
    runtime: Arc<Runtime<M>>,
    queue: Arc<dyn Queue>,
    options: Options,
    metrics: Arc<Metrics>,
}

impl<M: Machine> Clone for Worker<M> {
    fn clone(&self) -> Self {
        Self {
            runtime: self.runtime.clone(),
            queue: self.queue.clone(),
            options: self.options,
            metrics: self.metrics.clone(),
        }
    }
}

impl<M: Machine> Worker<M> {
    /// A worker over this runtime and the queue that feeds it.
    pub fn new(runtime: Arc<Runtime<M>>, queue: Arc<dyn Queue>, options: Options) -> Self {
        Self { runtime, queue, options, metrics: Arc::default() }
    }

    /// What it has done so far.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// How many actors are in memory at rest.
    pub fn warm_actors(&self) -> usize {
        self.runtime.warm_actors()
    }

    /// Works until `shutdown`, then ends what runs and flushes the actors in memory.
    pub async fn run(&self, shutdown: CancellationToken) {
        let cut = CancellationToken::new();
        let permits = Arc::new(Semaphore::new(self.options.concurrency));
        let mut driven = JoinSet::new();
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = self.take(&permits, &cut, &mut driven) => {}
            () = self.flush_idle() => {}
        }
        let ended = async { while driven.join_next().await.is_some() {} };
        if tokio::time::timeout(self.options.drain, ended).await.is_err() {
            tracing::info!(turns = driven.len(), "still running: checkpointing");
            cut.cancel();
            while driven.join_next().await.is_some() {}
        }
        self.runtime.flush_all().await;
    }

    async fn take(&self, permits: &Arc<Semaphore>, cut: &CancellationToken, driven: &mut JoinSet<()>) {
        /// SQS gives at most ten messages a call.
        const BATCH: usize = 10;
        loop {
            let Ok(permit) = permits.clone().acquire_owned().await else { return };
            let free = 1 + permits.available_permits();
            let deliveries = match self.queue.receive(free.min(BATCH), self.options.visibility).await {
                Ok(deliveries) => deliveries,
                Err(error) => {
                    tracing::error!(%error, "the queue cannot be read");
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    continue;
                }
            };
            let mut first = Some(permit);
            for delivery in deliveries {
                let Some(permit) = first.take().or_else(|| permits.clone().try_acquire_owned().ok()) else { break };
                driven.spawn(self.clone().settle(delivery, cut.clone(), permit));
            }
            while driven.try_join_next().is_some() {}
        }
    }

    /// Drives one delivery and settles it.
    pub async fn handle(&self, delivery: &Delivery, cut: &CancellationToken) -> Verdict {
        let _running = self.metrics.begin();
        let verdict = tokio::select! {
            verdict = self.runtime.deliver(delivery, cut) => verdict,
            // Somebody else has it: what this one still did, a model call above all, would be thrown away.
            () = self.keep_invisible(delivery) => Verdict::Retry(Duration::ZERO),
        };
        let settled = match verdict {
            Verdict::Ack => self.queue.ack(&delivery.receipt).await,
            Verdict::Retry(delay) => self.queue.reject(&delivery.receipt, delay).await,
        };
        match settled {
            Ok(true) => {}
            Ok(false) => tracing::warn!(group = delivery.group, "the delivery had timed out; it comes again"),
            Err(error) => {
                tracing::warn!(group = delivery.group, %error, "the delivery was not settled; it comes again")
            }
        }
        self.metrics.ended(verdict);
        verdict
    }

    async fn settle(self, delivery: Delivery, cut: CancellationToken, permit: OwnedSemaphorePermit) {
        self.handle(&delivery, &cut).await;
        drop(permit);
    }

    /// Extends the delivery for as long as it is this worker's.
    async fn keep_invisible(&self, delivery: &Delivery) {
        loop {
            tokio::time::sleep(self.options.visibility / 3).await;
            match self.queue.extend(&delivery.receipt, self.options.visibility).await {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => tracing::warn!(group = delivery.group, %error, "the delivery was not extended"),
            }
        }
    }

    async fn flush_idle(&self) {
        loop {
            let next: Instant = self.runtime.flush_idle().await;
            tokio::time::sleep_until(next).await;
        }
    }
}
