//! Many tasks at once, what limits them, and what a stage can fail of, on a real hub.
#![expect(clippy::unwrap_used, reason = "tests")]

use domain::{Code, Status, TaskId, TaskPhase};
use flow::NewTask;
use flows::{Hub, until};
use serde_json::{Value, json};
use uuid::Uuid;

const ECHO: &str = r#"
nodes:
  - {id: begin, kind: deterministic, role: start, context: none, remember: {store: task, key: said}}
  - {id: work, kind: deterministic, role: linear, context: mine, op: {expr: "{'said': input.word, 'seen': context.items.map(item, item.content.word)}"}}
  - {id: end, kind: deterministic, role: exit, context: none}
edges: [{from: begin, to: work}, {from: work, to: end}]
"#;
const MEMORY: &str = "
context_profiles:
  - {id: mine, max_tokens: 500, retrieval_policy: recency, sources: [{store: task}]}
";
const WAITS: &str = r#"
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: ask, kind: deterministic, role: linear, context: none, ask: {approve: "Go on?"}}
  - {id: end, kind: deterministic, role: exit, context: none}
edges: [{from: begin, to: ask}, {from: ask, to: end}]
"#;

async fn create(hub: &Hub, flow: &str, input: Value) -> Result<TaskId, domain::Error> {
    let task = TaskId(Uuid::now_v7());
    let new = NewTask { input, ..NewTask::default() };
    hub.tasks.create(hub.workspace, task, flow, new, &hub.by).await.map(|accepted| accepted.task_id)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s10_8_tasks_that_run_at_once_see_nothing_of_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, "rules: []").await;
    hub.flow("echo", [("workflow.yaml", ECHO), ("memory.yaml", MEMORY)]).await;
    let mut tasks = Vec::new();
    for number in 0..30 {
        let word = format!("word {number}");
        tasks.push((create(&hub, "echo", json!({ "word": word })).await.unwrap(), word));
    }
    for (task, word) in tasks {
        let view = until(|| async {
            let view = hub.tasks.get(hub.workspace, task).await.unwrap();
            (view.phase == TaskPhase::Finished).then_some(view)
        })
        .await;
        assert_eq!(view.output, Some(json!({ "said": word, "seen": [word] })));
        assert_eq!((view.status, view.steps), (Status::Success, 3));
    }
    hub.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s10_12_a_flow_that_has_enough_to_do_is_refused_with_a_time_to_come_again() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, "rules: []").await;
    hub.flow("waits", [("workflow.yaml", WAITS), ("execution.yaml", "max_queued: 2\nmax_concurrency: 1\n")]).await;
    let first = create(&hub, "waits", Value::Null).await.unwrap();
    create(&hub, "waits", Value::Null).await.unwrap();
    let refused = create(&hub, "waits", Value::Null).await.unwrap_err();
    assert_eq!(refused.code, Code::RateLimited);
    assert!(refused.details.contains_key("retry_after_s"), "{refused:?}");
    let answers = json!({ "approved": true }).as_object().unwrap().clone();
    let command = domain::CommandId(Uuid::now_v7());
    hub.tasks.answer(hub.workspace, first, "ask", answers, command, &hub.by).await.unwrap();
    // Room again, as soon as one has ended.
    until(|| async { create(&hub, "waits", Value::Null).await.ok() }).await;
    hub.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s7_1_a_stage_fails_of_schemas_of_routes_and_of_misused_tools_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, "rules: []").await;
    let schema = r#"{ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] }"#;
    let flow = |middle: &str| {
        format!(
            "nodes:
  - {{id: begin, kind: deterministic, role: start, context: none}}
  - {middle}
  - {{id: end, kind: deterministic, role: exit, context: none}}
  - {{id: other, kind: deterministic, role: exit, context: none}}
edges: [{{from: begin, to: middle}}, {{from: middle, to: end, label: one}}, {{from: middle, to: other, label: two}}]
"
        )
    };
    let linear = |middle: &str| {
        flow(middle)
            .replace("  - {id: other, kind: deterministic, role: exit, context: none}\n", "")
            .replace(", {from: middle, to: other, label: two}", "")
    };
    let tools =
        "tools:\n  - {id: reader, type: function, entrypoint: 'fs:read_file', permissions: {root: /projects/mine}}\n";
    let cases = [
        (
            "input",
            linear("{id: middle, kind: deterministic, role: linear, context: none, schema_in: number}"),
            "does not fit the schema number",
        ),
        (
            "output",
            linear(
                "{id: middle, kind: deterministic, role: linear, context: none, op: {expr: \"{'n': 'x'}\"}, schema_out: number}",
            ),
            "does not fit the schema number",
        ),
        (
            "route",
            flow(
                "{id: middle, kind: deterministic, role: decision, context: none, op: {expr: \"{'selected_edge': 'three'}\"}}",
            ),
            "selected no edge",
        ),
        (
            "misuse",
            linear(
                "{id: middle, kind: deterministic, role: linear, context: none, tools: [reader], op: {tool: reader, args: {path: /projects/yours/secret.md}}}",
            ),
            "/projects/mine",
        ),
    ];
    for (name, workflow, told) in cases {
        let files = [("workflow.yaml", workflow.as_str()), ("schemas/number.json", schema), ("tools.yaml", tools)];
        hub.flow(name, files).await;
        let view = hub.run(name, json!({ "text": "no number" })).await;
        let error = view.error.expect("it says why");
        assert_eq!(view.status, Status::Failure, "{name}");
        assert!(error.message.contains(told) || error.to_string().contains(told), "{name}: {error:?}");
    }
    hub.close().await;
}
