//! From cold to ready and back, and why not.

use crate::ecs::world::{World, workspace};
use emulators::ecs::Hold;
use ports::{SandboxState, Sandboxes};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::atomic::Ordering,
    time::Duration,
};

#[tokio::test]
async fn a_sandbox_is_cold_until_somebody_asks_for_one_and_then_there_is_one() {
    let world = World::new().await;
    let (one, other, workspace) = (world.worker(), world.worker(), workspace());
    assert_eq!(one.look(workspace).await.unwrap().state, SandboxState::Cold);
    assert!(one.ready(workspace).await.unwrap().is_none());
    assert_eq!(world.calls.take(), BTreeMap::new(), "a look starts nothing, and sends no request");

    let (first, second) = tokio::join!(one.warm(workspace), other.warm(workspace));
    assert_eq!([first.unwrap().state, second.unwrap().state], [SandboxState::Starting; 2]);
    let view = world.until_settled(&one, workspace).await;
    assert_eq!((view.state, view.reason), (SandboxState::Ready, None));
    assert_eq!(other.warm(workspace).await.unwrap().state, SandboxState::Ready);
    assert_eq!(world.ecs.tasks().len(), 1);
    assert!(one.ready(workspace).await.unwrap().is_some() && other.ready(workspace).await.unwrap().is_some());

    // Another workspace has another one, at another address, with another token.
    let neighbour = crate::ecs::world::workspace();
    one.warm(neighbour).await.unwrap();
    world.until_settled(&one, neighbour).await;
    let spoken = world.spoken.lock().clone();
    for part in [|(url, _): &(String, String)| url.clone(), |(_, token): &(String, String)| token.clone()] {
        assert_eq!(spoken.iter().map(part).collect::<BTreeSet<_>>().len(), 2, "{spoken:?}");
    }

    one.release(workspace).await.unwrap();
    one.release(workspace).await.unwrap();
    assert_eq!(one.look(workspace).await.unwrap().state, SandboxState::Cold);
    assert!(one.ready(workspace).await.unwrap().is_none());
    assert_eq!(world.ecs.living().len(), 1, "the neighbour's");
    assert_eq!(one.look(neighbour).await.unwrap().state, SandboxState::Ready);
}

#[tokio::test]
async fn a_search_sends_no_request_about_the_sandbox() {
    let world = World::new().await;
    let (worker, workspace) = (world.worker(), workspace());
    worker.warm(workspace).await.unwrap();
    world.until_settled(&worker, workspace).await;
    let calls = world.calls.take();
    assert_eq!(calls.get("RunTask"), Some(&1));
    for _ in 0..50 {
        assert!(worker.ready(workspace).await.unwrap().is_some());
    }
    let connections = world.spoken.lock().len();
    assert_eq!((world.calls.take(), connections <= 2), (BTreeMap::new(), true));
}

#[tokio::test]
async fn the_token_is_known_to_the_table_alone() {
    let world = World::new().await;
    let (worker, workspace) = (world.worker(), workspace());
    worker.warm(workspace).await.unwrap();
    world.until_settled(&worker, workspace).await;
    let token = world.spoken.lock()[0].1.clone();
    assert_eq!(token.len(), 64);
    assert!(world.table.partition("sandboxes")[0].body.contains(&token));
    let digest = domain::Sha256::of(token.as_bytes()).to_string();
    let client = aws_sdk_ecs::Client::new(&emulators::account::sdk(world.ecs.endpoint()));
    let task = world.ecs.living()[0].task.clone();
    let described = client.describe_tasks().cluster("buildscale").tasks(task).send().await.unwrap();
    let overrides = described.tasks()[0].overrides().unwrap().container_overrides();
    let told: Vec<&str> = overrides[0].environment().iter().filter_map(|variable| variable.value()).collect();
    assert_eq!(told, [workspace.to_string(), digest], "and no token");
}

