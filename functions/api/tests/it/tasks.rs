//! Tasks through the door: made, listed, steered, watched. Nobody works on them here, but for what a test writes.

use crate::{
    flows::{WORKFLOW, with_flow},
    support::Door,
};
use axum::body::Body;
use domain::{TaskEvent, Timestamp};
use http::Request;
use serde_json::json;

async fn made(door: &Door) -> (String, String) {
    let workspace = with_flow(door, "review", WORKFLOW).await;
    let body = json!({ "input": { "good": true }, "priority": 5, "breakpoints": ["choose"] });
    let made = door.json("POST", &format!("{workspace}/flows/review/tasks"), body).await.is(202);
    assert_eq!(made.text("status"), "queued");
    let task = made.text("task_id");
    assert!(made.header("location").ends_with(&format!("/tasks/{task}")));
    (format!("{workspace}/tasks/{task}"), workspace)
}

#[tokio::test]
async fn s2_1_a_task_is_made_read_and_listed() {
    let door = Door::open();
    let (task, workspace) = made(&door).await;
    let view = door.get(&task).await.is(200).json;
    assert_eq!((view["phase"].as_str(), view["status"].as_str()), (Some("queued"), Some("success")));
    assert_eq!(view["flow"]["name"], "review");
    let count = async |query: &str| {
        let page = door.get(&format!("{workspace}/tasks?{query}")).await.is(200).json;
        page["tasks"].as_array().unwrap().len()
    };
    assert_eq!(count("flow=review").await, 1);
    assert_eq!(count("flow=other").await, 0);
    assert_eq!(count("phase=queued&status=success").await, 1);
    assert_eq!(count("phase=finished").await, 0);
    assert_eq!(count(&format!("parent={}", view["task_id"].as_str().unwrap())).await, 0);
    door.get(&format!("{workspace}/tasks?phase=odd")).await.refuses(400, "INVALID_ARGUMENT");
    door.get(&format!("{workspace}/tasks?cursor=odd")).await.refuses(400, "INVALID_ARGUMENT");
    // Of another workspace, it is not there.
    let other = door.workspace().await;
    let id = view["task_id"].as_str().unwrap();
    for rest in ["", "/events", "/stop"] {
        let method = if rest == "/stop" { "POST" } else { "GET" };
        door.ask(method, &format!("{other}/tasks/{id}{rest}"), &[], "").await.refuses(404, "NOT_FOUND");
    }
}

#[tokio::test]
async fn a_task_that_cannot_be_is_refused_plainly() {
    let door = Door::open();
    let workspace = with_flow(&door, "review", WORKFLOW).await;
    let make = async |body| door.json("POST", &format!("{workspace}/flows/review/tasks"), body).await;
    make(json!({ "start": "nothing" })).await.refuses(400, "INVALID_ARGUMENT");
    make(json!({ "start": "good" })).await.refuses(400, "INVALID_ARGUMENT");
    make(json!({ "breakpoints": ["nothing"] })).await.refuses(400, "INVALID_ARGUMENT");
    make(json!({ "priority": 101 })).await.refuses(400, "INVALID_ARGUMENT");
    make(json!({ "priority": 1000 })).await.refuses(400, "INVALID_ARGUMENT");
    make(json!({ "inputs": 1 })).await.refuses(400, "INVALID_ARGUMENT");
    make(json!({ "input": "x".repeat(300_000) })).await.refuses(413, "PAYLOAD_TOO_LARGE");
    make(json!({ "files": ["019bf537-f228-7cd3-aa1c-3da8af302e12"] })).await.refuses(404, "NOT_FOUND");
    let odd = door.json("POST", &format!("{workspace}/flows/nothing/tasks"), json!({})).await;
    assert!(odd.refuses(404, "NOT_FOUND").json["error"]["hint"].as_str().unwrap().contains("review"));
}

#[tokio::test]
async fn the_same_key_makes_one_task() {
    let door = Door::open();
    let workspace = with_flow(&door, "review", WORKFLOW).await;
    let path = format!("{workspace}/flows/review/tasks");
    let first = door.keyed("k1", &path, json!({ "input": 1 })).await.is(202).text("task_id");
    assert_eq!(door.keyed("k1", &path, json!({ "input": 1 })).await.is(202).text("task_id"), first);
    door.keyed("k1", &path, json!({ "input": 2 })).await.refuses(409, "IDEMPOTENCY_MISMATCH");
    let page = door.get(&format!("{workspace}/tasks")).await.is(200).json;
    assert_eq!(page["tasks"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn s10_7_commands_are_accepted_when_they_make_sense() {
    let door = Door::open();
    let (task, _) = made(&door).await;
    let tell = async |command: &str, body| door.json("POST", &format!("{task}/{command}"), body).await;
    tell("pause", json!({ "before": ["good"] })).await.is(202);
    tell("pause", json!({})).await.is(202);
    tell("pause", json!({ "before": ["nothing"] })).await.refuses(400, "INVALID_ARGUMENT");
    tell("resume", json!({})).await.is(202);
    tell("step", json!({})).await.refuses(409, "CONFLICT");
    tell("replay", json!({})).await.refuses(409, "CONFLICT");
    tell("answers/good", json!({ "answers": {} })).await.refuses(409, "CONFLICT");
    tell("answers/nothing", json!({ "answers": {} })).await.refuses(400, "INVALID_ARGUMENT");
    assert_eq!(tell("stop", json!({})).await.is(202).text("status"), "accepted");
    tell("stop", json!({})).await.is(202);
}

#[tokio::test]
async fn a_task_is_watched_from_its_beginning() {
    let door = Door::open();
    let (task, _) = made(&door).await;
    let at = Timestamp::from_millis(0);
    let node = |name: &str| name.into();
    let events = vec![
        TaskEvent::NodeStarted { node: node("begin"), attempt: 1, retry: None, queue_ms: 0, at },
        TaskEvent::Routed { from: node("begin"), to: node("choose") },
        TaskEvent::Unparked { at },
    ];
    door.put_task_events(&task, events).await;
    let read = async |query: &str| {
        let request = Request::get(format!("{task}/events{query}")).body(Body::empty()).unwrap();
        let response = door.send(request).await;
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        response
    };
    let responses = [read("").await, read("?after=1").await];
    door.shutdown.cancel();
    let mut texts = Vec::new();
    for response in responses {
        let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        texts.push(String::from_utf8_lossy(&bytes).into_owned());
    }
    assert!(texts[0].contains("event: node_started\n") && texts[0].contains("event: routed\n"), "{}", texts[0]);
    assert!(!texts[1].contains("event: node_started\n") && texts[1].contains("id: 2\nevent: routed\n"), "{}", texts[1]);
    assert!(!texts[0].contains("unparked"), "{}", texts[0]);
    door.get(&format!("{task}/events?protocol=odd")).await.refuses(400, "INVALID_ARGUMENT");
}
