//! Push notifications that other agents configure for themselves.

#![expect(clippy::unwrap_used, reason = "tests")]

use async_trait::async_trait;
use buildscale_webhooks::{HookKeys, HookSetup, Post, PostAnswer, Posts, PushSettings, Webhooks, event::Origin};
use domain::{ChatId, Error, Principal, TurnId, UserId, WorkspaceId};
use ports::{Expect, Key, Secret, Table as _, Write};
use std::sync::Arc;
use testkit::{
    TestClock,
    fakes::{FakeBlobs, FakeQueue, FakeTable, Faults},
};
use uuid::Uuid;
use workspace::Workspaces;

const WORKSPACE: WorkspaceId = WorkspaceId(Uuid::from_u128(1));
const TURN: TurnId = TurnId(Uuid::from_u128(2));

struct Anywhere;

#[async_trait]
impl Posts for Anywhere {
    fn check(&self, _: &str) -> Result<(), Error> {
        Ok(())
    }

    async fn post(&self, _: Post) -> Result<PostAnswer, String> {
        Err("nothing is posted here".into())
    }
}

fn webhooks() -> Webhooks {
    with_table().0
}

fn with_table() -> (Webhooks, Arc<FakeTable>) {
    let clock = Arc::new(TestClock::new(1));
    let table = Arc::new(FakeTable::new(clock.clone(), 1, Faults::none()));
    let queue = Arc::new(FakeQueue::new(clock.clone(), 1, Faults::none(), 10));
    let blobs = Arc::new(FakeBlobs::new(1, Faults::none()));
    let workspaces = Workspaces::new(table.clone(), blobs, clock.clone(), "/nowhere".into());
    let keys = HookKeys::new(&Secret::new("a key of webhooks of at least thirty-two bytes")).unwrap();
    let setup = HookSetup::new(keys, Arc::new(Anywhere));
    (Webhooks::new(table.clone(), queue, clock, workspaces).set_up(Some(setup)), table)
}

/// Addresses and tokens of a person.
async fn shown(webhooks: &Webhooks, by: &Principal) -> Vec<(String, String)> {
    let all = webhooks.pushes(WORKSPACE, TURN, by).await.unwrap();
    all.into_iter().map(|(push, url)| (url, push.token.unwrap())).collect()
}

#[tokio::test]
async fn nobody_reads_replaces_or_removes_the_push_notifications_of_another_person() {
    let webhooks = webhooks();
    let [ann, bob] = [3, 4].map(|id| Principal::User { id: UserId(Uuid::from_u128(id)) });
    let put = async |by: &Principal, url: &str, token: &str| {
        let of = Origin { chat: Some(ChatId(Uuid::from_u128(5))), flow: None };
        let push = PushSettings { turn: TURN, id: "mine".into(), token: Some(token.into()) };
        webhooks.push(WORKSPACE, of, push, url.into(), by).await.unwrap();
    };
    put(&ann, "https://ann.example", "first").await;
    put(&ann, "https://ann.example", "ann's").await;
    assert!(shown(&webhooks, &bob).await.is_empty(), "her token would let him speak to her receiver");
    put(&bob, "https://bob.example", "bob's").await;
    webhooks.unpush(WORKSPACE, TURN, "mine", &bob).await.unwrap();
    let of_ann = [("https://ann.example".to_owned(), "ann's".to_owned())];
    assert_eq!((shown(&webhooks, &ann).await, shown(&webhooks, &bob).await), (of_ann.to_vec(), Vec::new()));
    webhooks.unpush(WORKSPACE, TURN, "mine", &ann).await.unwrap();
    assert!(shown(&webhooks, &ann).await.is_empty());
}

#[tokio::test]
async fn all_of_a_person_go_with_their_membership_and_all_with_their_workspace() {
    let webhooks = webhooks();
    let [ann, bob] = [3, 4].map(|id| Principal::User { id: UserId(Uuid::from_u128(id)) });
    let put = async |workspace, by: &Principal, id: &str| {
        let of = Origin { chat: Some(ChatId(Uuid::from_u128(5))), flow: None };
        let push = PushSettings { turn: TURN, id: id.into(), token: None };
        webhooks.push(workspace, of, push, "https://agent.example".into(), by).await.unwrap();
    };
    let other = WorkspaceId(Uuid::from_u128(9));
    let counts = async || {
        let mut counts = Vec::new();
        for (workspace, by) in [(WORKSPACE, &ann), (WORKSPACE, &bob), (other, &ann)] {
            counts.push(webhooks.pushes(workspace, TURN, by).await.unwrap().len());
        }
        counts
    };
    put(WORKSPACE, &ann, "one").await;
    put(WORKSPACE, &ann, "two").await;
    put(WORKSPACE, &bob, "one").await;
    put(other, &ann, "one").await;
    for _ in 0..2 {
        webhooks.unpush_all(WORKSPACE, ann.user()).await.unwrap();
        assert_eq!(counts().await, [0, 1, 1]);
    }
    for _ in 0..2 {
        webhooks.delete_all(WORKSPACE).await.unwrap();
        assert_eq!(counts().await, [0, 0, 1]);
    }
}

#[tokio::test]
async fn the_deliveries_of_a_workspace_go_with_it() {
    let (webhooks, table) = with_table();
    let ann = Principal::User { id: UserId(Uuid::from_u128(3)) };
    let of = Origin { chat: Some(ChatId(Uuid::from_u128(5))), flow: None };
    let push = PushSettings { turn: TURN, id: "one".into(), token: None };
    webhooks.push(WORKSPACE, of, push, "https://agent.example".into(), &ann).await.unwrap();
    let set: serde_json::Value = serde_json::from_str(&table.items()[0].body).unwrap();
    let hook = set["webhooks"][0]["id"].as_str().unwrap().to_owned();
    for place in ["", "/open"] {
        let key = Key::new(format!("{WORKSPACE}/webhooks/{hook}{place}"), "a delivery");
        table.commit(vec![Write::put(key, "{}", Expect::Absent)]).await.unwrap();
    }
    webhooks.delete_all(WORKSPACE).await.unwrap();
    assert_eq!(table.items(), []);
}
