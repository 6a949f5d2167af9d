//! All models as one: requests go to the provider that the model's name says.

use crate::{
    bedrock::Credentials,
    config::{Config, ConfigError},
    kind::Kind,
    price,
    provider::{AUTO, Http, Provider},
    retry::Retrying,
    scripted::Scripted,
    secret::Redactor,
};
use async_trait::async_trait;
use ports::{Model, ModelError, ModelInfo, ModelRequest, ModelStream};
use reqwest::Url;
use std::{collections::BTreeMap, sync::Arc};

pub(crate) const SCRIPTED: &str = "scripted";
const DEMO: &str = "demo";
const NOT_CONFIGURED: &str = "No model is configured: this is the offline demo script. \
     Set OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY or OPENAI_BASE_URL, or see BUILDSCALE_MODEL.";

/// Every model that can be asked. Make one a program.
pub struct Router {
    config: Arc<Config>,
    providers: BTreeMap<Kind, Arc<dyn Model>>,
    scripted: BTreeMap<String, Arc<dyn Model>>,
    default: String,
}

impl Router {
    /// The providers of this configuration. Makes no connection; reads the script file if one is named. Fails on a base
    /// URL that is none and on a script that cannot be played.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        let mut scripted: BTreeMap<String, Arc<dyn Model>> = BTreeMap::new();
        scripted.insert(DEMO.into(), Arc::new(Scripted::demo()));
        if let Some(path) = &config.script {
            let text = std::fs::read_to_string(path)
                .map_err(|source| ConfigError::ScriptFile { path: path.clone(), source })?;
            let script =
                Scripted::from_yaml(&text).map_err(|source| ConfigError::Script { path: path.clone(), source })?;
            scripted.insert("script".into(), Arc::new(script));
        }
        let config = Arc::new(config);
        let redactor = Redactor::new(secrets(&config));
        let mut providers: BTreeMap<Kind, Arc<dyn Model>> = BTreeMap::new();
        let http = Arc::new(Http::default());
        for kind in Kind::ALL {
            let provider = Provider::new(kind, config.clone(), http.clone(), redactor.clone())?;
            providers.insert(kind, Arc::new(Retrying::new(Arc::new(provider), config.retry.clone())));
        }
        let mut router = Self { config, providers, scripted, default: String::new() };
        router.default = router.choose_default();
        Ok(router)
    }

    /// What it was made with.
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// Also serves `model` as `scripted/<name>`: for tests and benches.
    #[must_use]
    pub fn with_scripted(mut self, name: &str, model: Arc<dyn Model>) -> Self {
        self.scripted.insert(name.to_owned(), model);
        self
    }

    /// The model that serves requests that name none, such as `openai/gpt-5-mini` or `scripted/demo`.
    pub fn default_model(&self) -> &str {
        &self.default
    }

    /// Whether nobody configured a model, so that the offline demo answers.
    pub fn no_model_configured(&self) -> bool {
        self.config.model.is_none() && self.default == format!("{SCRIPTED}/{DEMO}")
    }

    fn choose_default(&self) -> String {
        if let Some(model) = &self.config.model {
            return match self.route(model) {
                Ok((route, name)) => format!("{}/{name}", route.name()),
                Err(_) => model.clone(),
            };
        }
        let configured = Kind::ALL.into_iter().find(|kind| kind.config(&self.config).is_configured());
        configured
            .and_then(|kind| self.providers.get(&kind)?.catalog().into_iter().next())
            .map_or_else(|| format!("{SCRIPTED}/{DEMO}"), |info| info.id)
    }

    /// Who serves a model, and what it is called there.
    fn route<'a>(&self, model: &'a str) -> Result<(Route, &'a str), ModelError> {
        if let Some((prefix, name)) = model.split_once('/').filter(|(_, name)| !name.is_empty()) {
            if prefix == SCRIPTED {
                return Ok((Route::Scripted, name));
            }
            if let Some(kind) = Kind::ALL.into_iter().find(|kind| kind.name() == prefix) {
                return Ok((Route::Provider(kind), name));
            }
        }
        if let Some(kind) = Kind::of_bare_name(model) {
            return Ok((Route::Provider(kind), model));
        }
        // A name of its own, such as `qwen3:8b` or `meta-llama/llama-3`: of a server that may serve anything.
        let hosts = [Kind::OpenAi, Kind::Ollama, Kind::OpenRouter];
        let any = hosts.into_iter().find(|kind| {
            let config = kind.config(&self.config);
            config.base_url.is_some() || (*kind == Kind::OpenRouter && config.api_key.is_some())
        });
        any.map(|kind| (Route::Provider(kind), model)).ok_or_else(|| {
            let names: Vec<_> = Kind::ALL.iter().map(|kind| kind.name()).collect();
            ModelError::Rejected(format!(
                "unknown model {:?}: name it as provider/model, the provider being {} or scripted",
                model.chars().take(100).collect::<String>(),
                names.join(", ")
            ))
        })
    }
}

