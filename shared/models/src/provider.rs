//! One provider behind HTTP.

pub(crate) mod describe;
pub(crate) mod embed;
#[cfg(test)]
mod files;
#[cfg(test)]
mod reasoning;

use crate::{
    answer::Answer,
    catalog::{self, AUTO},
    config::{Config, ConfigError, Effort},
    egress::EgressPolicy,
    failure,
    kind::ProviderKind,
    price,
    secret::Redactor,
    wire::{AcceptedFiles, Decoding, Wire, WireRequest, sampling::can_reason},
};
use async_trait::async_trait;
use futures::{StreamExt, TryStreamExt};
use ports::{Clock, Model, ModelError, ModelInfo, ModelRequest, ModelStream, SystemClock};
use reqwest::{
    Client, RequestBuilder, Response, Url,
    header::{HeaderName, HeaderValue},
};
use serde_json::Value;
use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::sync::OnceCell;

/// A provider. Requests come with the bare name of the model.
pub(crate) struct Provider {
    kind: ProviderKind,
    config: Arc<Config>,
    http: Arc<Http>,
    base: Url,
    wire: Wire,
    /// Not a server of one's own: it takes everything that its documentation says.
    official: bool,
    redactor: Redactor,
    /// The model that [`AUTO`] stands for.
    first: OnceCell<String>,
}

/// The HTTP client of all providers, made when the first of them is asked: reading the machine's root certificates takes time at start, and
/// a hub that only plays the demo must also run without certificates.
#[derive(Default)]
pub(crate) struct Http {
    made: OnceLock<Result<Client, String>>,
    /// The allowed addresses; all when none: then the operator of the host has chosen the addresses.
    egress: Option<Arc<dyn EgressPolicy>>,
}

impl Http {
    /// A client that reaches allowed addresses only.
    pub(crate) fn within(egress: Arc<dyn EgressPolicy>) -> Self {
        Self { made: OnceLock::new(), egress: Some(egress) }
    }

    fn client(&self) -> Result<&Client, ModelError> {
        let made = self.made.get_or_init(|| make_client(self.egress.as_deref()));
        made.as_ref().map_err(|error| ModelError::Unavailable(error.clone()))
    }
}

/// It does not follow redirects: they would carry the key to another host.
fn make_client(egress: Option<&dyn EgressPolicy>) -> Result<Client, String> {
    // Somebody may have chosen before; then theirs is used.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let http = Client::builder()
        .connect_timeout(Duration::from_secs(10))
        .redirect(reqwest::redirect::Policy::none())
        .tcp_nodelay(true);
    let http = match egress {
        Some(egress) => egress.client(http),
        None => http,
    };
    http.build().map_err(|error| format!("the HTTP client cannot be made: {error:?}"))
}

/// The header of W3C Trace Context with a request's place in a trace.
const TRACE: &str = "traceparent";
/// The bytes of a refusal that are read.
const LARGEST_REFUSAL: usize = 64 * 1024;
/// The bytes of a list of models that are read.
const LARGEST_LIST: usize = 4 << 20;

impl Provider {
    pub(crate) fn new(
        kind: ProviderKind,
        config: Arc<Config>,
        http: Arc<Http>,
        redactor: Redactor,
    ) -> Result<Self, ConfigError> {
        let own = kind.config(&config);
        let wire = kind.wire(own.api).ok_or(ConfigError::Api { provider: kind.name() })?;
        if own.region.is_some() && kind != ProviderKind::Bedrock {
            return Err(ConfigError::Region { provider: kind.name() });
        }
        let official = own.base_url.is_none();
        let base = match &own.base_url {
            Some(base) => base_url(base, kind)?,
            None => base_url(&kind.base_url(&config), kind)?,
        };
        Ok(Self { kind, config, http, base, wire, official, redactor, first: OnceCell::new() })
    }

    fn key(&self) -> Result<String, ModelError> {
        let key = self.kind.config(&self.config).api_key.as_ref();
        let role = self.config.aws.credentials.as_ref().filter(|_| self.kind == ProviderKind::Bedrock);
        match (key, self.kind.key_variable()) {
            (Some(key), _) => Ok(key.expose().to_owned()),
            // Made anew for each request, because Lambda may have renewed the credentials and the key does not last.
            (None, _) if let Some(role) = role => {
                Ok(role.key(self.config.region(), SystemClock.now()).expose().to_owned())
            }
            (None, Some(variable)) if self.official => {
                Err(ModelError::Unauthorized(format!("no key for {}: set {variable}", self.kind.name())))
            }
            // Local servers want a header but do not look at it.
            (None, _) => Ok("none".to_owned()),
        }
    }

