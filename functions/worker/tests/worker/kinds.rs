//! One worker for actors of several kinds.
#![expect(clippy::unwrap_used, reason = "tests")]

use actor::{ActorDriver, Settlement};
use async_trait::async_trait;
use buildscale_worker::{Options, Worker};
use parking_lot::Mutex;
use ports::{DeadLetterQueue, Delivery, QueueMessage, QueueReceiver, QueueSender};
use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};
use testkit::{
    TestClock,
    fakes::{FakeQueue, Faults},
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Notes the groups that it is given.
struct Noting(&'static str, Arc<Mutex<Vec<String>>>);

#[async_trait]
impl ActorDriver for Noting {
    fn name(&self) -> &'static str {
        self.0
    }
    async fn deliver(&self, deliveries: &[Delivery], _: &CancellationToken) -> Settlement {
        let told = deliveries.iter().map(|delivery| format!("{} got {}", self.0, delivery.group));
        self.1.lock().extend(told);
        Settlement { done: deliveries.len(), again: Duration::ZERO }
    }
    async fn flush_idle(&self) -> Instant {
        Instant::now() + Duration::from_secs(60)
    }
    async fn flush_all(&self) {
        self.1.lock().push(format!("{} flushed", self.0));
    }
    fn warm_actors(&self) -> usize {
        1
    }
}

fn message(group: &str) -> QueueMessage {
    QueueMessage { group: group.into(), id: "1".into(), body: String::new(), ..QueueMessage::default() }
}

#[tokio::test(start_paused = true)]
async fn the_first_part_of_a_group_chooses_the_runtime_and_an_unknown_one_ends_as_a_dead_letter() {
    let queue = Arc::new(FakeQueue::new(Arc::new(TestClock::new(1)), 0, Faults::none(), 3));
    let told = Arc::new(Mutex::new(Vec::new()));
    let kinds: Vec<Arc<dyn ActorDriver>> =
        vec![Arc::new(Noting("chat", told.clone())), Arc::new(Noting("task", told.clone()))];
    let worker = Worker::new(kinds, queue.clone(), Options::default());
    queue.send(["task/w/1", "chat/w/1", "flood/w/1"].map(message).into()).await.unwrap();
    let shutdown = CancellationToken::new();
    let running = tokio::spawn({
        let (worker, shutdown) = (worker.clone(), shutdown.clone());
        async move { worker.run(shutdown).await }
    });
    while queue.dead_letters(1).await.unwrap().is_empty() {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(queue.dead_letters(9).await.unwrap()[0].message.group, "flood/w/1");
    assert!(queue.is_empty());
    assert_eq!(worker.warm_actors(), 2);
    shutdown.cancel();
    running.await.unwrap();
    let mut told = told.lock().clone();
    told.sort();
    assert_eq!(told, ["chat flushed", "chat got chat/w/1", "task flushed", "task got task/w/1"]);
}

/// Handles all but the last of its commands, once.
struct Hesitant(Arc<Mutex<Vec<usize>>>);

#[async_trait]
impl ActorDriver for Hesitant {
    fn name(&self) -> &'static str {
        "task"
    }
    async fn deliver(&self, deliveries: &[Delivery], _: &CancellationToken) -> Settlement {
        let mut lengths = self.0.lock();
        lengths.push(deliveries.len());
        let done = if lengths.len() == 1 { deliveries.len() - 1 } else { deliveries.len() };
        Settlement { done, again: Duration::from_secs(1) }
    }
}

#[tokio::test(start_paused = true)]
async fn deliveries_of_one_batch_are_driven_together_and_settled_as_far_as_they_were_done() {
    let queue = Arc::new(FakeQueue::new(Arc::new(TestClock::new(1)), 0, Faults::none(), 3));
    let lengths = Arc::new(Mutex::new(Vec::new()));
    let kinds: Vec<Arc<dyn ActorDriver>> = vec![Arc::new(Hesitant(lengths.clone()))];
    let worker = Worker::new(kinds, queue.clone(), Options::default());
    let messages = (0..5).map(|n| QueueMessage { id: n.to_string(), ..message("task/w/1") });
    queue.send(messages.collect()).await.unwrap();
    let shutdown = CancellationToken::new();
    let running = tokio::spawn({
        let (worker, shutdown) = (worker.clone(), shutdown.clone());
        async move { worker.run(shutdown).await }
    });
    while !queue.is_empty() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    shutdown.cancel();
    running.await.unwrap();
    assert_eq!(*lengths.lock(), [5, 1]);
    let counts = worker.metrics();
    assert_eq!((counts.acknowledged.load(Relaxed), counts.retried.load(Relaxed)), (5, 1));
}

#[tokio::test(start_paused = true)]
async fn of_a_batch_of_another_receiver_each_group_is_driven_and_the_rest_is_named() {
    let clock = Arc::new(TestClock::new(1));
    let queue = Arc::new(FakeQueue::new(clock, 0, Faults::none(), 9));
    let (told, lengths) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Vec::new())));
    let kinds: Vec<Arc<dyn ActorDriver>> =
        vec![Arc::new(Noting("chat", told.clone())), Arc::new(Hesitant(lengths.clone()))];
    let worker = Worker::new(kinds, queue.clone(), Options::default());
    let hour = Duration::from_secs(3600);
    let messages = (0..6).map(|n| QueueMessage { id: n.to_string(), ..message(["task/w/1", "chat/w/1"][n % 2]) });
    queue.send(messages.collect()).await.unwrap();
    let mut taken = Vec::new();
    while taken.len() < 6 {
        taken.extend(queue.receive(10, hour).await.unwrap());
    }
    let last = taken.iter().rfind(|delivery| delivery.group == "task/w/1").unwrap().receipt.clone();
    let given_back = worker.batch(taken, &CancellationToken::new()).await;
    assert_eq!((given_back, lengths.lock().clone(), told.lock().len()), (vec![last], vec![3], 3));
}

