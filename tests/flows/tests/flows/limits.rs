//! Limits of concurrency by flow, by node and by provider, per tenant over all workers (spec 002 §10.12), and of what tasks tell each other.
//! Every call takes a second of a time that jumps, and knows how many ran at once.
#![expect(clippy::unwrap_used, reason = "tests")]

use domain::{Code, Status, TaskId, TaskPhase, TaskView, task::Wait};
use engine::{NewTask, machine::actor_id};
use flows::{Ground, Hub, Slow};
use ports::QueueMessage;
use serde_json::json;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::time::Instant;

const AGENTS: &str = "agents:\n  - {id: first, llm: one/model}\n  - {id: second, llm: two/model}\n";

/// Clones that ask two agents at once, one of each provider. `more` is added to the first of them.
fn two_agents(more: &str) -> String {
    format!(
        "
nodes:
  - {{id: begin, kind: deterministic, role: start, context: none}}
  - {{id: both, kind: deterministic, role: branch, context: none}}
  - {{id: a, kind: agent, role: linear, context: none, agent_id: first, prompt: 'first'{more}}}
  - {{id: b, kind: agent, role: linear, context: none, agent_id: second, prompt: 'second'}}
  - {{id: join, kind: deterministic, role: merge, context: none}}
  - {{id: end, kind: deterministic, role: exit, context: none}}
edges:
  - {{from: begin, to: both}}
  - {{from: both, to: a}}
  - {{from: both, to: b}}
  - {{from: a, to: join}}
  - {{from: b, to: join}}
  - {{from: join, to: end}}
"
    )
}

/// A deterministic node that takes a second: to put its context in order.
fn ranked(more: &str) -> String {
    format!(
        "
nodes:
  - {{id: begin, kind: deterministic, role: start, context: none, remember: {{store: task}}}}
  - {{id: work, kind: deterministic, role: linear, context: near{more}}}
  - {{id: end, kind: deterministic, role: exit, context: none}}
edges: [{{from: begin, to: work}}, {{from: work, to: end}}]
"
    )
}
const NEAR: &str = "
context_profiles:
  - {id: near, max_tokens: 500, retrieval_policy: semantic, sources: [{store: task}]}
";

/// Texts that come together: more than a message of the queue takes. The second flow gathers them in each subtask of another split.
const FOR_AN_AGENT: &str = "
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: each, kind: deterministic, role: split, context: none, op: {function: 'list:repeat'}, split: {over: input}}
  - {id: same, kind: deterministic, role: linear, context: none}
  - {id: join, kind: deterministic, role: merge, context: none}
  - {id: sum, kind: agent, role: linear, context: none, agent_id: first, prompt: 'sum {{input}}'}
  - {id: end, kind: deterministic, role: exit, context: none}
edges: [{from: begin, to: each}, {from: each, to: same}, {from: same, to: join}, {from: join, to: sum}, {from: sum, to: end}]
";
const FOR_A_TASK: &str = "
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: each, kind: deterministic, role: split, context: none, op: {function: 'list:repeat'}, split: {over: input}}
  - {id: many, kind: deterministic, role: linear, context: none, op: {expr: '{\"value\": input, \"count\": 5}'}}
  - {id: part, kind: deterministic, role: split, context: none, op: {function: 'list:repeat'}, split: {over: input}}
  - {id: same, kind: deterministic, role: linear, context: none}
  - {id: gather, kind: deterministic, role: merge, context: none}
  - {id: join, kind: deterministic, role: merge, context: none}
  - {id: end, kind: deterministic, role: exit, context: none}
edges:
  - {from: begin, to: each}
  - {from: each, to: many}
  - {from: many, to: part}
  - {from: part, to: same}
  - {from: same, to: gather}
  - {from: gather, to: join}
  - {from: join, to: end}
";

async fn hub(folder: &TempDir) -> (Hub, Slow) {
    let slow = Slow::default();
    let ground = Ground { ranker: Arc::new(slow.clone()), ..Ground::in_memory(0, Arc::new(slow.clone())) };
    (Hub::on(ground, folder).await, slow)
}

/// Runs so many tasks of a flow at once.
async fn run(hub: &Hub, flow: &str, many: usize) {
    let mut tasks: Vec<TaskId> = Vec::new();
    for _ in 0..many {
        tasks.push(hub.create(flow, json!("ranked")).await.unwrap());
    }
    for task in tasks {
        assert_eq!(hub.finished(task).await.status, Status::Success);
    }
}