    /// The request with the key and the other headers that it needs.
    fn with_head(&self, mut request: RequestBuilder) -> Result<RequestBuilder, ModelError> {
        let (name, key) = self.wire.key(&self.key()?);
        let mut key = HeaderValue::from_str(&key)
            .map_err(|_| ModelError::Unauthorized("the key has characters that no key has".into()))?;
        key.set_sensitive(true);
        request = request.header(HeaderName::from_static(name), key);
        for (name, value) in self.wire.headers() {
            request = request.header(*name, *value);
        }
        Ok(request)
    }

    /// The answer of the server; its refusals are errors.
    async fn ask(&self, request: RequestBuilder) -> Result<Response, ModelError> {
        let answer = request.send().await.map_err(|error| failure::transport(error, &self.redactor))?;
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let headers = answer.headers().clone();
        let body = start_of(answer, LARGEST_REFUSAL).await.unwrap_or_default();
        let body = String::from_utf8_lossy(&body);
        Err(failure::refusal(status, &headers, &body, SystemClock.now(), &self.redactor))
    }

    async fn model(&self, asked: &str) -> Result<String, ModelError> {
        match asked {
            AUTO => Ok(self.first.get_or_try_init(|| self.first_listed()).await?.clone()),
            model => Ok(model.to_owned()),
        }
    }

    async fn first_listed(&self) -> Result<String, ModelError> {
        let mut url = self.base.clone();
        url.set_path(&format!("{}models", url.path()));
        let answer = self.ask(self.with_head(self.http.client()?.get(url))?).await?;
        let body = start_of(answer, LARGEST_LIST).await.map_err(|error| failure::transport(error, &self.redactor))?;
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let listed = ["data", "models"].iter().find_map(|field| body[*field].as_array()).into_iter().flatten();
        let mut names = listed.filter_map(|model| model["id"].as_str().or_else(|| model["name"].as_str()));
        let chats = |name: &&str| !["embed", "rerank", "whisper", "tts"].iter().any(|word| name.contains(word));
        let name = names.find(chats).ok_or_else(|| {
            let provider = self.kind.name();
            ModelError::Rejected(format!("the {provider} server lists no model: name one in BUILDSCALE_MODEL"))
        })?;
        Ok(name.strip_prefix("models/").unwrap_or(name).to_owned())
    }

    /// Everything that the format needs to know.
    fn asked<'a>(&'a self, model: &'a str, request: &'a ModelRequest) -> WireRequest<'a> {
        let schema = request.schema.as_deref().filter(|_| self.kind.holds_to_schema(self.wire, model, request));
        WireRequest {
            request,
            model,
            provider: self.kind.keeps_as(self.wire, model),
            official: self.official
                && matches!(self.kind, ProviderKind::OpenAi | ProviderKind::OpenAiResponses | ProviderKind::Anthropic),
            reasons: self.reasons(model),
            effort: self.effort(model).filter(|_| schema.is_none() || !self.wire.answers_by_call()),
            // The owner of the hub sets the server's limit; a request only narrows it.
            max_tokens: [self.config.max_output_tokens, request.max_tokens].into_iter().flatten().min(),
            takes: self.takes(model),
            schema,
        }
    }

    /// The kinds of files that a model takes. A server of one's own may have models of any kind: its owner says so.
    fn takes(&self, model: &str) -> AcceptedFiles {
        let is_known = self.official
            && match self.kind {
                ProviderKind::OpenAi | ProviderKind::OpenAiResponses => !model.starts_with("gpt-3.5"),
                ProviderKind::Anthropic | ProviderKind::Gemini => true,
                ProviderKind::Bedrock => model.contains("claude") || model.contains("nova"),
                ProviderKind::OpenRouter | ProviderKind::Ollama => false,
            };
        AcceptedFiles::of(self.wire, model, is_known, self.kind.config(&self.config).media)
    }

    /// Whether to ask for reasoning. Models that cannot reason refuse a request that asks for it.
    fn reasons(&self, model: &str) -> bool {
        match self.wire {
            Wire::Responses => can_reason(model),
            // Another server's models have names of their own.
            Wire::ChatCompletions => !self.official || self.kind != ProviderKind::OpenAi || can_reason(model),
            Wire::GenerateContent => !["gemini-1", "gemini-2.0", "gemma-3"].iter().any(|name| model.starts_with(name)),
            Wire::Messages | Wire::Converse => true,
        }
    }

    /// How much reasoning to ask for.
    fn effort(&self, model: &str) -> Option<Effort> {
        self.config.reasoning.filter(|_| self.reasons(model))
    }
}

