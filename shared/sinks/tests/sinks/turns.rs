//! Turns of chats as spans, with a collector on this machine.
#![expect(clippy::unwrap_used, reason = "tests")]

use axum::{Json, Router, extract::State, routing::post};
use buildscale_sinks::{Collector, TurnLog, collector};
use domain::{
    CallId, ChatConfig, ChatEvent, ChatId, Code, Error, Limits, Message, MessageId, Mode, ModelSettings, StopReason,
    Timestamp, ToolCall, TurnId, Usage, UserId, WorkspaceId, event::RetryWait,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::net::TcpListener;
use uuid::Uuid;

type Came = Arc<Mutex<Vec<Value>>>;

async fn take(State(came): State<Came>, Json(body): Json<Value>) {
    let spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone();
    came.lock().extend(spans);
}

/// The spans of this turn that a collector receives.
async fn sent(turn: TurnLog, content: bool) -> Vec<Value> {
    let came = Came::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = Some(format!("http://{}", listener.local_addr().unwrap()));
    let service = Router::new().route("/v1/traces", post(take)).with_state(came.clone());
    tokio::spawn(async move { axum::serve(listener, service).await.unwrap() });
    let otlp = collector(&[], &Collector { endpoint, content, ..Collector::default() }).unwrap().unwrap();
    otlp.send_turns(&[turn]).await.unwrap();
    came.lock().clone()
}

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

fn config() -> Arc<ChatConfig> {
    Arc::new(ChatConfig {
        workspace: WorkspaceId(Uuid::from_u128(1)),
        chat: ChatId(Uuid::from_u128(2)),
        user: UserId(Uuid::from_u128(3)),
        title: "t".into(),
        role: "assistant".into(),
        model: None,
        model_settings: ModelSettings::default(),
        mode: Mode::Chat,
        limits: Limits::default(),
        system: String::new(),
        cut: Vec::new(),
        tools: None,
        plan: None,
        context_tokens: 100,
        created_at: at(0),
        agent: None,
        thread: None,
        forked_from: None,
        session: None,
        scenario: None,
        member: None,
        functions: Vec::new(),
        labels: domain::Labels::default(),
    })
}

/// A turn in which much goes wrong: a provider that is asked again, a process that dies with a tool, and a last call that fails.
fn turn() -> TurnLog {
    let (turn_id, call_id) = (TurnId(Uuid::from_u128(9)), CallId(Uuid::from_u128(8)));
    let [first, last] = [4, 5].map(|id| MessageId(Uuid::from_u128(id)));
    let started = |attempt| ChatEvent::TurnStarted {
        turn_id,
        attempt,
        asked_at: at(900),
        limits: Limits::default(),
        may_approve: false,
        trace: None,
    };
    let asked = |message_id, attempt, ms| ChatEvent::ModelStarted { message_id, attempt, at: at(ms), context: None };
    let called = |attempt, ms| ChatEvent::CallStarted {
        call_id,
        attempt,
        tool: "exec".into(),
        path: None,
        args: "private arguments".into(),
        at: Some(at(ms)),
    };
    let calls = vec![ToolCall { call_id, tool: "exec".into(), args: "{}".into() }];
    let message = Message::Assistant {
        id: first,
        at: at(4_000),
        content: "private words".into(),
        calls,
        reasoning: String::new(),
        provider: Value::Null,
    };
    let busy = Error::new(Code::RateLimited, "busy");
    let refused = Error::new(Code::UpstreamRefused, "the key is refused");
    let usage = Usage { input_tokens: 10, output_tokens: 5, cached_tokens: 2, cost_usd: 0.5 };
    let model = Some("openai/x-1".into());
    let used = ChatEvent::Used { usage, context_used: 1, context_limit: 2, model, estimated: false };
    let events = vec![
        (1_000, started(1)),
        (1_000, asked(first, 1, 1_000)),
        (
            1_500,
            ChatEvent::ModelPostponed(RetryWait {
                message_id: first,
                failures: 1,
                error: busy,
                at: at(1_500),
                until: at(2_000),
            }),
        ),
        (2_000, asked(first, 2, 2_000)),
        (2_300, ChatEvent::Chunk { text: "private".into(), message_id: first }),
        (2_600, ChatEvent::Chunk { text: " words".into(), message_id: first }),
        (4_000, ChatEvent::MessageAdded { message }),
        (4_000, used),
        (4_000, called(1, 4_000)),
        (6_000, started(2)),
        (6_000, called(2, 6_000)),
        (
            7_000,
            ChatEvent::Observed {
                call_id,
                tool: "exec".into(),
                output: "private result".into(),
                success: false,
                misuse: false,
                code: Some(Code::Timeout),
                resources: None,
                truncated: false,
                seen: Vec::new(),
                at: at(7_000),
            },
        ),
        (7_000, asked(last, 1, 7_000)),
        (7_500, ChatEvent::Failed { error: refused }),
        (7_500, ChatEvent::Done { turn_id, message: String::new(), stop_reason: StopReason::Error, at: at(7_500) }),
    ];
    let events = events.into_iter().map(|(ms, event)| (at(ms), event)).collect();
    TurnLog { config: config(), usual_model: Some("openai/usual".into()), events }
}

fn attribute(span: &Value, key: &str) -> Value {
    let all = span["attributes"].as_array().unwrap();
    let found = all.iter().find(|one| one["key"] == key).map(|one| one["value"].clone());
    found.and_then(|value| value.as_object()?.values().next().cloned()).unwrap_or_default()
}

#[tokio::test]
async fn every_attempt_of_a_call_is_a_span_with_what_came_of_it() {
    let spans = sent(turn(), false).await;
    let shown: Vec<_> = spans
        .iter()
        .map(|span| {
            let time = |key: &str| span[key].as_str().unwrap().parse::<u64>().unwrap() / 1_000_000;
            let times = (time("startTimeUnixNano"), time("endTimeUnixNano"));
            (span["name"].as_str().unwrap(), times, attribute(span, "error.type"))
        })
        .collect();
    let none = Value::Null;
    let expected = [
        ("chat usual", (1_000, 1_500), json!("RATE_LIMITED")),
        ("chat usual", (2_000, 4_000), none),
        ("chat usual", (7_000, 7_500), json!("UPSTREAM_REFUSED")),
        ("execute_tool exec", (4_000, 6_000), json!("interrupted")),
        ("execute_tool exec", (6_000, 7_000), json!("TIMEOUT")),
        ("invoke_agent assistant", (1_000, 7_500), json!("UPSTREAM_REFUSED")),
    ];
    assert_eq!(shown, expected);
    let (good, whole) = (&spans[1], &spans[5]);
    assert_eq!(attribute(good, "buildscale.first_token_ms"), "300");
    assert_eq!(attribute(good, "gen_ai.usage.input_tokens"), "10");
    assert_eq!(attribute(good, "gen_ai.response.model"), "x-1");
    assert_eq!(attribute(good, "gen_ai.request.model"), "usual");
    assert_eq!(attribute(whole, "buildscale.turn.queue_ms"), "100");
    assert_eq!(attribute(whole, "buildscale.turn.attempts"), "2");
    assert_eq!(whole["status"], json!({ "code": 2, "message": "the key is refused" }));
    // Without a request's trace the turn is a trace of its own.
    assert!(whole.get("parentSpanId").is_none());
    assert!(spans.iter().all(|span| span["traceId"] == format!("{:032x}", 9)));
    let ids: std::collections::BTreeSet<&str> = spans.iter().map(|span| span["spanId"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 6);
    let text = Value::Array(spans.clone()).to_string();
    assert!(!text.contains("private"), "{text}");
}

#[tokio::test]
async fn the_same_turn_makes_the_same_spans_and_content_is_in_them_where_it_is_wanted() {
    assert_eq!(sent(turn(), false).await, sent(turn(), false).await);
    let text = Value::Array(sent(turn(), true).await).to_string();
    for said in ["private words", "private arguments", "private result"] {
        assert!(text.contains(said), "{said} is not in {text}");
    }
}
