//! The worker: takes deliveries off the queue, has the actor runtime drive them, and settles them by its verdict.
//!
//! It keeps deliveries invisible for as long as their actor is driven, and runs many actors at once; the queue ensures that none runs
//! twice. They share the processors by turns ([`Executor`]). The first part of a group names the kind of actor, and so the runtime that
//! drives it. On shutdown it takes no more deliveries, lets running actors end for a while, and then has them checkpointed: the actor tells
//! itself to continue, and goes on in the next process.

mod metrics;

pub use metrics::Metrics;

use actor::{ActorDriver, ActorId, CacheCounts, CacheSize, Executor, Job, Settlement, watchdog::watched};
use domain::ActorRef;
use futures::{FutureExt, StreamExt, future::join_all, stream::FuturesUnordered};
use ports::{Delivery, MAX_BATCH, QueueReceiver, Receipt};
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, Span, error_span};

/// How a worker works.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The most actors that are driven at once.
    pub concurrency: usize,
    /// How long a delivery stays invisible without a sign of life; a worker that died is replaced after this time.
    pub visibility: Duration,
    /// How long running actors may take to end after a shutdown began, before they are checkpointed.
    pub drain: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { concurrency: 512, visibility: Duration::from_secs(30), drain: Duration::from_secs(10) }
    }
}

/// How long a delivery rests that is for a kind of actor which this worker does not know: another one may, after an update.
const UNKNOWN_RESTS: Duration = Duration::from_secs(30);

/// The side that set the first visibility of deliveries: this worker, or another receiver.
#[derive(Clone, Copy)]
enum Lease {
    Own,
    Another,
}

/// A worker for the actors of some kinds.
#[derive(Clone)]
pub struct Worker {
    kinds: Arc<BTreeMap<&'static str, Arc<dyn ActorDriver>>>,
    queue: Arc<dyn QueueReceiver>,
    options: Options,
    metrics: Arc<Metrics>,
    executor: Executor,
}

impl Worker {
    /// A worker for actors of these kinds and the queue that feeds it.
    pub fn new(
        kinds: impl IntoIterator<Item = Arc<dyn ActorDriver>>,
        queue: Arc<dyn QueueReceiver>,
        options: Options,
    ) -> Self {
        let kinds = kinds.into_iter().map(|kind| (kind.name(), kind)).collect();
        Self { kinds: Arc::new(kinds), queue, options, metrics: Arc::default(), executor: Executor::default() }
    }

    /// The same, with deliveries that run on this executor, as the effects of their actors do.
    #[must_use]
    pub fn on(mut self, executor: Executor) -> Self {
        self.executor = executor;
        self
    }

    /// The counters of the work done so far.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// How many actors are in memory at rest.
    pub fn warm_actors(&self) -> usize {
        self.kinds.values().map(|kind| kind.warm_actors()).sum()
    }

    /// How often the memory had the actor that a delivery was for.
    pub fn cache_counts(&self) -> CacheCounts {
        self.kinds.values().fold(CacheCounts::default(), |mut sum, kind| {
            sum += kind.cache_counts();
            sum
        })
    }

    /// How much is kept of actors that were shut down.
    pub fn cache_size(&self) -> CacheSize {
        self.kinds.values().fold(CacheSize::default(), |mut sum, kind| {
            sum += kind.cache_size();
            sum
        })
    }

    /// Works until `shutdown`, then ends the running actors and flushes those in memory.
    pub async fn run(&self, shutdown: CancellationToken) {
        let cut = CancellationToken::new();
        let permits = Arc::new(Semaphore::new(self.options.concurrency));
        let mut driven = FuturesUnordered::new();
        tokio::select! {
            biased;
            () = shutdown.cancelled() => {}
            () = self.take(&permits, &cut, &mut driven) => {}
            () = self.flush_idle() => {}
        }
        let ended = async { while driven.next().await.is_some() {} };
        if tokio::time::timeout(self.options.drain, ended).await.is_err() {
            tracing::info!(turns = driven.len(), "still running: checkpointing");
            cut.cancel();
            while driven.next().await.is_some() {}
        }
        join_all(self.kinds.values().map(|kind| kind.flush_all())).await;
    }

