//! Logs of actors that live for ever lose their old entries.
#![expect(clippy::unwrap_used, reason = "tests")]

use async_trait::async_trait;
use buildscale_actor::{
    ActorId, Content, EffectContext, EffectRunner, Envelope, Input, Machine, NoObserver, Options, Runtime, Step, View,
    read_state,
};
use domain::{CommandId, Principal, Stamp};
use ports::{Clock, Delivery, Expect, Receipt, Table as _, Write};
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};
use testkit::{
    TestClock,
    fakes::{FakeBus, FakeQueue, FakeTable, Faults},
};
use tokio_util::sync::CancellationToken;

/// Counts what is held.
struct Counter;

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Held(i32);

impl Machine for Counter {
    const KIND: &'static str = "counter";
    const TRUNCATES: bool = true;
    type State = Held;
    type Command = i32;
    type Event = i32;
    type Effect = ();
    type Report = ();

    fn apply(state: &mut Held, _: u64, event: &i32) {
        state.0 += event;
    }

    fn handle(&self, step: &mut Step<Self>, input: Input<Self>, _: &Stamp) {
        if let Input::Command { command, .. } = input {
            step.push(command);
        }
    }

    fn in_flight(_: &Held) -> bool {
        false
    }
    fn is_as_new(state: &Held) -> bool {
        *state == Held::default()
    }
    fn is_transient(_: &i32) -> bool {
        false
    }
    fn view(_: &Held) -> Option<View> {
        None
    }
}

struct Nothing;

#[async_trait]
impl EffectRunner<Counter> for Nothing {
    async fn perform(&self, (): (), _: EffectContext<Counter>) {}
}

struct World {
    clock: Arc<TestClock>,
    table: Arc<FakeTable>,
    worker: Runtime<Counter>,
    actor: ActorId,
}

impl World {
    fn new() -> Self {
        let clock = Arc::new(TestClock::new(1));
        let table = Arc::new(FakeTable::new(clock.clone(), 1, Faults::none()));
        Self::with_worker(clock, table)
    }

    /// A worker on this table.
    fn with_worker(clock: Arc<TestClock>, table: Arc<FakeTable>) -> Self {
        let queue = Arc::new(FakeQueue::new(clock.clone(), 2, Faults::none(), 99));
        let (bus, observer) = (Arc::new(FakeBus::new(3, Faults::none())), Arc::new(NoObserver));
        let (perform, options) = (Arc::new(Nothing), Options::default());
        let worker = Runtime::new(Counter, perform, table.clone(), queue, bus, clock.clone(), observer, options);
        Self { clock, table, worker, actor: ActorId::new("counter", "1") }
    }

    /// Delivers this command, and writes a snapshot.
    async fn add(&self, number: i32) {
        self.deliver(number).await;
        self.worker.flush_all().await;
    }

    /// Delivers this command. The worker has the actor in memory afterwards.
    async fn deliver(&self, number: i32) {
        let content = Content::Command { body: number };
        let envelope =
            Envelope { id: CommandId(self.clock.id()), at: self.clock.now(), by: Principal::System, content };
        let message = envelope.to(&self.actor).unwrap();
        let receipt = Receipt(message.id.clone());
        let delivery = [Delivery { group: message.group, id: message.id, body: message.body, attempt: 1, receipt }];
        assert_eq!(self.worker.deliver(&delivery, &CancellationToken::new()).await.done, 1);
    }

    /// The numbers of the entries.
    fn entries(&self) -> Vec<u64> {
        let items = self.table.partition(self.actor.as_str()).into_iter();
        items.filter_map(|item| item.key.sk.strip_prefix("log/")?.parse().ok()).collect()
    }
}

const MONTH: Duration = Duration::from_secs(31 * 24 * 3600);

#[tokio::test(start_paused = true)]
async fn old_entries_go_up_to_a_place_at_which_the_actor_was_as_new() {
    let world = World::new();
    for number in [1, -1, 2] {
        world.add(number).await;
    }
    assert_eq!(world.entries(), [1, 2, 3]);
    tokio::time::advance(MONTH).await;
    world.add(3).await;
    assert_eq!(world.entries(), [1, 2, 3, 4], "something is held");
    world.add(-5).await;
    assert_eq!(world.entries(), [3, 4, 5], "nothing was held after the second one");

    // Without the snapshot the rest of the log folds to the same, and numbers go on.
    world.add(7).await;
    world.table.commit(vec![Write::delete(world.actor.snapshot_key(), Expect::Any)]).await.unwrap();
    assert_eq!(read_state::<Counter>(&*world.table, &world.actor).await.unwrap(), Held(7));
    world.add(-7).await;
    assert_eq!(world.entries(), [3, 4, 5, 6, 7], "they are not old yet");
    tokio::time::advance(MONTH).await;
    for number in [1, -1] {
        world.add(number).await;
    }
    assert_eq!(world.entries(), [6, 7, 8, 9]);
}

#[tokio::test(start_paused = true)]
async fn a_log_whose_entries_before_its_beginning_are_left_is_read_from_there() {
    let world = World::new();
    for number in [1, -1] {
        world.add(number).await;
    }
    let first = world.table.partition(world.actor.as_str()).remove(0);
    tokio::time::advance(MONTH).await;
    for number in [1, -1, 4] {
        world.add(number).await;
    }
    assert_eq!(world.entries(), [3, 4, 5]);
    // As after a crash in the middle of the removal.
    let left = Write::put(first.key, first.body, Expect::Absent);
    let lost = Write::delete(world.actor.snapshot_key(), Expect::Any);
    world.table.commit(vec![left, lost]).await.unwrap();
    assert_eq!(read_state::<Counter>(&*world.table, &world.actor).await.unwrap(), Held(4));
    world.add(1).await;
    assert_eq!(world.entries(), [3, 4, 5, 6]);
}

#[tokio::test(start_paused = true)]
async fn a_worker_with_an_old_actor_in_memory_writes_nothing_in_the_place_of_a_removed_entry() {
    let world = World::new();
    world.deliver(1).await;
    let other = World::with_worker(world.clock.clone(), world.table.clone());
    other.add(-1).await;
    tokio::time::advance(MONTH).await;
    for number in [1, -1] {
        other.add(number).await;
    }
    assert_eq!(world.entries(), [3, 4]);
    world.deliver(5).await;
    assert_eq!(world.entries(), [3, 4, 5]);
    assert_eq!(read_state::<Counter>(&*world.table, &world.actor).await.unwrap(), Held(5));
}
