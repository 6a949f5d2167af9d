//! The whole record of a run: merges that end their task, answers of tools, prompts of agents (spec 002 §2.1, §6, §10.1).
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use domain::{Status, TaskEvent};
use engine::artifact::{ArtifactFilter, ArtifactKind, Artifacts};
use flows::Hub;
use serde_json::{Value, json};

const SPLIT: &str = r#"
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: each, kind: deterministic, role: split, context: none, split: {over: input}}
  - {id: work, kind: deterministic, role: linear, context: none, op: {expr: "10 / input"}}
  - {id: join, kind: deterministic, role: merge, context: none, merge: {strategy: all, on_failure: fail}}
  - {id: end, kind: deterministic, role: exit, context: none}
edges: [{from: begin, to: each}, {from: each, to: work}, {from: work, to: join}, {from: join, to: end}]
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s6_a_merge_that_ends_its_task_is_a_stage_with_arrivals_failures_and_reasons() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, "rules: []").await;
    hub.flow("split", [("workflow.yaml", SPLIT)]).await;
    let view = hub.run("split", json!([1, 0, 2])).await;
    assert_eq!(view.status, Status::Failure);
    let history = telemetry::history(&hub.tasks, hub.workspace, view.task_id, 0, 100).await.unwrap();
    let stage = history.stages.last().unwrap();
    assert_eq!((stage.node.as_str(), stage.status), ("join", Some(Status::Failure)));
    assert_eq!(stage.error, view.error);
    let merge = stage.merge.as_ref().unwrap();
    assert_eq!(merge.taken, ["each/work[0]", "each/work[2]"]);
    assert_eq!(merge.failed.iter().map(|child| child.as_str()).collect::<Vec<_>>(), ["each/work[1]"]);
    assert_eq!(stage.input.as_array().unwrap().len(), 2, "the arrivals are its input");
    // Why it failed says of each child which it is, why, and where to look.
    let error = view.error.unwrap();
    let failed = &error.details["failed"];
    let child = hub.children(view.task_id).await.into_iter().find(|child| child.status == Status::Failure).unwrap();
    assert_eq!(failed[0]["child"], "each/work[1]");
    assert_eq!(failed[0]["task_id"], json!(child.task_id));
    assert_eq!(failed[0]["code"], json!(child.error.as_ref().unwrap().code));
    assert_eq!(failed[0]["message"], json!(child.error.unwrap().message));
    assert!(error.message.contains("each/work[1]"), "{}", error.message);
    assert!(error.hint.unwrap().contains(&child.task_id.to_string()));
    let trace = telemetry::trace(&hub.tasks, hub.workspace, view.task_id).await.unwrap();
    assert!(trace.contains(r#""merged":"join""#), "{trace}");
    hub.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s6_a_failed_split_tells_of_some_of_its_many_failures_and_how_many_more_there_are() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, "rules: []").await;
    hub.flow("split", [("workflow.yaml", SPLIT)]).await;
    let view = hub.run("split", json!(vec![0; 30])).await;
    let error = view.error.unwrap();
    assert_eq!(error.details["failed"].as_array().unwrap().len(), 10);
    assert_eq!(error.details["more"], 20);
    hub.close().await;
}

const CLERK: &str = "
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: look, kind: deterministic, role: linear, context: none, tools: [read], op: {tool: read, args: {path: /projects/long.md}}}
  - {id: work, kind: agent, role: linear, agent_id: clerk, context: none, prompt: 'Sum up: {{input}}', tools: [read]}
  - {id: end, kind: deterministic, role: exit, context: none}
