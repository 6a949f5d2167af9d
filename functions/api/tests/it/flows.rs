//! Flows through the door: listed, read, checked, drawn; their schemas.

use crate::support::Door;
use serde_json::json;

/// A flow that normalises, chooses by the input, and ends.
pub const WORKFLOW: &str = "\
nodes:
  - id: begin
    kind: deterministic
    role: start
    context: none
  - id: choose
    kind: deterministic
    role: decision
    context: none
    op: {expr: '{\"selected_edge\": input.good ? \"yes\" : \"no\"}'}
  - id: good
    kind: deterministic
    role: exit
    context: none
  - id: bad
    kind: deterministic
    role: exit
    context: none
    always_fail: true
edges:
  - {from: begin, to: choose}
  - {from: choose, to: good, label: 'yes'}
  - {from: choose, to: bad, label: 'no'}
";

/// A workspace with a flow of this name and text.
pub async fn with_flow(door: &Door, name: &str, workflow: &str) -> String {
    let workspace = door.workspace().await;
    door.file(&workspace, &format!("/system/flows/{name}/workflow.yaml"), workflow).await;
    workspace
}

#[tokio::test]
async fn s8_a_flow_is_listed_read_and_drawn() {
    let door = Door::open();
    let workspace = with_flow(&door, "review", WORKFLOW).await;
    door.file(&workspace, "/system/flows/broken/workflow.yaml", "nodes: []\nedges: []\n").await;

    let listed = door.get(&format!("{workspace}/flows")).await.is(200).json;
    let named = |name: &str| {
        let flows = listed["flows"].as_array().unwrap();
        flows.iter().find(|flow| flow["name"] == name).cloned().unwrap_or_else(|| panic!("{listed}"))
    };
    assert!(named("broken")["faults"].as_u64().unwrap() > 0, "{listed}");
    assert_eq!(named("review")["nodes"], 4);

    let flow = door.get(&format!("{workspace}/flows/review")).await.is(200).json;
    assert_eq!(flow["default_start"], "begin");
    assert_eq!(flow["hash"], named("review")["hash"]);
    assert_eq!(flow["nodes"][1]["role"], "decision");
    assert_eq!(flow["edges"][2], json!({ "from": "choose", "to": "bad", "label": "no" }));

    let faults = door.get(&format!("{workspace}/flows/broken")).await.refuses(422, "UNPROCESSABLE").json;
    assert!(faults["error"]["details"]["faults"][0]["file"].is_string(), "{faults}");
    door.get(&format!("{workspace}/flows/nothing")).await.refuses(404, "NOT_FOUND");
    door.get(&format!("{workspace}/flows/..%2Fagents")).await.refuses(400, "INVALID_ARGUMENT");

    for (format, kind, begin) in [
        ("svg", "image/svg+xml", "<svg"),
        ("dot", "text/vnd.graphviz", "digraph"),
        ("mermaid", "text/vnd.mermaid", "flowchart"),
    ] {
        let drawn = door.get(&format!("{workspace}/flows/review/graph?format={format}")).await.is(200);
        assert!(drawn.header("content-type").starts_with(kind));
        let text = String::from_utf8_lossy(&drawn.bytes).into_owned();
        assert!(text.contains(begin) && text.contains("choose"), "{text}");
    }
    door.get(&format!("{workspace}/flows/review/graph?format=gif")).await.refuses(400, "INVALID_ARGUMENT");
}

