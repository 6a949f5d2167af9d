//! `/health` beside requests that compute: a request that holds the thread of the runtime holds up all others.

use crate::support::Door;
use axum::body::Body;
use http::Request;
use serde_json::{Value, json};
use std::{
    cell::Cell,
    fmt::Write,
    fs,
    future::{Future, poll_fn},
    pin::pin,
    time::Duration,
};

/// How long this thread has been on a processor. However busy the machine is, only the thread's own work counts.
fn on_cpu() -> Duration {
    let told = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(told.split(' ').next().unwrap().parse().unwrap())
}

/// The result of `work`, and the longest computation of one poll of it.
async fn longest_poll<F: Future>(work: F) -> (F::Output, Duration) {
    let (mut work, mut longest) = (pin!(work), Duration::ZERO);
    poll_fn(move |context| {
        let before = on_cpu();
        let polled = work.as_mut().poll(context);
        longest = longest.max(on_cpu() - before);
        polled.map(|output| (output, longest))
    })
    .await
}

/// A schema that one value takes 2^`levels` applications of.
fn forks(levels: usize) -> Value {
    let next = |level: usize| json!({ "$ref": format!("#/$defs/a{level}") });
    let level = |level: usize| (format!("a{level}"), json!({ "allOf": [next(level + 1), next(level + 1)] }));
    let mut all: serde_json::Map<_, _> = (0..levels).map(level).collect();
    all.insert(format!("a{levels}"), json!({ "type": "string" }));
    json!({ "$defs": all, "$ref": "#/$defs/a0" })
}

/// Requests that compute for long: a name, a method, a path, a body, the status of the answer.
async fn worst(door: &Door) -> Vec<(&'static str, &'static str, String, Value, u16)> {
    let place = door.workspace().await;
    let (chat, _) = door.chat(&place).await;
    let mut nodes = String::from("nodes:\n");
    for n in 0..6_000 {
        writeln!(
            nodes,
            "  - {{id: n{n}, kind: deterministic, role: linear, context: none, op: {{expr: 'input.a{n} + 1'}}}}"
        )
        .unwrap();
    }
    let id = uuid::Uuid::now_v7().to_string();
    let question = json!({ "name": "colour", "question": "Which?", "schema": forks(17) });
    let asked = json!({ "event": "question", "data": { "question_id": id, "questions": [question] } });
    door.put_view(&chat, json!({ "waiting_for": [asked] })).await;
    let lines = |seed: u64| (0..60_000_u64).map(|n| format!("{}\n", n.wrapping_mul(seed) % 9_973)).collect::<String>();
    let file = door.file(&place, "/projects/long.txt", &lines(31)).await;
    door.json("PUT", &file, json!({ "content": lines(37) })).await.is(200);
    vec![
        ("a check", "POST", format!("{place}/flows/x/check"), json!({ "files": { "workflow.yaml": nodes } }), 200),
        ("an answer", "POST", format!("{chat}/answers/{id}"), json!({ "answers": { "colour": "red" } }), 202),
        ("a diff", "GET", format!("{file}/diff?from=1&to=2"), Value::Null, 200),
    ]
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn health_answers_while_requests_compute() {
    let door = Door::open();
    for (name, method, path, body, status) in worst(&door).await {
        let (done, healthy) = (Cell::new(false), Cell::new(0));
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let asked = async {
            let request = Request::builder().method(method).uri(&path).header("content-type", "application/json");
            let answered = longest_poll(door.send(request.body(Body::from(body)).unwrap())).await;
            done.set(true);
            answered
        };
        let watching = async {
            while !done.get() {
                door.get("/health").await.is(200);
                healthy.set(healthy.get() + 1);
                tokio::task::yield_now().await;
            }
        };
        let ((response, longest), ()) = futures::join!(asked, watching);
        assert_eq!(response.status().as_u16(), status, "{name}");
        assert!(healthy.get() > 0 && longest < Duration::from_millis(250), "{name} held the thread for {longest:?}");
    }
}
