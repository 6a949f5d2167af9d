//! Webhooks: facts as signed POSTs, in the form of Standard Webhooks (<https://www.standardwebhooks.com>), for which there are
//! libraries everywhere.
//!
//! | header | |
//! |---|---|
//! | `webhook-id` | the same for a batch that comes again |
//! | `webhook-timestamp` | when it was sent, in seconds since 1970 |
//! | `traceparent` | where the request for the task named a trace, and the batch is of one task |
//! | `webhook-signature` | `v1,` and the base64 of the HMAC-SHA256 of `id.timestamp.body` under the secret |

use crate::{
    Credential,
    answer::{settled, unreachable},
    otlp::task_span_id,
};
use async_trait::async_trait;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use domain::{Sha256, TraceContext};
use hmac::{Hmac, Mac};
use ports::Clock;
use reqwest::{Client, Url, header::CONTENT_TYPE};
use serde_json::json;
use std::sync::Arc;
use telemetry::{Sink, SinkError, TaskFact};

/// A webhook.
pub struct Webhook {
    http: Client,
    url: Url,
    secret: Option<Credential>,
    clock: Arc<dyn Clock>,
}

impl Webhook {
    /// Posts to `url`. Without a secret nothing is signed.
    pub fn new(http: Client, url: Url, secret: Option<Credential>, clock: Arc<dyn Clock>) -> Self {
        Self { http, url, secret, clock }
    }
}

/// The value of `webhook-signature`. A secret of the form `whsec_…` is the base64 of a key; any other is the key itself.
pub fn signature(secret: &str, id: &str, timestamp: i64, body: &[u8]) -> String {
    let coded = secret.strip_prefix("whsec_").and_then(|coded| STANDARD.decode(coded).ok());
    let key = coded.unwrap_or_else(|| secret.as_bytes().to_vec());
    let Ok(mut mac) = Hmac::<sha2::Sha256>::new_from_slice(&key) else { return String::new() };
    mac.update(format!("{id}.{timestamp}.").as_bytes());
    mac.update(body);
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

#[async_trait]
impl Sink for Webhook {
    async fn send(&self, batch: &[Arc<TaskFact>]) -> Result<(), SinkError> {
        let facts: Vec<&TaskFact> = batch.iter().map(AsRef::as_ref).collect();
        let body = serde_json::to_vec(&json!({ "type": "task.events", "events": facts }));
        let body = body.map_err(|error| SinkError::for_good(error.to_string()))?;
        let id: String = format!("msg_{}", Sha256::of(&body)).chars().take(36).collect();
        let timestamp = self.clock.now().as_millis() / 1000;
        let mut request = self
            .http
            .post(self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header("webhook-id", &id)
            .header("webhook-timestamp", timestamp.to_string());
        if let Some(secret) = &self.secret {
            let secret = secret.get().await?;
            request = request.header("webhook-signature", signature(secret.expose(), &id, timestamp, &body));
        }
        if let Some(trace) = shared_trace(batch) {
            request = request.header("traceparent", trace.to_string());
        }
        let response = request.body(body).send().await.map_err(|error| unreachable(&error))?;
        settled(response.status())
    }
}

/// The place of a batch in a trace: the task's span, where all of it is of one task.
fn shared_trace(batch: &[Arc<TaskFact>]) -> Option<TraceContext> {
    let first = batch.first()?;
    let is_one = batch.iter().all(|fact| fact.task_id == first.task_id);
    first.trace.filter(|_| is_one).map(|trace| trace.below(task_span_id(first.task_id)))
}

#[cfg(test)]
mod tests {
    use super::signature;

    /// The example of the specification's own libraries.
    #[test]
    fn signatures_are_those_of_standard_webhooks() {
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let (id, timestamp) = ("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330);
        let signed = signature(secret, id, timestamp, br#"{"test": 2432232314}"#);
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert_ne!(signature("other", id, timestamp, b"{}"), signature("another", id, timestamp, b"{}"));
    }
}
