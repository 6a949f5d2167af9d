//! An actor that an older version took out of a pause, without a message to itself.
#![expect(clippy::unwrap_used, reason = "tests")]

use async_trait::async_trait;
use buildscale_actor::{
    ActorId, Content, EffectContext, EffectRunner, Entry, Envelope, Input, Machine, NoObserver, Options, Runtime, Step,
    View,
};
use domain::{CommandId, Principal, Stamp};
use ports::{Clock, Delivery, Receipt};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use testkit::{
    TestClock,
    fakes::{FakeBus, FakeQueue, FakeTable, Faults},
};
use tokio_util::sync::CancellationToken;

/// Owes a request until it is told to resume.
struct Debtor;

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Event {
    Heard,
    Owes,
    Asked,
}

impl Machine for Debtor {
    const KIND: &'static str = "debtor";
    type State = bool;
    type Command = Event;
    type Event = Event;
    type Effect = ();
    type Report = ();
    fn apply(owes: &mut bool, _: u64, event: &Event) {
        match event {
            Event::Heard => {}
            Event::Owes => *owes = true,
            Event::Asked => *owes = false,
        }
    }
    fn handle(&self, step: &mut Step<Self>, input: Input<Self>, _: &Stamp) {
        match input {
            Input::Command { command, .. } => step.push(command),
            Input::Resume => step.push(Event::Asked),
            _ => {}
        }
    }
    fn in_flight(_: &bool) -> bool {
        false
    }
    fn asks_anew(owes: &bool) -> bool {
        *owes
    }
    fn is_transient(_: &Event) -> bool {
        false
    }
    fn view(_: &bool) -> Option<View> {
        None
    }
}

#[async_trait]
impl EffectRunner<Debtor> for Debtor {
    async fn perform(&self, (): (), _: EffectContext<Debtor>) {}
}

#[tokio::test(start_paused = true)]
async fn an_actor_that_owes_a_request_asks_when_it_is_told_to_go_on() {
    let clock = Arc::new(TestClock::new(1));
    let table = Arc::new(FakeTable::new(clock.clone(), 1, Faults::none()));
    let queue = Arc::new(FakeQueue::new(clock.clone(), 2, Faults::none(), 99));
    let (bus, follow) = (Arc::new(FakeBus::new(3, Faults::none())), Arc::new(NoObserver));
    let (perform, options) = (Arc::new(Debtor), Options::default());
    let worker = Runtime::new(Debtor, perform, table.clone(), queue, bus, clock.clone(), follow, options);
    let actor = ActorId::new("debtor", "1");
    for content in [
        Content::Continue,
        Content::Command { body: Event::Owes },
        Content::Command { body: Event::Heard },
        Content::Continue,
        Content::Continue,
    ] {
        let envelope = Envelope { id: CommandId(clock.id()), at: clock.now(), by: Principal::System, content };
        let message = envelope.to(&actor).unwrap();
        let receipt = Receipt(message.id.clone());
        let delivery = Delivery { group: message.group, id: message.id, body: message.body, attempt: 1, receipt };
        let settled = worker.deliver(std::slice::from_ref(&delivery), &CancellationToken::new()).await;
        assert_eq!(settled.done, 1);
    }
    let items = table.partition(actor.as_str()).into_iter().filter(|item| item.key.sk.starts_with("log/"));
    let log: Vec<Event> =
        items.flat_map(|item| serde_json::from_str::<Entry<Event>>(&item.body).unwrap().events).collect();
    assert_eq!(log, [Event::Owes, Event::Heard, Event::Asked]);
}
