//! The door of LangGraph: what a schedule cannot do for a cron is refused, and is not left out; several runs by one request; limits of steps; and
//! requests in the forms of the SDKs.

use crate::support::Door;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const ALONE: &str = "/langgraph/runs/crons";
const OF_THREAD: &str = "/langgraph/threads/mine/runs/crons";

/// A cron of the persona `assistant` with these fields.
fn cron(more: &Value) -> Value {
    let mut cron = json!({ "assistant_id": "assistant", "input": { "messages": "Hello" }, "schedule": "0 9 * * *" });
    cron.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    cron
}

#[tokio::test]
async fn what_a_cron_cannot_do_is_refused_by_its_name() {
    let door = Door::open();
    door.workspace().await;
    let run = json!({ "assistant_id": "assistant", "input": { "messages": "Hello" }, "if_not_exists": "create" });
    door.json("POST", "/langgraph/threads/mine/runs", run).await.is(200);
    door.take_messages().await;
    let two = json!([{ "type": "system", "content": "Be short." }, { "type": "human", "content": "Hello" }]);
    for (path, more, field) in [
        (OF_THREAD, json!({ "assistant_id": "reviewer" }), "assistant_id"),
        (OF_THREAD, json!({ "multitask_strategy": "interrupt" }), "multitask_strategy"),
        (OF_THREAD, json!({ "config": { "configurable": { "model": "m" } } }), "config"),
        (OF_THREAD, json!({ "config": { "recursion_limit": 25 } }), "config"),
        (ALONE, json!({ "config": { "configurable": { "thread_id": "mine" } } }), "config"),
        (ALONE, json!({ "on_run_completed": "delete" }), "on_run_completed"),
        (ALONE, json!({ "checkpoint": { "checkpoint_id": "00000000000000000001" } }), "checkpoint"),
        (ALONE, json!({ "end_time": "tomorrow" }), "end_time"),
        (ALONE, json!({ "input": { "messages": two } }), "input"),
    ] {
        let refused = door.json("POST", path, cron(&more)).await.refuses(400, "INVALID_ARGUMENT");
        assert_eq!(refused.json["error"]["details"]["field"], field, "{more}: {}", refused.json);
    }
    assert!(door.take_messages().await.is_empty());
}

/// A run of the persona `assistant` with these fields.
fn run(more: &Value) -> Value {
    let mut run = cron(more);
    run.as_object_mut().unwrap().remove("schedule");
    run
}

/// The same as the SDK for JavaScript sends it in a batch.
fn batched(more: &Value) -> Value {
    let mut run = run(more);
    run["assistantId"] = run["assistant_id"].clone();
    run
}

#[tokio::test]
async fn a_batch_begins_each_run_in_a_thread_of_its_own() {
    let door = Door::open();
    door.workspace().await;
    let batch = json!([batched(&json!({})), batched(&json!({ "streamMode": "values", "signal": {} }))]);
    let threads_there = async || {
        let found = door.json("POST", "/langgraph/threads/search", json!({ "limit": 100 })).await.is(200);
        found.json.as_array().map(Vec::len)
    };
    for reply in [
        door.json("POST", "/langgraph/runs/batch", batch.clone()).await,
        door.keyed("k", "/langgraph/runs/batch", batch.clone()).await,
    ] {
        let begun = reply.is(200);
        let runs = begun.json.as_array().unwrap();
        let threads: BTreeSet<&str> = runs.iter().map(|run| run["thread_id"].as_str().unwrap()).collect();
        assert_eq!((runs.len(), threads.len()), (2, 2), "{}", begun.json);
        assert!(runs.iter().all(|run| run["status"] == "pending"), "{}", begun.json);
    }
    assert_eq!(threads_there().await, Some(4));
    for (wrong, status, code, field) in [
        (json!({ "webhook": "https://x.example" }), 400, "INVALID_ARGUMENT", "webhook"),
        (json!({ "assistant_id": "nobody" }), 404, "NOT_FOUND", "assistant_id"),
    ] {
        let batch = json!([batched(&json!({})), batched(&wrong)]);
        let refused = door.json("POST", "/langgraph/runs/batch", batch).await.refuses(status, code);
        assert_eq!(refused.json["error"]["details"]["field"], field);
        assert_eq!(threads_there().await, Some(4), "{field}");
    }
    let late = json!([batched(&json!({})), batched(&json!({ "input": { "messages": [] } }))]);
    let refused = door.json("POST", "/langgraph/runs/batch", late).await.refuses(400, "INVALID_ARGUMENT");
    let begun = refused.json["error"]["details"]["run_ids"].as_array().map(Vec::len);
    assert_eq!(begun, Some(1), "the run before it goes on: {}", refused.json);
    assert_eq!(threads_there().await, Some(5));
}

#[tokio::test]
async fn runs_are_stopped_by_their_names() {
    let door = Door::open();
    door.workspace().await;
    let run = door.json("POST", "/langgraph/runs", run(&json!({}))).await.is(200);
    door.take_messages().await;
    let cancel = async |body: Value| door.json("POST", "/langgraph/runs/cancel", body).await;
    let (thread, run) = (run.text("thread_id"), run.text("run_id"));
    for (body, field) in [
        (json!({ "run_ids": [run] }), "thread_id"),
        (json!({ "thread_id": thread }), "run_ids"),
        (json!({ "status": "all" }), "status"),
    ] {
        let refused = cancel(body).await.refuses(400, "INVALID_ARGUMENT");
        assert_eq!(refused.json["error"]["details"]["field"], field);
    }
    let unknown = uuid::Uuid::from_u128(1);
    cancel(json!({ "thread_id": thread, "run_ids": [run, unknown] })).await.refuses(404, "NOT_FOUND");
    assert!(door.take_messages().await.is_empty());
    cancel(json!({ "thread_id": thread, "run_ids": [run] })).await.is(204);
    assert!(!door.take_messages().await.is_empty());
}

