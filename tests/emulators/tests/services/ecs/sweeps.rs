//! Sandboxes without a look.

use crate::ecs::world::{World, workspace};
use emulators::{Fate, ecs::Hold};
use ports::{Expect, Key, SandboxState, Sandboxes, Table, Write};
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use testkit::fakes::{FakeTable, Faults};
use tokio::sync::Barrier;

#[tokio::test]
async fn a_sweep_moves_on_sandboxes_without_a_look_page_by_page() {
    let world = World::with_page(7).await;
    let worker = world.worker();
    world.ecs.hold(Hold::Machine);
    let workspaces: Vec<_> = (0..120).map(|_| workspace()).collect();
    for workspace in &workspaces {
        worker.warm(*workspace).await.unwrap();
    }
    let swept = worker.sweep().await.unwrap();
    assert_eq!((swept.seen, swept.failed, swept.stopped), (120, 0, 0));
    assert_eq!(world.ecs.living().len(), 120);
    world.pass(Duration::from_secs(6 * 60));
    let swept = worker.sweep().await.unwrap();
    assert_eq!((swept.seen, swept.failed), (120, 120));
    assert_eq!(world.ecs.living(), []);
    for workspace in [workspaces.first(), workspaces.last()].into_iter().flatten() {
        assert_eq!(worker.look(*workspace).await.unwrap().state, SandboxState::Failed);
    }
    assert_eq!(worker.sweep().await.unwrap().seen, 0);
    world.pass(Duration::from_secs(25 * 60 * 60));
    assert_eq!(world.table.partition("sandboxes").len(), 0, "an ended sandbox is forgotten");
}

#[tokio::test]
async fn tasks_that_no_item_wants_are_stopped_and_all_others_stay() {
    let world = World::with_page(1).await;
    let worker = world.worker();
    let [kept, gone, replaced, failed] = [workspace(), workspace(), workspace(), workspace()];
    for workspace in [kept, gone, replaced, failed] {
        worker.warm(workspace).await.unwrap();
        assert_eq!(world.until_settled(&worker, workspace).await.state, SandboxState::Ready);
    }
    let item = |workspace: domain::WorkspaceId| Key::new("sandboxes", workspace.to_string());
    // Somebody died between one step and the next.
    world.table.commit(vec![Write::delete(item(gone), Expect::Present)]).await.unwrap();
    for (workspace, phase) in [(replaced, "asked"), (failed, "failed")] {
        let body = format!(
            r#"{{"attempt":"another","token":"t","asked_at":"2027-01-15T08:00:00.000Z","since":"2027-01-15T08:00:00.000Z","phase":"{phase}","reason":"why"}}"#
        );
        world.table.commit(vec![Write::put(item(workspace), body, Expect::Present)]).await.unwrap();
    }
    let swept = world.worker().sweep().await.unwrap();
    assert_eq!(swept.stopped, 3, "{swept:?}");
    let living: Vec<String> = world.ecs.living().into_iter().map(|task| task.started_by).collect();
    assert!(living.iter().any(|by| by.starts_with(&kept.to_string())), "{living:?}");
    assert!(living.iter().all(|by| !by.starts_with(&gone.to_string()) && !by.starts_with(&failed.to_string())));
    assert_eq!(world.worker().look(kept).await.unwrap().state, SandboxState::Ready);
}

#[tokio::test]
async fn a_sweep_notices_ended_sandboxes_and_brings_requested_ones() {
    let world = World::new().await;
    let (worker, ended, asked) = (world.worker(), workspace(), workspace());
    worker.warm(ended).await.unwrap();
    world.until_settled(&worker, ended).await;
    let task = world.ecs.living()[0].task.clone();
    world.end(&task, false).await;
    world.calls.plan(|_| Fate::Lost);
    worker.warm(asked).await.unwrap();
    world.calls.plan(|_| Fate::Pass);
    world.pass(Duration::from_secs(20));
    let swept = world.worker().sweep().await.unwrap();
    assert_eq!((swept.seen, swept.ended, swept.failed), (2, 1, 0));
    assert_eq!(world.ecs.living().len(), 1, "the request is repeated");
    assert_eq!(world.until_settled(&worker, asked).await.state, SandboxState::Ready);
    // The sweep calls no sandbox: an idle one must be able to end itself.
    let spoken = world.spoken.lock().len();
    worker.sweep().await.unwrap();
    assert_eq!(world.spoken.lock().len(), spoken);
}

