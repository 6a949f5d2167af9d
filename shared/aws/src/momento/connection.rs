//! The connection, in the right of a key that may change.

use super::{
    Keys, WHAT,
    wire::{Content, PublishRequest, Pubsub, SubscriptionItem, SubscriptionRequest, TopicValue},
};
use crate::{AwsFault, Class, cooldown::Cooldown};
use bytes::Bytes;
use ports::{Error, Result, Secret};
use serde::Deserialize;
use std::time::Duration;
use tokio::sync::Mutex;
use tonic::{
    Code, Request, Status, Streaming,
    metadata::{Ascii, MetadataValue},
    transport::{ClientTlsConfig, Endpoint},
};

/// How long a connection, and an answer, may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often a silent connection is asked whether it is there.
const ALIVE_EVERY: Duration = Duration::from_secs(10);

/// The connection to Momento, made when it is first needed and again for every new key.
pub(super) struct MomentoConnection {
    keys: Keys,
    standing: Mutex<Option<Standing>>,
    /// Begins whenever nothing could be published.
    pub(super) cooldown: Cooldown,
}

#[derive(Clone)]
struct Standing {
    key: Secret,
    authorization: MetadataValue<Ascii>,
    pubsub: Pubsub,
}

/// The content of a key.
#[derive(Deserialize)]
struct Parsed {
    api_key: String,
    endpoint: String,
}

impl MomentoConnection {
    pub(super) fn new(keys: Keys) -> Self {
        Self { keys, standing: Mutex::new(None), cooldown: Cooldown::default() }
    }

    pub(super) async fn publish(&self, cache: &str, topic: String, content: Bytes) -> Result<()> {
        if self.cooldown.is_on() {
            return Err(Error::unavailable(WHAT, AwsFault::unknown("it took nothing a moment ago")));
        }
        // Also after an answer: without the right to publish, it would ask for the key again with every message.
        self.send(cache, topic, content).await.inspect_err(|_| self.cooldown.begin())
    }

    /// The same, also to one that is left alone: to find out whether it is there.
    pub(super) async fn send(&self, cache: &str, topic: String, content: Bytes) -> Result<()> {
        let value = Some(TopicValue { content: Some(Content::Binary(content)) });
        let message = PublishRequest { cache_name: cache.to_owned(), topic, value };
        let standing = self.standing(None).await?;
        let Err(status) = standing.publish(cache, message.clone()).await else { return Ok(()) };
        let renewed = self.renewed(&standing, &status).await?;
        renewed.publish(cache, message).await.map_err(|status| unavailable(&status))
    }

    /// The topic's messages from now on.
    pub(super) async fn subscribe(&self, cache: &str, topic: &str) -> Result<Streaming<SubscriptionItem>> {
        let wanted = SubscriptionRequest { cache_name: cache.to_owned(), topic: topic.to_owned() };
        let standing = self.standing(None).await?;
        let status = match standing.subscribe(cache, wanted.clone()).await {
            Ok(stream) => return Ok(stream),
            Err(status) => status,
        };
        let renewed = self.renewed(&standing, &status).await?;
        renewed.subscribe(cache, wanted).await.map_err(|status| unavailable(&status))
    }

    /// The connection in the right of another key, where that of `standing` was refused and there is another one.
    async fn renewed(&self, standing: &Standing, status: &Status) -> Result<Standing> {
        if !matches!(status.code(), Code::Unauthenticated | Code::PermissionDenied) {
            return Err(unavailable(status));
        }
        let renewed = self.standing(Some(&standing.key)).await?;
        if renewed.key == standing.key { Err(unavailable(status)) } else { Ok(renewed) }
    }

    /// The connection; made anew when the key of the one that stands was refused.
    async fn standing(&self, refused: Option<&Secret>) -> Result<Standing> {
        // Held while the key is fetched: other tasks that need it wait for the same one.
        let mut standing = self.standing.lock().await;
        if let Some(standing) = standing.as_ref().filter(|standing| refused != Some(&standing.key)) {
            return Ok(standing.clone());
        }
        let key = (self.keys)().await?;
        if let Some(same) = standing.as_ref().filter(|standing| standing.key == key) {
            return Ok(same.clone());
        }
        if refused.is_some() {
            tracing::info!("the key of the bus was rotated");
        }
        Ok(standing.insert(connect(key)?).clone())
    }
}

