//! Providers of flows (spec 002 §10.6): the providers that `providers.yaml` names, bound to their adapters and keys.
//!
//! [`BoundProviders`] puts the adapters of [`flow::adapters`] and the keys of a [`FlowSecrets`] together. [`FlowProviders`] opens models by it.

mod open;

pub use open::FlowProviders;

use crate::secret::{self, FlowSecrets, Secret};
use domain::{Code, Error};
use flow::{
    adapters::{AdapterFault, AdapterKind, Adapters, Fingerprint, adapter_name},
    manifest::{Credential, ProviderManifest},
};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// One provider, ready to be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provider {
    /// The adapter that speaks with it.
    pub adapter: String,
    /// Its address, when not the adapter's own.
    pub base_url: Option<String>,
    /// The models that may be used; all when empty.
    pub models: Vec<String>,
    /// Calls at once.
    pub max_concurrency: Option<u32>,
    /// Further settings of its adapter.
    pub config: Map<String, Value>,
    /// Its key.
    pub secret: Option<Secret>,
}

/// The providers of a flow, bound.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BoundProviders {
    providers: BTreeMap<String, Provider>,
    fingerprints: Vec<Fingerprint>,
}

impl BoundProviders {
    /// Binds the providers of a flow to adapters and keys.
    ///
    /// # Errors
    /// `UNPROCESSABLE`, with all `faults`: those of [`Adapters::check`], and keys that are not there.
    pub fn of(
        adapters: &Adapters,
        providers: &[ProviderManifest],
        credentials: &[Credential],
        vault: &FlowSecrets,
    ) -> Result<Self, Error> {
        let mut faults = adapters.check(providers, credentials);
        let mut bound = Self::default();
        for provider in providers {
            let Some(adapter) = adapters.get(AdapterKind::Model, adapter_name(provider)) else { continue };
            let secret = provider.credentials.as_deref().and_then(|id| vault.get(id)).cloned();
            if let Some(reference) = provider.credentials.as_deref().and_then(|id| vault.missing(id)) {
                let message = format!("its key is not there: {reference} is empty or missing");
                faults.push(AdapterFault { provider: provider.id.clone(), field: "credentials", message });
            }
            bound.fingerprints.push(adapter.fingerprint(&provider.id, &configuration(provider, credentials)));
            let (adapter, base_url) = (adapter.name.clone(), provider.base_url.clone());
            let (models, max_concurrency) = (provider.models.clone(), provider.max_concurrency);
            let (id, config) = (provider.id.clone(), provider.config.clone().unwrap_or_default());
            bound.providers.insert(id, Provider { adapter, base_url, models, max_concurrency, config, secret });
        }
        if let Some(first) = faults.first() {
            let message = format!("the provider {} cannot be used: {}", first.provider, first.message);
            let faults = serde_json::to_value(&faults).unwrap_or_default();
            return Err(Error::new(Code::Unprocessable, message).detail("faults", faults));
        }
        bound.fingerprints.sort();
        Ok(bound)
    }

    /// The provider of `provider/model` and the model's name there. None when the flow configures no such provider: then
    /// the installation's own serves it.
    ///
    /// # Errors
    /// `FORBIDDEN` for a model that the provider does not list.
    pub fn route<'a>(&self, model: &'a str) -> Result<Option<(&Provider, &'a str)>, Error> {
        let Some((id, name)) = model.split_once('/') else { return Ok(None) };
        let Some(provider) = self.providers.get(id) else { return Ok(None) };
        if !provider.models.is_empty() && !provider.models.iter().any(|listed| listed == name) {
            let listed = provider.models.join(", ");
            return Err(Error::new(Code::Forbidden, format!("the provider {id} does not list the model {name}"))
                .hint(format!("its models are: {listed}")));
        }
        Ok(Some((provider, name)))
    }

    /// The fingerprints, in order.
    pub fn fingerprints(&self) -> &[Fingerprint] {
        &self.fingerprints
    }
}

/// The input of a fingerprint: the manifest, with the place of its key.
fn configuration(provider: &ProviderManifest, credentials: &[Credential]) -> Value {
    let mut config = serde_json::to_value(provider).unwrap_or_default();
    let credential = credentials.iter().find(|credential| Some(&credential.id) == provider.credentials.as_ref());
    let reference = credential.and_then(Credential::reference).map(secret::reference);
    if let Value::Object(config) = &mut config {
        config.insert("reference".into(), serde_json::to_value(reference).unwrap_or_default());
    }
    config
}

#[cfg(test)]
mod tests;