#[tokio::test]
async fn silent_sandboxes_are_asked_at_once() {
    let world = World::new().await;
    // All of them on one page.
    let table = Arc::new(FakeTable::new(world.clock.clone(), 1, Faults::none()));
    let (worker, workspaces) = (world.worker_at(world.calls.endpoint(), table), [(); 8].map(|()| workspace()));
    for workspace in workspaces {
        worker.warm(workspace).await.unwrap();
    }
    // A sandbox answers when all of them were asked: one after the other, each would be silent until it is given up.
    *world.meets.lock() = Some(Arc::new(Barrier::new(workspaces.len())));
    for _ in 0..4 {
        let swept = worker.sweep().await.unwrap();
        assert_eq!((swept.seen, swept.failed, swept.left), (workspaces.len(), 0, 0));
    }
    *world.meets.lock() = None;
    world.answers.store(false, Ordering::SeqCst);
    // A look calls none that is ready.
    for workspace in workspaces {
        assert_eq!(worker.look(workspace).await.unwrap().state, SandboxState::Ready);
    }
}

#[tokio::test]
async fn a_round_goes_on_from_its_cursor_in_any_process() {
    let world = World::with_page(10).await;
    world.ecs.hold(Hold::Machine);
    for _ in 0..60 {
        world.worker().warm(workspace()).await.unwrap();
    }
    let (mut seen, mut pages, mut from) = (0, 0, None);
    loop {
        let (swept, next) = world.worker().sweep_page(from.as_deref()).await.unwrap();
        assert!(swept.seen <= 25, "a page has a bound");
        (seen, pages) = (seen + swept.seen, pages + 1);
        match next {
            Some(next) => from = Some(next),
            None => break,
        }
    }
    assert_eq!(seen, 60);
    // At least three of items, and six of tasks, of which the first comes with the last of the items.
    assert!(pages >= 8, "{pages}");
    // ECS has forgotten its cursor: the round goes on with the first tasks.
    world.calls.plan({
        let mut refused = false;
        move |operation| match operation {
            "ListTasks" if !std::mem::replace(&mut refused, true) => Fate::json(400, "InvalidParameterException"),
            _ => Fate::Pass,
        }
    });
    let (_, next) = world.worker().sweep_page(Some("tasks:forgotten")).await.unwrap();
    assert_eq!(next.as_deref(), Some("tasks:"));
    world.worker().sweep_page(next.as_deref()).await.unwrap();
}

#[tokio::test]
async fn a_task_that_cannot_be_stopped_keeps_no_other_from_it() {
    let world = World::new().await;
    let (worker, workspaces) = (world.worker(), [(); 3].map(|()| workspace()));
    for workspace in workspaces {
        worker.warm(workspace).await.unwrap();
    }
    // ECS tells of a task from the second look on.
    worker.sweep().await.unwrap();
    for workspace in workspaces {
        let item = Key::new("sandboxes", workspace.to_string());
        world.table.commit(vec![Write::delete(item, Expect::Present)]).await.unwrap();
    }
    let stays = world.ecs.living()[0].task.clone();
    world.calls.plan_calls({
        let stays = stays.clone();
        move |call| match call.operation == "StopTask" && String::from_utf8_lossy(&call.body).contains(&stays) {
            true => Fate::json(400, "AccessDeniedException"),
            false => Fate::Pass,
        }
    });
    let swept = worker.sweep().await.unwrap();
    assert_eq!((swept.stopped, swept.left), (2, 1));
    assert_eq!(world.ecs.living().into_iter().map(|task| task.task).collect::<Vec<_>>(), [stays]);
    world.calls.pass();
    assert_eq!(worker.sweep().await.unwrap().stopped, 1);
    assert_eq!(world.ecs.living(), []);
}
