//! Rows of actors whose long bodies the store of blobs has lost.
#![expect(clippy::unwrap_used, reason = "tests")]

use async_trait::async_trait;
use buildscale_actor::{
    ActorId, Content, EffectContext, EffectRunner, Envelope, Input, Machine, NoObserver, Options, Runtime, Settlement,
    Step, View, read_after, view_at,
};
use bytes::Bytes;
use domain::{CommandId, Principal, Stamp};
use ports::{Blobs, Clock, Damage, Delivery, Error, Key, Receipt, SPILL_ABOVE, SPILL_SPACE, Spilling};
use std::{sync::Arc, time::Duration};
use testkit::{
    TestClock,
    fakes::{FakeBlobs, FakeBus, FakeQueue, FakeTable, Faults},
};
use tokio_util::sync::CancellationToken;

/// Remembers all that it is told.
struct Listener;

impl Machine for Listener {
    const KIND: &'static str = "listener";
    type State = Vec<String>;
    type Command = String;
    type Event = String;
    type Effect = ();
    type Report = ();
    fn apply(state: &mut Vec<String>, _: u64, event: &String) {
        state.push(event.clone());
    }
    fn handle(&self, step: &mut Step<Self>, input: Input<Self>, _: &Stamp) {
        if let Input::Command { command, .. } = input {
            step.push(command);
        }
    }
    fn in_flight(_: &Vec<String>) -> bool {
        false
    }
    fn is_transient(_: &String) -> bool {
        false
    }
    fn view(state: &Vec<String>) -> Option<View> {
        let body = serde_json::to_string(state).ok();
        Some(View { key: view_key(state.first()?), index: None, body })
    }
}

#[async_trait]
impl EffectRunner<Listener> for Listener {
    async fn perform(&self, (): (), _: EffectContext<Listener>) {}
}

fn view_key(first: &str) -> Key {
    Key::new("views", first)
}

struct World {
    clock: Arc<TestClock>,
    blobs: Arc<FakeBlobs>,
    table: Arc<Spilling>,
}

impl World {
    fn new() -> Self {
        let clock = Arc::new(TestClock::new(1));
        let blobs = Arc::new(FakeBlobs::new(1, Faults::none()));
        let table = Arc::new(FakeTable::new(clock.clone(), 1, Faults::none()));
        Self { table: Arc::new(Spilling::new(table, blobs.clone())), clock, blobs }
    }

    fn worker(&self) -> Runtime<Listener> {
        let (table, clock, follow) = (self.table.clone(), self.clock.clone(), Arc::new(NoObserver));
        let queue = Arc::new(FakeQueue::new(clock.clone(), 2, Faults::none(), 99));
        let bus = Arc::new(FakeBus::new(3, Faults::none()));
        Runtime::new(Listener, Arc::new(Listener), table, queue, bus, clock, follow, Options::default())
    }

    fn mail(&self, actor: &ActorId, text: &str) -> Delivery {
        let content = Content::Command { body: serde_json::Value::from(text) };
        let envelope =
            Envelope { id: CommandId(self.clock.id()), at: self.clock.now(), by: Principal::System, content };
        let message = envelope.to(actor).unwrap();
        let receipt = Receipt(message.id.clone());
        Delivery { group: message.group, id: message.id, body: message.body, attempt: 1, receipt }
    }

    /// Loses all long bodies, and gives them.
    async fn lose(&self) -> Vec<Bytes> {
        let mut lost = Vec::new();
        for digest in self.blobs.digests(SPILL_SPACE) {
            lost.extend(self.blobs.get(SPILL_SPACE, digest, None).await.unwrap());
            self.blobs.lose(SPILL_SPACE, digest);
        }
        lost
    }

    async fn view(&self, actor: &ActorId, first: &str) -> ports::Result<Option<Vec<String>>> {
        view_at::<Listener, _>(&*self.table, &view_key(first), actor).await
    }
}

async fn deliver(worker: &Runtime<Listener>, delivery: &Delivery) -> Settlement {
    worker.deliver(std::slice::from_ref(delivery), &CancellationToken::new()).await
}

/// An entry that is missing would be missing in the state, so its actor fails until the entry is back; no other actor notices. A snapshot and
/// a view are made of the log again.
#[tokio::test(start_paused = true)]
async fn an_actor_waits_for_an_entry_that_is_lost_and_does_without_its_snapshot_and_its_view() {
    let world = World::new();
    let [one, other] = ["1", "2"].map(|name| ActorId::new("listener", name));
    let long = "b".repeat(SPILL_ABOVE);
    let worker = world.worker();
    for text in ["a", long.as_str(), "c"] {
        assert_eq!(deliver(&worker, &world.mail(&one, text)).await.done, 1);
    }
    worker.flush_all().await;
    let lost = world.lose().await;

    let page = read_after::<String>(&*world.table, &one, 0, 9).await;
    let Err(Error::Lost { place, damage: Damage::Missing }) = &page else { panic!("{page:?}") };
    assert!(place.ends_with("of the item log/00000000000000000002 of listener/1"), "{place}");
    let waiting = world.mail(&one, "d");
    let worker = world.worker();
    assert_eq!(deliver(&worker, &waiting).await, Settlement { done: 0, again: Duration::from_secs(40) });
    assert!(matches!(world.view(&one, "a").await, Err(Error::Lost { .. })));
    assert_eq!(deliver(&worker, &world.mail(&other, "x")).await.done, 1);
    assert_eq!(world.view(&other, "x").await.unwrap(), Some(vec!["x".to_owned()]));

    // The entry alone comes back.
    for entry in lost.into_iter().filter(|body| body.starts_with(b"{\"first\":")) {
        world.blobs.put(SPILL_SPACE, entry).await.unwrap();
    }
    let all = |texts: &[&str]| Some(texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
    assert_eq!(world.view(&one, "a").await.unwrap(), all(&["a", &long, "c"]));
    assert_eq!(deliver(&world.worker(), &Delivery { attempt: 2, ..waiting }).await.done, 1);
    assert_eq!(world.view(&one, "a").await.unwrap(), all(&["a", &long, "c", "d"]));
}
