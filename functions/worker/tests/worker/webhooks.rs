//! Deliveries of webhooks under faults and deaths: each event arrives at least once, and those of one chat in their order, however often the
//! receiver fails, stores are unavailable and processes die. One receiver does not wait for another.
#![expect(clippy::unwrap_used, reason = "tests")]

use actor::{ActorDriver, ActorId, Entry, OutboxContributor};
use async_trait::async_trait;
use buildscale_worker::{Options, Worker};
use domain::{Error, TaskEvent, TaskId, Timestamp, UserId, WorkspaceId, task::Status};
use engine::TaskMachine;
use parking_lot::Mutex;
use ports::{Clock, Expect, Key, QueueSender, Secret, Table, Write};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use testkit::{
    Random, TestClock,
    crash::{Crash, Processes},
    fakes::{FakeQueue, FakeTable, Faults},
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use webhooks::{
    Deliveries, Delivery, DeliveryStatus, EventType, HookKeys, HookSetup, Post, PostAnswer, Posts, Webhook,
    WebhookOutbox,
    webhook::{SecretName, WebhookSet},
};

const WORKSPACE: WorkspaceId = WorkspaceId(Uuid::from_u128(1));
const KEY: &str = "a key of webhooks of at least thirty-two bytes";

fn keys() -> HookKeys {
    HookKeys::new(&Secret::new(KEY)).unwrap()
}

fn hook(id: u128, url: &str) -> Webhook {
    Webhook {
        id: Uuid::from_u128(id),
        name: "n".into(),
        url: url.into(),
        events: [EventType::TaskEnded].into(),
        chat: None,
        flow: None,
        by: UserId(Uuid::from_u128(2)),
        created_at: TestClock::BEGINNING,
        secret: SecretName { key: keys().newest().unwrap(), generation: 1 },
        previous: None,
        earlier: Vec::new(),
        failing_since: None,
        disabled: None,
        push: None,
    }
}

async fn has(table: &dyn Table, webhooks: Vec<Webhook>) {
    let body = serde_json::to_string(&WebhookSet { webhooks }).unwrap();
    let key = Key::new(format!("{WORKSPACE}/webhooks"), "all");
    while table.commit(vec![Write::put(key.clone(), body.clone(), Expect::Any)]).await.is_err() {}
}

/// The entry `number` of a task, which tells that it has ended.
fn ended(task: u128, number: u64) -> (ActorId, engine::machine::TaskState, Entry<TaskEvent>) {
    let task = TaskId(Uuid::from_u128(task));
    let config = json!({
        "workspace": WORKSPACE, "task": task, "flow": { "name": "f", "hash": domain::Sha256::of(b"f") },
        "user": UserId(Uuid::from_u128(2)), "input": null, "start": "s", "created_at": TestClock::BEGINNING,
    });
    let config: domain::TaskConfig = serde_json::from_value(config).unwrap();
    let state = engine::machine::TaskState { config: Some(Arc::new(config)), ..Default::default() };
    let event = TaskEvent::Finished {
        status: Status::Success,
        output: Value::Null,
        exit: None,
        error: None,
        at: TestClock::BEGINNING,
    };
    let entry = json!({ "first": number, "next": number + 1, "at": TestClock::BEGINNING, "step": Uuid::nil(), "events": [event] });
    (ActorId::new("task", format_args!("{WORKSPACE}/{task}")), state, serde_json::from_value(entry).unwrap())
}

/// A receiver, by the path of its address.
#[derive(Default)]
struct Receivers {
    got: Mutex<Vec<(String, String, String, bool)>>,
    random: Mutex<Option<Random>>,
    clock: Mutex<Vec<(String, Duration)>>,
}

#[async_trait]
impl Posts for Receivers {
    fn check(&self, _: &str) -> Result<(), Error> {
        Ok(())
    }

    async fn post(&self, post: Post) -> Result<PostAnswer, String> {
        let begun = tokio::time::Instant::now();
        let body: Value = serde_json::from_slice(&post.body).unwrap();
        let status = match post.url.as_str() {
            "slow" => {
                tokio::time::sleep(Duration::from_secs(15)).await;
                return Err("it did not answer in time".into());
            }
            "gone" => 410,
            "down" => 503,
            "shaky" if self.random.lock().as_mut().unwrap().chance(0.4) => 500,
            _ => 200,
        };
        let task = body["data"]["task_id"].as_str().unwrap().to_owned();
        self.got.lock().push((post.url.clone(), task, post.id, status == 200));
        self.clock.lock().push((post.url, begun.elapsed()));
        Ok(PostAnswer { status, retry_after: None })
    }
}

async fn send_events(table: &Arc<FakeTable>, queue: &dyn QueueSender, task: u128, number: u64) {
    let outbox: &dyn OutboxContributor<TaskMachine> = &WebhookOutbox { table: table.clone() };
    let (actor, state, entry) = ended(task, number);
    let messages = loop {
        if let Ok(messages) = outbox.of(&actor, &state, &entry).await {
            break messages;
        }
    };
    while queue.send(messages.clone()).await.is_err() {}
}

fn deliveries(table: &FakeTable, hook: u128) -> Vec<Delivery> {
    let items = table.partition(&format!("{WORKSPACE}/webhooks/{}", Uuid::from_u128(hook)));
    items.iter().map(|item| serde_json::from_str(&item.body).unwrap()).collect()
}

fn place(delivery: &Delivery) -> (String, u64) {
    (delivery.source.clone(), delivery.event.number)
}

const TASKS: u128 = 4;
const EVENTS: u64 = 6;

async fn play(seed: u64) {
    let clock = Arc::new(TestClock::new(seed));
    let mut random = Random::new(seed);
    let faults = if seed.is_multiple_of(4) { Faults::interleaving() } else { Faults::some() };
    let table = Arc::new(FakeTable::new(clock.clone(), seed ^ 1, faults.clone()));
    let queue = Arc::new(FakeQueue::new(clock.clone(), seed ^ 2, faults, 10_000));
    let receivers = Arc::new(Receivers { random: Mutex::new(Some(Random::new(seed ^ 3))), ..Receivers::default() });
    has(&*table, vec![hook(10, "shaky")]).await;
    let setup = HookSetup::new(keys(), receivers.clone());
    let start = |crash: Crash| {
        let (table, queue) = (crash.table(table.clone()), crash.queue(queue.clone()));
        let driver = Deliveries { table, queue: queue.clone(), clock: clock.clone(), setup: Some(setup.clone()) };
        let kinds: [Arc<dyn ActorDriver>; 1] = [Arc::new(driver)];
        let worker = Worker::new(kinds, queue, Options::default());
        tokio::spawn(async move { worker.run(CancellationToken::new()).await })
    };
    let processes = Processes::begin(start, &mut random);
    for number in 1..=EVENTS {
        for task in 1..=TASKS {
            send_events(&table, &*queue, task, number).await;
        }
        tokio::time::sleep(Duration::from_secs(random.below(20))).await;
    }
    processes.until(|| queue.is_empty(), &mut random).await;

    let all = deliveries(&table, 10);
    assert_eq!(all.len() as u64, EVENTS * u64::try_from(TASKS).unwrap(), "seed {seed}");
    assert!(all.iter().all(|one| one.status == DeliveryStatus::Delivered), "seed {seed}: {all:?}");
    let by_id: BTreeMap<String, (String, u64)> = all.iter().map(|one| (one.message_id(), place(one))).collect();
    let mut taken: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
    for (_, _, id, success) in receivers.got.lock().iter() {
        let (source, number) = &by_id[id];
        let before = taken.entry(source.clone()).or_default();
        assert!(
            (1..*number).all(|earlier| before.contains(&earlier)),
            "seed {seed}: {source} {number} before {before:?}"
        );
        if *success {
            before.insert(*number);
        }
    }
    assert!(taken.values().all(|numbers| numbers.len() as u64 == EVENTS), "seed {seed}: {taken:?}");
    let open = table.partition(&format!("{WORKSPACE}/webhooks/{}/open", Uuid::from_u128(10)));
    assert!(open.is_empty() && queue.dead().is_empty(), "seed {seed}");
}

#[test]
fn no_schedule_loses_an_event_or_sends_one_before_those_before_it() {
    for seed in 0..100 {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        runtime.block_on(play(seed));
    }
}

/// A worker over stores without faults.
struct Calm {
    clock: Arc<TestClock>,
    table: Arc<FakeTable>,
    queue: Arc<FakeQueue>,
    receivers: Arc<Receivers>,
    begun: Timestamp,
}

impl Calm {
    async fn with(webhooks: Vec<Webhook>) -> Self {
        let clock = Arc::new(TestClock::new(7));
        let table = Arc::new(FakeTable::new(clock.clone(), 1, Faults::none()));
        let queue = Arc::new(FakeQueue::new(clock.clone(), 2, Faults::none(), 10_000));
        let receivers = Arc::new(Receivers::default());
        has(&*table, webhooks).await;
        let setup = HookSetup::new(keys(), receivers.clone());
        let driver =
            Deliveries { table: table.clone(), queue: queue.clone(), clock: clock.clone(), setup: Some(setup) };
        let kinds: [Arc<dyn ActorDriver>; 1] = [Arc::new(driver)];
        let worker = Worker::new(kinds, queue.clone(), Options::default());
        tokio::spawn(async move { worker.run(CancellationToken::new()).await });
        let begun = clock.now();
        Self { clock, table, queue, receivers, begun }
    }

    async fn settled(&self) -> Duration {
        while !self.queue.is_empty() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        self.clock.now().since(self.begun)
    }

    fn set(&self) -> WebhookSet {
        let item = self.table.partition(&format!("{WORKSPACE}/webhooks")).pop().unwrap();
        serde_json::from_str(&item.body).unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_is_down_is_asked_for_a_day_and_holds_no_worker_meanwhile() {
    let calm = Calm::with(vec![hook(10, "down")]).await;
    for number in 1..=2 {
        send_events(&calm.table, &*calm.queue, 1, number).await;
    }
    let took = calm.settled().await;
    let day = Duration::from_secs(24 * 3600);
    assert!(took > day - Duration::from_secs(2 * 3600) && took <= day + Duration::from_secs(60), "{took:?}");
    let mut all = deliveries(&calm.table, 10);
    all.sort_by_key(|one| one.event.number);
    assert!(all.iter().all(|one| one.status == DeliveryStatus::Failed), "{all:?}");
    let (last, next) = (all[0].attempts.last().unwrap().at, all[1].attempts[0].at);
    assert!(all[0].made > 12 && next >= last, "the second waited for the first: {} {next} {last}", all[0].made);
    assert_eq!(calm.set().webhooks[0].failing_since.map(|since| since.since(calm.begun).as_secs()), Some(0));
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_is_gone_is_told_nothing_more() {
    let calm = Calm::with(vec![hook(10, "gone")]).await;
    for number in 1..=3 {
        send_events(&calm.table, &*calm.queue, 1, number).await;
    }
    calm.settled().await;
    assert_eq!(calm.receivers.got.lock().len(), 1);
    let mut all = deliveries(&calm.table, 10);
    all.sort_by_key(|one| one.event.number);
    assert!(all.iter().all(|one| one.status == DeliveryStatus::Failed));
    assert_eq!(all[1].given_up.as_deref(), Some("the webhook is disabled (gone)"));
    assert!(calm.set().webhooks[0].disabled.is_some());
    send_events(&calm.table, &*calm.queue, 1, 4).await;
    assert!(calm.queue.is_empty(), "a disabled webhook gets no events");
}

#[tokio::test(start_paused = true)]
async fn a_slow_receiver_delays_no_other() {
    let calm = Calm::with(vec![hook(10, "slow"), hook(11, "good")]).await;
    for task in 1..=20 {
        for number in 1..=3 {
            send_events(&calm.table, &*calm.queue, task, number).await;
        }
    }
    let is_done = || deliveries(&calm.table, 11).iter().filter(|one| one.status == DeliveryStatus::Delivered).count();
    while is_done() < 60 {
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert!(calm.clock.now().since(calm.begun) < Duration::from_secs(5), "{}", is_done());
    }
    assert!(deliveries(&calm.table, 10).iter().all(|one| one.status == DeliveryStatus::Pending));
}

#[tokio::test(start_paused = true)]
async fn the_webhooks_of_a_filter_alone_get_an_event() {
    let of_flow = Webhook { flow: Some("f".into()), ..hook(11, "good") };
    let of_other = Webhook { flow: Some("g".into()), ..hook(12, "good") };
    let of_turns = Webhook { events: [EventType::TurnEnded].into(), ..hook(13, "good") };
    let calm = Calm::with(vec![hook(10, "good"), of_flow, of_other, of_turns]).await;
    send_events(&calm.table, &*calm.queue, 1, 1).await;
    calm.settled().await;
    let counts = [10, 11, 12, 13].map(|hook| deliveries(&calm.table, hook).len());
    assert_eq!(counts, [1, 1, 0, 0]);
}