/// Notes when it shuts idle actors down.
struct Resting(Arc<Mutex<Vec<&'static str>>>);

#[async_trait]
impl ActorDriver for Resting {
    fn name(&self) -> &'static str {
        "chat"
    }
    async fn deliver(&self, deliveries: &[Delivery], _: &CancellationToken) -> Settlement {
        self.0.lock().push("took its own");
        Settlement { done: deliveries.len(), again: Duration::ZERO }
    }
    async fn flush_idle(&self) -> Instant {
        self.0.lock().push("shut the idle ones down");
        Instant::now() + Duration::from_secs(60)
    }
}

#[tokio::test(start_paused = true)]
async fn idle_actors_are_shut_down_with_each_batch_of_another_receiver() {
    let queue = Arc::new(FakeQueue::new(Arc::new(TestClock::new(1)), 0, Faults::none(), 9));
    let told = Arc::new(Mutex::new(Vec::new()));
    let worker =
        Worker::new([Arc::new(Resting(told.clone())) as Arc<dyn ActorDriver>], queue.clone(), Options::default());
    for chat in ["chat/w/1", "chat/w/2"] {
        queue.send(vec![message(chat)]).await.unwrap();
        let taken = queue.receive(1, Duration::from_secs(900)).await.unwrap();
        worker.batch(taken, &CancellationToken::new()).await;
        let told = std::mem::take(&mut *told.lock());
        assert_eq!(told, ["took its own", "shut the idle ones down"], "nothing else does it in a function");
    }
}

/// Does not end by itself.
struct Endless;

#[async_trait]
impl ActorDriver for Endless {
    fn name(&self) -> &'static str {
        "task"
    }
    async fn deliver(&self, _: &[Delivery], cut: &CancellationToken) -> Settlement {
        cut.cancelled().await;
        Settlement { done: 0, again: Duration::ZERO }
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_dies_with_a_batch_of_somebody_else_is_replaced_within_its_visibility() {
    let queue = Arc::new(FakeQueue::new(Arc::new(TestClock::new(1)), 0, Faults::none(), 9));
    let options = Options { visibility: Duration::from_secs(60), ..Options::default() };
    let worker = Worker::new([Arc::new(Endless) as Arc<dyn ActorDriver>], queue.clone(), options);
    queue.send(vec![message("task/w/1")]).await.unwrap();
    let taken = queue.receive(1, Duration::from_secs(5400)).await.unwrap();
    let (began, cut) = (Instant::now(), CancellationToken::new());
    let working = tokio::spawn(async move { worker.batch(taken, &cut).await });
    // It is renewed for as long as the worker lives.
    let meanwhile = tokio::time::timeout(Duration::from_secs(600), async {
        while queue.receive(1, Duration::from_secs(1)).await.unwrap().is_empty() {}
    });
    assert!(meanwhile.await.is_err(), "no other receiver gets it");
    working.abort();
    while queue.receive(1, Duration::from_secs(1)).await.unwrap().is_empty() {}
    assert!(began.elapsed() <= Duration::from_secs(600 + 60), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_group_that_is_done_goes_on_while_the_others_of_its_batch_still_run() {
    let queue = Arc::new(FakeQueue::new(Arc::new(TestClock::new(1)), 0, Faults::none(), 9));
    let told = Arc::new(Mutex::new(Vec::new()));
    let kinds: Vec<Arc<dyn ActorDriver>> = vec![Arc::new(Noting("chat", told.clone())), Arc::new(Endless)];
    let worker = Worker::new(kinds, queue.clone(), Options::default());
    queue.send(["chat/w/1", "task/w/1"].map(message).into()).await.unwrap();
    let mut taken = Vec::new();
    while taken.len() < 2 {
        taken.extend(queue.receive(10, Duration::from_secs(5400)).await.unwrap());
    }
    let endless = taken.iter().find(|delivery| delivery.group == "task/w/1").unwrap().receipt.clone();
    let cut = CancellationToken::new();
    let working = tokio::spawn({
        let (worker, cut) = (worker.clone(), cut.clone());
        async move { worker.batch(taken, &cut).await }
    });
    let next = QueueMessage { id: "2".into(), ..message("chat/w/1") };
    queue.send(vec![next]).await.unwrap();
    let next = loop {
        if let Some(next) = queue.receive(10, Duration::from_secs(30)).await.unwrap().pop() {
            break next;
        }
    };
    assert_eq!((next.group.as_str(), next.id.as_str()), ("chat/w/1", "2"));
    assert!(!working.is_finished());
    cut.cancel();
    assert_eq!(working.await.unwrap(), [endless]);
    assert_eq!(worker.metrics().checkpointed.load(Relaxed), 1);
}
