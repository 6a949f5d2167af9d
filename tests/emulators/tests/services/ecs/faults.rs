//! Every call of ECS is lost, loses its answer, or is refused, one at a time.

use crate::ecs::world::{World, workspace};
use aws::Swept;
use emulators::Fate;
use ports::{SandboxState, Sandboxes};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

/// The attempts of the SDK before it gives up.
const ATTEMPTS: usize = 3;

#[tokio::test]
async fn a_call_that_fails_leaves_no_second_task_and_no_lost_one() {
    let throttled = || Fate::Answered(400, r#"{"__type":"ThrottlingException","message":"Rate exceeded"}"#.into());
    let broken = || Fate::Answered(500, r#"{"__type":"ServerException","message":"Service Unavailable"}"#.into());
    let mut reached = 0;
    for operation in ["RunTask", "DescribeTasks", "StopTask", "ListTasks"] {
        for fate in [Fate::Lost, Fate::AnswerLost, throttled(), broken()] {
            for skipped in 0..3 {
                let world = World::new().await;
                let (mut calls, mut hit) = (0, 0);
                let counted = Arc::new(AtomicUsize::new(0));
                let (seen, fails, name) = (counted.clone(), fate.clone(), operation.to_owned());
                world.calls.plan(move |called| {
                    if called != name {
                        return Fate::Pass;
                    }
                    calls += 1;
                    if calls <= skipped || hit == ATTEMPTS {
                        return Fate::Pass;
                    }
                    hit += 1;
                    seen.store(hit, Ordering::SeqCst);
                    fails.clone()
                });
                live(&world, &format!("{operation} {fate:?} after {skipped}")).await;
                reached += usize::from(counted.load(Ordering::SeqCst) > 0);
            }
        }
    }
    // A life has one call of each, but for the looks.
    assert_eq!(reached, 4 * (1 + 3 + 1 + 1), "of these plans met a call");
}

/// A sandbox comes, is used, is let go, and is gone.
async fn live(world: &World, what: &str) {
    let (worker, workspace) = (world.worker(), workspace());
    let at_most_one = || assert!(world.ecs.living().len() <= 1, "{what}: {:?}", world.ecs.living());
    let view = worker.warm(workspace).await.unwrap();
    assert_eq!(view.state, SandboxState::Starting, "{what}: {view:?}");
    at_most_one();
    let mut view = world.until_settled(&worker, workspace).await;
    at_most_one();
    assert_eq!(view.state, SandboxState::Ready, "{what}: {view:?}");
    // Two workers, and looks of people.
    for _ in 0..3 {
        view = world.worker().look(workspace).await.unwrap();
        assert_eq!(view.state, SandboxState::Ready, "{what}: {view:?}");
        assert!(world.worker().ready(workspace).await.unwrap().is_some(), "{what}");
    }
    world.pass(Duration::from_secs(60));
    let mut tries = 0;
    while let Err(error) = worker.release(workspace).await {
        tries += 1;
        assert!(tries < 3, "{what}: {error}");
    }
    tries = 0;
    loop {
        match worker.sweep().await {
            Ok(Swept { left: 0, .. }) => break,
            swept => {
                tries += 1;
                assert!(tries < 3, "{what}: {swept:?}");
            }
        }
    }
    assert_eq!(world.ecs.living(), [], "{what}");
    assert_eq!(worker.look(workspace).await.unwrap().state, SandboxState::Cold, "{what}");
}

#[tokio::test]
async fn the_request_of_a_dead_worker_is_repeated_for_the_same_task() {
    let world = World::new().await;
    let workspace = workspace();
    // The task is made, the answer is lost, and the worker that asked is gone.
    world.calls.plan(|_| Fate::AnswerLost);
    let view = world.worker().warm(workspace).await.unwrap();
    assert!(view.reason.is_some_and(|why| why.contains("ECS does not answer; it is asked again")));
    assert_eq!(world.ecs.living().len(), 1);
    world.calls.plan(|_| Fate::Pass);
    let other = world.worker();
    assert_eq!(other.warm(workspace).await.unwrap().state, SandboxState::Starting);
    assert_eq!(world.until_settled(&other, workspace).await.state, SandboxState::Ready);
    assert_eq!(world.ecs.tasks().len(), 1);
}

#[tokio::test]
async fn a_refusal_is_a_reason() {
    let world = World::new().await;
    let (worker, workspace) = (world.worker(), workspace());
    let denied = r#"{"__type":"AccessDeniedException","message":"not authorized to perform: ecs:RunTask"}"#;
    world.calls.plan(move |_| Fate::Answered(400, denied.into()));
    let view = worker.warm(workspace).await.unwrap();
    assert_eq!(view.state, SandboxState::Failed);
    assert!(view.reason.is_some_and(|why| why.contains("not authorized to perform: ecs:RunTask")));
    let none = r#"{"tasks":[],"failures":[{"arn":"arn:aws:ecs:x","reason":"RESOURCE:ENI"}]}"#;
    world.calls.plan(move |_| Fate::Answered(200, none.into()));
    let view = worker.warm(workspace).await.unwrap();
    assert_eq!(view.state, SandboxState::Failed);
    assert!(view.reason.is_some_and(|why| why.contains("no machine has room for it (RESOURCE:ENI)")));
    // ECS is gone for longer than anybody waits.
    world.calls.plan(|_| Fate::Lost);
    assert_eq!(worker.warm(workspace).await.unwrap().state, SandboxState::Starting);
    let view = world.until_settled(&worker, workspace).await;
    assert_eq!(view.state, SandboxState::Failed);
    assert!(view.reason.is_some_and(|why| why.contains("within 6 minutes: ECS does not answer")));
    world.calls.plan(|_| Fate::Pass);
    worker.warm(workspace).await.unwrap();
    assert_eq!(world.until_settled(&worker, workspace).await.state, SandboxState::Ready);
}
