//! The list of models, and the provider of a name: from the configuration alone, for callers that ask no model.

use crate::{config::Config, kind::ProviderKind, price};
use ports::{ModelError, ModelInfo};
use std::{collections::BTreeSet, sync::Arc};

pub(crate) const SCRIPTED: &str = "scripted";
pub(crate) const DEMO: &str = "demo";
/// The script that the configuration names.
pub(crate) const SCRIPT: &str = "script";
/// The name that stands for the first model that the server lists.
pub(crate) const AUTO: &str = "auto";
const NOT_CONFIGURED: &str = "No model is configured: this is the offline demo script. \
     Set OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY or OPENAI_BASE_URL, or see BUILDSCALE_MODEL.";
/// The note of a default model that names a script which is not there.
const NO_SCRIPT: &str =
    "there is no script of this name: scripted/demo is always there, and scripted/script with ai.script";

impl Config {
    /// The models of this configuration, as [`Router`](crate::Router) lists them: without making a model, or reading a script.
    pub fn catalog(self) -> Vec<ModelInfo> {
        Catalog::new(Arc::new(self)).infos()
    }

    /// Whether requests may name this model, as [`Router::knows`](crate::Router::knows) answers: without making a model, or reading a script.
    pub fn name_check(self) -> impl Fn(&str) -> bool + Send + Sync + 'static {
        let catalog = Catalog::new(Arc::new(self));
        move |model: &str| catalog.knows(model)
    }
}

/// The models of a configuration, by name.
pub(crate) struct Catalog {
    config: Arc<Config>,
    scripted: BTreeSet<String>,
    default: String,
}

impl Catalog {
    pub fn new(config: Arc<Config>) -> Self {
        let mut scripted = BTreeSet::from([DEMO.to_owned()]);
        if config.script.is_some() {
            scripted.insert(SCRIPT.to_owned());
        }
        let mut catalog = Self { config, scripted, default: String::new() };
        catalog.default = catalog.choose_default();
        catalog
    }

    /// The configuration that it was made with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// There is one more script.
    pub fn add_script(&mut self, name: &str) {
        self.scripted.insert(name.to_owned());
    }

    /// The model of requests that name none.
    pub fn default_model(&self) -> &str {
        &self.default
    }

    /// Whether no model is configured.
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
        let script = if self.config.script.is_some() { SCRIPT } else { DEMO };
        let configured = ProviderKind::ALL.into_iter().find(|kind| kind.config(&self.config).is_configured());
        configured
            .and_then(|kind| of(kind, &self.config).into_iter().next())
            .map_or_else(|| format!("{SCRIPTED}/{script}"), |info| info.id)
    }

    /// The provider of a model, and the model's name there.
    ///
    /// # Errors
    /// [`ModelError::Rejected`] for a name without a known provider, when no server is configured that may serve any name.
    pub fn route<'a>(&self, model: &'a str) -> Result<(Route, &'a str), ModelError> {
        if let Some((prefix, name)) = model.split_once('/').filter(|(_, name)| !name.is_empty()) {
            if prefix == SCRIPTED {
                return Ok((Route::Scripted, name));
            }
            if let Some(kind) = ProviderKind::ALL.into_iter().find(|kind| kind.name() == prefix) {
                return Ok((Route::Provider(kind), name));
            }
        }
        if let Some(kind) = ProviderKind::of_bare_name(model) {
            return Ok((Route::Provider(kind), model));
        }
        // A name of its own, such as `qwen3:8b` or `meta-llama/llama-3`: of a server that may serve anything.
        let hosts = [ProviderKind::OpenAi, ProviderKind::Ollama, ProviderKind::OpenRouter];
        let any = hosts.into_iter().find(|kind| {
            let config = kind.config(&self.config);
            config.base_url.is_some() || (*kind == ProviderKind::OpenRouter && config.api_key.is_some())
        });
        any.map(|kind| (Route::Provider(kind), model)).ok_or_else(|| {
            let names: Vec<_> = ProviderKind::ALL.iter().map(|kind| kind.name()).collect();
            ModelError::Rejected(format!(
                "unknown model {:?}: name it as provider/model, the provider being {} or scripted",
                model.chars().take(100).collect::<String>(),
                names.join(", ")
            ))
        })
    }

    /// Whether a request for this model goes to a provider, or to a script that is there. The provider is not asked whether it has the model.
    pub fn knows(&self, model: &str) -> bool {
        match self.route(model) {
            Ok((Route::Scripted, name)) => self.scripted.contains(name),
            Ok((Route::Provider(_), _)) => true,
            Err(_) => false,
        }
    }

    /// All of them.
    pub fn infos(&self) -> Vec<ModelInfo> {
        let mut infos: Vec<_> = ProviderKind::ALL.into_iter().flat_map(|kind| of(kind, &self.config)).collect();
        infos.extend(self.scripted.iter().map(|name| ModelInfo {
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
            let is_known = self.knows(&self.default);
            let available = is_known && infos.iter().any(|info| info.provider == provider && info.available);
            infos.push(ModelInfo {
                id: self.default.clone(),
                provider: provider.to_owned(),
                available,
                note: match &route {
                    // Nobody was asked.
                    Err(ModelError::Rejected(why)) => Some(why.clone()),
                    Err(error) => Some(error.to_string()),
                    Ok((Route::Scripted, _)) => Some(NO_SCRIPT.to_owned()),
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

/// The models of one provider.
pub(crate) fn of(kind: ProviderKind, config: &Config) -> Vec<ModelInfo> {
    let config = kind.config(config);
    let available = config.is_configured();
    let own_server = config.base_url.is_some()
        && !matches!(kind, ProviderKind::Anthropic | ProviderKind::Gemini | ProviderKind::Bedrock);
    let names: Vec<&str> = match kind {
        _ if !config.models.is_empty() => config.models.iter().map(String::as_str).collect(),
        // Few servers of one's own speak Responses; those that do can be named.
        ProviderKind::OpenAiResponses if own_server => Vec::new(),
        _ if own_server || kind.models().is_empty() => vec![AUTO],
        _ => kind.models().to_vec(),
    };
    let note = |name: &str| match kind.key_variable() {
        None if !available => Some("set OLLAMA_BASE_URL to use it".to_owned()),
        Some(variable) if !available => Some(format!("set {variable} to use it")),
        _ if name == AUTO => Some("the first model that the server lists".to_owned()),
        _ => None,
    };
    let info = |name: &str| ModelInfo {
        id: format!("{}/{name}", kind.name()),
        provider: kind.name().to_owned(),
        available,
        note: note(name),
        default: false,
        context_tokens: price::context_tokens(name),
    };
    names.into_iter().map(info).collect()
}

/// The provider of a model.
#[derive(Clone, Copy)]
pub(crate) enum Route {
    Provider(ProviderKind),
    Scripted,
}

impl Route {
    pub fn name(self) -> &'static str {
        match self {
            Self::Provider(kind) => kind.name(),
            Self::Scripted => SCRIPTED,
        }
    }
}
