//! Tasks through the door: made, listed, steered, watched. No worker runs here; a test writes their events.

use crate::{
    flows::{WORKFLOW, with_flow},
    support::{Door, Setup},
};
use axum::body::Body;
use domain::{TaskEvent, Timestamp};
use futures::StreamExt;
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
    let made = view["created_at"].as_str().unwrap();
    for (times, found) in [
        (format!("since={made}"), 1),
        (format!("until={made}"), 0),
        (format!("since={made}&until=2999-01-01T00:00:00Z&flow=review"), 1),
        ("since=2999-01-01T00:00:00Z".to_owned(), 0),
    ] {
        assert_eq!(count(&times).await, found, "{times}");
    }
    let turned = format!("{workspace}/tasks?since={made}&until={made}");
    assert_eq!(door.get(&turned).await.refuses(400, "INVALID_ARGUMENT").json["error"]["details"]["field"], "until");
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
    for priority in [json!(1000), json!(-1000), json!(u64::MAX), json!(1.5)] {
        let refused = make(json!({ "priority": priority })).await.refuses(400, "INVALID_ARGUMENT");
        assert_eq!(refused.json["error"]["message"], "a priority is a number from -100 to 100");
    }
    make(json!({ "inputs": 1 })).await.refuses(400, "INVALID_ARGUMENT");
    make(json!({ "input": "x".repeat(300_000) })).await.refuses(413, "PAYLOAD_TOO_LARGE");
    make(json!({ "files": ["019bf537-f228-7cd3-aa1c-3da8af302e12"] })).await.refuses(404, "NOT_FOUND");
    let odd = door.json("POST", &format!("{workspace}/flows/nothing/tasks"), json!({})).await;
    assert!(odd.refuses(404, "NOT_FOUND").json["error"]["hint"].as_str().unwrap().contains("review"));
}

#[tokio::test]
async fn s10_12_a_person_with_too_many_waiting_tasks_is_told_when_to_come_again() {
    let door = Door::with(Setup { most_waiting: 1, ..Setup::default() });
    let (task, workspace) = made(&door).await;
    let path = format!("{workspace}/flows/review/tasks");
    let refused = door.json("POST", &path, json!({ "input": 1 })).await.refuses(429, "RATE_LIMITED");
    assert_eq!(refused.header("retry-after"), "5");
    // Existing tasks are steered all the same.
    door.json("POST", &format!("{task}/stop"), json!({})).await.is(202);
    // Another one's queue is another.
    let other = with_flow(&door, "review", WORKFLOW).await;
    door.json("POST", &format!("{other}/flows/review/tasks"), json!({ "input": 1 })).await.is(202);
}

