//! The shared parts of the tests of models: requests, a fake server, and the frames of providers.

pub mod converse;
pub mod eventstream;
pub mod frames;
pub mod recorded;

use buildscale_models::{Config, EgressPolicy, RetryPolicy, Router};
use domain::{CallId, Message, MessageId, Timestamp, ToolCall, ToolSpec};
use futures::StreamExt;
use parking_lot::Mutex;
use ports::{Delta, Model, ModelError, ModelRequest};
use serde_json::{Value, json};
use std::{collections::VecDeque, sync::Arc};
use wiremock::{Mock, MockServer, Request, Respond, ResponseTemplate, matchers};

pub const KEY: &str = "hunter2-hunter2-hunter2";

pub fn user(text: &str) -> Message {
    Message::User {
        id: MessageId::from_key("t", text),
        at: at(),
        content: text.into(),
        files: Vec::new(),
        context: String::new(),
        user_id: None,
    }
}

pub fn note(text: &str) -> Message {
    Message::System { id: MessageId::from_key("t", text), at: at(), content: text.into() }
}

pub fn call_id(name: &str) -> CallId {
    CallId::from_key("t", name)
}

/// An assistant message with calls by name and arguments; their ids are those of [`call_id`].
pub fn says(text: &str, calls: &[(&str, &str)], provider: Value) -> Message {
    let call =
        |(tool, args): &(&str, &str)| ToolCall { call_id: call_id(tool), tool: (*tool).into(), args: (*args).into() };
    Message::Assistant {
        id: MessageId::from_key("t", text),
        at: at(),
        content: text.into(),
        calls: calls.iter().map(call).collect(),
        reasoning: "thought".into(),
        provider,
    }
}

pub fn result(tool: &str, output: &str) -> Message {
    Message::Tool { call_id: call_id(tool), tool: tool.into(), at: at(), output: output.into(), success: true }
}

fn at() -> Timestamp {
    Timestamp::from_millis(0)
}

pub fn request(model: &str, messages: Vec<Message>) -> ModelRequest {
    let tool = |name: &str| {
        Arc::new(ToolSpec {
            name: name.into(),
            description: format!("Does {name}."),
            parameters: json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"], "additionalProperties": false}),
        })
    };
    ModelRequest {
        model: Some(model.into()),
        system: "You are a helper.".into(),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: Arc::new([tool("ls"), tool("read")]),
        conversation: "chat-1".into(),
        ..ModelRequest::default()
    }
}

/// Everything that a model says.
pub async fn answers(model: &dyn Model, request: ModelRequest) -> Vec<Result<Delta, ModelError>> {
    match model.stream(request).await {
        Ok(stream) => stream.collect().await,
        Err(error) => vec![Err(error)],
    }
}

/// The deltas of an answer that must succeed.
pub async fn deltas(model: &dyn Model, request: ModelRequest) -> Vec<Delta> {
    answers(model, request).await.into_iter().collect::<Result<_, _>>().unwrap()
}

/// The error that an answer must end with.
pub async fn error(model: &dyn Model, request: ModelRequest) -> ModelError {
    answers(model, request).await.pop().unwrap().unwrap_err()
}

/// A server that gives these answers, one per request; then 500.
pub struct Server(pub MockServer);

struct InTurn(Mutex<VecDeque<ResponseTemplate>>);

impl Respond for InTurn {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        if let Some(refusal) = converse::refusal(request) {
            return refusal;
        }
        self.0.lock().pop_front().unwrap_or_else(|| ResponseTemplate::new(500).set_body_string("no answer left"))
    }
}

pub fn sse(body: Vec<u8>) -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_raw(body, "text/event-stream")
}

impl Server {
    pub async fn with(answers: Vec<ResponseTemplate>) -> Self {
        let server = MockServer::start().await;
        Mock::given(matchers::any()).respond_with(InTurn(Mutex::new(answers.into()))).mount(&server).await;
        Self(server)
    }

    pub async fn requests(&self) -> Vec<Request> {
        self.0.received_requests().await.unwrap()
    }

    /// A router whose providers are all on this server. It tries twice, without much of a wait.
    pub fn router(&self) -> Router {
        router(&self.0.uri())
    }
}

pub fn router(uri: &str) -> Router {
    let file: Config = serde_json::from_value(json!({
        "retry": {"attempts": 2, "base_ms": 1, "cap_ms": 1, "retry_after_cap_ms": 5},
        "prices": {"test-model": {"input": 1.0, "output": 10.0, "cached": 0.5}},
        "openai": {"api_key": KEY, "base_url": format!("{uri}/v1")},
        "anthropic": {"api_key": KEY, "base_url": uri},
        "gemini": {"api_key": KEY, "base_url": uri},
        "openrouter": {"api_key": KEY, "base_url": format!("{uri}/v1")},
        "ollama": {"base_url": uri, "api": "responses"},
        "bedrock": {"api_key": KEY, "base_url": uri},
    }))
    .unwrap();
    assert_eq!(
        file.retry,
        RetryPolicy { attempts: 2, base_ms: 1, cap_ms: 1, retry_after_cap_ms: 5, ..RetryPolicy::default() }
    );
    Router::new(Config::from_lookup(Some(file), |_| None)).unwrap()
}

/// A policy that lets models of flows reach every address.
pub struct Anywhere;

impl EgressPolicy for Anywhere {
    fn check(&self, _: &str) -> Result<(), String> {
        Ok(())
    }
    fn client(&self, builder: reqwest::ClientBuilder) -> reqwest::ClientBuilder {
        builder
    }
}
