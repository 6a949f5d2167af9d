//! The engine as a whole (spec 002 §1, §9): one flow with all features, on a real hub, and the record of its run.
#![expect(clippy::unwrap_used, reason = "tests")]

use domain::{Code, Status, TaskId, TaskPhase};
use engine::{RerunOptions, TaskFilter};
use flow::{Flow, flow::Op, graph::Role};
use flows::{Hub, until};
use serde_json::json;
use std::{collections::BTreeMap, sync::Arc};
use telemetry::{Stage, StageKind};
use uuid::Uuid;

/// Checks a request, has an agent look something up, works on parts of it in parallel, and joins their results.
const WORKFLOW: &str = r#"
nodes:
  - {id: begin, kind: deterministic, role: start, context: none, schema_in: request, remember: {store: project, key: last, tags: [asked]}}
  - {id: judge, kind: deterministic, role: decision, context: none, op: {expr: "size(input.parts) > 0 ? 'some' : 'none'"}}
  - {id: nothing, kind: deterministic, role: exit, context: none, always_fail: true}
  - {id: find, kind: agent, role: linear, agent_id: finder, context: earlier, tools: [look], prompt: "{{outputs.begin.topic}}", schema_out: found}
  - {id: services, kind: deterministic, role: branch, context: none}
  - {id: good, kind: deterministic, role: linear, context: none, op: {expr: "input.text + '!'"}}
  - {id: bad, kind: deterministic, role: linear, context: none, op: {expr: "input.nowhere"}}
  - {id: either, kind: deterministic, role: merge, context: none, merge: {strategy: all, on_failure: ignore}, op: {function: "merge:outputs"}}
  - {id: parts, kind: deterministic, role: split, context: none, split: {over: "outputs.begin.parts"}}
  - {id: double, kind: deterministic, role: linear, context: none, op: {expr: "input * 2"}}
  - {id: join, kind: deterministic, role: merge, context: none, merge: {strategy: all, on_failure: include}, op: {function: "merge:outputs"}}
  - {id: tell, kind: deterministic, role: linear, context: none, op: {expr: "{'said': outputs.either[0], 'doubled': input}"}, schema_out: told}
  - {id: done, kind: deterministic, role: exit, context: none}
edges:
  - {from: begin, to: judge}
  - {from: judge, to: find, label: some}
  - {from: judge, to: nothing, label: none}
  - {from: find, to: services}
  - {from: services, to: good}
  - {from: services, to: bad}
  - {from: good, to: either}
  - {from: bad, to: either}
  - {from: either, to: parts}
  - {from: parts, to: double}
  - {from: double, to: join}
  - {from: join, to: tell}
  - {from: tell, to: done}
