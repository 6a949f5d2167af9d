//! The rows that other crates have of a deleted workspace, and their removal.

use crate::common::{World, person};
use async_trait::async_trait;
use buildscale_workspace::{Budget, Dependents};
use domain::{Code, Error, WorkspaceId};
use ports::{Blobs as _, Expect, Key, Table as _, Write};
use std::{sync::Arc, time::Duration};
use testkit::fakes::FakeTable;

const HOUR: Duration = Duration::from_secs(3600);

/// The chats of a workspace, as another crate has them.
struct Chats(Arc<FakeTable>);

#[async_trait]
impl Dependents for Chats {
    async fn remove(&self, workspace: WorkspaceId) -> Result<(), Error> {
        self.0.clear(&chats(workspace)).await.map_err(|error| Error::new(Code::Internal, error.to_string()))
    }
}

fn chats(workspace: WorkspaceId) -> String {
    format!("{workspace}/chats")
}

/// A world with a chat, whose long body is in the blobs.
async fn with_a_chat() -> World {
    let (world, _) = World::new().await;
    world.all.set_dependents(Arc::new(Chats(world.table.clone())));
    say(&world).await;
    world
}

async fn say(world: &World) {
    let chat = Write::put(Key::new(chats(world.id), "c"), "1", Expect::Any);
    world.table.commit(vec![chat]).await.unwrap();
    world.blobs.put(&ports::spill_space(world.id), "long words".into()).await.unwrap();
}

fn left(world: &World) -> (usize, usize) {
    let bodies = world.blobs.digests(&ports::spill_space(world.id)).len();
    (world.table.partition(&chats(world.id)).len(), bodies)
}

async fn sweep(world: &World) -> (Vec<WorkspaceId>, u64) {
    let before = ports::Clock::now(&*world.clock) - HOUR;
    let (gone, failed, next) = world.all.remove_remains_before(before, 5, None).await.unwrap();
    assert_eq!(next, None);
    (gone, failed)
}

#[tokio::test]
async fn an_hour_after_the_deletion_of_a_workspace_nothing_of_it_is_left() {
    let world = with_a_chat().await;
    world.all.delete(world.id).await.unwrap();
    assert_eq!((sweep(&world).await, left(&world)), ((vec![], 0), (1, 1)), "work that is being stopped has its log");
    // All of this comes after the deletion: from a step that was under way, and from a search.
    say(&world).await;
    world.blobs.put(&ports::kept_index_space(world.id), "an index".into()).await.unwrap();
    std::fs::create_dir_all(world.home().join("search")).unwrap();
    world.clock.skip(3_600_000);
    assert_eq!((sweep(&world).await, left(&world)), ((vec![world.id], 0), (0, 0)));
    assert!(world.blobs.digests(&ports::kept_index_space(world.id)).is_empty());
    assert_eq!(world.table.items(), []);
    assert!(!world.home().exists());
    assert_eq!(sweep(&world).await, (vec![], 0));
}

#[tokio::test]
async fn a_workspace_that_is_made_again_has_nothing_that_others_kept_and_keeps_its_own() {
    let world = with_a_chat().await;
    world.all.delete(world.id).await.unwrap();
    world.all.create(world.id, "anew", &person().principal).await.unwrap();
    assert_eq!(left(&world), (0, 0));
    say(&world).await;
    world.clock.skip(3_600_000);
    assert_eq!((sweep(&world).await, left(&world)), ((vec![], 0), (1, 1)));
    // An earlier version makes it again without a look at the note.
    let note = Write::put(ports::deleted_workspace(world.id), "{}", Expect::Any);
    let note = note.indexed(Key::new("remains", format!("{}/{}", domain::Timestamp::from_millis(1), world.id)));
    world.table.commit(vec![note]).await.unwrap();
    assert_eq!((sweep(&world).await, left(&world)), ((vec![world.id], 0), (1, 1)));
    assert_eq!(world.all.get(world.id).await.unwrap().name, "anew");
}

