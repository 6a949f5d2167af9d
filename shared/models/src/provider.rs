//! One provider behind HTTP.

use crate::{
    adapters::Reach,
    answer::Answer,
    catalog::{self, AUTO},
    config::{Config, ConfigError, Effort},
    failure, history,
    kind::Kind,
    price,
    secret::Redactor,
};
use async_trait::async_trait;
use genai::{
    Client, ModelIden, ServiceTarget,
    chat::{CacheControl, ChatOptions, ReasoningEffort},
    resolver::{AuthData, Endpoint},
};
use ports::{Clock, Model, ModelError, ModelInfo, ModelRequest, ModelStream, SystemClock};
use reqwest::Url;
use serde_json::json;
use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::sync::OnceCell;

/// A provider. Requests come with the bare name of the model.
pub(crate) struct Provider {
    kind: Kind,
    config: Arc<Config>,
    http: Arc<Http>,
    endpoint: Endpoint,
    /// Not a server of one's own: it takes everything that its documentation says.
    official: bool,
    redactor: Redactor,
    /// What [`AUTO`] stands for.
    first: OnceCell<String>,
}

/// The HTTP client of all providers, made when the first of them is asked: reading the machine's root certificates takes
/// time at start, and a hub that only plays the demo must also run where there are none.
#[derive(Default)]
pub(crate) struct Http {
    made: OnceLock<Result<Client, String>>,
    /// What it may reach; anything when none: then whoever runs the host has chosen the addresses.
    reach: Option<Arc<dyn Reach>>,
}

impl Http {
    /// One that reaches only what it may.
    pub(crate) fn within(reach: Arc<dyn Reach>) -> Self {
        Self { made: OnceLock::new(), reach: Some(reach) }
    }

    fn client(&self) -> Result<&Client, ModelError> {
        let made = self.made.get_or_init(|| make_client(self.reach.as_deref()));
        made.as_ref().map_err(|error| ModelError::Unavailable(error.clone()))
    }
}

/// A client of ours, because genai's would not know whose cryptography to use, and because it must not follow
/// redirects: they would carry the key to wherever they point.
fn make_client(reach: Option<&dyn Reach>) -> Result<Client, String> {
    // Somebody may have chosen before; then theirs is used.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let http = reqwest::Client::builder()
        .connect_timeout(Duration::from_secs(10))
        .redirect(reqwest::redirect::Policy::none())
        .tcp_nodelay(true);
    let http = match reach {
        Some(reach) => reach.client(http),
        None => http,
    };
    let http = http.build().map_err(|error| format!("the HTTP client cannot be made: {error:?}"))?;
    Client::builder().with_reqwest(http).build().map_err(|error| error.to_string())
}

impl Provider {
    pub(crate) fn new(
        kind: Kind,
        config: Arc<Config>,
        http: Arc<Http>,
        redactor: Redactor,
    ) -> Result<Self, ConfigError> {
        let base = kind.config(&config).base_url.clone();
        let endpoint = match &base {
            Some(base) => Endpoint::from_owned(base_url(base, kind)?),
            None => Endpoint::from_owned(kind.base_url(&config)),
        };
        let official = base.is_none();
        Ok(Self { kind, config, http, endpoint, official, redactor, first: OnceCell::new() })
    }

    fn auth(&self) -> Result<AuthData, ModelError> {
        let key = self.kind.config(&self.config).api_key.as_ref();
        let role = self.config.aws.credentials.as_ref().filter(|_| self.kind == Kind::Bedrock);
        match (key, self.kind.key_variable()) {
            (Some(key), _) => Ok(AuthData::from_single(key.expose())),
            // Made anew for each request, because Lambda may have renewed the credentials and the key does not last.
            (None, _) if let Some(role) = role => {
                Ok(AuthData::from_single(role.key(self.config.region(), SystemClock.now()).expose()))
            }
            (None, Some(variable)) if self.official => {
                Err(ModelError::Unauthorized(format!("no key for {}: set {variable}", self.kind.name())))
            }
            // Local servers want a header but do not look at it.
            (None, _) => Ok(AuthData::from_single("none")),
        }
    }

    async fn target(&self, model: &str) -> Result<ServiceTarget, ModelError> {
        let auth = self.auth()?;
        let model = match model {
            AUTO => self.first.get_or_try_init(|| self.first_listed(auth.clone())).await?,
            model => model,
        };
        // genai takes what stands before a double colon for its own, and ARNs have one.
        let model = match self.kind {
            Kind::Bedrock if model.contains("::") => format!("{}::{model}", self.kind.name()),
            _ => model.to_owned(),
        };
        Ok(ServiceTarget { endpoint: self.endpoint.clone(), auth, model: ModelIden::new(self.kind.adapter(), model) })
    }

