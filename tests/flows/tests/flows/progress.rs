//! Tasks and tenants do not hold each other up: a stop overtakes, a waiting task holds nothing, and priority acts where tasks wait.
#![expect(clippy::unwrap_used, reason = "tests")]

use domain::{Code, Status, TaskId};
use flows::{Ground, Hub, Slow};
use serde_json::json;
use std::{sync::Arc, time::Duration};
use tempfile::TempDir;
use testkit::fakes::FakeSandboxes;
use tokio::time::Instant;

const AGENTS: &str = "agents:\n  - {id: first, llm: one/model}\n";

/// A list that is split, and an agent for each element. `more` is added to the agent's node.
fn many_agents(more: &str) -> String {
    format!(
        "
nodes:
  - {{id: begin, kind: deterministic, role: start, context: none}}
  - {{id: each, kind: deterministic, role: split, context: none, op: {{function: 'list:repeat'}}, split: {{over: input}}}}
  - {{id: ask, kind: agent, role: linear, context: none, agent_id: first, prompt: 'go'{more}}}
  - {{id: join, kind: deterministic, role: merge, context: none}}
  - {{id: end, kind: deterministic, role: exit, context: none}}
edges: [{{from: begin, to: each}}, {{from: each, to: ask}}, {{from: ask, to: join}}, {{from: join, to: end}}]
"
    )
}

async fn hub(folder: &TempDir, concurrency: usize) -> (Hub, Slow) {
    let slow = Slow::default();
    let ground = Ground { ranker: Arc::new(slow.clone()), ..Ground::in_memory(0, Arc::new(slow.clone())) };
    let working = worker::Options { concurrency, ..worker::Options::default() };
    (Hub::on_with(ground, folder, working).await, slow)
}

#[tokio::test(start_paused = true)]
async fn nothing_of_a_task_begins_after_its_stop() {
    let folder = tempfile::tempdir().unwrap();
    let (hub, slow) = hub(&folder, 4).await;
    hub.flow("many", [("workflow.yaml", &*many_agents("")), ("agents.yaml", AGENTS)]).await;
    let task = hub.create("many", json!({ "value": 1, "count": 90 })).await.unwrap();
    flows::until(|| async { (slow.begun("go") >= 10).then_some(()) }).await;
    hub.tasks.stop(hub.workspace, task, hub.command(), &hub.by).await.unwrap();
    let (stopped, begun) = (Instant::now(), slow.begun("go"));
    let view = hub.finished(task).await;
    assert!(stopped.elapsed() <= Duration::from_secs(2), "{:?}", stopped.elapsed());
    assert_eq!(view.error.unwrap().code, Code::Cancelled);
    let mut cancelled = 0;
    for child in hub.children(task).await {
        let child = hub.finished(child.task_id).await;
        match child.status {
            Status::Success => assert!(child.finished_at.unwrap() <= view.finished_at.unwrap(), "it ended before"),
            _ => {
                assert_eq!(child.error.unwrap().code, Code::Cancelled);
                cancelled += 1;
            }
        }
    }
    assert!(cancelled >= 60, "{cancelled}");
    assert_eq!(slow.begun("go"), begun, "no call begins after the stop was accepted");
    hub.close().await;
}

/// How many subtasks of a stopped task were cancelled, once all of them have ended.
async fn cancelled(hub: &Hub, task: TaskId) -> usize {
    assert_eq!(hub.finished(task).await.error.unwrap().code, Code::Cancelled);
    let mut cancelled = 0;
    for child in hub.children(task).await {
        let error = hub.finished(child.task_id).await.error;
        cancelled += usize::from(error.is_some_and(|error| error.code == Code::Cancelled));
    }
    cancelled
}

/// How many of the files of subtasks there are.
async fn written(hub: &Hub) -> usize {
    let mut written = 0;
    for index in 0..=90 {
        written += usize::from(hub.read(&format!("/projects/out/{index}.txt")).await.is_some());
    }
    written
}

