//! Sweeps find stranded work: trash that is old, tasks that never began, and actors whose message was lost.
#![expect(clippy::unwrap_used, reason = "tests")]

use actor::waiting;
use assembly::sweeps::{Sweep as _, UnlistedWaits};
use domain::{EvaluationId, FilePath, Status, TaskId, TaskPhase};
use engine::NewTask;
use evaluation::Selection;
use flows::{Ground, Hub, Slow, until};
use models::Scripted;
use ports::{Expect, Key, MAX_WRITES, Query, SystemClock, Write};
use serde_json::json;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tempfile::TempDir;
use testkit::{
    fakes::{LosingQueue, Posting},
    flows::{AGENT, AGENTS, NUMBERS},
};
use tokio::time::sleep;
use uuid::Uuid;

const DAY: Duration = Duration::from_secs(24 * 3600);
/// Longer than any sweep takes.
const LONG: Duration = Duration::from_secs(600);

const ASKS: &str = r#"
nodes:
- {id: s, kind: deterministic, role: start, context: none}
- {id: ask, kind: deterministic, role: linear, context: none, ask: {approve: "Really?", timeout_seconds: 31536000}}
- {id: done, kind: deterministic, role: exit, context: none}
edges: [{from: s, to: ask}, {from: ask, to: done}]
"#;

/// Each subtask asks.
const MANY_ASK: &str = r#"
nodes:
- {id: s, kind: deterministic, role: start, context: none}
- {id: each, kind: deterministic, role: split, context: none, op: {function: 'list:repeat'}, split: {over: input}}
- {id: ask, kind: deterministic, role: linear, context: none, ask: {approve: "Really?", timeout_seconds: 31536000}}
- {id: join, kind: deterministic, role: merge, context: none}
- {id: done, kind: deterministic, role: exit, context: none}
edges: [{from: s, to: each}, {from: each, to: ask}, {from: ask, to: join}, {from: join, to: done}]
"#;

/// A clone asks, and the agent of another one.
const CLONES_ASK: &str = r#"
nodes:
- {id: s, kind: deterministic, role: start, context: none}
- {id: both, kind: deterministic, role: branch, context: none}
- {id: ask, kind: deterministic, role: linear, context: none, ask: {approve: "Really?", timeout_seconds: 31536000}}
- {id: keep, kind: agent, role: linear, context: none, agent_id: keeper, prompt: "Keep it", tools: [write]}
- {id: join, kind: deterministic, role: merge, context: none, merge: {strategy: all}}
- {id: done, kind: deterministic, role: exit, context: none}
edges:
- {from: s, to: both}
- {from: both, to: ask}
- {from: both, to: keep}
- {from: ask, to: join}
- {from: keep, to: join}
- {from: join, to: done}
"#;
const KEEPS: &str = "
rules:
- steps:
  - calls: [{tool: write, args: {path: /system/skills/kept/SKILL.md, content: x}}]
  - {text: It is kept.}
";

async fn hub(folder: &TempDir, seed: u64) -> (Hub, Arc<LosingQueue>) {
    let ground = Ground::in_memory(seed, Arc::new(Slow::default()));
    let queue = Arc::new(LosingQueue::new(ground.queue.clone()));
    (Hub::on(Ground { queue: queue.clone(), ..ground }, folder).await, queue)
}

/// The work that was done. The scrub looks at contents also when nothing was left behind.
fn swept(hub: &BTreeMap<&'static str, u64>) -> Vec<(&'static str, u64)> {
    hub.iter().filter(|(name, count)| **count > 0 && **name != "scrub").map(|(name, count)| (*name, *count)).collect()
}