    async fn take(&self, permits: &Arc<Semaphore>, cut: &CancellationToken, driven: &mut FuturesUnordered<Job>) {
        loop {
            let Ok(permit) = permits.clone().acquire_owned().await else { return };
            // Never more messages than actors may be driven at once: each could be of another one.
            let free = 1 + permits.available_permits();
            let deliveries = match self.queue.receive(free.min(MAX_BATCH), self.options.visibility).await {
                Ok(deliveries) => deliveries,
                Err(error) => {
                    tracing::error!(error = %error.with_causes(), "the queue cannot be read");
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    continue;
                }
            };
            let mut first = Some(permit);
            for batch in deliveries.chunk_by(|one, next| one.group == next.group) {
                let Some(permit) = first.take().or_else(|| permits.clone().try_acquire_owned().ok()) else { break };
                let settling = self.clone().settle(batch.to_vec(), cut.clone(), permit);
                driven.push(self.executor.spawn(group_of(batch), settling));
            }
            while let Some(Some(())) = driven.next().now_or_never() {}
        }
    }

    /// Drives deliveries of one group and settles them.
    pub async fn handle(&self, deliveries: &[Delivery], cut: &CancellationToken) -> Settlement {
        let (verdict, receipts) = self.attend(deliveries, cut, Lease::Own).await;
        self.acknowledge(deliveries, receipts.get(..verdict.done).unwrap_or_default()).await;
        verdict
    }

    /// Drives a batch that another receiver took off the queue, as SQS does for a function: as [`Worker::handle`] does for one group, for
    /// each group in it at once. The receiver acknowledges the rest, all but the receipts that are returned: these were given back, and
    /// come again in order.
    ///
    /// A group is acknowledged here when it is done while others still run: its next command need not wait for the longest of them, nor
    /// come again when one of them takes the process along. The last one is left to the receiver of the batch, so that a batch of one group
    /// costs no request more.
    ///
    /// Such a batch is leased for the longest time that the function may run, so its visibility is shortened first: then a worker
    /// that dies is replaced after [`Options::visibility`].
    ///
    /// Meanwhile actors are shut down that have rested for the inactivity time-out, as [`Worker::run`] does all the time: a function is frozen between two
    /// batches, and the memory of an instance that lives for hours would have each actor that it ever drove.
    pub async fn batch(&self, deliveries: Vec<Delivery>, cut: &CancellationToken) -> Vec<Receipt> {
        let mut groups: Vec<Vec<Delivery>> = Vec::new();
        for delivery in deliveries {
            match groups.iter_mut().find(|group| group.first().is_some_and(|first| first.group == delivery.group)) {
                Some(group) => group.push(delivery),
                None => groups.push(vec![delivery]),
            }
        }
        let running = AtomicUsize::new(groups.len());
        let attended = groups.iter().map(|group| async {
            let (verdict, mut receipts) = self.attend(group, cut, Lease::Another).await;
            let again = receipts.split_off(verdict.done);
            if running.fetch_sub(1, Relaxed) > 1 {
                self.acknowledge(group, &receipts).await;
            }
            again
        });
        // Second, so that the actors of the batch are out of the memory by then.
        let idle = join_all(self.kinds.values().map(|kind| kind.flush_idle()));
        let (again, _) = tokio::join!(join_all(attended), idle);
        again.into_iter().flatten().collect()
    }

    async fn acknowledge(&self, deliveries: &[Delivery], done: &[Receipt]) {
        if let Some(first) = deliveries.first().filter(|_| !done.is_empty()) {
            report(&first.group, self.queue.ack(done).await);
        }
    }

