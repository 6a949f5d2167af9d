//! Between actors, which do not wait, and one sink, which may be slow: a queue with a bound, and retries behind it.

use super::{
    event::TaskFact,
    sink::{Sink, SinkError},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::{
    sync::{
        mpsc::{Receiver, Sender, channel},
        watch,
    },
    time::{sleep, timeout},
};

/// How much patience there is with a sink.
#[derive(Clone, Copy, Debug)]
pub struct DeliveryLimits {
    /// Facts that wait for it; further ones are dropped.
    pub queue: usize,
    /// Bytes of facts that wait for it.
    pub bytes: usize,
    /// Facts in one batch.
    pub batch: usize,
    /// How often a batch is tried before it is given up.
    pub attempts: u32,
    /// The wait after the first failure; each further one is twice as long.
    pub wait: Duration,
    /// The longest such wait.
    pub longest: Duration,
    /// How long one try may take.
    pub timeout: Duration,
}

impl Default for DeliveryLimits {
    fn default() -> Self {
        Self {
            queue: 4_096,
            bytes: 16 * 1024 * 1024,
            batch: 64,
            attempts: 6,
            wait: Duration::from_millis(500),
            longest: Duration::from_secs(30),
            timeout: Duration::from_secs(30),
        }
    }
}

/// The counts of facts for a sink, by their end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SinkCounts {
    /// Taken by the sink.
    pub delivered: u64,
    /// Dropped because the sink was too slow.
    pub dropped: u64,
    /// Given up after all tries.
    pub lost: u64,
    /// Tries that failed.
    pub failures: u64,
}

impl std::ops::AddAssign for SinkCounts {
    fn add_assign(&mut self, more: Self) {
        self.delivered += more.delivered;
        self.dropped += more.dropped;
        self.lost += more.lost;
        self.failures += more.failures;
    }
}

/// The counts of a pump, also after it was dropped: its work goes on until everything is settled.
pub(crate) struct Tally(Arc<Counts>);

impl Tally {
    /// The counts so far.
    pub fn counts(&self) -> SinkCounts {
        self.0.counts()
    }

    /// Whether nothing counts any more: the pump was dropped, and its work has ended.
    pub fn is_over(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}

#[derive(Default)]
struct Counts {
    delivered: AtomicU64,
    dropped: AtomicU64,
    lost: AtomicU64,
    failures: AtomicU64,
    /// Bytes that wait.
    waiting: AtomicUsize,
    /// Facts that wait; those being sent are among them.
    unsettled: watch::Sender<usize>,
    warned: AtomicBool,
}

impl Counts {
    fn counts(&self) -> SinkCounts {
        let Self { delivered, dropped, lost, failures, .. } = self;
        SinkCounts {
            delivered: delivered.load(Relaxed),
            dropped: dropped.load(Relaxed),
            lost: lost.load(Relaxed),
            failures: failures.load(Relaxed),
        }
    }

    fn settled(&self, facts: usize, bytes: usize) {
        self.waiting.fetch_sub(bytes, Relaxed);
        self.unsettled.send_modify(|unsettled| *unsettled = unsettled.saturating_sub(facts));
    }
}

/// The payload of a pump.
pub trait Payload: Send + Sync + 'static {
    /// How much memory it takes while it waits, in bytes.
    fn bytes(&self) -> usize;
}

impl Payload for TaskFact {
    fn bytes(&self) -> usize {
        self.bytes
    }
}

/// The queue in front of a sink.
pub struct Pump<T = TaskFact> {
    /// For an observer of a flow, the flow's name and the plugin's id.
    pub name: String,
    sender: Sender<Arc<T>>,
    most_bytes: usize,
    counts: Arc<Counts>,
}

impl<T: Payload> Pump<T> {
    /// A pump, and the future that does its work; that ends when the pump is dropped and everything is settled.
    pub fn new(
        name: String,
        sink: Arc<dyn Sink<T>>,
        patience: DeliveryLimits,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (sender, receiver) = channel(patience.queue.max(1));
        let counts = Arc::new(Counts::default());
        let work = work(name.clone(), sink, patience, receiver, counts.clone());
        (Self { name, sender, most_bytes: patience.bytes, counts }, work)
    }

