//! Outbox events: whatever moment a process dies at, each event has its message, and under one id.
#![expect(clippy::unwrap_used, reason = "tests")]

use actor::{
    ActorDriver, ActorId, Content, EffectContext, EffectKey, EffectRunner, Entry, Envelope, Input, Machine, NoObserver,
    OutboxContributor, Runtime, Settlement, Step, View,
};
use async_trait::async_trait;
use buildscale_worker::{Options, Worker};
use domain::{CommandId, Principal, Stamp};
use parking_lot::Mutex;
use ports::{Clock, Delivery, Key, QueueMessage, QueueSender, Table};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use testkit::{
    TestClock,
    crash::{Crash, Side},
    fakes::{FakeBus, FakeQueue, FakeTable, Faults},
};
use tokio_util::sync::CancellationToken;

/// Does something outside for each command, and counts what was done.
struct Counter;

#[derive(Serialize, Deserialize)]
enum Event {
    Began(u32),
    Ended(u32),
}

#[derive(Default, Serialize, Deserialize)]
struct Count {
    ended: u32,
    attempt: u32,
}

impl Machine for Counter {
    const KIND: &'static str = "counter";
    type State = Count;
    type Command = ();
    type Event = Event;
    type Effect = ();
    type Report = ();

    fn apply(state: &mut Count, _: u64, event: &Event) {
        match event {
            Event::Began(attempt) => state.attempt = *attempt,
            Event::Ended(ended) => *state = Count { ended: *ended, attempt: 0 },
        }
    }

    fn handle(&self, step: &mut Step<Self>, input: Input<Self>, _: &Stamp) {
        let run = |step: &mut Step<Self>, attempt: u32| {
            step.push(Event::Began(attempt));
            step.run(EffectKey(format!("{}/{attempt}", step.state().ended)), ());
        };
        match input {
            Input::Command { .. } => run(step, 1),
            Input::Resume => run(step, step.state().attempt + 1),
            Input::Report(()) => step.push(Event::Ended(step.state().ended + 1)),
            Input::Stop(_) | Input::Halt(_) | Input::Hold(_) | Input::Park { .. } | Input::Unpark { .. } => {}
        }
    }

    fn in_flight(state: &Count) -> bool {
        state.attempt > 0
    }
    fn is_transient(_: &Event) -> bool {
        false
    }
    fn view(_: &Count) -> Option<View> {
        None
    }
}

struct Outside;

#[async_trait]
impl EffectRunner<Counter> for Outside {
    async fn perform(&self, (): (), _: EffectContext<Counter>) {}
}

/// One for each end, after a read as the outbox events of webhooks have one.
struct Ends(Arc<dyn Table>);

#[async_trait]
impl OutboxContributor<Counter> for Ends {
    async fn of(&self, actor: &ActorId, _: &Count, entry: &Entry<Event>) -> ports::Result<Vec<QueueMessage>> {
        self.0.get(&Key::new("w/hooks", "all")).await?;
        let ends = (entry.first..).zip(&entry.events).filter_map(|(number, event)| match event {
            Event::Ended(ended) => Some((number, *ended)),
            Event::Began(_) => None,
        });
        let message = |(number, ended): (u64, u32)| QueueMessage {
            group: "letter/w".into(),
            id: format!("{actor}/{number}"),
            body: ended.to_string(),
            ..QueueMessage::default()
        };
        Ok(ends.map(message).collect())
    }
}

/// The messages that arrived: the ids of each end.
#[derive(Clone, Default)]
struct Received(Arc<Mutex<BTreeMap<u32, Vec<String>>>>);

#[async_trait]
impl ActorDriver for Received {
    fn name(&self) -> &'static str {
        "letter"
    }
    async fn deliver(&self, deliveries: &[Delivery], _: &CancellationToken) -> Settlement {
        let mut received = self.0.lock();
        for delivery in deliveries {
            let ids = received.entry(delivery.body.parse().unwrap()).or_default();
            if !ids.contains(&delivery.id) {
                ids.push(delivery.id.clone());
            }
        }
        Settlement { done: deliveries.len(), again: Duration::ZERO }
    }
}

const COMMANDS: u32 = 3;

/// Plays a death at this call; false when none was made so late.
async fn play(call: u64, side: Side) -> bool {
    let clock = Arc::new(TestClock::new(call));
    let table = Arc::new(FakeTable::new(clock.clone(), 1, Faults::none()));
    let queue = Arc::new(FakeQueue::new(clock.clone(), 2, Faults::none(), 1_000));
    let bus = Arc::new(FakeBus::new(3, Faults::none()));
    let received = Received::default();
    for _ in 0..COMMANDS {
        let (id, at, by) = (CommandId(clock.id()), clock.now(), Principal::System);
        let envelope = Envelope { id, at, by, content: Content::Command { body: () } };
        queue.send(vec![envelope.to(&ActorId::new(Counter::KIND, "w/1")).unwrap()]).await.unwrap();
    }
    let start = |crash: Crash| {
        let (table, queue) = (crash.table(table.clone()), crash.queue(queue.clone()));
        let runtime = Runtime::new(
            Counter,
            Arc::new(Outside),
            table.clone(),
            queue.clone(),
            crash.bus(bus.clone()),
            clock.clone(),
            Arc::new(NoObserver),
            actor::Options::default(),
        );
        let runtime = runtime.with_contributor(Some(Arc::new(Ends(table))));
        let kinds: [Arc<dyn ActorDriver>; 2] = [Arc::new(runtime), Arc::new(received.clone())];
        let worker = Worker::new(kinds, queue, Options::default());
        tokio::spawn(async move { worker.run(CancellationToken::new()).await })
    };
    let mortal = Crash::at(call, side);
    let mut process = start(mortal.clone());
    let mut died = false;
    while !queue.is_empty() {
        tokio::time::sleep(Duration::from_millis(50)).await;
        if mortal.is_dead() && !died {
            process.abort();
            died = true;
            process = start(Crash::never());
        }
    }
    process.abort();
    let received = received.0.lock();
    let ends: Vec<u32> = received.keys().copied().collect();
    assert_eq!(ends, (1..=COMMANDS).collect::<Vec<_>>(), "call {call}: a message is missing");
    assert!(received.values().all(|ids| ids.len() == 1), "call {call}: {received:?}");
    died
}

#[test]
fn no_death_loses_an_outbox_event_or_gives_it_another_id() {
    for side in [Side::Before, Side::After] {
        let mut deaths = 0;
        for call in 1.. {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = runtime.enable_time().start_paused(true).build().unwrap();
            if !runtime.block_on(play(call, side)) {
                break;
            }
            deaths += 1;
        }
        assert!(deaths > 10, "{deaths}");
    }
}