#[tokio::test]
async fn a_late_sandbox_is_given_up_for_a_reason_and_asked_for_anew() {
    let world = World::new().await;
    let (worker, workspace) = (world.worker(), workspace());
    for (hold, answers, waits, reason) in [
        (Hold::Machine, true, "it waits for a machine", "was not there within 6 minutes: it waits for a machine"),
        (Hold::Image, true, "pulls the image", "was not there within 6 minutes: its machine pulls the image"),
        (
            Hold::Nowhere,
            false,
            "nothing answers on its port",
            "was not there within 6 minutes: it runs, and nothing answers",
        ),
    ] {
        world.ecs.hold(hold);
        world.answers.store(answers, Ordering::SeqCst);
        assert_eq!(worker.warm(workspace).await.unwrap().state, SandboxState::Starting);
        for _ in 0..5 {
            worker.look(workspace).await.unwrap();
            world.pass(Duration::from_secs(60));
        }
        let view = worker.look(workspace).await.unwrap();
        assert_eq!(view.state, SandboxState::Starting);
        assert!(view.reason.as_ref().is_some_and(|why| why.contains(waits)), "{view:?}");
        world.pass(Duration::from_secs(60));
        let view = worker.look(workspace).await.unwrap();
        assert_eq!(view.state, SandboxState::Failed);
        assert!(view.reason.as_ref().is_some_and(|why| why.contains(reason)), "{view:?}");
        assert_eq!(world.ecs.living(), []);
        assert!(worker.ready(workspace).await.unwrap().is_none());
        assert_eq!(worker.look(workspace).await.unwrap(), view, "a look is no request for it");
    }
    world.answers.store(true, Ordering::SeqCst);
    assert_eq!(worker.warm(workspace).await.unwrap().state, SandboxState::Starting);
    assert_eq!(world.until_settled(&worker, workspace).await.state, SandboxState::Ready);
}

#[tokio::test]
async fn people_see_the_reason_that_ecs_gives_for_a_failure() {
    let world = World::new().await;
    let (worker, workspace) = (world.worker(), workspace());
    for (said, reason) in [
        ("CannotPullContainerError: not found: not found", "its image cannot be pulled: CannotPullContainerError"),
        ("RESOURCE:ENI", "no machine could be had for it: RESOURCE:ENI"),
    ] {
        world.ecs.hold(Hold::Fails(said.into()));
        worker.warm(workspace).await.unwrap();
        let view = world.until_settled(&worker, workspace).await;
        assert_eq!(view.state, SandboxState::Failed);
        assert!(view.reason.as_ref().is_some_and(|why| why.contains(reason)), "{view:?}");
    }
}

#[tokio::test]
async fn one_that_ended_is_cold_and_says_why() {
    let world = World::new().await;
    let (worker, workspace) = (world.worker(), workspace());
    for (kills, reason) in [(false, "it was unused for a while"), (true, "it was killed (SIGKILL)")] {
        worker.warm(workspace).await.unwrap();
        assert_eq!(world.until_settled(&worker, workspace).await.state, SandboxState::Ready);
        let task = world.ecs.living()[0].task.clone();
        world.end(&task, kills).await;
        // A worker that has not asked in a while notices by itself, and says nothing else than that there is none.
        world.answers.store(false, Ordering::SeqCst);
        assert!(world.worker().ready(workspace).await.unwrap().is_none());
        world.answers.store(true, Ordering::SeqCst);
        let view = worker.look(workspace).await.unwrap();
        assert_eq!(view.state, SandboxState::Cold);
        assert!(view.reason.as_ref().is_some_and(|why| why.contains(reason)), "{view:?}");
    }
    // And when there was no look for so long that ECS has forgotten it.
    worker.warm(workspace).await.unwrap();
    world.until_settled(&worker, workspace).await;
    let task = world.ecs.living()[0].task.clone();
    world.end(&task, false).await;
    world.ecs.forget();
    let view = worker.warm(workspace).await.unwrap();
    assert_eq!(view.state, SandboxState::Starting, "a request gets one: {view:?}");
}

#[tokio::test]
async fn one_that_is_silent_for_minutes_is_ended() {
    let world = World::new().await;
    let (worker, workspace) = (world.worker(), workspace());
    worker.warm(workspace).await.unwrap();
    world.until_settled(&worker, workspace).await;
    world.answers.store(false, Ordering::SeqCst);
    assert!(world.worker().ready(workspace).await.unwrap().is_none(), "its users do without it");
    world.pass(Duration::from_secs(60));
    assert!(world.worker().ready(workspace).await.unwrap().is_none());
    assert_eq!(world.ecs.living().len(), 1);
    world.answers.store(true, Ordering::SeqCst);
    assert!(world.worker().ready(workspace).await.unwrap().is_some(), "it was only busy");
    world.answers.store(false, Ordering::SeqCst);
    assert!(world.worker().ready(workspace).await.unwrap().is_none());
    world.pass(Duration::from_secs(121));
    let view = worker.look(workspace).await.unwrap();
    assert_eq!((view.state, world.ecs.living().len()), (SandboxState::Ready, 1), "a look calls no sandbox");
    assert!(world.worker().ready(workspace).await.unwrap().is_none());
    let view = worker.look(workspace).await.unwrap();
    assert_eq!((view.state, world.ecs.living()), (SandboxState::Cold, Vec::new()));
    assert!(view.reason.is_some_and(|why| why.contains("did not answer for 2 minutes")));
}