#[tokio::test]
async fn s8_a_check_reports_all_faults_of_saved_or_given_manifests() {
    let door = Door::open();
    let workspace = with_flow(&door, "review", WORKFLOW).await;
    let check = format!("{workspace}/flows/review/check");
    let fine = door.json("POST", &check, json!({})).await.is(200).json;
    assert_eq!((fine["ok"].as_bool(), fine["faults"].as_array().map(Vec::len)), (Some(true), Some(0)));

    let text = WORKFLOW.replace("role: decision", "role: decision\n    contxt: none").replace("to: bad", "to: worse");
    let given = json!({ "files": { "workflow.yaml": text } });
    let report = door.json("POST", &check, given).await.is(200).json;
    assert_eq!(report["ok"], false);
    let faults = report["faults"].as_array().unwrap();
    assert!(faults.len() >= 2, "{report:#}");
    assert!(faults.iter().all(|fault| fault["line"].as_u64() > Some(0)), "{report:#}");
    assert!(report.to_string().contains("context"), "the nearest known key is told: {report:#}");
    // Nothing of it was saved.
    assert_eq!(door.json("POST", &check, json!({})).await.is(200).json["ok"], true);
}

#[tokio::test]
async fn s10_3_an_evaluation_is_begun_listed_and_read() {
    let door = Door::open();
    let workspace = with_flow(&door, "review", WORKFLOW).await;
    let begin = format!("{workspace}/flows/review/evaluations");
    door.json("POST", &begin, json!({})).await.refuses(422, "UNPROCESSABLE");
    let suites = "suites:\n  - name: first\n    cases:\n      - id: right\n        input: {good: true}\n        assertions: [{type: status, expected: success}]\n";
    door.file(&workspace, "/system/flows/review/evaluations.yaml", suites).await;
    door.json("POST", &begin, json!({ "suites": ["nothing"] })).await.refuses(400, "INVALID_ARGUMENT");
    door.json("POST", &begin, json!({ "cases": ["first/wrong"] })).await.refuses(400, "INVALID_ARGUMENT");
    let begun = door.keyed("e1", &begin, json!({ "suites": ["first"] })).await.is(202);
    let id = begun.text("evaluation_id");
    assert!(begun.header("location").ends_with(&format!("/evaluations/{id}")));
    assert_eq!(begun.json["total"], 1);
    assert!(begun.json["selection"].get("cases").is_none(), "earlier versions know no such key");
    assert_eq!(door.keyed("e1", &begin, json!({ "suites": ["first"] })).await.is(202).text("evaluation_id"), id);
    let listed = door.get(&format!("{workspace}/evaluations")).await.is(200).json;
    assert_eq!(listed["evaluations"][0]["evaluation_id"], *id);
    let one = format!("{workspace}/evaluations/{id}");
    assert_eq!(door.get(&one).await.is(200).json["flow"]["name"], "review");
    let xml = door.get(&format!("{one}?format=junit")).await.is(200);
    assert_eq!(xml.header("content-type"), "application/xml");
    assert!(String::from_utf8_lossy(&xml.bytes).contains("the evaluation still runs"));
    door.get(&format!("{one}?format=odd")).await.refuses(400, "INVALID_ARGUMENT");
    let stopped = door.json("POST", &format!("{one}/stop"), json!({})).await.is(200).json;
    assert_eq!((&stopped["status"], &stopped["error"]["code"]), (&json!("finished"), &json!("CANCELLED")));
    assert_eq!(door.json("POST", &format!("{one}/stop"), json!({})).await.is(200).json, stopped);
    door.json("POST", &format!("{workspace}/evaluations/{}/stop", uuid::Uuid::nil()), json!({}))
        .await
        .refuses(404, "NOT_FOUND");
}

#[tokio::test]
async fn schemas_of_every_manifest_are_served_to_editors() {
    let door = Door::open();
    let all = door.get("/api/v1/flow-schemas").await.is(200).json;
    let names: Vec<&String> = all["schemas"].as_object().unwrap().keys().collect();
    assert!(names.len() >= 15, "{names:?}");
    for name in names {
        let one = door.get(&format!("/api/v1/flow-schemas/{name}.yaml")).await.is(200);
        assert_eq!(one.header("content-type"), "application/schema+json");
        let schema: serde_json::Value = serde_json::from_slice(&one.bytes).unwrap();
        assert_eq!(schema, all["schemas"][name]);
        jsonschema::meta::validate(&schema).unwrap();
    }
    door.get("/api/v1/flow-schemas/nothing").await.refuses(404, "NOT_FOUND");
}
