//! Versions that may start flows, and the sweep that finds those that were not dealt with.

use crate::common::{World, put};
use async_trait::async_trait;
use buildscale_workspace::{ForgottenHandoff, HANDOFF_SHARDS, HandoffObserver, Workspace};
use domain::{Error, FilePath, WorkspaceId};
use ports::Clock as _;
use std::{sync::Arc, time::Duration};
use uuid::Uuid;

const PATIENCE: Duration = Duration::from_secs(60);

/// Every version may start a flow, and no worker hears of it.
struct Lost;

#[async_trait]
impl HandoffObserver for Lost {
    async fn concerns(&self, _: &Workspace, _: &FilePath) -> Result<bool, Error> {
        Ok(true)
    }

    async fn committed(&self, _: WorkspaceId, _: Uuid) {}
}

/// The versions that have waited for longer than a minute.
async fn forgotten(world: &World) -> Vec<ForgottenHandoff> {
    let before = world.clock.now() - PATIENCE;
    let mut found = Vec::new();
    for shard in 0..HANDOFF_SHARDS {
        let mut cursor = None;
        loop {
            let (some, next) = world.all.forgotten_handoffs(shard, before, 10, cursor).await.unwrap();
            found.extend(some);
            cursor = next;
            if cursor.is_none() {
                break;
            }
        }
    }
    found
}

#[tokio::test]
async fn a_version_that_waits_is_found_again_after_growing_pauses_alone() {
    let (world, workspace) = World::new().await;
    world.all.hand_off_to(Arc::new(Lost));
    put(&workspace, "/data/plan.md", "ready").await;
    assert!(forgotten(&world).await.is_empty());

    world.clock.skip(60_000);
    let first = forgotten(&world).await;
    let [one] = first.as_slice() else { panic!("{first:?}") };
    let (id, pending) = (one.id, workspace.handoff(one.id).await.unwrap());
    assert_eq!(one.workspace, world.id);
    // A sweep that dies before its messages are sent has postponed nothing.
    assert_eq!(forgotten(&world).await.len(), 1);
    world.all.postpone_handoffs(first).await.unwrap();
    assert!(forgotten(&world).await.is_empty());

    // A sweep per minute, for two hours.
    let mut found = 0;
    for _ in 0..120 {
        world.clock.skip(60_000);
        let again = forgotten(&world).await;
        found += again.len();
        world.all.postpone_handoffs(again).await.unwrap();
    }
    assert!((4..=8).contains(&found), "{found}");
    assert_eq!(workspace.handoff(id).await.unwrap(), pending, "the item itself stays");

    workspace.handed_off(id).await.unwrap();
    world.clock.skip(7 * 24 * 3_600_000);
    assert!(forgotten(&world).await.is_empty());
}
