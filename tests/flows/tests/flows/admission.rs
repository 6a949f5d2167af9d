//! Admission: refusals of a flow with enough to do, and of a tenant with too much waiting (spec 002 §10.12).
#![expect(clippy::unwrap_used, reason = "tests")]

use domain::{Code, Error, TaskId, TaskPhase};
use engine::{NewTask, RerunOptions, Tasks};
use flows::{Ground, Hub, Slow};
use futures::future::join_all;
use ports::{MAX_BATCH, Query};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use testkit::Queue;
use uuid::Uuid;

const WAITS: &str = r#"
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: ask, kind: deterministic, role: linear, context: none, ask: {approve: "Go on?"}}
  - {id: end, kind: deterministic, role: exit, context: none}
edges: [{from: begin, to: ask}, {from: ask, to: end}]
"#;

async fn waits(hub: &Hub, most: u32) {
    let execution = format!("max_queued: {most}\n");
    hub.flow("waits", [("workflow.yaml", WAITS), ("execution.yaml", &*execution)]).await;
}

/// The remaining places and tasks to begin.
async fn kept(hub: &Hub, what: &str) -> usize {
    let partition = format!("{}/admitted/waits", hub.workspace);
    hub.table.query(&Query::prefix(partition, what, 256)).await.unwrap().items.len()
}

/// Asks for so many at once: returns the accepted tasks and the refusals.
async fn at_once(hub: &Hub, many: usize) -> (Vec<TaskId>, Vec<Error>) {
    let asked = (0..many).map(|_| {
        let (tasks, by, workspace) = (hub.tasks.clone(), hub.by.clone(), hub.workspace);
        tokio::spawn(async move {
            let made = tasks.create(workspace, TaskId(Uuid::now_v7()), "waits", NewTask::default(), &by).await;
            made.map(|accepted| accepted.task_id)
        })
    });
    let (mut taken, mut refused) = (Vec::new(), Vec::new());
    for made in join_all(asked).await {
        match made.unwrap() {
            Ok(task) => taken.push(task),
            Err(error) => refused.push(error),
        }
    }
    (taken, refused)
}

fn is_refusal(error: &Error) -> bool {
    error.code == Code::RateLimited && error.details.get("retry_after_s").is_some_and(Value::is_u64)
}

async fn end(hub: &Hub, tasks: &[TaskId]) {
    for task in tasks {
        hub.until(*task, |view| view.phase == TaskPhase::Suspended).await;
        hub.answer(*task, "ask", json!({ "approved": true })).await;
    }
    for task in tasks {
        hub.finished(*task).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s10_12_of_sixty_four_at_once_exactly_as_many_are_taken_as_there_are_places() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, "rules: []").await;
    waits(&hub, 10).await;
    // Twice: an ended task gives its place back, once.
    for _ in 0..2 {
        let (taken, refused) = at_once(&hub, 64).await;
        assert_eq!((taken.len(), refused.len()), (10, 54));
        assert!(refused.iter().all(is_refusal), "{refused:?}");
        assert_eq!(kept(&hub, "task/").await, 10);
        end(&hub, &taken).await;
        assert_eq!((kept(&hub, "task/").await, kept(&hub, "start/").await), (0, 0));
    }
    hub.close().await;
}

#[tokio::test(start_paused = true)]
async fn s10_12_no_order_of_commits_takes_one_too_many() {
    for seed in 1..9 {
        let folder = tempfile::tempdir().unwrap();
        let hub = Hub::on(Ground::in_memory(seed, Arc::new(Slow::default())), &folder).await;
        waits(&hub, 5).await;
        let (taken, refused) = at_once(&hub, 64).await;
        assert_eq!((taken.len(), refused.len()), (5, 59), "seed {seed}");
        end(&hub, &taken[..2]).await;
        assert_eq!(at_once(&hub, 64).await.0.len(), 2, "seed {seed}");
        hub.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s10_12_a_flow_that_has_enough_to_do_is_refused_with_a_time_to_come_again() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, "rules: []").await;
    waits(&hub, 2).await;
    let (taken, _) = at_once(&hub, 2).await;
    assert!(is_refusal(&hub.create("waits", Value::Null).await.unwrap_err()));
    // The same again is none more.
    let again = hub.tasks.create(hub.workspace, taken[0], "waits", NewTask::default(), &hub.by).await.unwrap();
    assert_eq!(again.task_id, taken[0]);
    // A tenant's places are its own.
    let other = hub.another().await;
    hub.flow_in(other, "waits", [("workflow.yaml", WAITS), ("execution.yaml", "max_queued: 2\n")]).await;
    hub.create_in(other, "waits", NewTask::default()).await.unwrap();
    // One that is stopped gives its place back as one that ends does; a re-run takes one.
    hub.tasks.stop(hub.workspace, taken[0], hub.command(), &hub.by).await.unwrap();
    hub.finished(taken[0]).await;
    let task = TaskId(Uuid::now_v7());
    hub.tasks.replay(hub.workspace, taken[0], task, Some("begin"), RerunOptions::default(), &hub.by).await.unwrap();
    assert!(is_refusal(&hub.create("waits", Value::Null).await.unwrap_err()));
    hub.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s10_12_a_task_that_was_deleted_is_not_made_again_and_takes_no_place() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, "rules: []").await;
    waits(&hub, 1).await;
    let (taken, _) = at_once(&hub, 1).await;
    hub.until(taken[0], |view| view.phase == TaskPhase::Suspended).await;
    hub.tasks.delete(hub.workspace, taken[0], hub.command(), &hub.by).await.unwrap();
    flows::until(|| async { (kept(&hub, "task/").await == 0).then_some(()) }).await;
    // A client that does not know of the deletion repeats its request.
    let again = hub.tasks.create(hub.workspace, taken[0], "waits", NewTask::default(), &hub.by).await.unwrap();
    assert_eq!(again.task_id, taken[0]);
    assert_eq!((kept(&hub, "task/").await, kept(&hub, "start/").await), (0, 0));
    assert_eq!(hub.tasks.get(hub.workspace, taken[0]).await.unwrap_err().code, Code::NotFound);
    hub.create("waits", Value::Null).await.unwrap();
    hub.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s10_12_a_full_flow_is_full_beside_any_other() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, "rules: []").await;
    waits(&hub, 2).await;
    hub.flow("free", [("workflow.yaml", WAITS)]).await;
    at_once(&hub, 2).await;
    // As many newer ones of another flow as a page of a list has: they neither hide those two nor count for them.
    for _ in 0..300 {
        hub.create("free", Value::Null).await.unwrap();
    }
    assert!(is_refusal(&hub.create("waits", Value::Null).await.unwrap_err()));
    hub.create("free", Value::Null).await.unwrap();
    hub.close().await;
}