    async fn first_listed(&self, auth: AuthData) -> Result<String, ModelError> {
        let listed = self.http.client()?.all_model_names(self.kind.adapter(), (self.endpoint.clone(), auth)).await;
        let names = listed.map_err(|error| failure::model_error(error, &self.redactor))?;
        let chats = |name: &&String| !["embed", "rerank", "whisper", "tts"].iter().any(|word| name.contains(word));
        names.iter().find(chats).cloned().ok_or_else(|| {
            ModelError::Rejected(format!(
                "the {} server lists no model: name one in BUILDSCALE_MODEL",
                self.kind.name()
            ))
        })
    }

    fn options(&self, model: &str, request: &ModelRequest) -> ChatOptions {
        let mut options = ChatOptions::default()
            .with_capture_content(true)
            .with_capture_tool_calls(true)
            .with_capture_usage(true)
            .with_capture_reasoning_content(self.reasons(model))
            .with_stream_header_timeout(self.config.retry.first())
            .with_stream_read_timeout(self.config.retry.stall());
        // What the hub's owner set is what the server takes; a request only narrows it.
        options.max_tokens = [self.config.max_output_tokens, request.max_tokens].into_iter().flatten().min();
        options.temperature = request.temperature;
        options.top_p = request.top_p;
        options.reasoning_effort = self.effort(model);
        match self.kind {
            // Says where requests with the same beginning should go, so that they meet their cache.
            Kind::OpenAi | Kind::OpenAiResponses if self.official => {
                options.prompt_cache_key = Some(request.conversation.clone());
            }
            // Marks tools and system text for the cache and, where it is sure to be understood, lets the provider move
            // a second mark along the history. Marks of our own there would change bytes that were already sent.
            Kind::Anthropic => {
                options.cache_control = Some(CacheControl::Ephemeral);
                if self.official {
                    options.extra_body = Some(json!({"cache_control": {"type": "ephemeral"}}));
                }
            }
            _ => {}
        }
        options
    }

    /// Whether to ask for the reasoning's text. Where that shows in the request, models that cannot reason refuse it.
    fn reasons(&self, model: &str) -> bool {
        match self.kind {
            Kind::OpenAiResponses => ["o1", "o3", "o4", "gpt-5", "gpt-6"].iter().any(|name| model.starts_with(name)),
            Kind::Gemini => !["gemini-1", "gemini-2.0"].iter().any(|name| model.starts_with(name)),
            _ => true,
        }
    }

    /// How much reasoning to ask for. Without an effort genai looks for one at the end of the model's name and cuts it
    /// off, which would turn `qwen3-max` into another model; a budget keeps it from looking, and OpenAI's protocols
    /// have no field for a budget, so that nothing is sent.
    fn effort(&self, model: &str) -> Option<ReasoningEffort> {
        let configured = self.config.reasoning.filter(|_| self.reasons(model)).map(|effort| match effort {
            Effort::Low => ReasoningEffort::Low,
            Effort::Medium => ReasoningEffort::Medium,
            Effort::High => ReasoningEffort::High,
        });
        match self.kind {
            Kind::Anthropic | Kind::Gemini | Kind::Bedrock => configured,
            _ => configured.or(Some(ReasoningEffort::Budget(0))),
        }
    }
}

#[async_trait]
impl Model for Provider {
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let target = self.target(request.model.as_deref().unwrap_or(AUTO)).await?;
        let model = target.model.model_name.to_string();
        let options = self.options(&model, &request);
        let chat = history::chat_request(&request, self.kind);
        let answer = self.http.client()?.exec_chat_stream(target, chat, Some(&options)).await;
        let answer = answer.map_err(|error| failure::model_error(error, &self.redactor))?;
        let price = price::price(&format!("{}/{model}", self.kind.name()), &model, &self.config.prices);
        Ok(Answer::new(answer.stream, self.kind, price, self.redactor.clone()).into_stream())
    }

    fn catalog(&self) -> Vec<ModelInfo> {
        catalog::of(self.kind, &self.config)
    }
}

