//! Two versions of a machine at work on the same actors: nothing is lost, nothing is done by halves.
#![expect(clippy::unwrap_used, reason = "tests")]

use async_trait::async_trait;
use buildscale_actor::{
    ActorId, Content, EffectContext, EffectRunner, Entry, Envelope, Input, Machine, NoObserver, Options, Runtime,
    Settlement, Step, Unreadable, View, has_consumed,
};
use domain::{CommandId, Principal, Stamp};
use ports::{Clock, Delivery, Expect, Receipt, Table, Write};
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};
use testkit::{
    TestClock,
    fakes::{FakeBus, FakeQueue, FakeTable, Faults},
    golden,
};
use tokio_util::sync::CancellationToken;

/// The commands that both versions know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum OldCommand {
    Add(u64),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum OldEvent {
    Added { by: u64 },
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct OldState {
    sum: u64,
}

struct Old;

/// The next version: it multiplies, and counts how often something was added.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum NewCommand {
    Add(u64),
    Multiply(u64),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum NewEvent {
    Added {
        by: u64,
        #[serde(default)]
        why: String,
    },
    Multiplied {
        by: u64,
    },
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct NewState {
    sum: u64,
    whys: Vec<String>,
}

struct New;

macro_rules! machine {
    ($machine:ty, $command:ty, $event:ty, $state:ty, $version:expr, |$input:ident| $decide:expr, |$folded:ident, $happened:ident| $apply:expr) => {
        impl Machine for $machine {
            const KIND: &'static str = "adder";
            const VERSION: u32 = $version;
            type State = $state;
            type Command = $command;
            type Event = $event;
            type Effect = ();
            type Report = ();
            fn apply($folded: &mut $state, _: u64, $happened: &$event) {
                $apply
            }
            fn handle(&self, step: &mut Step<Self>, input: Input<Self>, _: &Stamp) {
                if let Input::Command { command: $input, .. } = input {
                    step.push($decide);
                }
            }
            fn in_flight(_: &$state) -> bool {
                false
            }
            fn is_transient(_: &$event) -> bool {
                false
            }
            fn view(_: &$state) -> Option<View> {
                None
            }
        }

        #[async_trait]
        impl EffectRunner<$machine> for Nothing {
            async fn perform(&self, (): (), _: EffectContext<$machine>) {}
        }
    };
}

struct Nothing;

machine!(
    Old,
    OldCommand,
    OldEvent,
    OldState,
    1,
    |command| match command {
        OldCommand::Add(by) => OldEvent::Added { by },
    },
    |state, event| match event {
        OldEvent::Added { by } => state.sum += by,
    }
);

machine!(
    New,
    NewCommand,
    NewEvent,
    NewState,
    2,
    |command| match command {
        NewCommand::Add(by) => NewEvent::Added { by, why: format!("by {by}") },
        NewCommand::Multiply(by) => NewEvent::Multiplied { by },
    },
    |state, event| match event {
        NewEvent::Added { by, why } => {
            state.sum += by;
            state.whys.push(why.clone());
        }
        NewEvent::Multiplied { by } => state.sum *= by,
    }
);

struct World {
    clock: Arc<TestClock>,
    table: Arc<FakeTable>,
    queue: Arc<FakeQueue>,
}

fn world() -> World {
    seeded(1)
}

fn seeded(seed: u64) -> World {
    let clock = Arc::new(TestClock::new(seed));
    let table = Arc::new(FakeTable::new(clock.clone(), 1, Faults::none()));
    let queue = Arc::new(FakeQueue::new(clock.clone(), 2, Faults::none(), 99));
    World { clock, table, queue }
}

fn actor() -> ActorId {
    ActorId::new("adder", "w/1")
}

impl World {
    /// A worker that has just begun.
    fn worker<M: Machine>(&self, machine: M) -> Runtime<M>
    where
        Nothing: EffectRunner<M>,
    {
        let bus = Arc::new(FakeBus::new(3, Faults::none()));
        let (table, queue, clock) = (self.table.clone(), self.queue.clone(), self.clock.clone());
        let follow = Arc::new(NoObserver);
        Runtime::new(machine, Arc::new(Nothing), table, queue, bus, clock, follow, Options::default())
    }

    fn mail(&self, command: impl Serialize) -> Delivery {
        let content = Content::Command { body: serde_json::to_value(command).unwrap() };
        let envelope =
            Envelope { id: CommandId(self.clock.id()), at: self.clock.now(), by: Principal::System, content };
        let message = envelope.to(&actor()).unwrap();
        let receipt = Receipt(message.id.clone());
        Delivery { group: message.group, id: message.id, body: message.body, attempt: 1, receipt }
    }

    fn events(&self) -> Vec<NewEvent> {
        let items = self.table.partition(actor().as_str()).into_iter().filter(|item| item.key.sk.starts_with("log/"));
        let entries = items.map(|item| serde_json::from_str::<Entry<NewEvent>>(&item.body).unwrap());
        entries.flat_map(|entry| entry.events).collect()
    }

    async fn snapshot(&self) -> Option<serde_json::Value> {
        let item = self.table.get(&actor().snapshot_key()).await.unwrap()?;
        Some(serde_json::from_str(&item.body).unwrap())
    }
}

async fn deliver<M: Machine>(worker: &Runtime<M>, deliveries: &[Delivery]) -> Settlement {
    worker.deliver(deliveries, &CancellationToken::new()).await
}

fn again(delivery: &Delivery, attempt: u32) -> Delivery {
    Delivery { attempt, ..delivery.clone() }
}

/// An older worker that meets an event it does not know does nothing, gives back, and nothing of it counts against the command:
/// however often that happened, the newer worker takes it as if it came for the first time.
#[tokio::test(start_paused = true)]
async fn an_older_worker_leaves_data_of_a_newer_version_to_it() {
    let world = world();
    assert_eq!(deliver(&world.worker(New), &[world.mail(NewCommand::Multiply(2))]).await.done, 1);
    let (old, two) = (world.worker(Old), [world.mail(OldCommand::Add(3)), world.mail(OldCommand::Add(4))]);
    for attempt in 1..=15 {
        let verdict = deliver(&old, &two.each_ref().map(|each| again(each, attempt))).await;
        assert_eq!((verdict.done, verdict.again), (0, Duration::from_secs(40)), "attempt {attempt}");
    }
    assert_eq!(world.events().len(), 1, "it wrote nothing");
    // The queue counted fifteen attempts of each; the worker's own limit is six.
    let verdict = deliver(&world.worker(New), &two.each_ref().map(|each| again(each, 16))).await;
    assert_eq!(verdict.done, 2);
    let why = |by: u64| NewEvent::Added { by, why: format!("by {by}") };
    assert_eq!(world.events(), [NewEvent::Multiplied { by: 2 }, why(3), why(4)]);
}

/// The same with a command that it does not know, and with a field of the deliveries that it does not know.
#[tokio::test(start_paused = true)]
async fn an_older_worker_leaves_a_newer_command_to_a_newer_worker() {
    let world = world();
    let old = world.worker(Old);
    let deliveries =
        [world.mail(OldCommand::Add(3)), world.mail(NewCommand::Multiply(5)), world.mail(OldCommand::Add(1))];
    assert_eq!(deliver(&old, &deliveries).await, Settlement { done: 1, again: Duration::from_secs(40) });
    for attempt in 2..9 {
        assert_eq!(deliver(&old, &[again(&deliveries[1], attempt)]).await.done, 0);
    }
    let rest = [again(&deliveries[1], 9), again(&deliveries[2], 2)];
    assert_eq!(deliver(&world.worker(New), &rest).await.done, 2);
    let whys = [NewEvent::Added { by: 3, why: String::new() }, NewEvent::Multiplied { by: 5 }];
    assert_eq!(world.events()[..2], whys);
    assert_eq!(world.events()[2], NewEvent::Added { by: 1, why: "by 1".into() });

    let mut newer = world.mail(OldCommand::Add(1));
    newer.body = newer.body.replacen('{', r#"{"trace":"1-2-3","#, 1);
    assert!(matches!(Envelope::<OldCommand>::parse(&newer.body), Err(Unreadable::Newer(_))), "{}", newer.body);
    newer.body = newer.body.replace(r#""mail":"command""#, r#""mail":"merge""#).replace(r#""trace":"1-2-3","#, "");
    assert!(matches!(Envelope::<OldCommand>::parse(&newer.body), Err(Unreadable::Newer(_))), "{}", newer.body);
    assert!(matches!(Envelope::<OldCommand>::parse("{}"), Err(Unreadable::Damaged(_))));
}

/// A command that no worker can read for a quarter of an hour pauses its actor, and is kept.
#[tokio::test(start_paused = true)]
async fn mail_that_no_worker_learns_to_read_pauses_its_actor() {
    let world = world();
    let deliveries = world.mail(NewCommand::Multiply(5));
    for attempt in 1..25 {
        assert_eq!(deliver(&world.worker(Old), &[again(&deliveries, attempt)]).await.done, 0, "attempt {attempt}");
    }
    assert_eq!(deliver(&world.worker(Old), &[again(&deliveries, 25)]).await.done, 1);
    let items = world.table.partition(actor().as_str());
    let parked = items.iter().find(|item| item.body.contains(r#""parked":true"#)).unwrap();
    assert!(parked.body.contains(&deliveries.id) && parked.body.contains("multiply"), "{}", parked.body);
}

/// An entry that says more about itself than is known is left alone, too.
#[tokio::test(start_paused = true)]
async fn an_envelope_that_says_more_is_left_alone() {
    let world = world();
    let old = world.worker(Old);
    assert_eq!(deliver(&old, &[world.mail(OldCommand::Add(3))]).await.done, 1);
    let item =
        world.table.partition(actor().as_str()).into_iter().find(|item| item.key.sk.starts_with("log/")).unwrap();
    let newer = item.body.replacen('{', r#"{"escrow":[],"#, 1);
    let put = |body: String| vec![Write::put(item.key.clone(), body, Expect::Present)];
    world.table.commit(put(newer)).await.unwrap();
    let deliveries = world.mail(OldCommand::Add(4));
    assert_eq!(deliver(&world.worker(Old), std::slice::from_ref(&deliveries)).await.done, 0);
    // When it is understood, it goes on.
    world.table.commit(put(item.body.clone())).await.unwrap();
    assert_eq!(deliver(&world.worker(Old), &[again(&deliveries, 2)]).await.done, 1);
    assert_eq!(world.events().len(), 2);
}

/// A snapshot saves reading the log for the version that made it, and is nothing to any other: data that an older worker does not know, and
/// so leaves out of its own, is in the log.
#[tokio::test(start_paused = true)]
async fn no_version_loses_what_another_left_out_of_its_snapshot() {
    let world = world();
    let many = |count: usize| -> Vec<Delivery> { (0..count).map(|_| world.mail(OldCommand::Add(1))).collect() };
    let new = world.worker(New);
    deliver(&new, &many(300)).await;
    new.flush_all().await;
    let made = world.snapshot().await.unwrap();
    assert_eq!((&made["v"], made["state"]["whys"].as_array().map(Vec::len)), (&2.into(), Some(300)));

    // The older one folds the log, skips the events that it may skip, and overwrites the snapshot.
    let old = world.worker(Old);
    deliver(&old, &many(2)).await;
    old.flush_all().await;
    let made = world.snapshot().await.unwrap();
    assert_eq!((made.get("v"), &made["state"]["sum"]), (None, &302.into()), "the first version needs no number");

    // Nothing is missing for the newer one.
    let new = world.worker(New);
    deliver(&new, &many(1)).await;
    new.flush_all().await;
    let made = world.snapshot().await.unwrap();
    assert_eq!((&made["state"]["sum"], made["state"]["whys"].as_array().map(Vec::len)), (&303.into(), Some(303)));
}

/// A damaged snapshot costs a longer read, and no state and no answer.
#[tokio::test(start_paused = true)]
async fn a_damaged_snapshot_is_replaced_from_the_log() {
    let world = world();
    let deliveries = world.mail(OldCommand::Add(40));
    let worker = world.worker(Old);
    deliver(&worker, std::slice::from_ref(&deliveries)).await;
    worker.flush_all().await;
    for damaged in ["{\"next\":2,", "{\"state\":{}}", ""] {
        let put = Write::put(actor().snapshot_key(), damaged, Expect::Present);
        world.table.commit(vec![put]).await.unwrap();
        assert!(has_consumed(&*world.table, &actor(), deliveries.id.parse().unwrap()).await.unwrap(), "{damaged:?}");
        let worker = world.worker(Old);
        assert_eq!(deliver(&worker, &[world.mail(OldCommand::Add(1))]).await.done, 1, "{damaged:?}");
        worker.flush_all().await;
    }
    assert_eq!(world.snapshot().await.unwrap()["state"]["sum"], 43);
}

/// The answer whether a command was consumed covers every command of an entry, before a snapshot and after.
#[tokio::test(start_paused = true)]
async fn a_consumed_command_is_known_from_the_log_and_from_the_snapshot() {
    let world = world();
    let deliveries = [world.mail(OldCommand::Add(1)), world.mail(OldCommand::Add(2))];
    let ids = deliveries.each_ref().map(|deliveries| deliveries.id.parse().unwrap());
    let worker = world.worker(Old);
    deliver(&worker, &deliveries).await;
    for _ in 0..2 {
        for id in ids {
            assert!(has_consumed(&*world.table, &actor(), id).await.unwrap());
        }
        assert!(!has_consumed(&*world.table, &actor(), CommandId(world.clock.id())).await.unwrap());
        worker.flush_all().await;
        assert!(world.snapshot().await.is_some());
    }
}

/// A snapshot that was written once is read for ever, by the version of the fold that it is of.
#[tokio::test(start_paused = true)]
async fn snapshots_are_read_for_ever() {
    let first = world();
    let worker = first.worker(Old);
    deliver(&worker, &[first.mail(OldCommand::Add(40)), first.mail(OldCommand::Add(2))]).await;
    worker.flush_all().await;
    let mut made = first.snapshot().await.unwrap();
    made["at"] = "2026-01-01T00:00:00.042Z".into();
    golden::check(env!("CARGO_MANIFEST_DIR"), "snapshots", &made);

    let second = seeded(7);
    let body = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/snapshots/1.json")).unwrap();
    second.table.commit(vec![Write::put(actor().snapshot_key(), body, Expect::Absent)]).await.unwrap();
    let worker = second.worker(Old);
    deliver(&worker, &[second.mail(OldCommand::Add(1))]).await;
    worker.flush_all().await;
    assert_eq!(second.snapshot().await.unwrap()["state"]["sum"], 43);
    assert_eq!(second.events().len(), 1, "events in the snapshot were not read from a log");
}