/// A hub without a worker, so that all messages wait.
async fn idle() -> (tempfile::TempDir, Hub, Arc<dyn Queue>) {
    let folder = tempfile::tempdir().unwrap();
    let ground = Ground::in_memory(0, Arc::new(Slow::default()));
    let queue = ground.queue.clone();
    let hub = Hub::idle_on(ground, &folder).await;
    (folder, hub, queue)
}

#[tokio::test(start_paused = true)]
async fn s10_12_a_tenant_with_too_much_waiting_is_refused_by_default() {
    let (_folder, hub, queue) = idle().await;
    hub.flow("free", [("workflow.yaml", WAITS)]).await;
    // No flow says anything about it. Only the bound is another one here, so that it is reached.
    let tasks: Tasks = hub.tasks.clone().with_most_waiting(5);
    let create = async |workspace| {
        tasks.create(workspace, TaskId(Uuid::now_v7()), "free", NewTask::default(), &hub.by).await.map(drop)
    };
    for _ in 0..5 {
        create(hub.workspace).await.unwrap();
    }
    let refused = create(hub.workspace).await.unwrap_err();
    assert!(is_refusal(&refused) && refused.message.contains("5 may"), "{refused:?}");
    let other = hub.another().await;
    hub.flow_in(other, "free", [("workflow.yaml", WAITS)]).await;
    create(other).await.unwrap();
    // Room again, as soon as somebody has taken something off the queue.
    queue.receive(MAX_BATCH, Duration::from_secs(60)).await.unwrap();
    create(hub.workspace).await.unwrap();
    assert_eq!(engine::tasks::MOST_WAITING, 100_000, "as docs/reference/configuration.md says");
    hub.close().await;
}

#[tokio::test(start_paused = true)]
async fn s10_12_a_place_of_a_task_that_never_began_is_not_lost() {
    let (_folder, hub, queue) = idle().await;
    waits(&hub, 1).await;
    let task = hub.create("waits", Value::Null).await.unwrap();
    // The process that made it died before it was sent off.
    let receive = async || queue.receive(MAX_BATCH, Duration::from_secs(1)).await.unwrap();
    let lost = receive().await;
    assert_eq!(lost.len(), 1);
    queue.ack(&[lost[0].receipt.clone()]).await.unwrap();
    let lane = format!("task/{}", hub.workspace);
    assert!(is_refusal(&hub.create("waits", Value::Null).await.unwrap_err()));
    assert_eq!(queue.waiting(&lane).await.unwrap(), 0, "maybe it is only slow");
    // The queue has forgotten the message by then.
    tokio::time::advance(Duration::from_secs(600)).await;
    assert!(is_refusal(&hub.create("waits", Value::Null).await.unwrap_err()));
    let again = receive().await;
    assert_eq!((again.len(), &again[0].body), (1, &lost[0].body), "it begins after all");
    assert!(again[0].group.ends_with(&task.to_string()));
    hub.close().await;
}

#[tokio::test(start_paused = true)]
async fn s10_12_a_task_of_higher_priority_begins_first_unless_the_flow_takes_turns() {
    for (policy, first) in [("priority", 2), ("fifo", 0)] {
        let (_folder, hub, queue) = idle().await;
        let execution = format!("queue_policy: {policy}\n");
        hub.flow("free", [("workflow.yaml", WAITS), ("execution.yaml", &*execution)]).await;
        let mut tasks = Vec::new();
        for priority in [0, 1, 5, 2] {
            let new = NewTask { priority, ..NewTask::default() };
            tasks.push(hub.create_in(hub.workspace, "free", new).await.unwrap());
        }
        let begun = queue.receive(1, Duration::from_secs(60)).await.unwrap();
        assert!(begun[0].group.ends_with(&tasks[first].to_string()), "{policy}");
        hub.close().await;
    }
}