#[derive(Clone, Copy)]
enum Route {
    Provider(Kind),
    Scripted,
}

impl Route {
    fn name(self) -> &'static str {
        match self {
            Self::Provider(kind) => kind.name(),
            Self::Scripted => SCRIPTED,
        }
    }
}

/// Everything that no text may show: keys, and passwords inside base URLs.
fn secrets(config: &Config) -> Vec<String> {
    let mut secrets = Vec::new();
    for kind in Kind::ALL {
        let provider = kind.config(config);
        secrets.extend(provider.api_key.as_ref().map(|key| key.expose().to_owned()));
        if let Some(url) = provider.base_url.as_deref().and_then(|url| Url::parse(url).ok()) {
            secrets.extend(url.password().map(str::to_owned));
        }
    }
    secrets.extend(config.aws.credentials.iter().flat_map(Credentials::secrets));
    secrets
}

#[async_trait]
impl Model for Router {
    async fn stream(&self, mut request: ModelRequest) -> Result<ModelStream, ModelError> {
        let asked = request.model.take().unwrap_or_else(|| self.default.clone());
        let (route, name) = self.route(&asked)?;
        let model = match route {
            Route::Provider(kind) => self.providers.get(&kind),
            Route::Scripted => self.scripted.get(name),
        };
        let model = model.ok_or_else(|| ModelError::Rejected(format!("there is no model {asked}")))?;
        request.model = Some(name.to_owned());
        model.stream(request).await
    }

    fn catalog(&self) -> Vec<ModelInfo> {
        let mut infos: Vec<_> = self.providers.values().flat_map(|provider| provider.catalog()).collect();
        infos.extend(self.scripted.keys().map(|name| ModelInfo {
            id: format!("{SCRIPTED}/{name}"),
            provider: SCRIPTED.into(),
            available: true,
            note: (name == DEMO).then(|| match self.no_model_configured() {
                true => NOT_CONFIGURED.to_owned(),
                false => "the offline demo script".to_owned(),
            }),
            default: false,
            context_tokens: None,
        }));
        if !infos.iter().any(|info| info.id == self.default) {
            let route = self.route(&self.default);
            let provider = route.as_ref().map_or("", |(route, _)| route.name());
            let available = infos.iter().any(|info| info.provider == provider && info.available);
            infos.push(ModelInfo {
                id: self.default.clone(),
                provider: provider.to_owned(),
                available,
                note: match &route {
                    Err(error) => Some(error.to_string()),
                    Ok(_) if !available => infos.iter().find(|i| i.provider == provider).and_then(|i| i.note.clone()),
                    Ok(_) => None,
                },
                default: true,
                context_tokens: route.ok().and_then(|(_, name)| price::context_tokens(name)),
            });
        }
        for info in &mut infos {
            info.default = info.id == self.default;
        }
        infos.retain(|info| info.available || info.default || !info.id.ends_with(&format!("/{AUTO}")));
        infos
    }
}