#[tokio::test(start_paused = true)]
async fn s10_12_without_a_limit_everything_runs_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (hub, slow) = hub(&folder).await;
    hub.flow("asks", [("workflow.yaml", &*two_agents("")), ("agents.yaml", AGENTS)]).await;
    hub.flow("ranks", [("workflow.yaml", &*ranked("")), ("memory.yaml", NEAR)]).await;
    run(&hub, "asks", 6).await;
    run(&hub, "ranks", 6).await;
    assert_eq!((slow.most("first"), slow.most("second"), slow.most("ranked")), (6, 6, 6));
    hub.close().await;
}

#[tokio::test(start_paused = true)]
async fn s10_12_a_flow_executes_so_many_nodes_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (hub, slow) = hub(&folder).await;
    let two = ("execution.yaml", "max_concurrency: 2\n");
    hub.flow("asks", [("workflow.yaml", &*two_agents("")), ("agents.yaml", AGENTS), two]).await;
    hub.flow("ranks", [("workflow.yaml", &*ranked("")), ("memory.yaml", NEAR), two]).await;
    run(&hub, "asks", 6).await;
    run(&hub, "ranks", 6).await;
    assert_eq!((slow.most(""), slow.most("ranked")), (2, 2));
    hub.close().await;
}

#[tokio::test(start_paused = true)]
async fn s10_12_a_node_is_executed_so_many_times_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (hub, slow) = hub(&folder).await;
    let workflow = two_agents(", max_concurrency: 2");
    hub.flow("asks", [("workflow.yaml", &*workflow), ("agents.yaml", AGENTS)]).await;
    let workflow = ranked(", max_concurrency: 3");
    hub.flow("ranks", [("workflow.yaml", &*workflow), ("memory.yaml", NEAR)]).await;
    run(&hub, "asks", 6).await;
    run(&hub, "ranks", 6).await;
    // The node beside it is not limited.
    assert_eq!((slow.most("first"), slow.most("second"), slow.most("ranked")), (2, 6, 3));
    hub.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_parked_while_it_waits_for_its_slot_holds_up_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let slow = Slow::default();
    let ground = Ground { ranker: Arc::new(slow.clone()), ..Ground::in_memory(0, Arc::new(slow)) };
    let hub = Hub::on(ground.clone(), &folder).await;
    hub.flow("ranks", [("workflow.yaml", &*ranked(", max_concurrency: 1")), ("memory.yaml", NEAR)]).await;
    let mut tasks = Vec::new();
    for _ in 0..3 {
        tasks.push(hub.create("ranks", json!("ranked")).await.unwrap());
    }
    let waits = |view: &TaskView| matches!(view.wait, Some(Wait::Slots { .. }));
    let parked = flows::until(|| async {
        let mut waiting = Vec::new();
        for task in &tasks {
            let view = hub.tasks.get(hub.workspace, *task).await.ok()?;
            waiting.extend(waits(&view).then_some(*task));
        }
        (waiting.len() == 2).then(|| waiting[0])
    })
    .await;
    // A message that nobody can read pauses the task at once.
    let group = actor_id(hub.workspace, parked).as_str().to_owned();
    let (id, body) = ("unreadable".to_owned(), "{}".to_owned());
    ground.queue.send(vec![QueueMessage { group, id, body, ..QueueMessage::default() }]).await.unwrap();
    let view = hub.until(parked, |view| view.phase == TaskPhase::Parked).await;
    assert!(waits(&view), "{view:?}");
    for task in tasks.into_iter().filter(|task| *task != parked) {
        assert_eq!(hub.finished(task).await.status, Status::Success);
    }
    run(&hub, "ranks", 1).await;
    hub.tasks.stop(hub.workspace, parked, hub.command(), &hub.by).await.unwrap();
    assert_eq!(hub.finished(parked).await.error.unwrap().code, Code::Paused);
    hub.close().await;
}

#[tokio::test(start_paused = true)]
async fn s10_12_a_provider_is_asked_so_many_times_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (hub, slow) = hub(&folder).await;
    let limits = ("execution.yaml", "providers: {one: 2}\n");
    hub.flow("asks", [("workflow.yaml", &*two_agents("")), ("agents.yaml", AGENTS), limits]).await;
    run(&hub, "asks", 6).await;
    // The other provider is not limited.
    assert_eq!((slow.most("first"), slow.most("second")), (2, 6));
    hub.close().await;
}

