//! The model port: a request in, a stream of deltas out.

use crate::Secret;
use async_trait::async_trait;
use bytes::Bytes;
use domain::{Message, ToolSpec, TraceContext, Usage, WorkspaceId, event::StopReason, task::FlowRef};
use futures::stream::BoxStream;
use serde_json::{Map, Value};
use std::{sync::Arc, time::Duration};
use uuid::Uuid;

/// One request to a model.
#[derive(Clone, Debug, Default)]
pub struct ModelRequest {
    /// The model, such as `gpt-4o-mini` or `anthropic/claude-sonnet-4-5`; none for the default one.
    pub model: Option<String>,
    /// The system text: persona, skills index. The same for the whole chat.
    pub system: Arc<str>,
    /// The history, oldest first; each call is followed by its result.
    pub messages: Arc<[Arc<Message>]>,
    /// The tools that it may call.
    pub tools: Arc<[Arc<ToolSpec>]>,
    /// The chat, for the provider's cache and for correlation.
    pub conversation: String,
    /// The temperature, if it was chosen; the model's own default when none.
    pub temperature: Option<f64>,
    /// The share of the likeliest tokens to sample from (`top_p`), from 0 to 1, if it was chosen.
    pub top_p: Option<f64>,
    /// The most tokens of the answer, if a limit was chosen.
    pub max_tokens: Option<u32>,
    /// The JSON schema of an object that the answer has to be, as JSON text. A model that its provider cannot hold to a schema, or not beside tools, is
    /// asked without it, so an answer may be anything.
    pub schema: Option<Arc<Value>>,
    /// The flow whose `providers.yaml` configures the model, and its workspace; only for an agent of a flow that declares the model's
    /// provider. Else the installation's own model is asked.
    pub flow: Option<(WorkspaceId, FlowRef)>,
    /// How often this very request has failed and was [postponed](ModelError::Postponed).
    pub failures: u32,
    /// The place of the call in a distributed trace, where the turn is in one: the provider is told it.
    pub trace: Option<TraceContext>,
    /// The files that its messages refer to, for a model that takes such files; any other one has words beside each reference.
    pub media: Vec<Arc<Media>>,
}

/// A file that a model sees or hears: an image, a PDF or a sound.
#[derive(Clone, PartialEq, Eq)]
pub struct Media {
    /// The message or the call that it belongs to.
    pub of: Uuid,
    /// The name of the file.
    pub name: String,
    /// Its media type, such as `image/png`.
    pub media_type: &'static str,
    /// Its content.
    pub bytes: Bytes,
}

impl std::fmt::Debug for Media {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({}, {} bytes)", self.name, self.media_type, self.bytes.len())
    }
}

/// A provider as a flow configures it.
#[derive(Clone, Debug, PartialEq)]
pub struct Endpoint {
    /// The adapter that speaks with it, such as `openai`.
    pub adapter: String,
    /// Its base URL; the adapter's default when none.
    pub base_url: Option<String>,
    /// Its key.
    pub key: Option<Secret>,
    /// Further settings of its adapter.
    pub config: Map<String, Value>,
}

/// Makes models from the configuration of flows.
///
/// Guarantees: no connection is made, and no error has the key or the address in it.
pub trait ModelAdapters: Send + Sync {
    /// A model whose requests name it as the provider does, without a prefix.
    ///
    /// # Errors
    /// `Rejected` for an unknown adapter, an address that may not be reached, and a configuration that the adapter does not take.
    fn open(&self, endpoint: &Endpoint) -> Result<Arc<dyn Model>, ModelError>;
}

/// A piece of a model's answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Delta {
    /// A piece of its reasoning.
    Reasoning(String),
    /// A piece of its text.
    Text(String),
    /// One whole tool call. `args` is the model's own text: JSON, or text that the model took for JSON.
    Call {
        /// The tool's name.
        tool: String,
        /// The arguments.
        args: String,
    },
    /// The end; nothing comes after it. A stream that ends without it was cut off.
    End {
        /// The reason: `EndTurn` also when it ends in calls.
        reason: StopReason,
        /// The tokens used, with their cost if prices are known.
        usage: Usage,
        /// Data that the provider wants back with this message.
        provider: Value,
        /// The model that answered, as its provider names it, such as `openai/gpt-5-mini-2025-08-07`; where that is not known, none.
        model: Option<String>,
    },
}

/// The answer as it comes.
pub type ModelStream = BoxStream<'static, Result<Delta, ModelError>>;

/// Why a model did not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// Too many requests (429).
    #[error("the model provider is limiting requests")]
    RateLimited {
        /// When it says to come again.
        retry_after: Option<Duration>,
    },
    /// A fault on the provider's side or on the way (5xx, connection, time-out).
    #[error("the model provider did not answer: {0}")]
    Unavailable(String),
    /// The provider refuses the credentials, or none are configured.
    #[error("the model provider refuses the credentials: {0}")]
    Unauthorized(String),
    /// The request cannot be served as it is, as with an unknown model.
    #[error("the model provider refuses the request: {0}")]
    Rejected(String),
    /// The request of a chat is longer than the context of its model.
    #[error("the model provider refuses the request as too long: {0}")]
    TooLong(String),
    /// The stream broke off or made no sense.
    #[error("the model's answer broke off: {0}")]
    Broken(String),
    /// A failure that passes, before any part of an answer was passed on, with a time to ask again. The caller waits, and holds nothing
    /// meanwhile.
    #[error("{why}")]
    Postponed {
        /// How long to wait.
        after: Duration,
        /// How often the request has failed; it is made again with this number.
        failures: u32,
        /// The last failure.
        why: Box<ModelError>,
    },
}

impl ModelError {
    /// Whether the same request may be served later.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::RateLimited { .. } | Self::Unavailable(_) | Self::Broken(_) | Self::Postponed { .. })
    }
}

/// A model that can be asked for.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct ModelInfo {
    /// The id to request it with.
    pub id: String,
    /// The provider that serves it: `openai`, `anthropic`, `gemini`, `scripted`, ….
    pub provider: String,
    /// Whether it can be asked now: its credentials are configured.
    pub available: bool,
    /// The reason if it is not available, or a remark about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Whether it serves requests that name no model.
    pub default: bool,
    /// The tokens that fit its context, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
}

/// Models.
#[async_trait]
pub trait Model: Send + Sync {
    /// Asks the model that the request names. Dropping the stream ends the request.
    ///
    /// # Errors
    /// [`ModelError::Rejected`] for a model that there is not and for a request that the provider would refuse. Any [`ModelError`] may come
    /// here or as an item of the stream, which it ends; an adapter that tries again reports the others in the stream.
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError>;
    /// The models that can be requested.
    fn catalog(&self) -> Vec<ModelInfo>;
    /// The cost of this usage of a model, or of the default one, in US dollars, as an estimate for a call whose answer is not read to its end; 0 if the
    /// price is not known.
    fn cost(&self, _model: Option<&str>, _usage: &Usage) -> f64 {
        0.0
    }
    /// The model of requests that name none, such as `openai/gpt-5-mini`: the one that the catalog marks.
    fn default_model(&self) -> Option<String> {
        self.catalog().into_iter().find(|model| model.default).map(|model| model.id)
    }
}
