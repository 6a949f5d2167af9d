//! A hub whose tasks are observed: by a file and a collector, which never see a secret, and by the counters.

use crate::support::{LOG, Result, start};
use axum::{Router, body::Bytes, extract::State, http::Uri};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::sync::Arc;
use testkit::flows::APPROVAL;
use tokio::net::TcpListener;

const WORKFLOW: &str = r"
nodes:
  - {id: begin, kind: deterministic, role: start, default_start: true, context: none}
  - {id: each, kind: deterministic, role: split, context: none, split: {over: 'input.items'}}
  - {id: work, kind: deterministic, role: linear, context: none, op: {expr: 'input + input'}}
  - {id: gather, kind: deterministic, role: merge, context: none}
  - {id: done, kind: deterministic, role: exit, context: none}
edges:
  - {from: begin, to: each}
  - {from: each, to: work}
  - {from: work, to: gather}
  - {from: gather, to: done}
";
const PLUGINS: &str = r"
plugins:
  - {id: lines, type: json_lines, config: {path: lines.jsonl}}
  - {id: inside, type: webhook, config: {url: 'http://127.0.0.1:1/'}}
";
const PLANTED: &str = "planted-secret-words";

type Came = Arc<Mutex<Vec<(String, Value)>>>;

async fn take(State(came): State<Came>, uri: Uri, body: Bytes) {
    let body = serde_json::from_slice(&body).unwrap_or_default();
    came.lock().push((uri.path().to_owned(), body));
}

#[tokio::test]
async fn s10_10_a_task_that_has_ended_shows_its_memory_of_then_and_so_do_its_subtasks() -> Result {
    let data = tempfile::tempdir()?;
    let hub = start(data.path(), &[]).await?;
    let client = hub.client();
    let api = format!("/api/v1/workspaces/{}", client.workspace().await?);
    let workflow = WORKFLOW.replace("role: merge,", "role: merge, remember: {store: project, key: sums},");
    client.flow(&api, "numbers", &[("workflow.yaml", workflow.as_str())]).await?;
    let first = client.run(&api, "numbers", json!({ "items": [1] })).await?;
    client.until_settled().await?;
    client.run(&api, "numbers", json!({ "items": [2] })).await?;
    let root = first["task_id"].as_str().ok_or("no task_id")?;
    let children = client.get(&format!("{api}/tasks?parent={root}")).await?;
    let child = children["tasks"][0]["task_id"].as_str().ok_or("no subtask")?;
    for task in [root, child] {
        let memory = client.get(&format!("{api}/tasks/{task}/memory")).await?;
        assert_eq!(memory["items"][0]["content"][0]["output"], 2, "{memory}");
    }
    Ok(())
}

#[tokio::test]
async fn s6_a_hub_tells_its_observers_the_events_of_tasks_and_no_secret() -> Result {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let collector = format!("http://{}", listener.local_addr()?);
    let came = Came::default();
    let service = Router::new().fallback(take).with_state(came.clone());
    tokio::spawn(async move { axum::serve(listener, service).await });

    let data = tempfile::tempdir()?;
    let environment = [("OTEL_EXPORTER_OTLP_ENDPOINT", collector.as_str()), ("SOME_API_KEY", PLANTED)];
    let mut hub = start(data.path(), &environment).await?;
    let client = hub.client();
    let workspace = client.workspace().await?;
    let api = format!("/api/v1/workspaces/{workspace}");
    for (name, content) in [("workflow.yaml", WORKFLOW), ("plugins.yaml", PLUGINS)] {
        let path = format!("/system/flows/numbers/{name}");
        client.post(&format!("{api}/files"), json!({ "path": path, "content": content })).await?;
    }
    let new = json!({ "input": { "items": ["one", PLANTED] } });
    let made = client.post(&format!("{api}/flows/numbers/tasks"), new).await?;
    let task = made["task_id"].as_str().ok_or("no task_id")?;
    client.until(&format!("{api}/tasks/{task}"), |task| task["phase"] == "finished").await?;
    let counted = |metrics: &Value| {
        let line = "buildscale_tasks_finished_total{flow=\"numbers\",status=\"success\"} 3\n";
        metrics.as_str().is_some_and(|text| text.contains(line))
    };
    client.until("/metrics", counted).await?;
    // Waiting events are told before it ends.
    assert!(hub.terminate().await?.success());

    let text = std::fs::read_to_string(data.path().join("observers").join(&workspace).join("lines.jsonl"))?;
    let facts: Vec<Value> = text.lines().map(serde_json::from_str).collect::<std::result::Result<_, _>>()?;
    let done = facts.iter().filter(|fact| fact["event"] == "done" && fact["root_task_id"] == task).count();
    assert_eq!(done, 3, "the task and two subtasks");
    assert!(text.contains("[redacted]") && !text.contains(PLANTED));
    let came = came.lock();
    let spans = came.iter().filter(|(path, _)| path == "/v1/traces").map(|(_, body)| body.to_string());
    let spans: String = spans.collect();
    assert!(spans.contains("task numbers") && spans.contains("node gather") && !spans.contains(PLANTED), "{spans}");
    Ok(())
}