/// A base URL as genai joins it: with the version where the provider's own libraries would add it, and a slash.
fn base_url(text: &str, kind: Kind) -> Result<String, ConfigError> {
    let invalid = |reason: &str| ConfigError::BaseUrl { provider: kind.name(), reason: reason.to_owned() };
    let mut url = Url::parse(text).map_err(|error| invalid(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(invalid("it must begin with http:// or https://"));
    }
    let path = url.path().trim_end_matches('/').to_owned();
    let last = path.rsplit('/').next().unwrap_or_default();
    let has_version = last.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let adds_version = path.is_empty() || matches!(kind, Kind::Anthropic | Kind::Gemini);
    url.set_path(&match kind.version() {
        Some(version) if adds_version && !has_version => format!("{path}/{version}/"),
        _ => format!("{path}/"),
    });
    Ok(url.to_string())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn base_urls_are_taken_as_people_write_them() {
        let check = |kind, text: &str, expected: &str| assert_eq!(base_url(text, kind).unwrap(), expected);
        check(Kind::OpenAi, "http://localhost:8000/v1", "http://localhost:8000/v1/");
        check(Kind::OpenAi, "http://localhost:8000", "http://localhost:8000/v1/");
        check(Kind::OpenAi, "https://host/openai/deployments/x/", "https://host/openai/deployments/x/");
        check(Kind::OpenAi, "https://host/compat/v3?api-version=1", "https://host/compat/v3/?api-version=1");
        check(Kind::Anthropic, "https://api.anthropic.com", "https://api.anthropic.com/v1/");
        check(Kind::Anthropic, "https://proxy/anthropic", "https://proxy/anthropic/v1/");
        check(Kind::Anthropic, "https://proxy/v1/", "https://proxy/v1/");
        check(Kind::Gemini, "https://host/", "https://host/v1beta/");
        check(Kind::Ollama, "http://box:11434", "http://box:11434/v1/");
        check(Kind::Bedrock, "https://vpce-0.bedrock-runtime.aws", "https://vpce-0.bedrock-runtime.aws/");
    }

    fn provider(kind: Kind, config: serde_json::Value) -> Provider {
        let config = Arc::new(serde_json::from_value(config).unwrap());
        Provider::new(kind, config, Arc::default(), Redactor::default()).unwrap()
    }

    fn request() -> ModelRequest {
        ModelRequest { conversation: "chat-1".into(), ..ModelRequest::default() }
    }

    #[test]
    fn a_request_says_how_warm_and_only_narrows_the_length() {
        let check = |config: serde_json::Value, asked: Option<u32>, expected: Option<u32>| {
            let request = ModelRequest { temperature: Some(0.5), top_p: Some(0.9), max_tokens: asked, ..request() };
            let options = provider(Kind::OpenAi, config).options("m", &request);
            assert_eq!((options.temperature, options.top_p, options.max_tokens), (Some(0.5), Some(0.9), expected));
        };
        check(json!({}), None, None);
        check(json!({}), Some(500), Some(500));
        check(json!({"max_output_tokens": 400}), None, Some(400));
        check(json!({"max_output_tokens": 400}), Some(500), Some(400));
        check(json!({"max_output_tokens": 400}), Some(300), Some(300));
    }

    #[test]
    fn what_only_the_provider_itself_understands_is_not_sent_to_imitations() {
        let own = json!({"openai": {"base_url": "http://h/v1"}, "anthropic": {"base_url": "http://h"}});
        let marks = |kind: Kind, config: &serde_json::Value| {
            let options = provider(kind, config.clone()).options("m", &request());
            (options.prompt_cache_key, options.cache_control, options.extra_body)
        };
        let ephemeral = Some(CacheControl::Ephemeral);
        assert_eq!(marks(Kind::OpenAi, &json!({})), (Some("chat-1".into()), None, None));
        assert_eq!(marks(Kind::OpenAi, &own), (None, None, None));
        let moving = Some(json!({"cache_control": {"type": "ephemeral"}}));
        assert_eq!(marks(Kind::Anthropic, &json!({})), (None, ephemeral.clone(), moving));
        assert_eq!(marks(Kind::Anthropic, &own), (None, ephemeral, None));
    }

    #[test]
    fn reasoning_is_asked_for_where_it_can_be_had() {
        let check = |kind: Kind, model: &str, configured: bool, expected: (bool, &str)| {
            let config = if configured { json!({"reasoning": "high"}) } else { json!({}) };
            let options = provider(kind, config).options(model, &request());
            let effort = options.reasoning_effort.map_or_else(|| "none".into(), |effort| effort.to_string());
            assert_eq!((options.capture_reasoning_content, effort.as_str()), (Some(expected.0), expected.1), "{model}");
        };
        check(Kind::OpenAiResponses, "gpt-5-mini", true, (true, "high"));
        check(Kind::OpenAiResponses, "gpt-4o", true, (false, "0"));
        check(Kind::OpenAi, "qwen3-max", false, (true, "0"));
        check(Kind::Gemini, "gemini-2.0-flash", true, (false, "none"));
        check(Kind::Gemini, "gemini-2.5-pro", true, (true, "high"));
        check(Kind::Anthropic, "claude-sonnet-4-5", false, (true, "none"));
    }

    #[test]
    fn wrong_base_urls_are_refused_without_showing_them() {
        for text in ["", "localhost:8000", "ftp://user:hunter2-hunter2@host/", "http://user:hunter2-hunter2@:x/"] {
            let error = base_url(text, Kind::OpenAi).unwrap_err().to_string();
            assert!(error.contains("openai") && !error.contains("hunter2"), "{error}");
        }
    }
}