#[tokio::test]
async fn a_limit_of_steps_bounds_the_calls_of_the_model_in_its_turn() {
    let door = Door::open();
    door.workspace().await;
    let sent = async |path: &str, config: &Value| {
        door.json("POST", path, run(&json!({ "config": config }))).await.is(200);
        door.take_messages().await.concat().replace('\\', "")
    };
    // As LangGraph does by itself: 13 calls of the model with the calls of tools between them.
    let own = json!({ "recursion_limit": 25, "tags": [], "configurable": { "thread_id": "mine" } });
    door.json("POST", "/langgraph/threads", json!({ "thread_id": "mine" })).await.is(200);
    for path in ["/langgraph/threads/mine/runs", "/langgraph/threads/mine/runs"] {
        let sent = sent(path, &own).await;
        assert!(sent.contains(r#""max_steps":13"#), "{sent}");
    }
    let sent = sent("/langgraph/runs", &json!({})).await;
    assert!(!sent.contains(r#""max_steps":13"#), "{sent}");
    let other = door.json("POST", "/langgraph/runs", run(&json!({ "config": own }))).await;
    let other = other.refuses(400, "INVALID_ARGUMENT");
    assert_eq!(other.json["error"]["details"]["field"], "config", "{}", other.json);
}

#[tokio::test]
async fn assistants_and_crons_are_counted_and_have_no_graphs_below_them() {
    let door = Door::open();
    door.workspace().await;
    let all = door.json("POST", "/langgraph/assistants/search", json!({ "limit": 1000 })).await.is(200);
    let count = door.json("POST", "/langgraph/assistants/count", json!({})).await.is(200);
    assert_eq!(count.json, json!(all.json.as_array().unwrap().len()));
    let one = json!({ "graph_id": "reviewer" });
    assert_eq!(door.json("POST", "/langgraph/assistants/count", one).await.is(200).json, 1);
    assert_eq!(door.json("POST", "/langgraph/runs/crons/count", json!({})).await.is(200).json, 0);
    let of = json!({ "assistant_id": "reviewer" });
    assert_eq!(door.json("POST", "/langgraph/runs/crons/count", of).await.is(200).json, 0);
    let below = "/langgraph/assistants/assistant/subgraphs";
    assert_eq!(door.get(&format!("{below}?recurse=true")).await.is(200).json, json!({}));
    door.get("/langgraph/assistants/nobody/subgraphs").await.refuses(404, "NOT_FOUND");
}

#[tokio::test]
async fn a_route_of_langgraph_that_is_not_here_is_refused_with_another_way() {
    let door = Door::open();
    for (method, path, status, way) in [
        ("POST", "assistants", 404, "AGENT.md"),
        ("PATCH", "assistants/a", 405, "AGENT.md"),
        ("DELETE", "assistants/a", 405, "AGENT.md"),
        ("POST", "assistants/a/latest", 404, "/versions"),
        ("POST", "threads/prune", 405, "one by one"),
        ("POST", "threads/count", 405, "threads/search"),
        ("PATCH", "threads/t/state", 405, "send a message"),
        ("POST", "threads/t/commands", 404, "runs.stream"),
        ("POST", "threads/t/stream/events", 404, "runs.stream"),
        ("DELETE", "threads/t/runs/r", 405, "delete the thread"),
        ("GET", "runs/r/stream", 404, "threads/ID/runs/ID/stream"),
        ("GET", "nothing", 404, "openapi.json"),
    ] {
        let refused = door.json(method, &format!("/langgraph/{path}"), json!({})).await.is(status);
        let hint = refused.json["error"]["hint"].as_str().unwrap_or_default();
        assert!(hint.contains(way), "{method} {path}: {}", refused.json);
    }
}

#[tokio::test]
async fn a_cron_ends_at_its_end_time() {
    let door = Door::open();
    door.workspace().await;
    let ends = json!({ "end_time": "2099-01-01T01:00:00+01:00", "on_run_completed": "keep" });
    let made = door.json("POST", ALONE, cron(&ends)).await.is(200);
    assert_eq!((made.text("schedule").as_str(), made.text("end_time").as_str()), ("0 9 * * *", "2099-01-01T00:00:00Z"));
    let sent = door.take_messages().await.concat();
    assert!(sent.contains(";UNTIL=20990101T000000Z"), "{sent}");
    // Without its schedule such a field would change nothing.
    let one = format!("{ALONE}/{}", made.text("cron_id"));
    for (field, value) in [("timezone", "Europe/Berlin"), ("end_time", "2099-06-01T00:00:00Z")] {
        let refused = door.json("PATCH", &one, json!({ field: value })).await.refuses(400, "INVALID_ARGUMENT");
        assert_eq!(refused.json["error"]["details"]["field"], field);
    }
    assert!(door.take_messages().await.is_empty());
}