    /// Queues a fact, or drops it when the queue is full. Never waits.
    pub fn offer(&self, fact: Arc<T>) {
        let bytes = fact.bytes();
        let fits = self.counts.waiting.fetch_add(bytes, Relaxed).saturating_add(bytes) <= self.most_bytes;
        self.counts.unsettled.send_modify(|facts| *facts += 1);
        if fits && self.sender.try_send(fact).is_ok() {
            return;
        }
        self.counts.settled(1, bytes);
        self.counts.dropped.fetch_add(1, Relaxed);
        if !self.counts.warned.swap(true, Relaxed) {
            tracing::warn!(sink = self.name, "an observer is too slow: it misses events, which the counters tell of");
        }
    }

    /// Waits until the sink has taken the facts offered so far, or they were given up.
    pub fn settled(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut unsettled = self.counts.unsettled.subscribe();
        async move {
            // Without a sender nothing waits.
            let _ = unsettled.wait_for(|facts| *facts == 0).await;
        }
    }

    /// The counts so far.
    pub fn counts(&self) -> SinkCounts {
        self.counts.counts()
    }

    /// The counts, for when the pump is gone.
    pub(crate) fn tally(&self) -> Tally {
        Tally(self.counts.clone())
    }
}

async fn work<T: Payload>(
    name: String,
    sink: Arc<dyn Sink<T>>,
    patience: DeliveryLimits,
    mut receiver: Receiver<Arc<T>>,
    counts: Arc<Counts>,
) {
    let mut batch = Vec::new();
    while receiver.recv_many(&mut batch, patience.batch.max(1)).await > 0 {
        let bytes = batch.iter().map(|fact: &Arc<T>| fact.bytes()).sum();
        match deliver(&*sink, &batch, &patience, &counts).await {
            Ok(()) => {
                counts.delivered.fetch_add(batch.len() as u64, Relaxed);
            }
            Err(lost) => {
                counts.lost.fetch_add(batch.len() as u64, Relaxed);
                tracing::warn!(sink = name, events = batch.len(), why = lost.why, "an observer did not take events");
            }
        }
        // Facts that are being sent still wait: they are in memory.
        counts.settled(batch.len(), bytes);
        batch.clear();
    }
}