#[tokio::test]
async fn s10_12_a_flow_has_so_many_places() {
    let door = Door::open();
    let workspace = with_flow(&door, "review", WORKFLOW).await;
    door.file(&workspace, "/system/flows/review/execution.yaml", "max_queued: 1\n").await;
    let path = format!("{workspace}/flows/review/tasks");
    door.keyed("k1", &path, json!({ "input": 1 })).await.is(202);
    let refused = door.json("POST", &path, json!({ "input": 2 })).await.refuses(429, "RATE_LIMITED");
    assert_eq!(refused.header("retry-after"), "5");
    door.keyed("k1", &path, json!({ "input": 1 })).await.is(202);
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
async fn a_task_gets_another_priority_and_is_deleted() {
    let door = Door::open();
    let (task, workspace) = made(&door).await;
    assert_eq!(door.get(&task).await.is(200).json["priority"], 5);
    let set = async |task: &str, priority| door.json("PATCH", task, json!({ "priority": priority })).await;
    assert_eq!(set(&task, json!(-7)).await.is(202).text("status"), "accepted");
    for odd in [json!(101), json!(1000), json!(1.5)] {
        set(&task, odd).await.refuses(400, "INVALID_ARGUMENT");
    }
    door.json("PATCH", &task, json!({ "flow": "other" })).await.refuses(400, "INVALID_ARGUMENT");
    door.put_task_view(&task, json!({ "phase": "finished" })).await;
    set(&task, json!(1)).await.refuses(409, "CONFLICT");
    door.file(&workspace, "/system/flows/review/execution.yaml", "queue_policy: fifo\n").await;
    let body = json!({ "input": { "good": true } });
    let made = door.json("POST", &format!("{workspace}/flows/review/tasks"), body).await.is(202).text("task_id");
    let in_order = format!("{workspace}/tasks/{made}");
    let hint = set(&in_order, json!(1)).await.refuses(409, "CONFLICT");
    assert!(hint.json["error"]["hint"].as_str().unwrap().contains("queue_policy"));

    door.ask("DELETE", &task, &[], "").await.is(204);
    for rest in ["", "/events", "/history", "/trace"] {
        door.get(&format!("{task}{rest}")).await.refuses(404, "NOT_FOUND");
    }
    door.ask("DELETE", &task, &[], "").await.refuses(404, "NOT_FOUND");
    let page = door.get(&format!("{workspace}/tasks")).await.is(200).json;
    assert_eq!(page["tasks"].as_array().unwrap().len(), 1);
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
    // Reads until the last event that clients see.
    let read = async |query: &str| {
        let request = Request::get(format!("{task}/events{query}")).body(Body::empty()).unwrap();
        let response = door.send(request).await;
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let (mut text, mut pieces) = (String::new(), response.into_body().into_data_stream());
        while !text.contains("event: routed\n") {
            text.push_str(std::str::from_utf8(&pieces.next().await.unwrap().unwrap()).unwrap());
        }
        text
    };
    let (all, rest) = (read("").await, read("?after=1").await);
    assert!(all.contains("id: 1\nevent: node_started\n"), "{all}");
    assert!(!rest.contains("node_started") && rest.contains("id: 2\nevent: routed\n"), "{rest}");
    assert!(!all.contains("unparked"), "{all}");
    door.get(&format!("{task}/events?protocol=odd")).await.refuses(400, "INVALID_ARGUMENT");
}

#[tokio::test]
async fn a_task_that_has_ended_is_stopped_and_watched_no_more() {
    let door = Door::open();
    let (task, _) = made(&door).await;
    let at = Timestamp::from_millis(0);
    let (status, output) = (domain::Status::Success, json!(1));
    let events = vec![
        TaskEvent::Routed { from: "begin".into(), to: "choose".into() },
        TaskEvent::Finished { status, output, exit: None, error: None, at },
        TaskEvent::Archived { files: 1 },
    ];
    door.put_task_events(&task, events).await;
    door.put_task_view(&task, json!({ "phase": "finished" })).await;
    let stopped = door.json("POST", &format!("{task}/stop"), json!({})).await.is(200);
    assert_eq!(stopped.text("status"), "finished");
    // A client with the last event is told to stay away; each other client gets a stream that ends.
    let watch = format!("{task}/events");
    for after in ["2", "3"] {
        door.get(&format!("{watch}?after={after}")).await.is(204);
        door.ask("GET", &watch, &[("last-event-id", after)], "").await.is(204);
        // An `EventSource` of a library keeps the `after` of its first connection.
        door.get(&format!("{watch}?after=0&lastEventId={after}")).await.is(204);
    }
    for after in ["0", "1", "9", "odd"] {
        let all = door.get(&format!("{watch}?after={after}")).await.is(200);
        assert!(String::from_utf8_lossy(&all.bytes).contains("id: 2\nevent: done\n"), "{after}");
    }
}

#[tokio::test]
async fn s6_the_inspection_of_a_run_is_as_described() {
    let door = Door::open();
    let (task, workspace) = made(&door).await;
    let view = door.get(&task).await.is(200).json;
    let config = domain::TaskConfig {
        workspace: view["workspace_id"].as_str().unwrap().parse().unwrap(),
        task: view["task_id"].as_str().unwrap().parse().unwrap(),
        flow: serde_json::from_value(view["flow"].clone()).unwrap(),
        user: domain::Principal::local().user(),
        input: json!({ "good": true }),
        start: "begin".into(),
        origin: None,
        files: Vec::new(),
        priority: 0,
        stepping: false,
        breakpoints: Vec::new(),
        replay: None,
        keep_outputs: false,
        keep_artifacts: false,
        counted: false,
        trace: None,
        handoff: None,
        budget: domain::Budget::default(),
        refused: None,
        labels: domain::Labels::default(),
        created_at: Timestamp::from_millis(0),
    };
    let at = Timestamp::from_millis(5);
    let (node, error) = (|name: &str| name.into(), domain::Error::new(domain::Code::Unprocessable, "no"));
    let item = domain::task::ContextItem {
        store: "task".into(),
        key: "k".into(),
        content: json!(1),
        tags: vec!["t".into()],
        tokens: 1,
        at,
    };
    let context = domain::task::AssembledContext { profile: "p".into(), items: vec![item], tokens: 1, left_out: 0 };
    let metrics = domain::task::NodeMetrics { duration_ms: 7, ..Default::default() };
    let finished = |name: &str, error| TaskEvent::NodeFinished {
        node: node(name),
        attempt: 1,
        status: domain::Status::Success,
        output: json!({ "selected_edge": "yes" }),
        error,
        metrics: metrics.clone(),
        at,
    };
    let events = vec![
        TaskEvent::Created { config: Box::new(config) },
        TaskEvent::NodeStarted { node: node("begin"), attempt: 1, retry: None, queue_ms: 0, at },
        finished("begin", None),
        TaskEvent::Routed { from: node("begin"), to: node("choose") },
        TaskEvent::NodeStarted { node: node("choose"), attempt: 1, retry: None, queue_ms: 0, at },
        TaskEvent::ContextAssembled { node: node("choose"), context: Box::new(context) },
        TaskEvent::Denied { node: node("choose"), what: "tool x".into(), rule: "r".into() },
        finished("choose", Some(error)),
    ];
    door.put_task_events(&task, events).await;
    let history = door.get(&format!("{task}/history?limit=1")).await.is(200).json;
    assert_eq!(history["stages"][0]["input"], json!({ "good": true }));
    let rest = format!("{task}/history?cursor={}", history["next_cursor"].as_str().unwrap());
    let rest = door.get(&rest).await.is(200).json;
    assert_eq!((rest["stages"][0]["node"].as_str(), rest["stages"].as_array().unwrap().len()), (Some("choose"), 1));
    assert_eq!(rest["stages"][0]["context"]["items"][0]["key"], "k");
    door.get(&format!("{task}/history?cursor=odd")).await.refuses(400, "INVALID_ARGUMENT");

    let trace = door.get(&format!("{task}/trace")).await.is(200);
    assert_eq!(trace.header("content-type"), "application/jsonl");
    assert!(!trace.bytes.is_empty());
    assert_eq!(door.get(&format!("{task}/trace")).await.bytes, trace.bytes, "rebuilt, it has the same bytes");
    let same = door.get(&format!("{task}/diff?with={}", view["task_id"].as_str().unwrap())).await.is(200).json;
    assert!(same["parts"].is_null() && same["nodes"]["choose"]["same"] == true, "{same:#}");
    let body = json!({ "input": { "good": false } });
    let other = door.json("POST", &format!("{workspace}/flows/review/tasks"), body).await.is(202).text("task_id");
    let parted = door.get(&format!("{task}/diff?with={other}")).await.is(200).json;
    assert!(parted["parts"].is_object(), "{parted:#}");

    assert_eq!(door.get(&format!("{task}/memory")).await.is(200).json["items"], json!([]));
    assert_eq!(door.get(&format!("{task}/artifacts")).await.is(200).json["artifacts"], json!([]));
    let id = view["task_id"].as_str().unwrap();
    for format in ["svg", "dot", "mermaid"] {
        let path = format!("{workspace}/flows/review/graph?format={format}&task={id}");
        let painted = String::from_utf8_lossy(&door.get(&path).await.is(200).bytes).into_owned();
        assert!(painted.contains("7 ms"), "{painted}");
    }
}

#[tokio::test]
async fn work_that_a_request_begins_is_a_part_of_its_trace() {
    let door = Door::open();
    let workspace = with_flow(&door, "review", WORKFLOW).await;
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let begin = async |path: String, trace: &str, body: serde_json::Value| {
        let headers = [("content-type", "application/json"), ("traceparent", trace)];
        door.ask("POST", &format!("{workspace}/{path}"), &headers, body.to_string()).await.is(202);
        door.take_messages().await.concat()
    };
    for (path, body) in [("flows/review/tasks", json!({ "input": {} })), ("chats", json!({ "goal": "go" }))] {
        assert!(begin(path.into(), trace, body.clone()).await.contains(trace), "{path}");
        // One that is none is ignored, as the recommendation says.
        let odd = begin(path.into(), "00-nonsense", body).await;
        assert!(!odd.contains("trace") && odd.contains("start"), "{path}: {odd}");
    }
}
