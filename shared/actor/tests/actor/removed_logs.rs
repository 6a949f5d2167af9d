//! A step that ends after the log of its actor was removed, as with a deleted workspace: it writes nothing, and the actor is on no list again.
#![expect(clippy::unwrap_used, reason = "tests")]

use async_trait::async_trait;
use buildscale_actor::{
    ActorId, Content, EffectContext, EffectKey, EffectRunner, Envelope, Input, Machine, NoObserver, Options, Runtime,
    Settlement, Step, View,
};
use domain::{CommandId, Principal, Stamp};
use ports::{Clock, Delivery, Expect, Key, Receipt, Table, Write};
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};
use testkit::{
    TestClock,
    fakes::{FakeBus, FakeQueue, FakeTable, Faults},
};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Works for each command, and is on a list with the last event.
struct Listed;

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Event {
    Began,
    Ended,
}

impl Machine for Listed {
    const KIND: &'static str = "listed";
    type State = Option<Event>;
    type Command = ();
    type Event = Event;
    type Effect = ();
    type Report = ();
    fn apply(state: &mut Option<Event>, _: u64, event: &Event) {
        *state = Some(*event);
    }
    fn handle(&self, step: &mut Step<Self>, input: Input<Self>, _: &Stamp) {
        match input {
            Input::Command { .. } | Input::Resume => {
                step.push(Event::Began);
                step.run(EffectKey("work".into()), ());
            }
            Input::Report(()) => step.push(Event::Ended),
            _ => {}
        }
    }
    fn in_flight(state: &Option<Event>) -> bool {
        *state == Some(Event::Began)
    }
    fn is_transient(_: &Event) -> bool {
        false
    }
    fn view(state: &Option<Event>) -> Option<View> {
        let body = serde_json::to_string(state.as_ref()?).ok();
        Some(View { key: view(), index: None, body })
    }
}

fn view() -> Key {
    Key::new("list", "1")
}

/// Work that ends when it is let go.
#[derive(Default)]
struct Work {
    begun: Notify,
    let_go: Notify,
}

#[async_trait]
impl EffectRunner<Listed> for Work {
    async fn perform(&self, (): (), _: EffectContext<Listed>) {
        self.begun.notify_one();
        self.let_go.notified().await;
    }
}

/// Delivers a command to an actor with an empty log. While it works, `meanwhile` happens to the table. How the delivery is settled, and the table afterwards.
async fn deliver(meanwhile: impl AsyncFnOnce(&FakeTable, &ActorId)) -> (Settlement, Arc<FakeTable>) {
    let clock = Arc::new(TestClock::new(1));
    let table = Arc::new(FakeTable::new(clock.clone(), 1, Faults::none()));
    let queue = Arc::new(FakeQueue::new(clock.clone(), 2, Faults::none(), 99));
    let (bus, observer) = (Arc::new(FakeBus::new(3, Faults::none())), Arc::new(NoObserver));
    let work = Arc::new(Work::default());
    let (perform, options) = (work.clone(), Options::default());
    let worker = Runtime::new(Listed, perform, table.clone(), queue, bus, clock.clone(), observer, options);
    let actor = ActorId::new("listed", "1");
    let content = Content::Command { body: () };
    let envelope = Envelope { id: CommandId(clock.id()), at: clock.now(), by: Principal::System, content };
    let message = envelope.to(&actor).unwrap();
    let receipt = Receipt(message.id.clone());
    let delivery = [Delivery { group: message.group, id: message.id, body: message.body, attempt: 1, receipt }];
    let happens = async {
        work.begun.notified().await;
        meanwhile(table.as_ref(), &actor).await;
        work.let_go.notify_one();
    };
    let cut = CancellationToken::new();
    let (settled, ()) = tokio::join!(worker.deliver(&delivery, &cut), happens);
    (settled, table)
}

const DONE: Settlement = Settlement { done: 1, again: Duration::ZERO };

#[tokio::test(start_paused = true)]
async fn a_step_whose_log_was_removed_meanwhile_brings_no_view_and_no_entry_back() {
    let (settled, table) = deliver(async |table, actor| {
        table.clear(actor.as_str()).await.unwrap();
        table.commit(vec![Write::delete(view(), Expect::Present)]).await.unwrap();
    })
    .await;
    assert_eq!((settled, table.items()), (DONE, vec![]));
}

#[tokio::test(start_paused = true)]
async fn a_view_that_left_its_list_under_a_step_is_written_again_from_the_log() {
    let (settled, table) = deliver(async |table, _| {
        table.commit(vec![Write::delete(view(), Expect::Present)]).await.unwrap();
    })
    .await;
    let again = table.get(&view()).await.unwrap().unwrap();
    assert_eq!((settled, again.body.as_str()), (DONE, "\"ended\""));
}