#[tokio::test(start_paused = true)]
async fn s10_12_limits_and_rules_of_a_provider_hold_for_an_agent_that_names_no_model() {
    let folder = tempfile::tempdir().unwrap();
    let (hub, slow) = hub(&folder).await;
    let (workflow, agents) = (two_agents(""), AGENTS.replace(", llm: one/model", ""));
    let files = [("workflow.yaml", &*workflow), ("agents.yaml", &*agents), ("execution.yaml", "providers: {one: 2}\n")];
    hub.flow("asks", files).await;
    run(&hub, "asks", 6).await;
    assert_eq!((slow.most("first"), slow.most("second")), (2, 6));
    let rules = "rules: [{id: elsewhere, target: model, names: ['one/*'], allow: false}]\n";
    hub.flow("asks", [("policy.yaml", rules)]).await;
    let ended = hub.children(hub.run("asks", json!(null)).await.task_id).await;
    let denied = ended.into_iter().filter_map(|child| child.error).find(|error| error.code == Code::Forbidden).unwrap();
    assert!(denied.message.contains("model one/usual is denied by elsewhere"), "{denied}");
    assert_eq!(slow.begun("first"), 6);
    hub.close().await;
}

#[tokio::test(start_paused = true)]
async fn s10_12_limits_are_a_tenants_own() {
    // Each limit by itself, with its subject, of which one runs at a time per tenant.
    for (node, execution, what) in [
        ("", "max_concurrency: 1\n", ""),
        (", max_concurrency: 1", "queue_policy: fifo\n", "first"),
        ("", "providers: {one: 1}\n", "first"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (hub, slow) = hub(&folder).await;
        let (other, workflow) = (hub.another().await, two_agents(node));
        let files = [("workflow.yaml", &*workflow), ("agents.yaml", AGENTS), ("execution.yaml", execution)];
        let mut tasks = Vec::new();
        for workspace in [hub.workspace, other] {
            hub.flow_in(workspace, "asks", files).await;
            for _ in 0..3 {
                tasks.push((workspace, hub.create_in(workspace, "asks", NewTask::default()).await.unwrap()));
            }
        }
        for (workspace, task) in tasks {
            flows::until(|| async {
                let view = hub.tasks.get(workspace, task).await.unwrap();
                (view.phase == TaskPhase::Finished).then_some(())
            })
            .await;
        }
        assert_eq!(slow.most(what), 2, "{node}{execution}");
        hub.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn s10_12_an_agent_that_does_not_end_in_time_fails_its_node() {
    let folder = tempfile::tempdir().unwrap();
    let (hub, _slow) = hub(&folder).await;
    let workflow = two_agents(", timeout_seconds: 7").replace("'first'", "'hang for ever'");
    hub.flow("asks", [("workflow.yaml", &*workflow), ("agents.yaml", AGENTS)]).await;
    let began = Instant::now();
    let view = hub.run("asks", json!(null)).await;
    let took = began.elapsed().as_secs();
    assert!((7..30).contains(&took), "{took} s");
    assert_eq!(view.status, Status::Failure);
    let clone = hub.children(view.task_id).await.into_iter().find(|child| child.status == Status::Failure).unwrap();
    let error = clone.error.unwrap();
    assert_eq!(error.code, Code::Timeout, "{error:?}");
    hub.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_no_message_takes_fails_its_node() {
    let folder = tempfile::tempdir().unwrap();
    let (hub, slow) = hub(&folder).await;
    hub.flow("sums", [("workflow.yaml", FOR_AN_AGENT), ("agents.yaml", AGENTS)]).await;
    let view = hub.run("sums", json!({ "value": "x".repeat(60_000), "count": 5 })).await;
    assert_eq!((view.status, view.error.unwrap().code), (Status::Failure, Code::PayloadTooLarge));
    assert_eq!(slow.begun("sum"), 0, "the agent was not asked");
    assert_eq!(hub.run("sums", json!({ "value": "x", "count": 5 })).await.status, Status::Success);
    hub.close().await;
}

#[tokio::test(start_paused = true)]
async fn an_output_that_no_message_takes_fails_its_subtask() {
    let folder = tempfile::tempdir().unwrap();
    let (hub, _) = hub(&folder).await;
    hub.flow("gathers", [("workflow.yaml", FOR_A_TASK)]).await;
    let task = hub.create("gathers", json!({ "value": "x".repeat(60_000), "count": 1 })).await.unwrap();
    assert_eq!(hub.finished(task).await.status, Status::Failure);
    let [child] = &hub.children(task).await[..] else { panic!("it has one subtask") };
    let child = hub.finished(child.task_id).await;
    assert_eq!((child.status, child.error.unwrap().code), (Status::Failure, Code::PayloadTooLarge));
    assert_eq!(hub.run("gathers", json!({ "value": "x", "count": 2 })).await.status, Status::Success);
    hub.close().await;
}
