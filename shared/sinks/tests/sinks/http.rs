//! Sinks against receivers on this machine.
#![expect(clippy::unwrap_used, reason = "tests")]

use async_trait::async_trait;
use axum::{Router, body::Bytes, extract::State, routing::post};
use buildscale_sinks::{Collector, PluginSinks, collector, signature};
use domain::{Sha256, TaskId, Timestamp, WorkspaceId, task::FlowRef};
use flow::manifest::Plugin;
use parking_lot::Mutex;
use ports::{Address, Recipient, Secret, SecretRef, Secrets};
use serde_json::{Value, json};
use std::sync::Arc;
use telemetry::{NodeAbout, Sink, Sinks, TaskFact};
use tempfile::TempDir;
use testkit::TestClock;
use tokio::net::TcpListener;
use uuid::Uuid;

/// A received request: path, headers, JSON body, raw body.
type Came = (String, Vec<(String, String)>, Value, Vec<u8>);

/// A receiver that answers as it is told, and 200 when nothing is left to tell.
#[derive(Clone, Default)]
struct Receiver {
    came: Arc<Mutex<Vec<Came>>>,
    answers: Arc<Mutex<Vec<u16>>>,
}

async fn take(
    State(receiver): State<Receiver>,
    uri: axum::http::Uri,
    headers: axum::http::HeaderMap,
    body: Bytes,
) -> axum::http::StatusCode {
    let headers = headers.iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect();
    let parsed = serde_json::from_slice(&body).unwrap();
    receiver.came.lock().push((uri.path().to_owned(), headers, parsed, body.to_vec()));
    let mut answers = receiver.answers.lock();
    let status = if answers.is_empty() { 200 } else { answers.remove(0) };
    axum::http::StatusCode::from_u16(status).unwrap()
}

impl Receiver {
    async fn listen(answers: &[u16]) -> (Self, String) {
        let receiver = Self { came: Arc::default(), answers: Arc::new(Mutex::new(answers.to_vec())) };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let routes = ["/hook", "/v1/traces", "/v1/metrics"];
        let router = routes.iter().fold(Router::new(), |router, path| router.route(path, post(take)));
        let service = router.with_state(receiver.clone());
        tokio::spawn(async move { axum::serve(listener, service).await.unwrap() });
        (receiver, address)
    }

    fn came(&self) -> Vec<Came> {
        self.came.lock().clone()
    }
}

struct Host;

#[async_trait]
impl Secrets for Host {
    async fn get(&self, reference: &SecretRef, to: Recipient<'_>) -> ports::Result<Option<Secret>> {
        assert_eq!(to.workspace, WorkspaceId(Uuid::from_u128(5)));
        assert!(matches!(to.address, Address::Url(url) if url.starts_with("http")), "the manifest names the address");
        Ok(match reference {
            SecretRef::Named(name) if name == "hook" => Some(Secret::new("whsec_c2VjcmV0LXNlY3JldA==")),
            SecretRef::Env(name) if name == "KEY" => Some(Secret::new("Bearer key")),
            _ => None,
        })
    }
}

fn host(allow_private: bool) -> (PluginSinks, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let directory = Some(folder.path().to_owned());
    let sinks = PluginSinks { directory, allow_private, secrets: Arc::new(Host), clock: Arc::new(TestClock::new(1)) };
    (sinks, folder)
}

fn plugin(kind: &str, config: Value) -> Plugin {
    serde_json::from_value(json!({ "id": "mine", "type": kind, "config": config })).unwrap()
}

fn flow() -> FlowRef {
    FlowRef { name: "plan".into(), hash: Sha256::of(b"plan") }
}

fn open(sinks: &PluginSinks, kind: &str, config: Value) -> Result<Arc<dyn Sink>, domain::Error> {
    sinks.open(WorkspaceId(Uuid::from_u128(5)), &flow(), &plugin(kind, config))
}

fn fact(number: u64, event: &'static str, data: Value) -> Arc<TaskFact> {
    Arc::new(TaskFact {
        workspace_id: WorkspaceId(Uuid::from_u128(5)),
        task_id: TaskId(Uuid::from_u128(7)),
        root_task_id: TaskId(Uuid::from_u128(6)),
        parent_task_id: Some(TaskId(Uuid::from_u128(6))),
        child: Some("both/think".into()),
        flow: flow(),
        number,
        at: Timestamp::from_millis(1_767_225_601_000),
        event,
        bytes: 10,
        data,
        trace: None,
        about: Some(NodeAbout {
            node: "think".into(),
            role: "linear".into(),
            agent: Some("thinker".into()),
            model: Some("openai/gpt-x".into()),
        }),
        created_at: Timestamp::from_millis(1_767_225_600_000),
    })
}