#[tokio::test(start_paused = true)]
async fn no_file_is_written_for_a_task_after_its_stop() {
    let folder = tempfile::tempdir().unwrap();
    let (hub, slow) = hub(&folder, 16).await;
    // Four agents at a time take a second each, and then their files are written.
    let keep = "  - {id: keep, kind: deterministic, role: linear, context: none, tools: [write_file],
      op: {tool: write_file, args: {path: '/projects/out/{{task.index}}.txt', content: '{{input}}'}}}
  - {id: join,";
    let workflow = many_agents(", max_concurrency: 4").replace("  - {id: join,", keep);
    let workflow = workflow.replace("{from: ask, to: join}", "{from: ask, to: keep}, {from: keep, to: join}");
    let tools = "tools: [{id: write_file, entrypoint: 'fs:write_file', permissions: {root: /projects}}]\n";
    hub.flow("many", [("workflow.yaml", &*workflow), ("agents.yaml", AGENTS), ("tools.yaml", tools)]).await;
    let task = hub.create("many", json!({ "value": 1, "count": 90 })).await.unwrap();
    flows::until(|| async { (slow.begun("go") >= 20).then_some(()) }).await;
    // The middle of a second: no file is being written.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let before = written(&hub).await;
    hub.tasks.stop(hub.workspace, task, hub.command(), &hub.by).await.unwrap();
    assert!(cancelled(&hub, task).await >= 60);
    let after = written(&hub).await;
    assert!(before > 0 && after == before, "{before} files, and then {after}");
    hub.close().await;
}

#[tokio::test(start_paused = true)]
async fn no_command_of_a_task_begins_after_its_stop() {
    let folder = tempfile::tempdir().unwrap();
    let machines = Arc::new(FakeSandboxes::new(|_| (String::new(), None)));
    let ground = Ground::in_memory(0, Arc::new(Slow::default()));
    let working = worker::Options { concurrency: 16, ..worker::Options::default() };
    let hub = Hub::on_machines(ground, &folder, working, machines.clone()).await;
    let machine = machines.come_up(hub.workspace);
    let command = "{id: ask, kind: deterministic, role: linear, context: none, op: {command: [hang]}}";
    let agent = "{id: ask, kind: agent, role: linear, context: none, agent_id: first, prompt: 'go'}";
    hub.flow("many", [("workflow.yaml", &*many_agents("").replace(agent, command))]).await;
    let task = hub.create("many", json!({ "value": 1, "count": 90 })).await.unwrap();
    // Time stands while anything moves: so all that find room have begun by then, and the others wait for a place.
    flows::until(|| async { (machine.begun().len() >= 4).then_some(()) }).await;
    hub.tasks.stop(hub.workspace, task, hub.command(), &hub.by).await.unwrap();
    let begun = machine.begun().len();
    assert_eq!(cancelled(&hub, task).await, 90, "each of them hangs or waits");
    assert!(begun < 90 && machine.begun().len() == begun, "{begun} and then {}", machine.begun().len());
    hub.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_task_that_waits_for_a_slot_holds_no_worker() {
    let folder = tempfile::tempdir().unwrap();
    // Two places in all: one is taken by a hanging task, and none by those that wait behind it.
    let (hub, slow) = hub(&folder, 2).await;
    let hangs = many_agents(", max_concurrency: 1").replace("'go'", "'hang for ever'");
    hub.flow("hangs", [("workflow.yaml", &*hangs), ("agents.yaml", AGENTS)]).await;
    hub.flow("many", [("workflow.yaml", &*many_agents("")), ("agents.yaml", AGENTS)]).await;
    let stuck = hub.create("hangs", json!({ "value": 1, "count": 30 })).await.unwrap();
    flows::until(|| async { (slow.begun("hang") == 1).then_some(()) }).await;
    let view = hub.run("many", json!({ "value": 1, "count": 3 })).await;
    assert_eq!(view.status, Status::Success);
    assert_eq!(slow.begun("hang"), 1, "the others wait for their slot");
    hub.tasks.stop(hub.workspace, stuck, hub.command(), &hub.by).await.unwrap();
    hub.finished(stuck).await;
    hub.close().await;
}
