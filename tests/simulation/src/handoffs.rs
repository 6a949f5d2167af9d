//! Handoffs in the simulator: one file starts a flow whose file starts another one, while processes die. A sweep looks after lost messages, as the
//! timer does.

use crate::{
    check::{files, until_done},
    cluster::Cluster,
    invariants::{self as must, Held, Violation},
    plan::Plan,
    run::Outcome,
    tasks::{end, family, story},
    world::World,
};
use assembly::sweeps::Sweep as _;
use domain::{CallId, FileId, FilePath, Principal, Status, TaskEvent, TaskId};
use engine::handoff::task_of;
use ports::Clock as _;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::time::{Instant, sleep};
use workspace::{Expect, HANDOFF_SHARDS, Writer};

const TOOLS: &str = "tools:\n- {id: put, entrypoint: write_file, permissions: {root: /data}}\n";
const PLAN: &str = "/data/plan.md";

/// Sets the status of the plan.
const FIRST: &str = r#"
on: [{path: /data/plan.md, status: ready}]
nodes:
- {id: s, kind: deterministic, role: start, context: none}
- {id: mark, kind: deterministic, role: linear, context: none, tools: [put], op: {tool: put, args: {path: "{{input.path}}", content: "---\nstatus: review\n---\n"}}}
- {id: done, kind: deterministic, role: exit, context: none}
edges: [{from: s, to: mark}, {from: mark, to: done}]
"#;

/// Writes down which version it saw.
const SECOND: &str = r#"
on: [{path: /data/plan.md, status: review}]
nodes:
- {id: s, kind: deterministic, role: start, context: none}
- {id: note, kind: deterministic, role: linear, context: none, tools: [put], op: {tool: put, args: {path: /data/out.txt, content: "version {{input.v}}"}}}
- {id: done, kind: deterministic, role: exit, context: none}
edges: [{from: s, to: note}, {from: note, to: done}]
"#;

/// Plays the write of the plan under `plan`, in a runtime of its own, whose time jumps.
pub fn play_handoffs(plan: &Plan) -> Outcome {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).max_blocking_threads(2).build();
    #[expect(clippy::expect_used, reason = "without a runtime there is no test")]
    runtime.expect("a runtime").block_on(run(plan))
}

async fn run(plan: &Plan) -> Outcome {
    let world = Arc::new(World::new(plan, &plan.faults).await);
    write_flows(&world).await;
    let cluster = Cluster::start(world.clone(), plan);
    let (workspace, call) = (world.workspace, CallId(world.clock.id()));
    // As a client with an idempotency key, who asks until there is an answer.
    let change = cluster
        .ask(async |process| {
            let files = process.workspaces.open(workspace, workspace::Access::platform("a test")).await?;
            let writer = Writer::in_call(Principal::local(), call);
            files.write(&path(PLAN), "---\nstatus: ready\n---\n", Expect::Any, &writer).await
        })
        .await;
    let settled = settled(&world, &cluster).await;
    // An acknowledged message may come once more.
    sleep(Duration::from_secs(31)).await;
    let settled = settled && self::settled(&world, &cluster).await;

    let mut outcome = Outcome { calls: cluster.first.names(), ..Outcome::default() };
    let mut broken = |invariant, what: String| outcome.violations.push(Violation { invariant, what });
    if !settled {
        broken("everything_comes_to_rest", "something still moves after hours".to_owned());
    }
    let family = family(&world);
    match change {
        Err(error) => broken("the_plan_is_written", error.to_string()),
        Ok(change) => {
            let expected = started(&world, change.file_id);
            let found: BTreeMap<TaskId, Option<Status>> =
                family.iter().map(|(task, log)| (*task, end(log).map(|(status, _)| status))).collect();
            if found != expected {
                broken("each_version_starts_its_flow_once", format!("{found:?} instead of {expected:?}"));
            }
        }
    }
    let created = |log: &[actor::Entry<TaskEvent>]| {
        log.iter().flat_map(|entry| &entry.events).filter(|event| matches!(event, TaskEvent::Created { .. })).count()
    };
    if let Some((task, _)) = family.iter().find(|(_, log)| created(log) != 1) {
        broken("each_task_is_made_once", task.to_string());
    }
    let pending = world.table.partition(&format!("{}/handoffs", world.workspace));
    if let Some(item) = pending.first() {
        broken("each_version_is_dealt_with", item.body.clone());
    }
    let (versions, records) = files(&world);
    let plans = versions.iter().filter(|(_, v, _)| *v == 2).count();
    if plans != 1 {
        broken("the_plan_has_two_versions", format!("{versions:?}"));
    }
    let mut held: Vec<Held> = vec![
        must::tasks_end_once(&family),
        must::nodes_end_once(&family),
        must::node_attempts_count_up(&family),
        must::tools_took_effect_once(&family, &versions, &records),
        must::places_are_given_back(&world.table.items()),
        must::the_queue_is_empty(&world.queue.messages(), &world.queue.dead()),
    ];
    for log in family.values() {
        held.extend([must::entries_are_contiguous(log), must::commands_were_consumed_once(log)]);
    }
    outcome.violations.extend(held.into_iter().filter_map(Held::err));
    cluster.kill_all();
    if !outcome.violations.is_empty() {
        outcome.story = story(&family);
    }
    outcome
}

/// The tasks that the two versions of the plan start, and how they end.
fn started(world: &World, file: FileId) -> BTreeMap<TaskId, Option<Status>> {
    let of = |flow, v| (task_of(world.workspace, flow, file, v), Some(Status::Success));
    BTreeMap::from([of("first", 1), of("second", 2)])
}

fn path(text: &str) -> FilePath {
    #[expect(clippy::expect_used, reason = "a path of ours")]
    FilePath::parse(text).expect("a path")
}

async fn write_flows(world: &World) {
    let workspaces = world.workspaces(0);
    let workspace =
        until_done(async || workspaces.open(world.workspace, workspace::Access::platform("a test")).await).await;
    for (flow, workflow) in [("first", FIRST), ("second", SECOND)] {
        for (name, text) in [("workflow.yaml", workflow), ("tools.yaml", TOOLS)] {
            let path = path(&format!("/system/flows/{flow}/{name}"));
            let writer = Writer::new(Principal::local());
            until_done(async || workspace.write(&path, text, Expect::Any, &writer).await).await;
        }
    }
    let _ = workspaces.checkpoint().await;
}

/// Waits until nothing moves and nothing waits, while a sweep looks after lost messages. False when that takes longer than anything can.
async fn settled(world: &World, cluster: &Cluster) -> bool {
    let deadline = Instant::now() + Duration::from_secs(6 * 3600);
    while Instant::now() < deadline {
        sleep(Duration::from_secs(20)).await;
        let shards: Vec<String> = (0..HANDOFF_SHARDS).map(|shard| shard.to_string()).collect();
        for shard in &shards {
            let swept = cluster.ask(async |process| process.handoffs.sweep_page(Some(shard.as_str())).await);
            let _ = tokio::time::timeout(Duration::from_secs(60), swept).await;
        }
        let family = family(world);
        let pending = world.table.partition(&format!("{}/handoffs", world.workspace));
        let all_ended = !family.is_empty() && family.values().all(|log| end(log).is_some());
        if world.queue.is_empty() && all_ended && pending.is_empty() {
            return true;
        }
    }
    false
}