/// At most this many bytes of a body.
async fn start_of(answer: Response, most: usize) -> reqwest::Result<Vec<u8>> {
    let (mut packets, mut body) = (answer.bytes_stream(), Vec::new());
    while let Some(packet) = packets.next().await {
        body.extend_from_slice(&packet?);
        if body.len() >= most {
            body.truncate(most);
            break;
        }
    }
    Ok(body)
}

#[async_trait]
impl Model for Provider {
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let model = self.model(request.model.as_deref().unwrap_or(AUTO)).await?;
        let asked = self.asked(&model, &request);
        let answers_by_call = asked.schema.is_some() && self.wire.answers_by_call();
        let body = self.wire.body(&asked);
        let mut post = self.http.client()?.post(self.wire.url(&self.base, &model)).json(&body);
        if let Some(trace) = request.trace {
            post = post.header(TRACE, trace.to_string());
        }
        let answer = self.ask(self.with_head(post)?).await.map_err(failure::of_chat)?;
        let answer = Answer {
            body: answer.bytes_stream().map_ok(|packet| packet.to_vec()).boxed(),
            decoding: Decoding::new(self.wire),
            answers_by_call,
            provider: self.kind.keeps_as(self.wire, &model).to_owned(),
            model: (self.kind.name(), model.clone()),
            price: price::price(&format!("{}/{model}", self.kind.name()), &model, &self.config.prices),
            redactor: self.redactor.clone(),
        };
        Ok(answer.into_stream())
    }

    fn catalog(&self) -> Vec<ModelInfo> {
        catalog::of(self.kind, &self.config)
    }
}