edges: [{from: begin, to: look}, {from: look, to: work}, {from: work, to: end}]
";
const FILES: [(&str, &str); 4] = [
    ("workflow.yaml", CLERK),
    ("agents.yaml", "agents: [{id: clerk, system: You are a clerk.}]"),
    ("tools.yaml", "tools: [{id: read, entrypoint: 'fs:read_file'}]"),
    ("artifacts.yaml", "nodes: [look, work]"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s10_1_results_of_tools_and_prompts_are_kept_whole_and_history_shows_their_beginning() {
    let folder = tempfile::tempdir().unwrap();
    let call = json!({ "calls": [{ "tool": "read", "args": { "path": "/projects/long.md" } }] });
    let script = json!({ "rules": [{ "steps": [call, { "text": "long" }] }] });
    let hub = Hub::open(&folder, &script.to_string()).await;
    let text: String = (0..700).map(|line| format!("line {line}\n")).collect();
    hub.write("/projects/long.md", &text).await;
    hub.flow("clerk", FILES).await;
    let view = hub.run("clerk", Value::Null).await;
    assert_eq!(view.status, Status::Success, "{:?}", view.error);

    let history = telemetry::history(&hub.tasks, hub.workspace, view.task_id, 0, 100).await.unwrap();
    let stage = |name: &str| history.stages.iter().find(|stage| stage.node.as_str() == name).unwrap();
    let (looked, worked) = (stage("look"), &stage("work").conversation[0]);
    assert!(looked.tools[0].output.len() < 5_000 && looked.tools[0].output.ends_with('…'));
    assert!(worked.prompt.starts_with("Sum up: ") && worked.prompt.len() < 5_000, "{}", worked.prompt);

    // The archive is made after the task has ended.
    hub.until(view.task_id, |_| true).await;
    let artifacts = Artifacts::new(hub.table.clone(), hub.workspaces.clone());
    let found = flows::until(|| async {
        let wanted = ArtifactFilter { task: Some(view.task_id), ..ArtifactFilter::default() };
        let page = artifacts.find(hub.workspace, &wanted, 200, None).await.unwrap();
        (!page.artifacts.is_empty()).then_some(page.artifacts)
    })
    .await;
    let content = async |kind: ArtifactKind, node: &str| {
        let of = found.iter().find(|artifact| artifact.kind == kind && artifact.node == Some(node.into()));
        artifacts.read(hub.workspace, of.unwrap_or_else(|| panic!("{node} has no {kind:?}"))).await.unwrap()
    };
    for node in ["look", "work"] {
        let result = content(ArtifactKind::ToolResult, node).await;
        let output = result["output"].as_str().unwrap();
        assert!(output.contains("line 699") && !output.ends_with('…'), "{node}: {} bytes", output.len());
    }
    let prompt = content(ArtifactKind::Prompt, "work").await;
    assert!(prompt["prompt"].as_str().unwrap().contains("line 699"));
    assert_eq!(prompt["chat_id"], json!(worked.chat));
    // Neither node has a schema, and artifacts.yaml names both.
    assert_eq!(content(ArtifactKind::Output, "work").await, json!("long"));
    hub.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s10_1_artifacts_are_found_over_all_tasks_by_flow_node_and_time() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, "rules: []").await;
    let named = |node: &str| format!("nodes: [{node}]");
    for (flow, node) in [("one", "work"), ("two", "begin")] {
        hub.flow(flow, [("workflow.yaml", SPLIT), ("artifacts.yaml", named(node).as_str())]).await;
    }
    let artifacts = Artifacts::new(hub.table.clone(), hub.workspaces.clone());
    let (one, two) = (hub.run("one", json!([1, 2])).await, hub.run("two", json!([1])).await);
    let find = async |wanted: ArtifactFilter, limit: usize| {
        let (mut found, mut cursor) = (Vec::new(), None);
        loop {
            let page = artifacts.find(hub.workspace, &wanted, limit, cursor).await.unwrap();
            assert!(page.artifacts.len() <= limit);
            found.extend(page.artifacts.into_iter().filter(|artifact| artifact.kind == ArtifactKind::Output));
            cursor = page.next_cursor;
            if cursor.is_none() {
                return found;
            }
        }
    };
    let of = |flow: &str| ArtifactFilter { flow: Some(flow.into()), ..ArtifactFilter::default() };
    let node = |flow: &str, node: &str| ArtifactFilter { node: Some(node.into()), ..of(flow) };
    let all = flows::until(|| async {
        let all = find(ArtifactFilter::default(), 1).await;
        (all.len() == 3).then_some(all)
    })
    .await;
    assert!(all.is_sorted_by_key(|artifact| artifact.at));
    assert_eq!(find(node("one", "work"), 1).await.len(), 2);
    assert_eq!(find(node("one", "begin"), 10).await.len(), 0);
    let begun = find(of("two"), 10).await;
    assert_eq!((begun.len(), begun[0].task_id), (1, two.task_id));
    let before = ArtifactFilter { until: Some(two.created_at), ..ArtifactFilter::default() };
    assert!(find(before, 10).await.iter().all(|artifact| artifact.task_id != two.task_id));
    let since = ArtifactFilter { since: Some(two.created_at), ..of("two") };
    assert_eq!(find(since, 10).await.len(), 1);
    let unsaid = ArtifactFilter { node: Some("work".into()), ..ArtifactFilter::default() };
    assert!(artifacts.find(hub.workspace, &unsaid, 10, None).await.unwrap_err().hint.unwrap().contains("flow="));
    assert_eq!(one.status, Status::Success);
    hub.close().await;
}

/// The event of a merge that fails its task names those that failed; the event of the task's end, which follows, has the error.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s6_the_events_of_a_merge_that_ends_its_task_tell_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, "rules: []").await;
    hub.flow("split", [("workflow.yaml", SPLIT)]).await;
    let view = hub.run("split", json!([0])).await;
    let actor = engine::machine::actor_id(hub.workspace, view.task_id);
    let log = actor::read_after::<TaskEvent>(&*hub.table, &actor, 0, 100).await.unwrap();
    let events: Vec<&TaskEvent> = log.entries.iter().flat_map(|entry| &entry.events).collect();
    let told = events.iter().filter_map(|event| match event {
        TaskEvent::Merged { node, failed, .. } => {
            let failed: Vec<&str> = failed.iter().map(|child| child.as_str()).collect();
            Some(json!({ "merged": node, "failed": failed }))
        }
        TaskEvent::Finished { status, error, .. } => Some(json!({ "finished": status, "error": error })),
        _ => None,
    });
    let merged = json!({ "merged": "join", "failed": ["each/work[0]"] });
    assert_eq!(told.collect::<Vec<_>>(), [merged, json!({ "finished": "failure", "error": view.error })]);
    assert!(view.error.is_some_and(|error| error.details["failed"][0]["child"] == "each/work[0]"));
    hub.close().await;
}

/// A drawing of a run of thousands looks at some of them: at those that failed before the others, and says that there are more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s10_7_a_run_that_is_too_large_to_look_at_is_painted_with_its_failures_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, "rules: []").await;
    hub.flow("split", [("workflow.yaml", SPLIT)]).await;
    let view = hub.run("split", json!([1, 1, 1, 1, 1, 0])).await;
    let flow = hub.tasks.flows().by_hash(hub.workspace, &view.flow).await.unwrap();
    let visits_of_work = async |most: usize| {
        let run_visits = hub.tasks.run_visits(&flow, hub.workspace, view.task_id, most).await.unwrap();
        let work = run_visits[&"work".into()].clone();
        (work.visits, work.status, work.more, run_visits[&"each".into()].more)
    };
    assert_eq!(visits_of_work(100).await, (6, Some(Status::Failure), false, false));
    assert_eq!(visits_of_work(3).await, (2, Some(Status::Failure), true, false));
    let few = hub.tasks.run_visits(&flow, hub.workspace, view.task_id, 3).await.unwrap();
    assert!(flow::draw::mermaid(&flow, &few).contains("2+×"));
    hub.close().await;
}
