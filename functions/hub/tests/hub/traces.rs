//! A hub whose turns are traced: from the request that begins one, through the provider of its model, to the collector.

use crate::support::{Result, start};
use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, Uri},
};
use journeys::Stub;
use parking_lot::Mutex;
use reqwest::Method;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::net::TcpListener;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const ABOVE: &str = "00f067aa0ba902b7";
const PRIVATE: &str = "words that only the two of us know";

#[derive(Clone, Default)]
struct Collector {
    spans: Arc<Mutex<Vec<Value>>>,
    keys: Arc<Mutex<Vec<String>>>,
}

async fn collect(State(collector): State<Collector>, uri: Uri, headers: HeaderMap, body: Bytes) {
    if uri.path() != "/v1/traces" {
        return;
    }
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let scopes = body["resourceSpans"][0]["scopeSpans"].as_array().cloned().unwrap_or_default();
    let spans = scopes.iter().flat_map(|scope| scope["spans"].as_array().cloned().unwrap_or_default());
    collector.spans.lock().extend(spans);
    let key = headers.get("x-key").and_then(|key| key.to_str().ok()).unwrap_or_default().to_owned();
    collector.keys.lock().push(key);
}

fn attribute<'a>(span: &'a Value, key: &str) -> &'a Value {
    let found = span["attributes"].as_array().into_iter().flatten().find(|one| one["key"] == key);
    found.map_or(&Value::Null, |one| &one["value"])
}

#[tokio::test]
async fn a_turn_is_traced_from_its_request_through_the_provider_to_the_collector() -> Result {
    // It calls a tool, then says something.
    let stub = Stub::start(|asked| {
        let answered = asked.body["messages"].as_array().is_some_and(|all| all.iter().any(|one| one["role"] == "tool"));
        let named = |mut frame: Value| {
            frame["model"] = json!("small-2026");
            frame
        };
        if answered {
            let said = Stub::piece(json!({ "content": PRIVATE }), json!("stop"));
            return vec![named(said), Stub::usage(20, 7)];
        }
        let function = json!({ "name": "ls", "arguments": "{\"path\": \"/\"}" });
        let call = json!({ "tool_calls": [{ "index": 0, "id": "call_1", "type": "function", "function": function }] });
        vec![named(Stub::piece(call, json!("tool_calls"))), Stub::usage(10, 5)]
    })
    .await?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let collector = Collector::default();
    let address = format!("http://{}", listener.local_addr()?);
    let service = Router::new().fallback(collect).with_state(collector.clone());
    tokio::spawn(async move { axum::serve(listener, service).await });

    let data = tempfile::tempdir()?;
    let file = format!(
        "[telemetry]\notlp_endpoint = \"{address}\"\notlp_headers_secret = \"x-key=planted%20key\"\n[ai]\nmodel = \
         \"openai/small\"\n[ai.openai]\nbase_url = \"{}\"\napi_key = \"k\"\n",
        stub.base
    );
    std::fs::write(data.path().join("buildscale.toml"), file)?;
    let mut hub = start(data.path(), &[("BUILDSCALE__AI__MODEL", "openai/small")]).await?;
    let client = hub.client();
    let place = client.place().await?;
    let parent = format!("00-{TRACE}-{ABOVE}-01");
    let begin = |parent: String, goal: &'static str| {
        let body = json!({ "goal": goal, "model": "openai/small" });
        let request = client.request(Method::POST, &format!("{place}/chats"));
        request.header("traceparent", parent).json(&body)
    };
    let made = client.send(begin(parent, PRIVATE)).await?.is(202)?.json();
    let chat = made["chat_id"].as_str().ok_or("no chat_id")?.to_owned();
    let at = format!("{place}/chats/{chat}");
    client.watch(&at).until_event("done").await?;
    // A trace that its caller does not record goes on to the provider, and not to the collector.
    let silent = format!("00-{}-{ABOVE}-00", TRACE.replace('4', "5"));
    let other = client.send(begin(silent, "again")).await?.is(202)?.json();
    let other = format!("{place}/chats/{}", other["chat_id"].as_str().ok_or("no chat_id")?);
    client.watch(&other).until_event("done").await?;
    let counted = |metrics: &Value| {
        let labels = "provider=\"openai\",model=\"small\"";
        let text = metrics.as_str().unwrap_or_default();
        text.contains(&format!("buildscale_model_duration_seconds_count{{{labels}}} 4\n"))
            && text.contains(&format!("buildscale_model_used_tokens_total{{{labels},direction=\"output\"}} 24\n"))
            && text.contains("buildscale_turn_duration_seconds_count{outcome=\"done\"} 2\n")
    };
    client.until("/metrics", counted).await?;
    // The hub sends waiting traces before it ends.
    assert!(hub.terminate().await?.success());

    let spans = collector.spans.lock().clone();
    let mut names: Vec<&str> = spans.iter().filter_map(|span| span["name"].as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["chat small", "chat small", "execute_tool ls", "invoke_agent assistant"], "{spans:#?}");
    assert!(spans.iter().all(|span| span["traceId"] == TRACE), "{spans:#?}");
    let turn = spans.iter().find(|span| span["name"] == "invoke_agent assistant").ok_or("no turn")?;
    assert_eq!(turn["parentSpanId"], ABOVE);
    assert_eq!(attribute(turn, "gen_ai.conversation.id"), &json!({ "stringValue": chat }));
    assert_eq!(attribute(turn, "gen_ai.usage.output_tokens"), &json!({ "intValue": "12" }));
    assert_eq!(turn["status"], json!({ "code": 1 }));
    let below: Vec<&Value> = spans.iter().filter(|span| span["parentSpanId"] == turn["spanId"]).collect();
    assert_eq!(below.len(), 3);
    let calls: Vec<&&Value> = below.iter().filter(|span| span["name"] == "chat small").collect();
    let ends: Vec<&Value> = calls.iter().map(|call| attribute(call, "gen_ai.response.finish_reasons")).collect();
    let list = |reason: &str| json!({ "arrayValue": { "values": [{ "stringValue": reason }] } });
    assert_eq!(ends, [&list("tool_calls"), &list("stop")]);
    for call in &calls {
        assert_eq!(attribute(call, "gen_ai.provider.name"), &json!({ "stringValue": "openai" }));
        assert_eq!(attribute(call, "gen_ai.request.model"), &json!({ "stringValue": "small" }));
        assert_eq!(attribute(call, "gen_ai.response.model"), &json!({ "stringValue": "small-2026" }));
    }
    // The provider was told the span of its own call.
    let told: Vec<String> = stub.asked().into_iter().map(|asked| asked.traceparent).collect();
    let of = |span: &Value| format!("00-{TRACE}-{}-01", span["spanId"].as_str().unwrap_or_default());
    assert_eq!(told.len(), 4, "{told:?}");
    assert_eq!(told[..2], [of(calls[0]), of(calls[1])]);
    assert!(told[2..].iter().all(|told| told.ends_with("-00")), "{told:?}");
    let sent = Value::Array(spans).to_string();
    assert!(!sent.contains(PRIVATE) && !sent.contains("planted"), "{sent}");
    let keys = collector.keys.lock().clone();
    assert!(!keys.is_empty() && keys.iter().all(|key| key == "planted key"), "{keys:?}");
    Ok(())
}
