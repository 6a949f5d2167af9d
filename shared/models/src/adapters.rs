//! Models as flows configure them (spec 002 §10.6): the same adapters as the installation's own, each with the address and the
//! key that a `providers.yaml` names.

use crate::{
    catalog::SCRIPTED,
    config::Effort,
    egress::EgressPolicy,
    kind::ProviderKind,
    provider::{Http, Provider},
    retry::{RetryPolicy, Retrying},
    router::Router,
    secret::{Redactor, Secret},
};
use async_trait::async_trait;
use ports::{Endpoint, Model, ModelAdapters, ModelError, ModelInfo, ModelRequest, ModelStream};
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;

/// Opens models for flows. Prices, retries and reasoning are the installation's if a flow does not set them.
pub struct Adapters {
    router: Arc<Router>,
    http: Arc<Http>,
    egress: Arc<dyn EgressPolicy>,
}

/// The keys of a provider's `config`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Own {
    retry: Option<RetryPolicy>,
    reasoning: Option<Effort>,
    max_output_tokens: Option<u32>,
}

impl Adapters {
    /// Beside this router, within reach of these addresses.
    pub fn new(router: Arc<Router>, egress: Arc<dyn EgressPolicy>) -> Self {
        Self { router, http: Arc::new(Http::within(egress.clone())), egress }
    }
}

impl ModelAdapters for Adapters {
    fn open(&self, endpoint: &Endpoint) -> Result<Arc<dyn Model>, ModelError> {
        let Endpoint { adapter, base_url, key, config } = endpoint;
        let own = Own::deserialize(Value::Object(config.clone()))
            .map_err(|error| ModelError::Rejected(format!("the config of the provider is wrong: {error}")))?;
        if adapter == SCRIPTED {
            return Ok(Arc::new(Script(self.router.clone())));
        }
        let kind = ProviderKind::ALL.into_iter().find(|kind| kind.name() == adapter);
        let kind = kind.ok_or_else(|| ModelError::Rejected(format!("there is no adapter {adapter:?} for models")))?;
        if let Some(url) = base_url {
            self.egress.check(url).map_err(ModelError::Rejected)?;
        }
        let mut config = self.router.config().without_providers();
        config.retry = own.retry.unwrap_or(config.retry);
        config.reasoning = own.reasoning.or(config.reasoning);
        config.max_output_tokens = [own.max_output_tokens, config.max_output_tokens].into_iter().flatten().min();
        let provider = kind.config_mut(&mut config);
        provider.api_key = key.as_ref().map(|key| Secret::new(key.expose()));
        provider.base_url.clone_from(base_url);
        let (retry, redactor) = (config.retry.clone(), Redactor::new(key.iter().map(|key| key.expose().to_owned())));
        let provider = Provider::new(kind, Arc::new(config), self.http.clone(), redactor)
            .map_err(|error| ModelError::Rejected(error.to_string()))?;
        Ok(Arc::new(Retrying::new(Arc::new(provider), retry)))
    }
}

/// The installation's scripts, under the names that they have there.
struct Script(Arc<Router>);

#[async_trait]
impl Model for Script {
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let name = request.model.as_deref().unwrap_or_default();
        let model = Some(format!("{SCRIPTED}/{name}"));
        self.0.stream(ModelRequest { model, flow: None, ..request }).await
    }

    fn catalog(&self) -> Vec<ModelInfo> {
        Vec::new()
    }
}