impl Standing {
    async fn publish(&self, cache: &str, message: PublishRequest) -> std::result::Result<(), Status> {
        in_time(self.pubsub.clone().publish(self.request(cache, message)?)).await
    }

    async fn subscribe(
        &self,
        cache: &str,
        wanted: SubscriptionRequest,
    ) -> std::result::Result<Streaming<SubscriptionItem>, Status> {
        in_time(self.pubsub.clone().subscribe(self.request(cache, wanted)?)).await
    }

    fn request<T>(&self, cache: &str, message: T) -> std::result::Result<Request<T>, Status> {
        let mut request = Request::new(message);
        let headers = request.metadata_mut();
        headers.insert("authorization", self.authorization.clone());
        let cache = cache.parse().map_err(|_| Status::invalid_argument("the cache's name is no header"))?;
        headers.insert("cache", cache);
        headers.insert("agent", MetadataValue::from_static("rust:topic:buildscale"));
        Ok(request)
    }
}

async fn in_time<T>(answer: impl Future<Output = std::result::Result<T, Status>>) -> std::result::Result<T, Status> {
    let answered = tokio::time::timeout(PATIENCE, answer).await;
    answered.unwrap_or_else(|_| Err(Status::deadline_exceeded("no answer")))
}

/// Without asking anybody: the connection is made with the first request.
fn connect(key: Secret) -> Result<Standing> {
    // For any fault of it, the key is not shown.
    let wrong =
        || Error::unavailable(WHAT, refused("the key of the bus is neither a token of Momento nor a JSON object"));
    let text = key.expose().trim();
    let json = match text.starts_with('{') {
        true => text.as_bytes().to_vec(),
        false => aws_smithy_types::base64::decode(text.replace('-', "+").replace('_', "/")).map_err(|_| wrong())?,
    };
    let Parsed { api_key, endpoint } = serde_json::from_slice(&json).map_err(|_| wrong())?;
    let authorization = api_key.parse().map_err(|_| wrong())?;
    // A whole address is a test's.
    let is_plain = endpoint.starts_with("http://");
    let address = if is_plain { endpoint } else { format!("https://cache.{endpoint}:443") };
    let endpoint = Endpoint::from_shared(address).map_err(|_| wrong())?;
    let mut endpoint = endpoint
        .connect_timeout(PATIENCE)
        .http2_keep_alive_interval(ALIVE_EVERY)
        .keep_alive_timeout(PATIENCE)
        .keep_alive_while_idle(true);
    if !is_plain {
        endpoint = endpoint.tls_config(ClientTlsConfig::new().with_native_roots()).map_err(|_| wrong())?;
    }
    Ok(Standing { key, authorization, pubsub: Pubsub::new(endpoint.connect_lazy()) })
}

fn refused(message: &str) -> AwsFault {
    AwsFault { class: Class::Refused, code: None, message: message.to_owned() }
}

fn unavailable(status: &Status) -> Error {
    let class = match status.code() {
        Code::ResourceExhausted => Class::Throttled,
        Code::InvalidArgument | Code::Unauthenticated | Code::PermissionDenied | Code::NotFound => Class::Refused,
        _ => Class::Unknown,
    };
    Error::unavailable(
        WHAT,
        AwsFault { class, code: Some(format!("{:?}", status.code())), message: status.message().to_owned() },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_key_is_a_token_or_a_json_object_and_is_never_shown() {
        let json = r#"{"api_key": "very-secret", "endpoint": "cell-1.momentohq.com"}"#;
        let token = aws_smithy_types::base64::encode(json);
        for key in [json, &token, &format!(" {token}\n")] {
            assert!(connect(Secret::new(key)).is_ok());
        }
        for wrong in ["very-secret", "{}", r#"{"api_key": "very-secret\u0000", "endpoint": "e"}"#, ""] {
            let error =
                connect(Secret::new(wrong)).map(drop).err().map(|error| format!("{error:?}")).unwrap_or_default();
            assert!(error.contains("neither a token") && !error.contains("very-secret"), "{error}");
        }
    }
}
