//! OTLP over HTTP, in its JSON form: a span per task, node, turn of a chat, call of a model and use of a tool, with the `gen_ai.*`
//! attributes of OpenTelemetry's semantic conventions, and metrics of usage. The texts of agents are left out unless the configuration
//! wants them.
//!
//! The OpenTelemetry SDK would bring protobuf and a second way of batching and retrying; only the shape of two JSON documents is needed
//! here.

mod attributes;
mod metrics;
mod spans;
mod turns;

pub(crate) use spans::task_span_id;
pub use turns::TurnLog;

use crate::{
    Credential,
    answer::{settled, unreachable},
};
use async_trait::async_trait;
use domain::ChatId;
use parking_lot::Mutex;
use reqwest::{Client, Url};
use serde_json::{Value, json};
use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};
use telemetry::{Sink, SinkError, TaskFact};

/// Conversations that are remembered until their node ends.
const KEPT: usize = 10_000;

/// How a collector is spoken with.
#[derive(Clone)]
pub struct OtlpOptions {
    /// Headers that requests have; their values are secrets.
    pub headers: Vec<(String, Credential)>,
    /// `service.name`.
    pub service_name: String,
    /// Whether the spans have the inputs and outputs of agents and tools.
    pub content: bool,
}

impl Default for OtlpOptions {
    fn default() -> Self {
        Self { headers: Vec::new(), service_name: "buildscale".into(), content: false }
    }
}

/// A collector.
pub struct Otlp {
    http: Client,
    traces: Url,
    metrics: Url,
    options: OtlpOptions,
    /// The chats of agents that are being asked, by their node's span.
    chats: Mutex<HashMap<String, ChatId>>,
}

impl Otlp {
    /// Sends to `endpoint`, under which `v1/traces` and `v1/metrics` are.
    pub fn new(http: Client, endpoint: &Url, options: OtlpOptions) -> Self {
        let under = |name: &str| {
            let mut url = endpoint.clone();
            if let Ok(mut path) = url.path_segments_mut() {
                path.pop_if_empty().extend(["v1", name]);
            }
            url
        };
        Self { http, traces: under("traces"), metrics: under("metrics"), options, chats: Mutex::default() }
    }

    async fn post(&self, url: &Url, body: &Value) -> Result<(), SinkError> {
        let mut request = self.http.post(url.clone()).json(body);
        for (name, secret) in &self.options.headers {
            request = request.header(name, secret.get().await?.expose());
        }
        let response = request.send().await.map_err(|error| unreachable(&error))?;
        settled(response.status())
    }

    async fn post_spans(&self, part: &str, spans: Vec<Value>) -> Result<(), SinkError> {
        if spans.is_empty() {
            return Ok(());
        }
        let scope = json!([{ "scope": scope(part), "spans": spans }]);
        let body = json!({ "resourceSpans": [{ "resource": self.resource(), "scopeSpans": scope }] });
        self.post(&self.traces, &body).await
    }

    /// Sends the spans of turns.
    ///
    /// # Errors
    /// They were not taken. The same turns can be sent again: their spans have the same ids.
    pub async fn send_turns(&self, turns: &[TurnLog]) -> Result<(), SinkError> {
        let spans = turns.iter().flat_map(|turn| turns::spans(turn, self.options.content)).collect();
        self.post_spans("chat", spans).await
    }

    fn resource(&self) -> Value {
        let attributes = attributes::Attributes::default()
            .text("service.name", &self.options.service_name)
            .text("service.version", env!("CARGO_PKG_VERSION"));
        json!({ "attributes": attributes.into_value() })
    }

    /// The chat of the agent that a node asked, as far as it was told. It is known until [`Otlp::forget`]: a batch that was not taken comes again.
    fn chat_of(&self, fact: &TaskFact) -> Option<ChatId> {
        let span = spans::node_span(fact)?;
        let mut chats = self.chats.lock();
        match fact.event {
            "agent_asked" => {
                let chat = fact.data.get("chat_id")?.as_str()?.parse().ok()?;
                // Some nodes never tell their end, as where their process died. Where there is no place, any one of the nodes gives up its own.
                if chats.len() >= KEPT
                    && !chats.contains_key(&span)
                    && let Some(any) = chats.keys().next().cloned()
                {
                    chats.remove(&any);
                }
                chats.insert(span, chat);
                None
            }
            "node_finished" => chats.get(&span).copied(),
            _ => None,
        }
    }

    /// Forgets the chats of nodes that have ended, once that was taken. A node may have begun again in the same batch.
    fn forget(&self, batch: &[Arc<TaskFact>]) {
        let mut ended = BTreeSet::new();
        for (fact, span) in batch.iter().filter_map(|fact| Some((fact, spans::node_span(fact)?))) {
            match fact.event {
                "node_finished" => _ = ended.insert(span),
                "agent_asked" => _ = ended.remove(&span),
                _ => {}
            }
        }
        let mut chats = self.chats.lock();
        for span in &ended {
            chats.remove(span);
        }
    }
}

/// The instrumentation scope.
fn scope(part: &str) -> Value {
    json!({ "name": format!("buildscale.{part}"), "version": env!("CARGO_PKG_VERSION") })
}

#[async_trait]
impl Sink for Otlp {
    async fn send(&self, batch: &[Arc<TaskFact>]) -> Result<(), SinkError> {
        let mut spans = Vec::new();
        for fact in batch {
            let chat = self.chat_of(fact);
            spans.extend(spans::span(fact, chat, self.options.content));
        }
        self.post_spans("flow", spans).await?;
        self.forget(batch);
        let metrics = metrics::metrics(batch);
        if !metrics.is_empty() {
            let scope = json!([{ "scope": scope("flow"), "metrics": metrics }]);
            let body = json!({ "resourceMetrics": [{ "resource": self.resource(), "scopeMetrics": scope }] });
            // The spans are there; sending them twice for the sake of these would be worse than to miss these.
            if let Err(lost) = self.post(&self.metrics, &body).await {
                tracing::debug!(why = lost.why, "a collector did not take metrics");
            }
        }
        Ok(())
    }
}