async fn deliver<T: Payload>(
    sink: &dyn Sink<T>,
    batch: &[Arc<T>],
    patience: &DeliveryLimits,
    counts: &Counts,
) -> Result<(), SinkError> {
    let mut wait = patience.wait;
    for attempt in 1.. {
        let sent = timeout(patience.timeout, sink.send(batch)).await;
        match sent.unwrap_or_else(|_| Err(SinkError::for_now("it did not answer in time"))) {
            Ok(()) => break,
            Err(lost) => {
                counts.failures.fetch_add(1, Relaxed);
                if !lost.again || attempt >= patience.attempts {
                    return Err(lost);
                }
            }
        }
        sleep(wait).await;
        wait = (wait * 2).min(patience.longest);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::tests::fact;
    use async_trait::async_trait;
    use parking_lot::Mutex;
    use tokio::{sync::Semaphore, time::Instant};

    /// Answers as it is told to, then always takes.
    struct Told(Mutex<Vec<Result<(), SinkError>>>, Mutex<Vec<(Instant, Vec<u64>)>>);

    #[async_trait]
    impl Sink for Told {
        async fn send(&self, batch: &[Arc<TaskFact>]) -> Result<(), SinkError> {
            let mut seen = self.1.lock();
            seen.push((Instant::now(), batch.iter().map(|fact| fact.number).collect()));
            let mut answers = self.0.lock();
            if answers.is_empty() { Ok(()) } else { answers.remove(0) }
        }
    }

    async fn play(answers: Vec<Result<(), SinkError>>, facts: u64) -> (SinkCounts, Vec<(Instant, Vec<u64>)>) {
        let sink = Arc::new(Told(Mutex::new(answers), Mutex::default()));
        let patience = DeliveryLimits { batch: 2, attempts: 3, ..DeliveryLimits::default() };
        let (pump, work) = Pump::<TaskFact>::new("test".into(), sink.clone(), patience);
        (1..=facts).for_each(|number| pump.offer(Arc::new(fact(number))));
        let counts = pump.counts.clone();
        let settled =
            || Pump { counts: counts.clone(), ..Pump::<TaskFact>::new(String::new(), sink.clone(), patience).0 };
        drop(pump);
        work.await;
        let seen = sink.1.lock().clone();
        (settled().counts(), seen)
    }

    #[tokio::test(start_paused = true)]
    async fn s6_a_batch_that_is_not_taken_comes_again_later_and_later() {
        let busy = || Err(SinkError::for_now("busy"));
        let (counts, seen) = play(vec![busy(), busy()], 3).await;
        assert_eq!(counts, SinkCounts { delivered: 3, failures: 2, ..SinkCounts::default() });
        let numbers: Vec<_> = seen.iter().map(|(_, numbers)| numbers.clone()).collect();
        assert_eq!(numbers, [vec![1, 2], vec![1, 2], vec![1, 2], vec![3]]);
        let waits: Vec<_> = seen.windows(2).map(|pair| (pair[1].0 - pair[0].0).as_millis()).collect();
        assert_eq!(waits, [500, 1000, 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn s6_facts_refused_for_good_or_too_often_are_given_up_and_counted() {
        let busy = || Err(SinkError::for_now("busy"));
        let (counts, _) = play(vec![busy(), busy(), busy()], 3).await;
        assert_eq!(counts, SinkCounts { delivered: 1, lost: 2, failures: 3, ..SinkCounts::default() });
        let (counts, seen) = play(vec![Err(SinkError::for_good("no"))], 3).await;
        assert_eq!((counts, seen.len()), (SinkCounts { delivered: 1, lost: 2, failures: 1, dropped: 0 }, 2));
    }

    /// Takes nothing until it may.
    struct Stuck(Semaphore);

    #[async_trait]
    impl Sink for Stuck {
        async fn send(&self, _: &[Arc<TaskFact>]) -> Result<(), SinkError> {
            let permit = self.0.acquire().await.map_err(|_| SinkError::for_good("closed"))?;
            permit.forget();
            Ok(())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn s6_facts_that_a_stuck_sink_cannot_take_are_dropped_and_counted() {
        let sink = Arc::new(Stuck(Semaphore::new(0)));
        let patience = DeliveryLimits { queue: 10, ..DeliveryLimits::default() };
        let (pump, work) = Pump::<TaskFact>::new("test".into(), sink.clone(), patience);
        (0..1_000).for_each(|number| pump.offer(Arc::new(fact(number))));
        assert_eq!(pump.counts().dropped, 990);
        // By bytes, too.
        let few = DeliveryLimits { bytes: 5 * fact(1).bytes, ..DeliveryLimits::default() };
        let (small, _work) = Pump::<TaskFact>::new("test".into(), sink.clone(), few);
        (0..9).for_each(|number| small.offer(Arc::new(fact(number))));
        assert_eq!(small.counts().dropped, 4);
        let counts = pump.counts.clone();
        let working = tokio::spawn(work);
        // A caller waits for queued facts, and for none that were dropped.
        let settled = tokio::spawn(pump.settled());
        // poll: time is paused, and passes when all tasks are idle
        sleep(Duration::from_secs(10)).await;
        assert!(!settled.is_finished());
        sink.0.add_permits(100);
        assert!(timeout(Duration::from_secs(600), settled).await.is_ok());
        assert_eq!((counts.delivered.load(Relaxed), counts.waiting.load(Relaxed)), (10, 0));
        drop(pump);
        assert!(working.await.is_ok());
    }
}
