//! Batches under faults and deaths: under any fault of a store and any death, each command counts once, in order.
#![expect(clippy::unwrap_used, reason = "tests")]

use actor::{
    ActorDriver, ActorId, Content, EffectContext, EffectKey, EffectRunner, Entry, EntryObserver, Envelope, Input,
    Machine, OutboxMessage, Runtime, Step, View,
};
use async_trait::async_trait;
use buildscale_worker::{Options, Worker};
use domain::{CommandId, Principal, Stamp};
use ports::{Clock, QueueMessage, QueueSender};
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};
use testkit::{
    Random, TestClock,
    crash::{Crash, Processes},
    fakes::{FakeBus, FakeQueue, FakeTable, Faults},
};
use tokio_util::sync::CancellationToken;

/// Children tell their parent each number that they are told, some of them only after something was done outside.
struct Family;

#[derive(Clone, Copy, Serialize, Deserialize)]
struct Number {
    from: u32,
    n: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Event {
    Heard(Number),
    Began(u32),
    Ended,
}

#[derive(Default, Serialize, Deserialize)]
struct Heard {
    attempt: u32,
}

impl Machine for Family {
    const KIND: &'static str = "family";
    type State = Heard;
    type Command = Number;
    type Event = Event;
    type Effect = ();
    type Report = ();

    fn apply(state: &mut Heard, _: u64, event: &Event) {
        match event {
            Event::Heard(_) => {}
            Event::Began(attempt) => state.attempt = *attempt,
            Event::Ended => state.attempt = 0,
        }
    }

    fn handle(&self, step: &mut Step<Self>, input: Input<Self>, stamp: &Stamp) {
        let run = |step: &mut Step<Self>, attempt: u32| {
            step.push(Event::Began(attempt));
            step.run(EffectKey(format!("{}/{attempt}", stamp.id)), ());
        };
        match input {
            Input::Command { command: number, .. } => {
                if number.from > 0 && number.n.is_multiple_of(7) {
                    run(step, 1);
                }
                step.push(Event::Heard(number));
                if number.from > 0 {
                    let command = serde_json::json!({ "from": 0, "n": 1000 * number.from + number.n });
                    step.send(OutboxMessage::now(actor(0), command, 0));
                }
            }
            Input::Resume => run(step, step.state().attempt + 1),
            Input::Report(()) => step.push(Event::Ended),
            Input::Stop(_) | Input::Halt(_) | Input::Hold(_) | Input::Park { .. } | Input::Unpark { .. } => {}
        }
    }

    fn in_flight(state: &Heard) -> bool {
        state.attempt > 0
    }
    fn is_transient(_: &Event) -> bool {
        false
    }
    fn view(_: &Heard) -> Option<View> {
        None
    }
}

struct Outside;

#[async_trait]
impl EffectRunner<Family> for Outside {
    async fn perform(&self, (): (), _: EffectContext<Family>) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[async_trait]
impl EntryObserver<Family> for Outside {
    async fn loaded(&self, _: &ActorId, _: &Heard) {}
    async fn committed(&self, _: &ActorId, _: &Heard, _: &Entry<Event>) {}
}

/// The parent is number 0.
fn actor(number: u32) -> ActorId {
    ActorId::new(Family::KIND, format_args!("w/{number}"))
}

const CHILDREN: u32 = 3;
const NUMBERS: u32 = 25;

/// Plays one schedule; returns the commands that the actors heard, with the longest list of commands of an entry.
async fn play(seed: u64) -> (Vec<Vec<u32>>, usize) {
    let clock = Arc::new(TestClock::new(seed));
    let mut random = Random::new(seed);
    let faults = if seed.is_multiple_of(4) { Faults::interleaving() } else { Faults::some() };
    let table = Arc::new(FakeTable::new(clock.clone(), seed ^ 1, faults.clone()));
    let queue = Arc::new(FakeQueue::new(clock.clone(), seed ^ 2, faults.clone(), 1000));
    let bus = Arc::new(FakeBus::new(seed ^ 3, faults));
    for n in 0..NUMBERS {
        let message = |from: u32| -> QueueMessage {
            let (id, at, by) = (CommandId(clock.id()), clock.now(), Principal::System);
            Envelope { id, at, by, content: Content::Command { body: Number { from, n } } }.to(&actor(from)).unwrap()
        };
        let messages: Vec<_> = (1..=CHILDREN).map(message).collect();
        while queue.send(messages.clone()).await.is_err() {}
    }
    let start = |crash: Crash| {
        let (table, queue) = (crash.table(table.clone()), crash.queue(queue.clone()));
        let outside = Arc::new(Outside);
        // No actor causes these deaths, so none is paused for them.
        let options = actor::Options::default();
        let runtime = Runtime::new(
            Family,
            outside.clone(),
            table,
            queue.clone(),
            crash.bus(bus.clone()),
            clock.clone(),
            outside,
            options,
        );
        let kinds: [Arc<dyn ActorDriver>; 1] = [Arc::new(runtime)];
        let worker = Worker::new(kinds, queue, Options::default());
        tokio::spawn(async move { worker.run(CancellationToken::new()).await })
    };
    Processes::begin(start, &mut random).until(|| queue.is_empty(), &mut random).await;
    assert!(queue.dead().is_empty());
    let mut longest = 0;
    let heard = (0..=CHILDREN).map(|number| {
        let items = table.partition(actor(number).as_str()).into_iter().filter(|item| item.key.sk.starts_with("log/"));
        let entries: Vec<Entry<Event>> = items.map(|item| serde_json::from_str(&item.body).unwrap()).collect();
        longest = entries.iter().map(|entry| entry.commands.len()).chain([longest]).max().unwrap_or(0);
        let mut consumed: Vec<_> = entries.iter().flat_map(|entry| entry.commands.clone()).collect();
        consumed.sort();
        assert!(consumed.windows(2).all(|pair| pair[0] != pair[1]), "seed {seed}: a command was consumed twice");
        let numbers = entries.into_iter().flat_map(|entry| entry.events);
        numbers.filter_map(|event| if let Event::Heard(number) = event { Some(number.n) } else { None }).collect()
    });
    (heard.collect(), longest)
}

#[test]
fn no_schedule_loses_doubles_or_reorders_commands_of_a_batch() {
    let mut longest = 0;
    for seed in 0..150 {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        let (heard, most) = runtime.block_on(play(seed));
        longest = longest.max(most);
        let expected: Vec<u32> = (0..NUMBERS).collect();
        for child in &heard[1..] {
            assert_eq!(child, &expected, "seed {seed}");
        }
        let mut of_all = heard[0].clone();
        for child in 1..=CHILDREN {
            let of_one: Vec<u32> = of_all.iter().filter(|n| **n / 1000 == child).map(|n| n % 1000).collect();
            assert_eq!(of_one, expected, "seed {seed}: the parent heard child {child}");
        }
        of_all.sort_unstable();
        assert_eq!(of_all.len(), (CHILDREN * NUMBERS) as usize, "seed {seed}");
    }
    assert!(longest > 3, "batches happen: {longest}");
}