"#;
const FILES: [(&str, &str); 7] = [
    ("workflow.yaml", WORKFLOW),
    ("agents.yaml", "agents: [{id: finder, system: You find things.}]"),
    ("tools.yaml", "tools: [{id: look, entrypoint: 'fs:read_file', permissions: {root: /projects}}]"),
    (
        "memory.yaml",
        "context_profiles: [{id: earlier, max_tokens: 500, retrieval_policy: recency, sources: [{store: project}]}]",
    ),
    (
        "schemas/request.json",
        r#"{"type": "object", "required": ["topic", "parts"], "properties": {"topic": {"type": "string"}, "parts": {"type": "array", "items": {"type": "integer"}}}}"#,
    ),
    ("schemas/found.json", r#"{"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}}"#),
    ("schemas/told.json", r#"{"type": "object", "required": ["said", "doubled"]}"#),
];
const SCRIPT: &str = r#"
rules:
- steps:
  - calls: [{tool: look, args: {path: /projects/bees.md}}]
  - {text: '{"text": "bees hum"}'}
"#;

async fn open(folder: &tempfile::TempDir) -> Hub {
    let hub = Hub::open(folder, SCRIPT).await;
    hub.write("/projects/bees.md", "They hum.").await;
    hub.flow("whole", FILES).await;
    hub
}

/// The stages of a task and of all below it, each with the task that it is of.
async fn stages(hub: &Hub, root: TaskId) -> Vec<(TaskId, Stage)> {
    let (mut found, mut open) = (Vec::new(), vec![root]);
    while let Some(task) = open.pop() {
        let history = telemetry::history(&hub.tasks, hub.workspace, task, 0, 1000).await.unwrap();
        found.extend(history.stages.into_iter().map(|stage| (task, stage)));
        let children = hub.tasks.children(hub.workspace, task, &TaskFilter::default(), 200, None).await.unwrap();
        open.extend(children.tasks.iter().map(|child| child.task_id));
    }
    found
}

fn stage<'a>(stages: &'a [(TaskId, Stage)], node: &str) -> &'a Stage {
    &stages.iter().find(|(_, stage)| stage.node.as_str() == node).unwrap_or_else(|| panic!("{node} did not run")).1
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s1_a_folder_of_manifests_is_all_that_the_engine_needs_to_do_everything_it_is_for() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(&folder).await;
    let view = hub.run("whole", json!({ "topic": "bees", "parts": [3, 1, 2] })).await;
    // Branches and splits run in parallel, and merges join them in the order of the manifest.
    assert_eq!(view.output, Some(json!({ "said": "bees hum!", "doubled": [6, 2, 4] })));
    // One clone failed and its merge goes on without it: the task came to its end with a part of its work.
    assert_eq!(view.status, Status::Partial, "{:?}", view.error);
    let stages = stages(&hub, view.task_id).await;
    let failed = stage(&stages, "bad");
    assert!(failed.status == Some(Status::Failure) && failed.error.is_some(), "errors are structured: {failed:?}");
    // Context is put together by the profile, and recorded; tools are those of the node, within their root.
    let find = stage(&stages, "find");
    assert_eq!(find.context.as_ref().unwrap().items[0].key, "last");
    let answer = find.conversation[0].reply.as_ref().unwrap();
    assert_eq!(answer.tools.iter().map(|used| used.tool.as_str()).collect::<Vec<_>>(), ["look"]);
    // Schemas are enforced at both ends, and an exit that always fails does so.
    let refused = hub.run("whole", json!({ "topic": "bees" })).await;
    assert!(refused.status == Status::Failure && refused.error.unwrap().message.contains("schema request"));
    assert_eq!(hub.run("whole", json!({ "topic": "bees", "parts": [] })).await.status, Status::Failure);
    hub.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s9_nothing_happens_that_the_manifests_do_not_say() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(&folder).await;
    let view = hub.run("whole", json!({ "topic": "bees", "parts": [3, 1, 2] })).await;
    let flow = hub.tasks.flows().load(hub.workspace, "whole").await.unwrap();
    let stages = stages(&hub, view.task_id).await;
    for (_, stage) in &stages {
        follows_the_manifest(&flow, stage);
    }
    // Each node ran as often as the graph has it run, and no merge twice.
    let mut runs: BTreeMap<&str, usize> = BTreeMap::new();
    stages.iter().for_each(|(_, stage)| *runs.entry(stage.node.as_str()).or_default() += 1);
    let expected = flow.nodes.keys().filter(|node| node.as_str() != "nothing").map(|node| match node.as_str() {
        "double" => ("double", 3),
        other => (other, 1),
    });
    assert_eq!(runs, expected.collect());

    // The record is whole: run again from it, the same happens byte for byte.
    let again = TaskId(Uuid::now_v7());
    hub.tasks.replay(hub.workspace, view.task_id, again, None, RerunOptions::default(), &hub.by).await.unwrap();
    let replayed = until(|| async {
        let view = hub.tasks.get(hub.workspace, again).await.unwrap();
        (view.phase == TaskPhase::Finished).then_some(view)
    })
    .await;
    assert_eq!((replayed.status, &replayed.output), (view.status, &view.output));
    let (one, other) =
        (telemetry::trace(&hub.tasks, hub.workspace, view.task_id), telemetry::trace(&hub.tasks, hub.workspace, again));
    assert_eq!(one.await.unwrap(), other.await.unwrap());
    let metadata = hub.tasks.metadata(hub.workspace, view.task_id).await.unwrap();
    assert_eq!(metadata.manifests.len(), FILES.len(), "and the hash of every file is known");
    hub.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s10_7_a_re_run_pauses_where_it_is_told_to_and_repeats_the_run_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(&folder).await;
    let view = hub.run("whole", json!({ "topic": "bees", "parts": [3, 1, 2] })).await;
    let (again, unknown) = (TaskId(Uuid::now_v7()), TaskId(Uuid::now_v7()));
    let before = |node: &str| RerunOptions { breakpoints: vec![node.into()], ..RerunOptions::default() };
    let refused = hub.tasks.replay(hub.workspace, view.task_id, unknown, None, before("nowhere"), &hub.by).await;
    assert_eq!(refused.unwrap_err().code, Code::InvalidArgument);
    assert_eq!(hub.tasks.get(hub.workspace, unknown).await.unwrap_err().code, Code::NotFound);

    hub.tasks.replay(hub.workspace, view.task_id, again, None, before("tell"), &hub.by).await.unwrap();
    let paused = hub.until(again, |view| view.phase == TaskPhase::Paused).await;
    assert!(paused.output.is_none(), "it has not ended");
    hub.tasks.resume(hub.workspace, again, false, hub.command(), &hub.by).await.unwrap();
    assert_eq!(hub.finished(again).await.output, view.output);
    let trace = async |task| telemetry::trace(&hub.tasks, hub.workspace, task).await.unwrap();
    assert_eq!(trace(again).await, trace(view.task_id).await);
    hub.close().await;
}

