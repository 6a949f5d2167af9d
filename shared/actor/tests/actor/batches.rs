//! Deliveries that come together: one entry if nothing is needed from outside, and separate blame for each.
#![expect(clippy::unwrap_used, reason = "tests")]

mod outbox;

use async_trait::async_trait;
use buildscale_actor::{
    ActorId, CacheCounts, CacheLimits, CacheSize, Content, EffectContext, EffectKey, EffectRunner, Entry,
    EntryObserver, Envelope, Input, Machine, Options, OutboxMessage, Runtime, Settlement, Step, StopRequest,
    StopTarget, View,
};
use domain::{CommandId, Principal, Stamp, StopId};
use parking_lot::Mutex;
use ports::{Clock, Delivery, Error, Expect, Key, Receipt, Table, Write, validate::MAX_MESSAGE};
use serde::{Deserialize, Serialize};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};
use testkit::{
    TestClock,
    fakes::{FakeBus, FakeQueue, FakeTable, Faults},
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Adds up the numbers in its commands, and can be told to do something outside.
struct Adder;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Command {
    Add(u32),
    /// Adds and tells another actor the sum.
    Tell(u32),
    /// Adds and tells another actor more than the queue takes.
    TellTooMuch(u32),
    Run,
    Panic,
    Nothing,
}

/// The sum with which an actor has come to its end.
const OVER: u32 = 1_000_000;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Event {
    Added(u32),
    Began(u32),
    Ended,
    Paused(String),
}

#[derive(Default, Serialize, Deserialize)]
struct Sum {
    sum: u32,
    attempt: u32,
}

impl Machine for Adder {
    const KIND: &'static str = "adder";
    type State = Sum;
    type Command = Command;
    type Event = Event;
    type Effect = ();
    type Report = ();

    fn apply(state: &mut Sum, _: u64, event: &Event) {
        match event {
            Event::Added(n) => state.sum += n,
            Event::Began(attempt) => state.attempt = *attempt,
            Event::Ended => state.attempt = 0,
            Event::Paused(_) => {}
        }
    }

    fn handle(&self, step: &mut Step<Self>, input: Input<Self>, _: &Stamp) {
        let run = |step: &mut Step<Self>, attempt: u32| {
            step.push(Event::Began(attempt));
            step.run(EffectKey(format!("run/{}/{attempt}", step.state().sum)), ());
        };
        match input {
            Input::Command { command: Command::Run, .. } => run(step, 1),
            Input::Resume => run(step, step.state().attempt + 1),
            Input::Command { command: Command::Add(n), .. } => step.push(Event::Added(n)),
            Input::Command { command: Command::Tell(n), .. } => {
                step.push(Event::Added(n));
                let command = serde_json::json!({ "add": step.state().sum });
                let to = ActorId::new("adder", "w/parent");
                step.send(OutboxMessage::now(to, command, 3));
            }
            Input::Command { command: Command::TellTooMuch(n), .. } => {
                step.push(Event::Added(n));
                let command = "x".repeat(MAX_MESSAGE).into();
                let to = ActorId::new("adder", "w/parent");
                step.send(OutboxMessage::now(to, command, 0));
            }
            Input::Command { command: Command::Panic, .. } => {
                step.push(Event::Added(1000));
                panic!("as told");
            }
            Input::Report(()) => step.push(Event::Ended),
            Input::Park { reason, .. } => step.push(Event::Paused(reason)),
            Input::Stop(request) => step.push(Event::Paused(request.reason)),
            Input::Command { command: Command::Nothing, .. }
            | Input::Halt(_)
            | Input::Hold(_)
            | Input::Unpark { .. } => {}
        }
    }

    fn in_flight(state: &Sum) -> bool {
        state.attempt > 0
    }
    fn is_over(state: &Sum) -> bool {
        state.sum >= OVER
    }
    fn is_transient(_: &Event) -> bool {
        false
    }
    fn view(state: &Sum) -> Option<View> {
        Some(View { key: sum_key(), index: None, body: Some(state.sum.to_string()) })
    }
}

/// Runs effects at once, and records the commands that it prepares.
#[derive(Default)]
struct Outside {
    prepared: Mutex<Vec<String>>,
    refuses_to_prepare: AtomicBool,
}

#[async_trait]
impl EffectRunner<Adder> for Outside {
    async fn perform(&self, (): (), _: EffectContext<Adder>) {}
    async fn prepare(&self, _: &ActorId, state: &Sum, next: Option<&Command>) -> ports::Result<()> {
        self.prepared.lock().push(format!("{} {next:?}", state.sum));
        let refused = self.refuses_to_prepare.load(SeqCst) && matches!(next, Some(Command::Add(13)));
        if refused { Err(Error::Damaged("not today".into())) } else { Ok(()) }
    }
}

#[async_trait]
impl EntryObserver<Adder> for () {
    async fn loaded(&self, _: &ActorId, _: &Sum) {}
    async fn committed(&self, _: &ActorId, _: &Sum, _: &Entry<Event>) {}
}

struct World {
    clock: Arc<TestClock>,
    table: Arc<FakeTable>,
    queue: Arc<FakeQueue>,
    outside: Arc<Outside>,
    runtime: Runtime<Adder>,
}

fn actor() -> ActorId {
    ActorId::new("adder", "w/1")
}

/// The key of the view, which is the sum.
fn sum_key() -> Key {
    Key::new("sums", "1")
}

fn world() -> World {
    world_of(false)
}

/// The same, with the table and the queue in one store or in two.
fn world_of(one_store: bool) -> World {
    let clock = Arc::new(TestClock::new(1));
    let queue = Arc::new(FakeQueue::new(clock.clone(), 2, Faults::none(), 99));
    let table = FakeTable::new(clock.clone(), 1, Faults::none());
    let table = Arc::new(if one_store { table.sending_to(queue.clone()) } else { table });
    let outside = Arc::new(Outside::default());
    let runtime = runtime(&clock, &table, &queue, &outside, Options::default());
    World { clock, table, queue, outside, runtime }
}

fn runtime(
    clock: &Arc<TestClock>,
    table: &Arc<FakeTable>,
    queue: &Arc<FakeQueue>,
    outside: &Arc<Outside>,
    options: Options,
) -> Runtime<Adder> {
    let bus = Arc::new(FakeBus::new(3, Faults::none()));
    let (table, queue, clock) = (table.clone(), queue.clone(), clock.clone());
    Runtime::new(Adder, outside.clone(), table, queue, bus, clock, Arc::new(()), options)
}

impl World {
    /// Another process over the same table.
    fn process(&self, options: Options) -> Runtime<Adder> {
        runtime(&self.clock, &self.table, &self.queue, &self.outside, options)
    }

    fn mail(&self, commands: &[Command]) -> Vec<Delivery> {
        self.mail_to(&actor(), commands)
    }

    fn mail_to(&self, actor: &ActorId, commands: &[Command]) -> Vec<Delivery> {
        let delivery = |command: &Command| {
            let envelope = Envelope {
                id: CommandId(self.clock.id()),
                at: self.clock.now(),
                by: Principal::System,
                content: Content::Command { body: command.clone() },
            };
            let message = envelope.to(actor).unwrap();
            let receipt = Receipt(message.id.clone());
            Delivery { group: message.group, id: message.id, body: message.body, attempt: 1, receipt }
        };
        commands.iter().map(delivery).collect()
    }

    async fn deliver(&self, deliveries: &[Delivery]) -> Settlement {
        self.runtime.deliver(deliveries, &CancellationToken::new()).await
    }

    fn entries(&self) -> Vec<Entry<Event>> {
        let items = self.table.partition(actor().as_str()).into_iter().filter(|item| item.key.sk.starts_with("log/"));
        items.map(|item| serde_json::from_str(&item.body).unwrap()).collect()
    }

    /// How many commands and events each entry has.
    fn log(&self) -> Vec<(usize, usize)> {
        self.entries().iter().map(|entry| (entry.commands.len(), entry.events.len())).collect()
    }

    fn events(&self) -> String {
        self.entries().into_iter().flat_map(|entry| entry.events).map(|event| format!("{event:?} ")).collect()
    }
}

use Command::{Add, Nothing, Panic, Run, Tell, TellTooMuch};

fn all(deliveries: &[Delivery]) -> Settlement {
    Settlement { done: deliveries.len(), again: Duration::ZERO }
}

#[tokio::test(start_paused = true)]
async fn commands_that_come_together_are_one_entry_and_consumed_once() {
    let world = world();
    let deliveries = world.mail(&[Tell(1), Add(2), Nothing, Tell(3), Add(4)]);
    assert_eq!(world.deliver(&deliveries).await, all(&deliveries));
    assert_eq!(world.log(), [(5, 4)]);
    let sent = world.queue.messages();
    let told: Vec<_> = sent.iter().map(|message| (message.body.contains(r#""add":1"#), message.priority)).collect();
    assert_eq!(told, [(true, 3), (false, 3)], "each decided on the result of the one before it");
    assert!(sent[1].body.contains(r#""add":6"#) && sent[0].id != sent[1].id);
    // The acknowledgement was lost; a new process gets them again, one after the other, and sends the messages again.
    let other = world.process(Options::default());
    let again: Vec<_> = deliveries.iter().map(|delivery| Delivery { attempt: 2, ..delivery.clone() }).collect();
    assert_eq!(other.deliver(&again, &CancellationToken::new()).await, all(&again));
    assert_eq!((world.log().len(), world.queue.messages().len()), (1, 2), "the ids make that harmless");
    // The first process does not know the entry that another one wrote meanwhile, and finds out.
    let more = world.mail(&[Add(5)]);
    assert_eq!(other.deliver(&more, &CancellationToken::new()).await, all(&more));
    let more = world.mail(&[Nothing, Add(6), Add(7)]);
    assert_eq!(world.deliver(&more).await, all(&more));
    assert_eq!(world.log(), [(5, 4), (1, 1), (3, 2)]);
    assert_eq!(world.runtime.cache_counts().outdated, 1, "its memory was behind the log");
}

#[tokio::test(start_paused = true)]
async fn a_request_to_stop_that_goes_with_a_consumed_command_is_over() {
    let world = world();
    let ask = async |stop: Uuid| {
        let (target, at) = (StopTarget::First, world.clock.now());
        let request = StopRequest { stop_id: StopId(stop), target, at, reason: "asked".into() };
        let body = serde_json::to_string(&request).unwrap();
        let put = Write::put(actor().control_key(target), body, Expect::Any);
        world.table.commit(vec![put]).await.unwrap();
    };
    let first = world.mail(&[Add(1)]);
    assert_eq!(world.deliver(&first).await, all(&first));
    // Its sender got no answer, and sent the request again.
    ask(first[0].id.parse().unwrap()).await;
    assert_eq!(world.deliver(&world.mail(&[Run])).await.done, 1);
    assert_eq!(world.events(), "Added(1) Began(1) Ended ");
    ask(world.clock.id()).await;
    assert_eq!(world.deliver(&world.mail(&[Run])).await.done, 1);
    assert!(world.events().contains("Paused(\"asked\")"), "{}", world.events());
}

#[tokio::test(start_paused = true)]
async fn a_command_that_needs_the_outside_ends_an_entry_and_the_rest_follows_it() {
    let world = world();
    let deliveries = world.mail(&[Add(1), Run, Add(2), Add(3)]);
    assert_eq!(world.deliver(&deliveries).await, all(&deliveries));
    assert_eq!(world.log(), [(2, 2), (0, 1), (2, 2)]);
    assert_eq!(world.events(), "Added(1) Began(1) Ended Added(2) Added(3) ");
    let prepared = world.outside.prepared.lock().join(", ");
    assert_eq!(prepared, "0 Some(Add(1)), 1 Some(Run), 1 Some(Add(2)), 3 Some(Add(3))");
}

#[tokio::test(start_paused = true)]
async fn an_actor_that_has_come_to_its_end_is_neither_kept_nor_flushed() {
    let world = world();
    let has_snapshot = || world.table.partition(actor().as_str()).iter().any(|item| item.key == actor().snapshot_key());
    let deliveries = world.mail(&[Add(OVER)]);
    assert_eq!(world.deliver(&deliveries).await, all(&deliveries));
    assert_eq!(world.runtime.warm_actors(), 0);
    world.runtime.flush_all().await;
    assert!(!has_snapshot());
    // It is read from its log, should something come all the same.
    let deliveries = world.mail(&[Tell(1)]);
    assert_eq!(world.deliver(&deliveries).await, all(&deliveries));
    assert!(world.queue.messages()[0].body.contains(&format!("{}", OVER + 1)));
}

#[tokio::test(start_paused = true)]
async fn an_actor_stays_in_memory_until_it_rested_for_the_inactivity_time_out() {
    let world = world();
    assert_eq!(Options::default().inactivity, Duration::from_secs(10 * 60));
    let has_snapshot = || world.table.partition(actor().as_str()).iter().any(|item| item.key == actor().snapshot_key());
    assert_eq!(world.deliver(&world.mail(&[Add(1)])).await.done, 1);
    tokio::time::advance(Options::default().inactivity - Duration::from_secs(1)).await;
    world.runtime.flush_idle().await;
    assert_eq!((world.runtime.warm_actors(), has_snapshot()), (1, false));
    assert_eq!(world.deliver(&world.mail(&[Add(1)])).await.done, 1);
    assert_eq!(world.runtime.cache_counts(), CacheCounts { hits: 1, misses: 1, outdated: 0, cached: 0 });
    tokio::time::advance(Options::default().inactivity - Duration::from_secs(1)).await;
    tokio::time::advance(Duration::from_secs(1)).await;
    world.runtime.flush_idle().await;
    assert_eq!(
        (world.runtime.warm_actors(), has_snapshot()),
        (0, true),
        "its state is durable before it leaves memory"
    );
    assert_eq!(world.deliver(&world.mail(&[Add(2)])).await.done, 1);
    assert_eq!(world.table.items().into_iter().find(|item| item.key == sum_key()).unwrap().body, "4");
}

#[tokio::test(start_paused = true)]
async fn the_state_of_an_actor_that_was_shut_down_is_kept_for_an_hour_unless_another_drives_it() {
    let mut world = world();
    let cache = CacheLimits { time: Duration::from_secs(3600), bytes: 1 << 20 };
    world.runtime = world.process(Options { cache, ..Options::default() });
    let rest = async |minutes: u64| {
        tokio::time::advance(Duration::from_secs(60 * minutes)).await;
        world.runtime.flush_idle().await;
        (world.runtime.warm_actors(), world.runtime.cache_size().states)
    };
    assert_eq!(world.deliver(&world.mail(&[Add(1)])).await.done, 1);
    assert_eq!(rest(59).await, (0, 1));
    assert!(world.runtime.cache_size().bytes > 0);
    assert_eq!(world.deliver(&world.mail(&[Add(1)])).await.done, 1);
    assert_eq!(world.runtime.cache_size(), CacheSize::default(), "it is at rest, and nowhere else");
    assert_eq!(world.runtime.cache_counts(), CacheCounts { hits: 1, misses: 1, outdated: 0, cached: 1 });

    assert_eq!(rest(30).await, (0, 1));
    let (other, more) = (world.process(Options::default()), world.mail(&[Add(1)]));
    assert_eq!(other.deliver(&more, &CancellationToken::new()).await, all(&more));
    assert_eq!(world.deliver(&world.mail(&[Add(1)])).await.done, 1);
    assert_eq!(world.runtime.cache_counts(), CacheCounts { hits: 1, misses: 1, outdated: 1, cached: 2 });

    assert_eq!(rest(59).await, (0, 1));
    assert_eq!(rest(1).await, (0, 0));
    assert_eq!(world.deliver(&world.mail(&[Add(1)])).await.done, 1);
    assert_eq!(world.runtime.cache_counts(), CacheCounts { hits: 1, misses: 2, outdated: 1, cached: 2 });
    assert_eq!(world.table.items().into_iter().find(|item| item.key == sum_key()).unwrap().body, "5");
}

#[tokio::test(start_paused = true)]
async fn kept_states_have_a_bound_and_the_oldest_give_way() {
    let mut world = world();
    // A state of this actor is a few hundred bytes, and counts four KiB more.
    let cache = CacheLimits { time: Duration::from_secs(3600), bytes: 10_000 };
    world.runtime = world.process(Options { cache, ..Options::default() });
    let actors = ["w/1", "w/2", "w/3"].map(|name| ActorId::new("adder", name));
    for actor in &actors {
        assert_eq!(world.deliver(&world.mail_to(actor, &[Add(1)])).await.done, 1);
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    tokio::time::advance(Options::default().inactivity).await;
    world.runtime.flush_idle().await;
    let CacheSize { states, bytes } = world.runtime.cache_size();
    assert!(states == 2 && bytes <= 10_000, "{states} states with {bytes} bytes");
    for actor in actors.iter().rev() {
        assert_eq!(world.deliver(&world.mail_to(actor, &[Add(1)])).await.done, 1);
    }
    assert_eq!(world.runtime.cache_counts(), CacheCounts { hits: 2, misses: 4, outdated: 0, cached: 2 });
}

#[tokio::test(start_paused = true)]
async fn a_batch_has_an_end() {
    let world = world();
    let deliveries = world.mail(&vec![Add(1); 3 * ports::MAX_BATCH]);
    assert_eq!(world.deliver(&deliveries).await, all(&deliveries));
    assert!(world.log().iter().all(|(commands, _)| *commands <= ports::MAX_BATCH), "{:?}", world.log());
    assert!(world.log().len() < 10, "{:?}", world.log());
    let longest = world.table.items().iter().map(|item| item.body.len()).max().unwrap();
    assert!(longest < ports::SPILL_ABOVE, "{longest}");
}

#[tokio::test(start_paused = true)]
async fn a_message_that_no_queue_takes_is_in_no_entry() {
    let world = world();
    let deliveries = world.mail(&[TellTooMuch(1)]);
    let verdict = world.deliver(&deliveries).await;
    assert_eq!((verdict.done, world.log().len(), world.queue.messages().len()), (0, 0, 0));
    assert!(verdict.again > Duration::ZERO, "it is tried again after a rest, and pauses its actor in the end");
    tokio::time::sleep(verdict.again).await;
    let deliveries = world.mail(&[Tell(2)]);
    assert_eq!(world.deliver(&deliveries).await, all(&deliveries));
    assert_eq!((world.events().as_str(), world.queue.messages().len()), ("Added(2) ", 1));
}

#[tokio::test(start_paused = true)]
async fn a_command_that_panics_is_blamed_alone() {
    let world = world();
    let deliveries = world.mail(&[Add(1), Panic, Add(2)]);
    let verdict = world.deliver(&deliveries).await;
    assert_eq!(verdict.done, 1);
    assert!(verdict.again > Duration::ZERO);
    assert_eq!(world.log(), [(1, 1)]);
    // It comes again, alone, each time after a longer rest, until there is evidence enough.
    let mut rests = vec![verdict.again];
    for attempt in 2..6 {
        let again = Delivery { attempt, ..deliveries[1].clone() };
        tokio::time::sleep(rests[rests.len() - 1]).await;
        let verdict = world.deliver(&[again]).await;
        assert_eq!(verdict.done, 0);
        rests.push(verdict.again);
    }
    assert!(rests.windows(2).all(|pair| pair[1] == 2 * pair[0]), "{rests:?}");
    tokio::time::sleep(rests[rests.len() - 1]).await;
    let last = [Delivery { attempt: 6, ..deliveries[1].clone() }, deliveries[2].clone()];
    assert_eq!(world.deliver(&last).await, all(&last));
    let why = "Paused(\"it failed 6 times by itself: panicked: as told\")";
    assert!(world.events().contains(why), "{}", world.events());
    let newest = world.table.partition(actor().as_str());
    assert!(newest.iter().any(|item| item.body.contains(r#""parked":true"#) && item.body.contains(&deliveries[2].id)));
}

#[tokio::test(start_paused = true)]
async fn a_command_that_panics_leaves_nothing_in_the_state_of_those_before_it() {
    let world = world();
    let before = world.mail(&[Add(1)]);
    assert_eq!(world.deliver(&before).await, all(&before));
    assert_eq!(world.deliver(&world.mail(&[Add(2), Add(3), Panic, Add(4)])).await.done, 2);
    assert_eq!(world.log(), [(1, 1), (2, 2)]);
    let view = world.table.items().into_iter().find(|item| item.key == sum_key());
    assert_eq!(view.unwrap().body, "6", "the sum without that of the command that panicked");
}

#[tokio::test(start_paused = true)]
async fn unreadable_mail_pauses_the_actor_and_mail_behind_it_is_kept() {
    let world = world();
    let mut deliveries = world.mail(&[Add(1), Add(2), Add(3)]);
    deliveries[1].body = "{}".into();
    assert_eq!(world.deliver(&deliveries).await, all(&deliveries));
    assert!(world.events().starts_with("Added(1) Paused(\"the command cannot be read"), "{}", world.events());
    assert!(!world.events().contains("Added(3)"));
}

#[tokio::test(start_paused = true)]
async fn a_failed_preparation_is_tried_again_and_holds_up_nothing_before_it() {
    let world = world();
    world.outside.refuses_to_prepare.store(true, SeqCst);
    let deliveries = world.mail(&[Add(1), Add(13), Add(2)]);
    assert_eq!(world.deliver(&deliveries).await.done, 1);
    assert_eq!(world.log(), [(1, 1)]);
    world.outside.refuses_to_prepare.store(false, SeqCst);
    assert_eq!(world.deliver(&deliveries[1..]).await, all(&deliveries[1..]));
    assert_eq!(world.events(), "Added(1) Added(13) Added(2) ");
}

#[tokio::test(start_paused = true)]
async fn a_resume_that_gives_the_work_up_is_prepared() {
    let world = world();
    let mut deliveries = world.mail(&[Add(1), Add(2)]);
    deliveries[0].body = "{}".into();
    let (add, unpark) = (r#""mail":"command","body":{"add":2}"#, r#""mail":"unpark","drop":true"#);
    deliveries[1].body = deliveries[1].body.replace(add, unpark);
    assert_eq!(world.deliver(&deliveries).await, all(&deliveries));
    assert_eq!(*world.outside.prepared.lock(), ["0 None"]);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_ends_gives_back_what_it_did_not_begin() {
    let world = world();
    let cut = CancellationToken::new();
    cut.cancel();
    let deliveries = world.mail(&[Add(1), Run, Add(2)]);
    let verdict = world.runtime.deliver(&deliveries, &cut).await;
    assert_eq!(verdict, Settlement { done: 2, again: Duration::ZERO });
    assert_eq!(world.events(), "Added(1) Began(1) ");
    let continued = world.queue.messages();
    assert!(continued.len() == 1 && continued[0].body.contains("continue"), "{continued:?}");
}
