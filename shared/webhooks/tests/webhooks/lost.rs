//! Deliveries whose events are lost.

#![expect(clippy::unwrap_used, reason = "tests")]

use actor::ActorDriver;
use async_trait::async_trait;
use buildscale_webhooks::{
    Deliveries, EventType, HookKeys, HookSetup, Post, PostAnswer, Posts, RetryPace, Webhook, WebhookEvent, Webhooks,
    webhook::{SecretName, WebhookSet},
};
use domain::{Error, Sha256, Timestamp, UserId, WorkspaceId};
use parking_lot::Mutex;
use ports::{Expect, Item, Key, Receipt, Secret, Spilling, Table, Write};
use serde_json::{Map, Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use testkit::{
    TestClock,
    fakes::{FakeBlobs, FakeQueue, FakeTable, Faults},
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use workspace::Workspaces;

pub(crate) const WORKSPACE: WorkspaceId = WorkspaceId(Uuid::from_u128(1));
pub(crate) const HOOK: Uuid = Uuid::from_u128(2);
const LINE: &str = "chat/00000000-0000-0000-0000-000000000003";

/// A receiver that is away at first.
#[derive(Default)]
pub(crate) struct Receiver {
    is_there: AtomicBool,
    got: Mutex<Vec<(String, Value)>>,
    /// The webhooks of the workspace that is deleted during the next attempt.
    pub deletes: Mutex<Option<Webhooks>>,
}

#[async_trait]
impl Posts for Receiver {
    fn check(&self, _: &str) -> Result<(), Error> {
        Ok(())
    }

    async fn post(&self, post: Post) -> Result<PostAnswer, String> {
        let deletes = self.deletes.lock().take();
        if let Some(webhooks) = deletes {
            webhooks.delete_all(WORKSPACE).await.unwrap();
        }
        let is_there = self.is_there.load(Ordering::SeqCst);
        if is_there {
            self.got.lock().push((post.id, serde_json::from_slice(&post.body).unwrap()));
        }
        Ok(PostAnswer { status: if is_there { 204 } else { 500 }, retry_after: None })
    }
}

/// A webhook and its worker.
pub(crate) struct World {
    pub table: Arc<FakeTable>,
    pub receiver: Arc<Receiver>,
    deliveries: Deliveries,
    pub webhooks: Webhooks,
}

impl World {
    pub async fn new() -> Self {
        let clock = Arc::new(TestClock::new(1));
        let table = Arc::new(FakeTable::new(clock.clone(), 1, Faults::none()));
        let queue = Arc::new(FakeQueue::new(clock.clone(), 1, Faults::none(), 10));
        let blobs = Arc::new(FakeBlobs::new(1, Faults::none()));
        let spilling: Arc<dyn Table> = Arc::new(Spilling::new(table.clone(), blobs.clone()));
        let receiver = Arc::new(Receiver::default());
        let keys = HookKeys::new(&Secret::new("a key of webhooks of at least thirty-two bytes")).unwrap();
        let hook = Webhook {
            id: HOOK,
            name: "n".into(),
            url: "https://example.com/hooks".into(),
            events: EventType::ALL.into(),
            chat: None,
            flow: None,
            by: UserId(Uuid::from_u128(4)),
            created_at: Timestamp::default(),
            secret: SecretName { key: keys.newest().unwrap(), generation: 1 },
            previous: None,
            earlier: Vec::new(),
            failing_since: None,
            disabled: None,
            push: None,
        };
        let set = serde_json::to_string(&WebhookSet { webhooks: vec![hook] }).unwrap();
        let place = Key::new(format!("{WORKSPACE}/webhooks"), "all");
        spilling.commit(vec![Write::put(place, set, Expect::Absent)]).await.unwrap();
        let pace = RetryPace { first: Duration::ZERO, longest: Duration::ZERO, ..RetryPace::default() };
        let setup = Some(HookSetup { pace, ..HookSetup::new(keys, receiver.clone()) });
        let workspaces = Workspaces::new(spilling.clone(), blobs, clock.clone(), "/nowhere".into());
        let webhooks = Webhooks::new(spilling.clone(), queue.clone(), clock.clone(), workspaces);
        let webhooks = webhooks.set_up(setup.clone());
        Self { table, receiver, deliveries: Deliveries { table: spilling, queue, clock, setup }, webhooks }
    }

    /// The webhooks of the same host, with this table in front of its own.
    pub fn webhooks_over(&self, table: Arc<dyn Table>) -> Webhooks {
        let Deliveries { queue, clock, setup, .. } = &self.deliveries;
        let blobs = Arc::new(FakeBlobs::new(1, Faults::none()));
        let workspaces = Workspaces::new(table.clone(), blobs, clock.clone(), "/nowhere".into());
        Webhooks::new(table, queue.clone(), clock.clone(), workspaces).set_up(setup.clone())
    }

    /// Whether a message about the line is dealt with.
    async fn deals_with(&self, body: Value) -> bool {
        let message = ports::Delivery {
            group: format!("hook/{WORKSPACE}/{HOOK}/0"),
            id: body.to_string(),
            body: body.to_string(),
            attempt: 1,
            receipt: Receipt("1".into()),
        };
        self.deliveries.deliver(&[message], &CancellationToken::new()).await.done == 1
    }

    pub async fn hears(&self, number: u64) -> bool {
        let data = Map::from_iter([("workspace_id".to_owned(), json!(WORKSPACE))]);
        let event = WebhookEvent { kind: EventType::TurnEnded, number, at: Timestamp::default(), data };
        self.deals_with(json!({ "hook": "letter", "source": LINE, "event": event })).await
    }

    pub async fn looks_again(&self) -> bool {
        self.deals_with(json!({ "hook": "wake", "source": LINE })).await
    }

    /// How many webhooks fail.
    pub fn failing(&self) -> u64 {
        self.deliveries.setup.as_ref().unwrap().outcomes.counts().failing
    }

    /// The record of the delivery of an event.
    fn record(&self, number: u64) -> Item {
        let of = format!("\"number\":{number}");
        let mut all = self.table.partition(&format!("{WORKSPACE}/webhooks/{HOOK}")).into_iter();
        all.find(|item| item.body.contains(&of)).unwrap()
    }

    fn comes_back(&self) {
        self.receiver.is_there.store(true, Ordering::SeqCst);
    }

    fn got(&self) -> Vec<(String, Value)> {
        self.receiver.got.lock().clone()
    }
}

#[tokio::test]
async fn a_lost_event_is_told_as_lost_and_those_behind_it_follow() {
    let reference = format!("\u{1}{}/70000", Sha256::of(b"a body that no blob has"));
    for (body, code) in [(reference.as_str(), "CONTENT_MISSING"), ("{\"id\":", "CONTENT_DAMAGED")] {
        let world = World::new().await;
        assert!(world.hears(7).await);
        let record = world.record(7);
        world.table.damage(&record.key, body);
        world.comes_back();
        assert!(world.hears(8).await && world.looks_again().await && world.looks_again().await);
        let got = world.got();
        let types: Vec<_> = got.iter().map(|(_, body)| body["type"].as_str().unwrap()).collect();
        assert_eq!(types, ["event.lost", "turn.ended"], "{code}: {got:?}");
        let data = &got[0].1["data"];
        assert_eq!((&data["error"]["code"], &data["workspace_id"]), (&json!(code), &json!(WORKSPACE)));
        assert_eq!(data["chat_id"], LINE.strip_prefix("chat/").unwrap());
        assert_eq!(data["delivery_id"], record.key.sk.as_str());

        // A backup brings the record back, and a person has it sent: with the id that it always had.
        world.table.damage(&record.key, record.body.as_str());
        world.webhooks.retry(WORKSPACE, HOOK, record.key.sk.parse().unwrap()).await.unwrap();
        assert!(world.looks_again().await);
        let got = world.got();
        assert_eq!((got.len(), &got[2].1["type"]), (3, &json!("turn.ended")));
        assert!(got[0].0 != got[2].0 && got[2].0.ends_with(&record.key.sk.replace('-', "")), "{got:?}");
    }
}

#[tokio::test]
async fn a_place_in_a_line_that_cannot_be_read_keeps_nothing_back() {
    let line = format!("{WORKSPACE}/webhooks/{HOOK}/open");
    let reference = format!("\u{1}{}/70000", Sha256::of(b"a body that no blob has"));
    for body in [reference.as_str(), "{\"id"] {
        let world = World::new().await;
        assert!(world.hears(7).await);
        let place = world.table.partition(&line).into_iter().next().unwrap();
        // Before it one of a delivery that is not there any more.
        let before = Key::new(&line, place.key.sk.replace("07/", "06/"));
        let gone = Write::put(before.clone(), "\"gone\"", Expect::Absent);
        world.table.commit(vec![gone]).await.unwrap();
        world.table.damage(&before, body);
        world.table.damage(&place.key, body);
        world.comes_back();
        assert!(world.hears(8).await && world.looks_again().await);
        let got = world.got();
        let types: Vec<_> = got.iter().map(|(_, body)| body["type"].as_str().unwrap()).collect();
        assert_eq!(types, ["turn.ended", "turn.ended"], "{got:?}");
        assert!(got[0].0 != got[1].0 && world.table.partition(&line).is_empty());
    }
}

#[tokio::test]
async fn a_delivery_that_a_newer_version_wrote_is_left_to_it() {
    let world = World::new().await;
    assert!(world.hears(7).await);
    world.table.damage(&world.record(7).key, r#"{"version": 2}"#);
    world.comes_back();
    assert!(!world.hears(8).await && !world.looks_again().await);
    assert!(world.got().is_empty());
}
