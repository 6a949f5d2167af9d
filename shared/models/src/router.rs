//! All models as one: requests go to the provider that the model's name says.

use crate::{
    bedrock::Credentials,
    catalog::{Catalog, DEMO, Route, SCRIPT},
    config::{Config, ConfigError},
    kind::ProviderKind,
    price,
    provider::{Http, Provider},
    retry::Retrying,
    scripted::Scripted,
    secret::Redactor,
};
use async_trait::async_trait;
use domain::Usage;
use ports::{Model, ModelError, ModelInfo, ModelRequest, ModelStream};
use reqwest::Url;
use std::{collections::BTreeMap, sync::Arc};

/// Every model that can be asked. A program makes one router.
pub struct Router {
    catalog: Catalog,
    providers: BTreeMap<ProviderKind, Arc<dyn Model>>,
    scripted: BTreeMap<String, Arc<dyn Model>>,
}

impl Router {
    /// The providers of this configuration. Makes no connection; reads the script file if one is named.
    ///
    /// # Errors
    /// [`ConfigError::BaseUrl`] for a base URL that is none, [`ConfigError::Api`] for a choice of format that the provider does not have,
    /// [`ConfigError::ScriptFile`] and [`ConfigError::Script`] for a script that cannot be read or played.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        let mut scripted: BTreeMap<String, Arc<dyn Model>> = BTreeMap::new();
        scripted.insert(DEMO.into(), Arc::new(Scripted::demo()));
        if let Some(path) = &config.script {
            let text = std::fs::read_to_string(path)
                .map_err(|source| ConfigError::ScriptFile { path: path.clone(), source })?;
            let script =
                Scripted::from_yaml(&text).map_err(|source| ConfigError::Script { path: path.clone(), source })?;
            scripted.insert(SCRIPT.into(), Arc::new(script));
        }
        let config = Arc::new(config);
        let redactor = Redactor::new(secrets(&config));
        let mut providers: BTreeMap<ProviderKind, Arc<dyn Model>> = BTreeMap::new();
        let http = Arc::new(Http::default());
        for kind in ProviderKind::ALL {
            let provider = Provider::new(kind, config.clone(), http.clone(), redactor.clone())?;
            providers.insert(kind, Arc::new(Retrying::new(Arc::new(provider), config.retry.clone())));
        }
        Ok(Self { catalog: Catalog::new(config), providers, scripted })
    }

    /// The configuration that it was made with.
    pub(crate) fn config(&self) -> &Config {
        self.catalog.config()
    }

    /// Also serves `model` as `scripted/<name>`: for tests and benches.
    #[must_use]
    pub fn with_scripted(mut self, name: &str, model: Arc<dyn Model>) -> Self {
        self.scripted.insert(name.to_owned(), model);
        self.catalog.add_script(name);
        self
    }

    /// The model that serves requests that name none, such as `openai/gpt-5-mini` or `scripted/demo`.
    pub fn default_model(&self) -> &str {
        self.catalog.default_model()
    }

    /// Whether a request for this model goes to a provider, or to a script that is there. A provider that is known is taken to have the model: it
    /// says whether it has when it is asked.
    pub fn knows(&self, model: &str) -> bool {
        self.catalog.knows(model)
    }

    /// Whether no model is configured, so that the offline demo answers.
    pub fn no_model_configured(&self) -> bool {
        self.catalog.no_model_configured()
    }
}

/// Everything that no text may show: keys, and passwords inside base URLs.
pub(crate) fn secrets(config: &Config) -> Vec<String> {
    let mut secrets = Vec::new();
    for kind in ProviderKind::ALL {
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
        let asked = request.model.take().unwrap_or_else(|| self.default_model().to_owned());
        let (route, name) = self.catalog.route(&asked)?;
        let model = match route {
            Route::Provider(kind) => self.providers.get(&kind),
            Route::Scripted => self.scripted.get(name),
        };
        let model = model.ok_or_else(|| ModelError::Rejected(format!("there is no model {asked}")))?;
        request.model = Some(name.to_owned());
        model.stream(request).await
    }

    fn catalog(&self) -> Vec<ModelInfo> {
        self.catalog.infos()
    }

    fn cost(&self, model: Option<&str>, usage: &Usage) -> f64 {
        let asked = model.unwrap_or_else(|| self.catalog.default_model());
        let (name, bare) = match self.catalog.route(asked) {
            Ok((Route::Scripted, _)) => return 0.0,
            Ok((Route::Provider(kind), bare)) => (format!("{}/{bare}", kind.name()), bare),
            Err(_) => (asked.to_owned(), asked),
        };
        price::price(&name, bare, &self.config().prices).map_or(0.0, |price| price.cost(usage, 0))
    }

    // Each call of a model asks for it, and the list takes a hundred allocations.
    fn default_model(&self) -> Option<String> {
        Some(self.catalog.default_model().to_owned())
    }
}