#[tokio::test(start_paused = true)]
async fn the_trash_is_emptied_of_files_past_their_retention() {
    let folder = tempfile::tempdir().unwrap();
    let (hub, _) = hub(&folder, 0).await;
    let files = hub.workspaces.open(hub.workspace, workspace::Access::platform("a test")).await.unwrap();
    let path = |name: &str| FilePath::parse(&format!("/data/{name}.md")).unwrap();
    for n in 0..40 {
        hub.write(&format!("/data/old/{n}.md"), "x").await;
    }
    for name in ["back", "young"] {
        hub.write(&format!("/data/{name}.md"), name).await;
        files.rm(&path(name), &hub.by.clone().into()).await.unwrap();
    }
    for n in 0..40 {
        files.rm(&path(&format!("old/{n}")), &hub.by.clone().into()).await.unwrap();
    }
    assert_eq!(swept(&hub.sweeps.sweep(LONG).await), []);
    // poll: time is paused; these are its days
    sleep(20 * DAY).await;
    // One came back, and was removed again since: it is not old.
    let young = files.trash(100, None).await.unwrap();
    let young = young.files.iter().find(|trashed| trashed.info.path == path("young")).unwrap().info.file_id;
    files.restore(young, &hub.by.clone().into()).await.unwrap();
    files.rm(&path("young"), &hub.by.clone().into()).await.unwrap();
    sleep(11 * DAY).await;
    // Two at once do no harm.
    let (one, other) = tokio::join!(hub.sweeps.sweep(LONG), hub.sweeps.sweep(LONG));
    assert!(one["trash"] + other["trash"] >= 41, "{one:?} {other:?}");
    hub.sweeps.sweep(LONG).await;
    let left = files.trash(100, None).await.unwrap().files;
    assert_eq!(left.iter().map(|trashed| &trashed.info.path).collect::<Vec<_>>(), [&path("young")]);
    hub.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_task_that_was_accepted_and_whose_message_was_never_sent_begins_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let (hub, queue) = hub(&folder, 3).await;
    hub.flow("numbers", [("workflow.yaml", NUMBERS)]).await;
    queue.set(Posting::IsRefused);
    assert!(hub.create("numbers", json!({})).await.is_err());
    queue.set(Posting::Comes);
    let listed = hub.tasks.list(hub.workspace, &engine::TaskFilter::default(), 9, None).await.unwrap().tasks;
    assert_eq!(listed.iter().map(|view| view.phase).collect::<Vec<_>>(), [TaskPhase::Queued]);
    assert_eq!(swept(&hub.sweeps.sweep(LONG).await), [], "it may only be slow");
    // poll: time is paused
    sleep(Duration::from_secs(3700)).await;
    assert_eq!(swept(&hub.sweeps.sweep(LONG).await), [("never_begun", 1)]);
    let view = hub.finished(listed[0].task_id).await;
    assert_eq!((view.status, view.output), (Status::Success, Some(json!([10, 20, 30]))));
    sleep(Duration::from_secs(3700)).await;
    assert_eq!(swept(&hub.sweeps.sweep(LONG).await), [], "nothing is left of it");
    hub.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_beginning_that_cannot_be_read_keeps_no_other_task_back() {
    let folder = tempfile::tempdir().unwrap();
    let (hub, queue) = hub(&folder, 0).await;
    hub.flow("numbers", [("workflow.yaml", NUMBERS)]).await;
    queue.set(Posting::IsRefused);
    // Their ids end alike, so they are in the same part of the index.
    let [unread, waits] = [1, 2].map(|n| TaskId(Uuid::from_u128((0x019b_0000_0000_7000_8000 << 48) | (n << 16))));
    for task in [unread, waits] {
        let new = NewTask::default();
        hub.tasks.create(hub.workspace, task, "numbers", new, &hub.by).await.unwrap_err();
        sleep(Duration::from_secs(1)).await;
    }
    queue.set(Posting::Comes);
    let starts = hub.table.query_index(&Query::all("starts/0", 9)).await.unwrap().items;
    assert_eq!(starts.len(), 2);
    let mut damaged = Write::put(starts[0].key.clone(), "no JSON", Expect::Present);
    damaged = damaged.indexed(starts[0].index.clone().unwrap());
    hub.table.commit(vec![damaged]).await.unwrap();
    // poll: time is paused
    sleep(Duration::from_secs(3700)).await;
    assert_eq!(swept(&hub.sweeps.sweep(LONG).await), [("never_begun", 1)]);
    assert_eq!(hub.finished(waits).await.status, Status::Success);
    assert_eq!(hub.tasks.get(hub.workspace, unread).await.unwrap().phase, TaskPhase::Queued);
    hub.close().await;
}

#[tokio::test(start_paused = true)]
async fn an_evaluation_that_cannot_be_read_keeps_no_other_back() {
    let folder = tempfile::tempdir().unwrap();
    let (hub, queue) = hub(&folder, 0).await;
    let suite = r#"
suites:
  - {name: all, cases: [{id: runs, input: {}, assertions: [{type: status, expected: success}]}]}
"#;
    hub.flow("numbers", [("workflow.yaml", NUMBERS), ("evaluations.yaml", suite)]).await;
    queue.set(Posting::IsLost);
    let id = EvaluationId(Uuid::from_u128(1));
    hub.evaluations.start(hub.workspace, id, "numbers", Selection::default(), &hub.by).await.unwrap();
    queue.set(Posting::Comes);
    let place = |name: &str| Key::new("evaluations/open", name);
    let [own] = &hub.table.query(&Query::all("evaluations/open", 9)).await.unwrap().items[..] else { panic!("one") };
    // In front of it: one that is not JSON, and one that nobody knows.
    for (key, body) in [(place("0"), "no JSON"), (place("1"), own.body.as_str())] {
        hub.table.commit(vec![Write::put(key, body, Expect::Absent)]).await.unwrap();
    }
    // poll: time is paused
    sleep(Duration::from_secs(3700)).await;
    hub.sweeps.sweep(LONG).await;
    assert_eq!(hub.evaluated(id).await.passed, 1);
    hub.close().await;
}

/// Everything that is sent from some moment on is lost, after the commit that says that it is to be sent.
async fn goes_on_after_losing(flow: &str, text: &str, seed: u64, from: usize) {
    let folder = tempfile::tempdir().unwrap();
    let (hub, queue) = hub(&folder, seed).await;
    hub.flow(flow, [("workflow.yaml", text), ("agents.yaml", AGENTS)]).await;
    let task = hub.create(flow, json!({})).await.unwrap();
    for _ in 0..from {
        let missed = queue.missed();
        hub.until(task, |view| view.steps > 0 || view.phase != TaskPhase::Queued || queue.missed() > missed).await;
    }
    queue.set(Posting::IsLost);
    // poll: time is paused, and passes when all tasks are idle
    sleep(Duration::from_secs(3700)).await;
    queue.set(Posting::Comes);
    let view = hub.tasks.get(hub.workspace, task).await.unwrap();
    if queue.missed() > 0 {
        assert_ne!(view.phase, TaskPhase::Finished, "{flow}: the lost message was needed");
    }
    for _ in 0..4 {
        hub.sweeps.sweep(LONG).await;
        sleep(Duration::from_secs(2 * 3700)).await;
    }
    let view = hub.tasks.get(hub.workspace, task).await.unwrap();
    assert_eq!((view.phase, view.status), (TaskPhase::Finished, Status::Success), "{flow} {seed}");
    assert!(queue.missed() > 0, "{flow} {seed}: nothing was lost");
    hub.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_parent_whose_messages_to_its_children_were_lost_sends_them_again() {
    for seed in [0, 1, 2] {
        goes_on_after_losing("numbers", NUMBERS, seed, 0).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_whose_agent_was_never_told_tells_it_again() {
    for seed in [0, 1, 2] {
        goes_on_after_losing("agent", AGENT, seed, 0).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_waits_for_a_person_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (hub, _) = hub(&folder, 0).await;
    hub.flow("asks", [("workflow.yaml", ASKS)]).await;
    let task = hub.create("asks", json!({})).await.unwrap();
    hub.until(task, |view| view.phase == TaskPhase::Suspended).await;
    // poll: time is paused
    sleep(2 * DAY).await;
    assert_eq!(swept(&hub.sweeps.sweep(LONG).await), []);
    hub.answer(task, "ask", json!({ "approved": true })).await;
    assert_eq!(hub.finished(task).await.status, Status::Success);
    hub.close().await;
}

#[tokio::test(start_paused = true)]
async fn requests_from_before_the_list_of_what_waits_are_put_on_it_once() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::on(Ground::in_memory(0, Arc::new(Scripted::from_yaml(KEEPS).unwrap())), &folder).await;
    let agents = ("agents.yaml", "agents:\n- {id: keeper, system: You are a keeper of skills.}\n");
    let files = [("workflow.yaml", CLONES_ASK), agents, ("tools.yaml", "tools:\n- {id: write}\n")];
    hub.flow("clones", files).await;
    assert_eq!(swept(&hub.sweeps.sweep(LONG).await), [], "functions of the version before may still run");
    // poll: time is paused
    sleep(Duration::from_secs(3700)).await;
    let task = hub.create("clones", json!({})).await.unwrap();
    let listed = async |root| waiting::list(&*hub.table, hub.workspace, root, 9, None).await.unwrap().waiting;
    let whole = until(|| async { Some(listed(None).await).filter(|all| all.len() == 2) }).await;
    assert_eq!(whole.iter().filter(|one| one.chat_id.is_some()).count(), 1);

    // As a version leaves it that keeps no list.
    let rows = hub.table.query(&Query::all(format!("{}/waiting", hub.workspace), 9)).await.unwrap().items;
    let removed = rows.into_iter().map(|row| Write::delete(row.key, Expect::Present));
    hub.table.commit(removed.collect()).await.unwrap();
    assert_eq!(swept(&hub.sweeps.sweep(LONG).await), [("unlisted", 2)]);
    assert_eq!((listed(None).await, listed(Some(task)).await), (whole.clone(), whole));

    // The round has ended for good: the next sweep does not even move the cursor.
    let cursor = async || hub.table.get(&Key::new("sweeps", "unlisted")).await.unwrap().unwrap();
    let ended = cursor().await;
    assert_eq!(swept(&hub.sweeps.sweep(LONG).await), []);
    assert_eq!(cursor().await.rev, ended.rev);

    // An answer takes its entry off the list, as any other.
    let children = hub.children(task).await;
    let asks = children.iter().find(|child| !child.waiting_for.is_empty()).unwrap();
    hub.answer(asks.task_id, "ask", json!({ "approved": true })).await;
    until(|| async { listed(None).await.iter().all(|one| one.chat_id.is_some()).then_some(()) }).await;
    hub.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_step_looks_at_some_pages_of_a_tree_and_the_next_one_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (hub, _) = hub(&folder, 0).await;
    hub.flow("many", [("workflow.yaml", MANY_ASK)]).await;
    hub.create("many", json!({ "value": 1, "count": 230 })).await.unwrap();
    let rows = async || hub.table.query(&Query::all(format!("{}/waiting", hub.workspace), 500)).await.unwrap().items;
    let whole = until(|| async { Some(rows().await).filter(|rows| rows.len() == 230) }).await;
    for some in whole.chunks(MAX_WRITES) {
        let removed = some.iter().map(|row| Write::delete(row.key.clone(), Expect::Present));
        hub.table.commit(removed.collect()).await.unwrap();
    }
    let (lists, table, clock) = (hub.lists.clone(), hub.table.clone(), Arc::new(SystemClock));
    let sweep = UnlistedWaits { lists, table, patience: Duration::ZERO, clock };
    let (mut from, mut counts, mut has_more) = (None::<String>, Vec::new(), true);
    while has_more {
        let swept = sweep.sweep_page(from.as_deref()).await.unwrap();
        counts.push(swept.count);
        (from, has_more) = (swept.next, swept.more);
    }
    assert_eq!((counts.iter().sum::<u64>(), rows().await.len()), (230, 230));
    assert!(counts.iter().all(|count| *count <= 200), "{counts:?}");
    hub.close().await;
}

#[tokio::test(start_paused = true)]
async fn manifests_are_kept_for_as_long_as_somebody_asks_for_them() {
    let folder = tempfile::tempdir().unwrap();
    let ground = Ground::in_memory(0, Arc::new(Slow::default()));
    let another_process = async || {
        let Ground { table, queue, bus, blobs, clock, model, ranker } = &ground;
        let (table, queue, bus, blobs) = (table.clone(), queue.clone(), bus.clone(), blobs.clone());
        let (clock, model, ranker) = (clock.clone(), model.clone(), ranker.clone());
        Hub::on(Ground { table, queue, bus, blobs, clock, model, ranker }, &folder).await
    };
    let hub = another_process().await;
    hub.flow("numbers", [("workflow.yaml", NUMBERS)]).await;
    let reference = hub.run("numbers", json!({})).await.flow;
    hub.close().await;
    for asked in [true, true, false] {
        // poll: time is paused; these are its days
        sleep(if asked { 390 * DAY } else { 401 * DAY }).await;
        let hub = another_process().await;
        assert_eq!(hub.tasks.flows().by_hash(hub.workspace, &reference).await.is_ok(), asked);
        hub.close().await;
    }
}