/// A stage did nothing that its node may not do.
fn follows_the_manifest(flow: &Arc<Flow>, stage: &Stage) {
    let name = stage.node.as_str();
    let (node, place) = (&flow.nodes[&stage.node], flow.graph.node(&stage.node).unwrap());
    let drawn: Vec<_> = place.out.iter().map(|edge| &edge.to).collect();
    if let Some(to) = &stage.routed_to {
        assert!(drawn.contains(&to), "{name} went to {to}, and no edge does");
    }
    if let Some(fork) = &stage.fork {
        assert_eq!(fork.to.iter().collect::<Vec<_>>(), drawn, "{name}");
        assert!(node.role.forks(), "{name} has children");
    }
    if let Some(merge) = &stage.merge {
        assert!(node.role == Role::Merge && !merge.taken.is_empty(), "{name}: {merge:?}");
    }
    let of_agent = stage.conversation.iter().filter_map(|round| round.reply.as_ref()).flat_map(|reply| &reply.tools);
    for used in stage.tools.iter().chain(of_agent) {
        assert!(node.tools.contains(&used.tool), "{name} used {}, which it does not list", used.tool);
    }
    let is_agent = matches!(node.op, Op::Agent { .. });
    assert_eq!(!stage.conversation.is_empty(), is_agent, "{name} asked a model");
    assert_eq!(stage.kind == Some(StageKind::Agent), is_agent, "{name}");
    assert_eq!(stage.context.is_some(), name == "find", "{name} was given context without a profile for it");
    if node.role == Role::Exit {
        assert_eq!(*stage.input, stage.output, "an exit only presents");
    }
    let by_itself = matches!(node.op, Op::Identity) && node.role == Role::Linear;
    assert!(!by_itself || *stage.input == stage.output, "{name} changed a value without being told to");
    assert!(stage.started_at.is_some() && stage.finished_at.is_some() && stage.metrics.is_some(), "{name}");
}