#[tokio::test]
async fn s10_4_tasks_are_counted_by_phase_also_after_a_restart() -> Result {
    let data = tempfile::tempdir()?;
    let mut hub = start(data.path(), &[]).await?;
    let client = hub.client();
    let place = client.place().await?;
    client.flow(&place, "approval", &[("workflow.yaml", APPROVAL)]).await?;
    let task = client.task(&place, "approval", json!({ "input": "it" })).await?;
    client.until(&task, |task| task["phase"] == "suspended").await?;
    let counts = |line: &'static str| move |metrics: &Value| metrics.as_str().is_some_and(|text| text.contains(line));
    let one = "buildscale_tasks{flow=\"approval\",phase=\"suspended\"} 1\n";
    for line in
        ["# TYPE buildscale_tasks gauge\n", "buildscale_build_info{version=", "process_start_time_seconds ", one]
    {
        client.until("/metrics", counts(line)).await?;
    }

    // It waits for a person: after a restart no worker drives it, and it is there.
    hub.kill().await?;
    hub.restart().await?;
    client.until("/metrics", counts(one)).await?;
    client.answer(&format!("{task}/answers/review"), json!({ "approved": true })).await?;
    client.until(&task, |task| task["phase"] == "finished").await?;
    client.until("/metrics", counts("buildscale_tasks{flow=\"approval\",phase=\"suspended\"} 0\n")).await?;
    Ok(())
}

#[tokio::test]
async fn a_log_that_is_asked_for_requests_has_a_line_for_each() -> Result {
    let data = tempfile::tempdir()?;
    std::fs::write(data.path().join(LOG), "")?;
    let mut hub = start(data.path(), &[("BUILDSCALE_LOG", "info,buildscale_api=debug")]).await?;
    let client = hub.client();
    client.place().await?;
    client.look("/api/v1/nowhere").await?.refuses(404, "NOT_FOUND")?;
    assert!(hub.terminate().await?.success());
    let log = std::fs::read_to_string(data.path().join(LOG))?;
    let lines: Vec<Value> = log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let answered = |method: &str, status: u16| {
        let is_it = |line: &&Value| {
            let (fields, span) = (&line["fields"], &line["span"]);
            fields["message"] == "answered" && fields["status"] == status && span["method"] == method
        };
        lines.iter().find(is_it).cloned().ok_or_else(|| format!("no {method} with {status} in {log}"))
    };
    let made = answered("POST", 201)?;
    assert_eq!(made["span"]["route"], "/api/v1/workspaces");
    assert!(made["span"]["request_id"].is_string() && made["fields"]["duration_us"].is_u64(), "{made}");
    answered("GET", 404)?;
    Ok(())
}

#[tokio::test]
async fn a_call_of_a_model_that_fails_is_logged_with_its_workspace_its_chat_and_its_model() -> Result {
    let data = tempfile::tempdir()?;
    let script = data.path().join("fails.yaml");
    std::fs::write(&script, "rules: [{steps: [{error: rejected}]}]")?;
    std::fs::write(data.path().join(LOG), "")?;
    let script = script.display().to_string();
    let mut hub = start(data.path(), &[("BUILDSCALE__AI__SCRIPT", script.as_str())]).await?;
    let client = hub.client();
    let place = client.place().await?;
    let made = client.post(&format!("{place}/chats"), json!({ "goal": "hello" })).await?;
    let chat = made["chat_id"].as_str().ok_or("no chat_id")?;
    client.watch(&format!("{place}/chats/{chat}")).until_event("done").await?;
    assert!(hub.terminate().await?.success());
    let log = std::fs::read_to_string(data.path().join(LOG))?;
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let failed: Vec<Value> = lines.filter(|line| line["fields"]["message"] == "a model call failed").collect();
    let [line] = &failed[..] else { return Err(format!("not one line of it: {log}").into()) };
    let spans = line["spans"].as_array().cloned().unwrap_or_default();
    let of = |name: &str| spans.iter().find_map(|span| span[name].as_str()).unwrap_or_default();
    assert_eq!((of("chat"), of("workspace")), (chat, &*place.replace("/api/v1/workspaces/", "")), "{line}");
    assert!(line["fields"]["model"].as_str().is_some_and(|model| !model.is_empty()), "{line}");
    Ok(())
}