fn finished(number: u64) -> Arc<TaskFact> {
    let metrics = json!({
        "duration_ms": 400, "queue_ms": 7, "context_tokens": 30, "tool_calls": 1,
        "usage": { "input_tokens": 100, "output_tokens": 20, "cached_tokens": 0, "cost_usd": 0.5 },
    });
    let at = "2026-01-01T00:00:01.000Z";
    let data = json!({
        "node": "think", "attempt": 1, "status": "success", "output": "the answer", "metrics": metrics, "at": at,
    });
    fact(number, "node_finished", data)
}

/// The disk of a function is gone with it, and belongs to all workspaces until then.
#[tokio::test]
async fn where_no_disk_outlives_the_process_no_observer_writes_a_file() {
    let (hub, _folder) = host(false);
    assert!(open(&hub, "json_lines", json!({})).is_ok());
    let function = PluginSinks { directory: None, ..hub };
    let refused = open(&function, "json_lines", json!({})).err().map(|error| error.code);
    assert_eq!(refused, Some(domain::Code::Unprocessable));
    assert!(open(&function, "otlp", json!({ "endpoint": "https://collector.example" })).is_ok());
}

#[tokio::test]
async fn s6_a_webhook_is_signed_and_a_batch_that_comes_again_has_the_same_id() {
    let (receiver, address) = Receiver::listen(&[503, 429]).await;
    let (sinks, _folder) = host(true);
    let hook = open(&sinks, "webhook", json!({ "url": format!("{address}/hook"), "secret": { "secret": "hook" } }));
    let hook = hook.unwrap();
    let batch = [finished(3), finished(4)];
    for _ in 0..2 {
        assert!(hook.send(&batch).await.unwrap_err().again);
    }
    hook.send(&batch).await.unwrap();
    let came = receiver.came();
    let header = |came: &Came, name: &str| came.1.iter().find(|(known, _)| known == name).unwrap().1.clone();
    let ids: Vec<String> = came.iter().map(|came| header(came, "webhook-id")).collect();
    assert!(ids.len() == 3 && ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    let last = &came[2];
    let timestamp = header(last, "webhook-timestamp").parse().unwrap();
    let expected = signature("whsec_c2VjcmV0LXNlY3JldA==", &ids[2], timestamp, &last.3);
    assert_eq!(header(last, "webhook-signature"), expected);
    let events = last.2["events"].as_array().unwrap();
    assert_eq!(events.iter().map(|event| event["number"].as_u64().unwrap()).collect::<Vec<_>>(), [3, 4]);
    assert_eq!((&events[0]["event"], &events[0]["child"]), (&json!("node_finished"), &json!("both/think")));
}

#[tokio::test]
async fn s6_a_webhook_that_says_no_is_not_asked_again_and_a_redirect_is_not_followed() {
    let (receiver, address) = Receiver::listen(&[410, 302]).await;
    let (sinks, _folder) = host(true);
    let hook = open(&sinks, "webhook", json!({ "url": format!("{address}/hook") })).unwrap();
    assert!(!hook.send(&[finished(1)]).await.unwrap_err().again);
    assert!(!hook.send(&[finished(1)]).await.unwrap_err().again);
    assert_eq!(receiver.came().len(), 2);
    // A secret that is not there may come: nothing is sent unsigned.
    let config = json!({ "url": format!("{address}/hook"), "secret": { "env": "NONE" } });
    let lost = open(&sinks, "webhook", config).unwrap().send(&[finished(1)]).await.unwrap_err();
    assert!(lost.again && lost.why.contains("NONE"), "{lost}");
    assert_eq!(receiver.came().len(), 2);
}

#[tokio::test]
async fn s10_5_sinks_in_private_networks_are_refused_unless_the_host_allows_them() {
    let (receiver, address) = Receiver::listen(&[]).await;
    let (sinks, _folder) = host(false);
    let port = address.rsplit(':').next().unwrap();
    for url in [format!("{address}/hook"), format!("http://localhost:{port}/hook"), "gopher://example.com".into()] {
        assert!(open(&sinks, "webhook", json!({ "url": url })).is_err(), "{url}");
        assert!(open(&sinks, "otlp", json!({ "endpoint": url })).is_err(), "{url}");
    }
    assert_eq!(receiver.came().len(), 0);
    assert!(open(&sinks, "webhook", json!({ "url": "https://example.com", "sceret": {} })).is_err(), "unknown keys");
}

#[tokio::test]
async fn s6_otlp_has_a_span_a_task_a_node_and_a_tool_with_the_attributes_of_models_and_no_content() {
    let (receiver, address) = Receiver::listen(&[]).await;
    let (sinks, _folder) = host(true);
    let config = json!({ "endpoint": address, "headers": { "Authorization": { "env": "KEY" } } });
    let otlp = open(&sinks, "otlp", config).unwrap();
    let asked = fact(2, "agent_asked", json!({ "node": "think", "chat_id": Uuid::from_u128(9), "round": 1 }));
    let tool = json!({
        "node": "think", "tool": "grep", "args": "private words", "status": "success", "output": "more private words",
        "duration_ms": 50,
    });
    let error = json!({ "code": "TIMEOUT", "message": "too late" });
    let done =
        json!({ "status": "failure", "output": null, "exit": null, "at": "2026-01-01T00:00:02.000Z", "error": error });
    otlp.send(&[asked, fact(3, "tool", tool), finished(4), fact(5, "done", done)]).await.unwrap();
    let came = receiver.came();
    assert_eq!(came.iter().map(|came| came.0.as_str()).collect::<Vec<_>>(), ["/v1/traces", "/v1/metrics"]);
    assert!(came[0].1.contains(&("authorization".into(), "Bearer key".into())));
    assert!(!String::from_utf8_lossy(&came[0].3).contains("private words"));
    assert!(!String::from_utf8_lossy(&came[0].3).contains("the answer"));
    let spans = came[0].2["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    let names: Vec<&str> = spans.iter().map(|span| span["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["execute_tool grep", "invoke_agent thinker", "task plan"]);
    let [tool, node, task] = spans.as_slice() else { panic!("three") };
    assert!(spans.iter().all(|span| span["traceId"] == json!(format!("{:032x}", 6)) && span["spanId"].as_str().unwrap().len() == 16));
    assert_eq!((&tool["parentSpanId"], &node["parentSpanId"]), (&node["spanId"], &task["spanId"]));
    let attribute = |span: &Value, key: &str| {
        let all = span["attributes"].as_array().unwrap();
        all.iter().find(|one| one["key"] == key).map(|one| one["value"].clone())
    };
    assert_eq!(attribute(node, "gen_ai.usage.input_tokens"), Some(json!({ "intValue": "100" })));
    assert_eq!(attribute(node, "gen_ai.provider.name"), Some(json!({ "stringValue": "openai" })));
    assert_eq!(attribute(node, "gen_ai.request.model"), Some(json!({ "stringValue": "gpt-x" })));
    let chat = Uuid::from_u128(9).to_string();
    assert_eq!(attribute(node, "gen_ai.conversation.id"), Some(json!({ "stringValue": chat })));
    assert_eq!(attribute(task, "error.type"), Some(json!({ "stringValue": "TIMEOUT" })));
    assert_eq!(task["status"], json!({ "code": 2, "message": "too late" }));
    let times =
        |span: &Value| ["startTimeUnixNano", "endTimeUnixNano"].map(|key| span[key].as_str().unwrap().to_owned());
    assert_eq!(times(node), ["1767225600600000000", "1767225601000000000"]);
    assert_eq!(times(task), ["1767225600000000000", "1767225602000000000"]);
    let metrics = came[1].2["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
    let names: Vec<&str> = metrics.iter().map(|metric| metric["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["gen_ai.client.token.usage", "buildscale.node.duration"]);
    let points = metrics[0]["histogram"]["dataPoints"].as_array().unwrap();
    let sums: Vec<f64> = points.iter().map(|point| point["sum"].as_f64().unwrap()).collect();
    assert_eq!(sums, [100.0, 20.0]);
    assert_eq!(
        points[0]["bucketCounts"].as_array().unwrap().len(),
        points[0]["explicitBounds"].as_array().unwrap().len() + 1
    );
}

#[tokio::test]
async fn the_span_of_a_node_names_its_conversation_also_where_the_collector_takes_it_at_the_second_try() {
    let (receiver, address) = Receiver::listen(&[503]).await;
    let (sinks, _folder) = host(true);
    let otlp = open(&sinks, "otlp", json!({ "endpoint": address })).unwrap();
    let chat = Uuid::from_u128(9).to_string();
    // It makes no span, so nothing is sent.
    otlp.send(&[fact(2, "agent_asked", json!({ "node": "think", "chat_id": chat, "round": 1 }))]).await.unwrap();
    assert!(otlp.send(&[finished(4)]).await.unwrap_err().again);
    otlp.send(&[finished(4)]).await.unwrap();
    let traces: Vec<_> = receiver.came().into_iter().filter(|came| came.0 == "/v1/traces").collect();
    assert_eq!(traces.len(), 2);
    for (_, _, body, _) in traces {
        let attributes = &body["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["attributes"];
        let named = attributes.as_array().unwrap().iter().find(|one| one["key"] == "gen_ai.conversation.id");
        assert_eq!(named.map(|one| &one["value"]), Some(&json!({ "stringValue": chat })), "{body}");
    }
}

#[tokio::test]
async fn s6_content_is_in_the_spans_where_it_is_wanted_and_the_usual_variables_name_a_collector() {
    let (receiver, address) = Receiver::listen(&[]).await;
    let none = Collector::default();
    assert!(collector(&[], &none).unwrap().is_none());
    let set = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let environment = [
        set("OTEL_EXPORTER_OTLP_ENDPOINT", &format!("{address}/")),
        set("OTEL_EXPORTER_OTLP_HEADERS", "x-team=bees%20and%20co"),
        set("OTEL_SERVICE_NAME", "hive"),
        set("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true"),
    ];
    let otlp = collector(&environment, &none).unwrap().unwrap();
    otlp.send(&[finished(1)]).await.unwrap();
    let came = receiver.came();
    assert_eq!(came[0].0, "/v1/traces");
    assert!(came[0].1.contains(&("x-team".into(), "bees and co".into())));
    let text = String::from_utf8_lossy(&came[0].3).into_owned();
    assert!(text.contains("the answer") && text.contains("\"hive\""), "{text}");
    assert!(collector(&[set("OTEL_EXPORTER_OTLP_ENDPOINT", "file:///x")], &none).is_err());
}

#[tokio::test]
async fn s6_json_lines_are_appended_and_a_long_file_is_set_aside() {
    let (sinks, folder) = host(false);
    let lines = open(&sinks, "json_lines", json!({ "path": "deep/events.jsonl", "max_bytes": 2000 })).unwrap();
    for number in 0..20 {
        lines.send(&[finished(number)]).await.unwrap();
    }
    let path = folder.path().join(Uuid::from_u128(5).to_string()).join("deep/events.jsonl");
    let read = |path: &std::path::Path| std::fs::read_to_string(path).unwrap();
    let (now, aside) = (read(&path), read(&path.with_extension("jsonl.1")));
    let numbers: Vec<u64> = [aside, now]
        .concat()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["number"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers.last(), Some(&19));
    assert!(numbers.len() < 20 && numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{numbers:?}");
    // Without a path it is the flow's name.
    open(&sinks, "json_lines", json!({})).unwrap().send(&[finished(1)]).await.unwrap();
    assert!(path.parent().unwrap().parent().unwrap().join("plan.jsonl").exists());
    for path in ["../x", "/etc/x", "a/../../x"] {
        assert!(open(&sinks, "json_lines", json!({ "path": path })).is_err(), "{path}");
    }
}

#[tokio::test]
async fn a_task_of_a_request_with_a_trace_is_told_in_that_trace() {
    let (receiver, address) = Receiver::listen(&[]).await;
    let (sinks, _folder) = host(true);
    let hook = open(&sinks, "webhook", json!({ "url": format!("{address}/hook") })).unwrap();
    let otlp = open(&sinks, "otlp", json!({ "endpoint": address })).unwrap();
    let (trace, above) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    let done = json!({ "status": "success", "output": null, "exit": null, "at": "2026-01-01T00:00:02.000Z" });
    let root = |flags: &str, task: u128| {
        let mut fact = (*fact(5, "done", done.clone())).clone();
        (fact.task_id, fact.parent_task_id) = (TaskId(Uuid::from_u128(task)), None);
        fact.trace = Some(format!("00-{trace}-{above}-{flags}").parse().unwrap());
        Arc::new(fact)
    };
    hook.send(&[root("01", 6)]).await.unwrap();
    // Of several tasks no one place in a trace is that of all.
    hook.send(&[root("01", 6), root("01", 7)]).await.unwrap();
    otlp.send(&[root("01", 6)]).await.unwrap();
    // Its caller does not record it.
    otlp.send(&[root("00", 6)]).await.unwrap();
    let came = receiver.came();
    let paths: Vec<&str> = came.iter().map(|(path, ..)| path.as_str()).collect();
    assert_eq!(paths, ["/hook", "/hook", "/v1/traces"]);
    let span = &came[2].2["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
    assert_eq!((&span["traceId"], &span["parentSpanId"]), (&json!(trace), &json!(above)));
    let header = |came: &Came| came.1.iter().find(|(name, _)| name == "traceparent").map(|(_, value)| value.clone());
    let own = span["spanId"].as_str().unwrap();
    assert_eq!((header(&came[0]), header(&came[1])), (Some(format!("00-{trace}-{own}-01")), None));
    assert_eq!(came[0].2["events"][0]["traceparent"], format!("00-{trace}-{above}-01"));
}