    /// Drives deliveries of one group, keeps them invisible meanwhile, and gives back those that are not done.
    async fn attend(
        &self,
        deliveries: &[Delivery],
        cut: &CancellationToken,
        lease: Lease,
    ) -> (Settlement, Vec<Receipt>) {
        let _running = self.metrics.begin();
        let receipts: Vec<Receipt> = deliveries.iter().map(|delivery| delivery.receipt.clone()).collect();
        let group = group_of(deliveries);
        let mut verdict = tokio::select! {
            biased;
            verdict = self.dispatch(group, deliveries, cut) => verdict,
            // Another worker has them: further work of this one, a model call above all, would be thrown away.
            () = self.keep_invisible(group, &receipts, lease) => Settlement { done: 0, again: Duration::ZERO },
        };
        verdict.done = verdict.done.min(receipts.len());
        let again = receipts.get(verdict.done..).unwrap_or_default();
        if !again.is_empty() {
            report(group, self.queue.reject(again, verdict.again).await);
        }
        self.metrics.ended(deliveries.len(), verdict);
        (verdict, receipts)
    }

    async fn dispatch(&self, group: &str, deliveries: &[Delivery], cut: &CancellationToken) -> Settlement {
        let actor = ActorId::from_group(group);
        let span = actor_span(group);
        match self.kinds.get(actor.kind()) {
            Some(kind) => {
                let verdict = watched(group, kind.deliver(deliveries, cut)).instrument(span).await;
                if cut.is_cancelled() {
                    self.metrics.checkpointed.fetch_add(1, Relaxed);
                }
                verdict
            }
            None => {
                tracing::error!(group, kind = actor.kind(), "no actor of this kind is known here");
                Settlement { done: 0, again: UNKNOWN_RESTS }
            }
        }
    }

    async fn settle(self, deliveries: Vec<Delivery>, cut: CancellationToken, permit: OwnedSemaphorePermit) {
        self.handle(&deliveries, &cut).await;
        drop(permit);
    }

    /// Extends the deliveries for as long as they are this worker's.
    async fn keep_invisible(&self, group: &str, receipts: &[Receipt], lease: Lease) {
        let mut wait = match lease {
            Lease::Own => self.options.visibility / 3,
            Lease::Another => Duration::ZERO,
        };
        loop {
            tokio::time::sleep(wait).await;
            wait = self.options.visibility / 3;
            match self.queue.extend(receipts, self.options.visibility).await {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => tracing::warn!(group, error = %error.with_causes(), "the deliveries were not extended"),
            }
        }
    }

    async fn flush_idle(&self) {
        loop {
            let next: Vec<Instant> = join_all(self.kinds.values().map(|kind| kind.flush_idle())).await;
            let Some(next) = next.into_iter().min() else { return std::future::pending().await };
            tokio::time::sleep_until(next).await;
        }
    }
}

/// The group that these deliveries are of.
fn group_of(deliveries: &[Delivery]) -> &str {
    deliveries.first().map_or("", |first| &first.group)
}

/// Puts the workspace, and the chat, the task or the evaluation, into each line that is logged while the actor of a group is driven. Its level is the
/// highest, so that a log that is asked for errors alone has it, too.
fn actor_span(group: &str) -> Span {
    match group.parse() {
        Ok(ActorRef::Chat { workspace, chat }) => error_span!("actor", %workspace, %chat),
        Ok(ActorRef::Task { workspace, task }) => error_span!("actor", %workspace, %task),
        Ok(ActorRef::Evaluation { workspace, evaluation }) => error_span!("actor", %workspace, %evaluation),
        Err(_) => error_span!("actor", group),
    }
}

fn report(group: &str, settled: ports::Result<bool>) {
    match settled {
        Ok(true) => {}
        Ok(false) => tracing::warn!(group, "a delivery had timed out; it comes again"),
        Err(error) => {
            tracing::warn!(group, error = %error.with_causes(), "deliveries were not settled; they come again")
        }
    }
}
