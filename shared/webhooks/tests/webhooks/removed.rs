//! Webhooks that are removed, alone or with their workspace.

#![expect(clippy::unwrap_used, reason = "tests")]

use crate::lost::{HOOK, WORKSPACE, World};
use ports::{Expect, Key, Table as _, Write};

impl World {
    /// Another process removes the webhooks and has not come to their deliveries.
    async fn loses_its_webhooks(&self) {
        let set = Key::new(format!("{WORKSPACE}/webhooks"), "all");
        self.table.commit(vec![Write::delete(set, Expect::Any)]).await.unwrap();
    }

    /// Another process removes the deliveries.
    async fn loses_its_deliveries(&self) {
        for place in ["", "/open"] {
            self.table.clear(&format!("{WORKSPACE}/webhooks/{HOOK}{place}")).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_removed_webhook_fails_no_more() {
    let world = World::new().await;
    assert!(world.hears(7).await);
    assert_eq!(world.failing(), 1);
    world.webhooks.delete(WORKSPACE, HOOK).await.unwrap();
    assert_eq!(world.failing(), 0);

    let world = World::new().await;
    assert!(world.hears(7).await);
    world.webhooks.delete_all(WORKSPACE).await.unwrap();
    assert_eq!(world.failing(), 0);

    // By another process.
    let world = World::new().await;
    assert!(world.hears(7).await);
    world.loses_its_webhooks().await;
    world.loses_its_deliveries().await;
    assert_eq!(world.failing(), 1);
    assert!(world.looks_again().await);
    assert_eq!(world.failing(), 0);
}

#[tokio::test]
async fn a_webhook_that_is_removed_during_an_attempt_fails_no_more() {
    let world = World::new().await;
    *world.receiver.deletes.lock() = Some(world.webhooks.clone());
    assert!(world.hears(7).await);
    assert_eq!((world.failing(), world.table.items()), (0, Vec::new()));
}

#[tokio::test]
async fn an_event_that_comes_after_the_removal_of_its_webhook_leaves_no_delivery() {
    let world = World::new().await;
    assert!(world.hears(7).await);
    world.loses_its_webhooks().await;
    assert!(world.hears(8).await);
    assert_eq!(world.table.items(), []);
}