/// A base URL that paths can be joined to: with the version if the provider's own libraries would add it, and a slash.
fn base_url(text: &str, kind: ProviderKind) -> Result<Url, ConfigError> {
    let invalid = |reason: &str| ConfigError::BaseUrl { provider: kind.name(), reason: reason.to_owned() };
    let mut url = Url::parse(text).map_err(|error| invalid(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(invalid("it must begin with http:// or https://"));
    }
    let path = url.path().trim_end_matches('/').to_owned();
    let last = path.rsplit('/').next().unwrap_or_default();
    let has_version = last.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let adds_version = path.is_empty() || matches!(kind, ProviderKind::Anthropic | ProviderKind::Gemini);
    url.set_path(&match kind.version() {
        Some(version) if adds_version && !has_version => format!("{path}/{version}/"),
        _ => format!("{path}/"),
    });
    Ok(url)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use serde_json::json;

    #[test]
    fn base_urls_are_taken_as_people_write_them() {
        let check = |kind, text: &str, expected: &str| assert_eq!(base_url(text, kind).unwrap().as_str(), expected);
        check(ProviderKind::OpenAi, "http://localhost:8000/v1", "http://localhost:8000/v1/");
        check(ProviderKind::OpenAi, "http://localhost:8000", "http://localhost:8000/v1/");
        check(ProviderKind::OpenAi, "https://host/openai/deployments/x/", "https://host/openai/deployments/x/");
        check(ProviderKind::OpenAi, "https://host/compat/v3?api-version=1", "https://host/compat/v3/?api-version=1");
        check(ProviderKind::Anthropic, "https://api.anthropic.com", "https://api.anthropic.com/v1/");
        check(ProviderKind::Anthropic, "https://proxy/anthropic", "https://proxy/anthropic/v1/");
        check(ProviderKind::Anthropic, "https://proxy/v1/", "https://proxy/v1/");
        check(ProviderKind::Gemini, "https://host/", "https://host/v1beta/");
        check(ProviderKind::Ollama, "http://box:11434", "http://box:11434/v1/");
        check(ProviderKind::Bedrock, "https://vpce-0.bedrock-runtime.aws", "https://vpce-0.bedrock-runtime.aws/");
    }

    fn provider(kind: ProviderKind, config: serde_json::Value) -> Provider {
        let config = Arc::new(serde_json::from_value(config).unwrap());
        Provider::new(kind, config, Arc::default(), Redactor::default()).unwrap()
    }

    fn request() -> ModelRequest {
        ModelRequest { conversation: "chat-1".into(), ..ModelRequest::default() }
    }

    fn body(kind: ProviderKind, config: serde_json::Value, model: &str, request: &ModelRequest) -> serde_json::Value {
        let provider = provider(kind, config);
        provider.wire.body(&provider.asked(model, request))
    }

    #[test]
    fn a_request_says_how_warm_and_only_narrows_the_length() {
        let check = |config: serde_json::Value, asked: Option<u32>, expected: Option<u32>| {
            let request = ModelRequest { temperature: Some(0.5), max_tokens: asked, ..request() };
            let body = body(ProviderKind::OpenAi, config, "m", &request);
            assert_eq!(
                (body["temperature"].as_f64(), body["max_tokens"].as_u64()),
                (Some(0.5), expected.map(u64::from))
            );
        };
        check(json!({}), None, None);
        check(json!({}), Some(500), Some(500));
        check(json!({"max_output_tokens": 400}), None, Some(400));
        check(json!({"max_output_tokens": 400}), Some(500), Some(400));
        check(json!({"max_output_tokens": 400}), Some(300), Some(300));
        let request = ModelRequest { temperature: Some(0.5), max_tokens: Some(9), ..request() };
        let of = |kind: ProviderKind, model: &str| body(kind, json!({}), model, &request);
        assert_eq!(of(ProviderKind::OpenAi, "gpt-5-mini")["max_completion_tokens"], 9);
        assert_eq!(of(ProviderKind::OpenAiResponses, "gpt-5-mini")["max_output_tokens"], 16, "it refuses fewer");
        assert_eq!(
            (
                &of(ProviderKind::Anthropic, "claude")["max_tokens"],
                &of(ProviderKind::Anthropic, "claude")["temperature"]
            ),
            (&json!(9), &json!(0.5))
        );
        assert_eq!(
            of(ProviderKind::Gemini, "gemini-2.0-flash")["generationConfig"],
            json!({"temperature": 0.5, "maxOutputTokens": 9})
        );
        assert_eq!(
            of(ProviderKind::Bedrock, "amazon.nova")["inferenceConfig"],
            json!({"maxTokens": 9, "temperature": 0.5})
        );
    }

    #[test]
    fn every_format_says_from_which_part_of_the_likeliest_tokens_to_choose() {
        let check = |kind: ProviderKind, model: &str, place: &str| {
            let of = |top_p: Option<f64>| {
                let body = body(kind, json!({}), model, &ModelRequest { top_p, ..request() });
                body.pointer(place).cloned()
            };
            assert_eq!((of(Some(0.25)), of(None)), (Some(json!(0.25)), None), "{place}");
        };
        check(ProviderKind::OpenAi, "m", "/top_p");
        check(ProviderKind::OpenAiResponses, "m", "/top_p");
        check(ProviderKind::Anthropic, "claude", "/top_p");
        check(ProviderKind::Gemini, "gemini-2.0-flash", "/generationConfig/topP");
        check(ProviderKind::Bedrock, "amazon.nova", "/inferenceConfig/topP");
        // A share of 1 leaves no token out, and newer models of Claude refuse it beside a temperature.
        let beside = |model: &str, top_p: f64| {
            let request = ModelRequest { temperature: Some(0.2), top_p: Some(top_p), ..request() };
            body(ProviderKind::Anthropic, json!({}), model, &request)["top_p"].as_f64()
        };
        assert_eq!((beside("claude-sonnet-4-5", 1.0), beside("claude-sonnet-4-5", 0.5)), (None, Some(0.5)));
        assert_eq!(beside("m", 1.0), Some(1.0));
    }

    #[test]
    fn fields_that_only_the_provider_itself_understands_are_not_sent_to_imitations() {
        let own = json!({"openai": {"base_url": "http://h/v1"}, "anthropic": {"base_url": "http://h"}});
        let marks = |kind: ProviderKind, config: &serde_json::Value| {
            let body = body(kind, config.clone(), "m", &ModelRequest { system: "s".into(), ..request() });
            (
                body["prompt_cache_key"].clone(),
                body["system"][0]["cache_control"].clone(),
                body["cache_control"].clone(),
            )
        };
        let (none, ephemeral) = (serde_json::Value::Null, json!({"type": "ephemeral"}));
        assert_eq!(marks(ProviderKind::OpenAi, &json!({})), (json!("chat-1"), none.clone(), none.clone()));
        assert_eq!(marks(ProviderKind::OpenAi, &own), (none.clone(), none.clone(), none.clone()));
        assert_eq!(marks(ProviderKind::Anthropic, &json!({})), (none.clone(), ephemeral.clone(), ephemeral.clone()));
        assert_eq!(marks(ProviderKind::Anthropic, &own), (none.clone(), ephemeral, none));
    }

    #[test]
    fn a_schema_of_the_answer_is_said_as_each_format_has_it_and_to_models_that_take_one() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]});
        let asked = ModelRequest { schema: Some(Arc::new(schema.clone())), ..request() };
        let check = |kind: ProviderKind, model: &str, place: &str, expected: serde_json::Value| {
            let said = |request: &ModelRequest| body(kind, json!({"reasoning": "high"}), model, request);
            assert_eq!(said(&asked).pointer(place), Some(&expected), "{model}");
            assert_ne!(said(&request()).pointer(place), Some(&expected), "{model}");
        };
        let named = json!({"name": "answer", "schema": schema, "strict": true});
        let format = json!({"type": "json_schema", "json_schema": named});
        check(ProviderKind::OpenAi, "gpt-5-mini", "/response_format", format.clone());
        check(ProviderKind::OpenRouter, "openai/gpt-4o-mini", "/response_format", format.clone());
        check(ProviderKind::Ollama, "llama3.2", "/response_format", format);
        let flat = json!({"type": "json_schema", "name": "answer", "schema": schema, "strict": true});
        check(ProviderKind::OpenAiResponses, "gpt-5-mini", "/text/format", flat);
        check(ProviderKind::Gemini, "gemini-2.5-flash", "/generationConfig/responseJsonSchema", schema.clone());
        check(
            ProviderKind::Gemini,
            "gemini-2.5-flash",
            "/generationConfig/responseMimeType",
            json!("application/json"),
        );
        check(ProviderKind::Anthropic, "claude-sonnet-4-5", "/tool_choice", json!({"type": "tool", "name": "answer"}));
        check(ProviderKind::Anthropic, "claude-sonnet-4-5", "/tools/0/input_schema", schema.clone());
        let bedrock = "eu.anthropic.claude-sonnet-4-5-20250929-v1:0";
        check(ProviderKind::Bedrock, bedrock, "/toolConfig/toolChoice", json!({"tool": {"name": "answer"}}));
        check(ProviderKind::Bedrock, "amazon.nova-lite-v1:0", "/toolConfig/tools/0/toolSpec/inputSchema/json", schema);
        // A model that has to call cannot reason.
        let thinking = |kind, model| body(kind, json!({"reasoning": "high"}), model, &asked)["thinking"].clone();
        assert_eq!(thinking(ProviderKind::Anthropic, "claude-sonnet-4-5"), serde_json::Value::Null);
        for (kind, model) in [
            (ProviderKind::OpenAi, "gpt-3.5-turbo"),
            (ProviderKind::OpenAi, "a-model-of-a-gateway"),
            (ProviderKind::OpenAi, "gpt-4o-2024-05-13"),
            (ProviderKind::OpenRouter, "mistralai/mistral-small"),
            (ProviderKind::Gemini, "gemini-1.5-flash"),
            (ProviderKind::Anthropic, "a-model-of-a-gateway"),
            (ProviderKind::Bedrock, "meta.llama3-70b-instruct-v1:0"),
        ] {
            let said = |request: &ModelRequest| body(kind, json!({}), model, request);
            assert_eq!(said(&asked), said(&request()), "{model} is asked as without a schema");
        }
    }

    #[test]
    fn the_format_of_a_server_can_be_chosen_where_there_are_two() {
        let wire = |kind: ProviderKind, config: serde_json::Value| provider(kind, config).wire;
        assert_eq!(wire(ProviderKind::OpenAi, json!({"openai": {"base_url": "http://h/v1"}})), Wire::ChatCompletions);
        assert_eq!(
            wire(ProviderKind::OpenAi, json!({"openai": {"base_url": "http://h/v1", "api": "responses"}})),
            Wire::Responses
        );
        assert_eq!(wire(ProviderKind::Ollama, json!({"ollama": {"api": "responses"}})), Wire::Responses);
        assert_eq!(
            wire(ProviderKind::OpenAiResponses, json!({"openai": {"api": "chat_completions"}})),
            Wire::Responses
        );
        let config = Arc::new(serde_json::from_value(json!({"gemini": {"api": "responses"}})).unwrap());
        let refused = Provider::new(ProviderKind::Gemini, config, Arc::default(), Redactor::default()).err().unwrap();
        assert!(refused.to_string().contains("gemini"), "{refused}");
    }

    #[test]
    fn wrong_base_urls_are_refused_without_showing_them() {
        for text in ["", "localhost:8000", "ftp://user:hunter2-hunter2@host/", "http://user:hunter2-hunter2@:x/"] {
            let error = base_url(text, ProviderKind::OpenAi).unwrap_err().to_string();
            assert!(error.contains("openai") && !error.contains("hunter2"), "{error}");
        }
    }
}