#[tokio::test]
async fn a_workspace_is_not_made_again_while_another_process_removes_the_rest_of_it() {
    let world = with_a_chat().await;
    let (table, blobs, clock) = (world.table.clone(), world.blobs.clone(), world.clock.clone());
    let all = buildscale_workspace::Workspaces::new(table, blobs, clock, world.root.path().into());
    let all = all.caching(Budget::default());
    all.set_dependents(Arc::new(Chats(world.table.clone())));
    all.delete(world.id).await.unwrap();
    // The other process has claimed the note, and dies.
    let key = ports::deleted_workspace(world.id);
    let item = world.table.get(&key).await.unwrap().unwrap();
    let claim = format!("{{\"claimed_at\":\"{}\"}}", ports::Clock::now(&*world.clock));
    let claim = Write::put(key, claim, Expect::Rev(item.rev)).indexed(item.index.unwrap());
    world.table.commit(vec![claim]).await.unwrap();
    let by = person().principal;
    let refused = async || all.create(world.id, "anew", &by).await.unwrap_err().code;
    assert_eq!(refused().await, Code::Conflict);
    // A deletion that is repeated, since it had left something, leaves the claim.
    let deletion = Write::put(Key::new("workspaces/deleted", world.id.to_string()), "{}", Expect::Any);
    world.table.commit(vec![deletion]).await.unwrap();
    all.delete(world.id).await.unwrap();
    assert_eq!((refused().await, left(&world)), (Code::Conflict, (1, 1)));
    world.clock.skip(600_000);
    all.create(world.id, "anew", &by).await.unwrap();
    assert_eq!(left(&world), (0, 0));
}

#[tokio::test]
async fn a_claim_of_a_clock_that_was_ahead_keeps_nobody_away() {
    let world = with_a_chat().await;
    let (table, blobs, clock) = (world.table.clone(), world.blobs.clone(), world.clock.clone());
    let all = buildscale_workspace::Workspaces::new(table, blobs, clock, world.root.path().into());
    let all = all.caching(Budget::default());
    all.set_dependents(Arc::new(Chats(world.table.clone())));
    all.delete(world.id).await.unwrap();
    let claim = format!("{{\"claimed_at\":\"{}\"}}", ports::Clock::now(&*world.clock) + 24 * HOUR);
    world.table.commit(vec![Write::put(ports::deleted_workspace(world.id), claim, Expect::Present)]).await.unwrap();
    all.create(world.id, "anew", &person().principal).await.unwrap();
    assert_eq!(left(&world), (0, 0));
}

#[tokio::test]
async fn a_process_that_knows_no_other_crates_does_not_make_a_workspace_again_beside_their_rest() {
    let world = with_a_chat().await;
    world.all.delete(world.id).await.unwrap();
    let (table, blobs, clock) = (world.table.clone(), world.blobs.clone(), world.clock.clone());
    let all = buildscale_workspace::Workspaces::new(table, blobs, clock, world.root.path().into());
    let refused = all.create(world.id, "anew", &person().principal).await.unwrap_err();
    assert_eq!((refused.code, left(&world)), (Code::Conflict, (1, 1)));
}

/// Says that it has begun, and never ends.
struct Stuck(Arc<tokio::sync::Notify>);

#[async_trait]
impl Dependents for Stuck {
    async fn remove(&self, _: WorkspaceId) -> Result<(), Error> {
        self.0.notify_one();
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_removal_that_takes_too_long_gives_up_before_another_process_may_begin() {
    let (world, _) = World::new().await;
    let begun = Arc::new(tokio::sync::Notify::new());
    world.all.set_dependents(Arc::new(Stuck(begun.clone())));
    world.all.delete(world.id).await.unwrap();
    let before = tokio::time::Instant::now();
    let refused = world.all.create(world.id, "anew", &person().principal).await.unwrap_err();
    begun.notified().await;
    assert_eq!((refused.code, before.elapsed().as_secs()), (Code::Conflict, 50));
    assert!(world.table.get(&ports::deleted_workspace(world.id)).await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_removal_that_is_cut_off_with_its_sweep_goes_on_with_the_next_one() {
    let world = with_a_chat().await;
    let process = |dependents: Arc<dyn Dependents>| {
        let (table, blobs, clock) = (world.table.clone(), world.blobs.clone(), world.clock.clone());
        let all = buildscale_workspace::Workspaces::new(table, blobs, clock, world.root.path().into());
        let all = all.caching(Budget::default());
        all.set_dependents(dependents);
        all
    };
    let begun = Arc::new(tokio::sync::Notify::new());
    let cut_off = process(Arc::new(Stuck(begun.clone())));
    cut_off.delete(world.id).await.unwrap();
    world.clock.skip(3_600_000);
    let before = ports::Clock::now(&*world.clock);
    let share = Duration::from_secs(3);
    assert!(tokio::time::timeout(share, cut_off.remove_remains_before(before, 1, None)).await.is_err());
    begun.notified().await;
    // The shortest time between two sweeps (`SweepMinutes` in `template.yaml`).
    world.clock.skip(120_000);
    let next = process(Arc::new(Chats(world.table.clone())));
    let (gone, failed, _) = next.remove_remains_before(before, 1, None).await.unwrap();
    assert_eq!((gone, failed, left(&world)), (vec![world.id], 0, (0, 0)));
}
