//! Many tasks at once, and what a stage can fail of, on a real hub.
#![expect(clippy::unwrap_used, reason = "tests")]

use domain::Status;
use flows::Hub;
use serde_json::json;

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
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s10_8_tasks_that_run_at_once_see_nothing_of_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, "rules: []").await;
    hub.flow("echo", [("workflow.yaml", ECHO), ("memory.yaml", MEMORY)]).await;
    let mut tasks = Vec::new();
    for number in 0..30 {
        let word = format!("word {number}");
        tasks.push((hub.create("echo", json!({ "word": word })).await.unwrap(), word));
    }
    for (task, word) in tasks {
        let view = hub.finished(task).await;
        assert_eq!(view.output, Some(json!({ "said": word, "seen": [word] })));
        assert_eq!((view.status, view.steps), (Status::Success, 3));
    }
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
