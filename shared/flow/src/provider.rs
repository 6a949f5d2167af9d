//! Adapters (spec 002 §10.6): the backends that manifests may name, the credentials that each needs, and the adapter behind each provider.
//!
//! The graph knows no provider: an agent says `provider/model`, a tool its entry point, a plugin its type. This registry
//! checks what `providers.yaml` says about them, binds their credentials, and records a fingerprint of each, so that a run
//! tells which code and which configuration it was made with (§10.2). [`FlowProviders`] opens models by it.

mod models;
mod open;

pub use models::FlowModels;
pub use open::FlowProviders;

use crate::{
    manifest::{Credential, ProviderManifest},
    secret::{Secret, Vault},
};
use domain::{Code, Error, Sha256};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The purpose of an adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// It answers agents.
    Model,
    /// It runs tools.
    Tool,
    /// It takes events.
    Sink,
}

/// Whether an adapter needs a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// It takes none.
    Nothing,
    /// It needs one, unless a server of one's own is named (`base_url`).
    Key,
}

/// One adapter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adapter {
    /// Its purpose.
    pub kind: Kind,
    /// Its name, as manifests say it.
    pub name: String,
    /// Its version, as fingerprints tell it.
    pub version: String,
    /// Whether it needs a credential.
    pub needs: Needs,
}

/// The exact adapter and configuration of a run; never a secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Fingerprint {
    /// Its purpose.
    pub kind: Kind,
    /// The provider's id in the flow; for an adapter that is not configured, its name.
    pub id: String,
    /// The adapter's name.
    pub adapter: String,
    /// The adapter's version.
    pub version: String,
    /// SHA-256 of the configuration, keys in order, with references in the place of secrets.
    pub config: Sha256,
}

/// One thing that is wrong with a provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// The provider's id.
    pub provider: String,
    /// The field at fault.
    pub field: &'static str,
    /// The fault, as a sentence.
    pub message: String,
}

/// The adapters that there are. Cheap enough to clone.
#[derive(Clone, Debug, Default)]
pub struct Adapters(BTreeMap<(Kind, String), Adapter>);

impl Adapters {
    /// The adapters that BuildScale comes with.
    pub fn builtin() -> Self {
        let version = env!("CARGO_PKG_VERSION");
        let adapter = |kind, name: &str, needs| Adapter { kind, name: name.into(), version: version.into(), needs };
        let keyed = ["openai", "openai-responses", "anthropic", "gemini", "openrouter"];
        let models = keyed.map(|name| adapter(Kind::Model, name, Needs::Key)).into_iter();
        let open = ["ollama", "scripted"].map(|name| adapter(Kind::Model, name, Needs::Nothing));
        let tools = ["builtin", "function", "command"].map(|name| adapter(Kind::Tool, name, Needs::Nothing));
        let sinks = ["jsonl", "otlp", "prometheus", "webhook"].map(|name| adapter(Kind::Sink, name, Needs::Nothing));
        let all = models.chain(open).chain(tools).chain(sinks);
        Self(all.map(|adapter| ((adapter.kind, adapter.name.clone()), adapter)).collect())
    }

    /// Adds an adapter.
    ///
    /// # Errors
    /// `CONFLICT` when there is one of this kind and name.
    pub fn register(&mut self, adapter: Adapter) -> Result<(), Error> {
        let key = (adapter.kind, adapter.name.clone());
        if self.0.contains_key(&key) {
            return Err(Error::new(Code::Conflict, format!("the adapter {} is registered already", adapter.name)));
        }
        self.0.insert(key, adapter);
        Ok(())
    }

    /// The adapter of this kind and name.
    pub fn get(&self, kind: Kind, name: &str) -> Option<&Adapter> {
        self.0.get(&(kind, name.to_owned()))
    }

    /// The names of a kind, in order.
    pub fn known(&self, kind: Kind) -> impl Iterator<Item = &str> {
        self.0.keys().filter(move |(each, _)| *each == kind).map(|(_, name)| name.as_str())
    }

    /// All faults of the providers of a flow: unknown adapters, credentials that are missing or unknown, invalid
    /// addresses. It looks at references only.
    pub fn check(&self, providers: &[ProviderManifest], credentials: &[Credential]) -> Vec<Fault> {
        let mut faults = Vec::new();
        let mut ids = BTreeSet::new();
        for provider in providers {
            let mut fault = |field, message: String| {
                faults.push(Fault { provider: provider.id.clone(), field, message });
            };
            if !ids.insert(&provider.id) {
                fault("id", "there are two providers of this id".into());
            }
            let name = adapter_name(provider);
            let Some(adapter) = self.get(Kind::Model, name) else {
                let known = self.known(Kind::Model).collect::<Vec<_>>().join(", ");
                fault("adapter", format!("there is no adapter {name:?}; the adapters are: {known}"));
                continue;
            };
            let is_made_for = |wanted: &String| wanted == "*" || adapter.version.starts_with(wanted.as_str());
            if let Some(wanted) = provider.version.as_ref().filter(|wanted| !is_made_for(wanted)) {
                let message = format!("the adapter {name} has the version {}, not {wanted}", adapter.version);
                fault("version", message);
            }
            match &provider.credentials {
                Some(id) if !credentials.iter().any(|credential| credential.id == *id) => {
                    fault("credentials", format!("there is no credential {id:?} in provider_credentials.yaml"));
                }
                None if adapter.needs == Needs::Key && provider.base_url.is_none() => {
                    fault("credentials", format!("{name} needs a key: name one of provider_credentials.yaml"));
                }
                Some(_) | None => {}
            }
            if let Some(wrong) = provider.base_url.as_deref().and_then(wrong_address) {
                fault("base_url", wrong.into());
            }
        }
        faults
    }

    /// Binds the providers of a flow to adapters and keys.
    ///
    /// # Errors
    /// `UNPROCESSABLE`, with all `faults`: those of [`Adapters::check`], and keys that are not there.
    pub fn bind(
        &self,
        providers: &[ProviderManifest],
        credentials: &[Credential],
        vault: &Vault,
    ) -> Result<Bound, Error> {
        let mut faults = self.check(providers, credentials);
        let mut bound = Bound::default();
        for provider in providers {
            let Some(adapter) = self.get(Kind::Model, adapter_name(provider)) else { continue };
            let secret = provider.credentials.as_deref().and_then(|id| vault.get(id)).cloned();
            if let Some(reference) = provider.credentials.as_deref().and_then(|id| vault.missing(id)) {
                let message = format!("its key is not there: {reference} is empty or missing");
                faults.push(Fault { provider: provider.id.clone(), field: "credentials", message });
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

    /// The fingerprints of all adapters as they are without configuration, for a run whose flow names no providers.
    pub fn fingerprints(&self) -> Vec<Fingerprint> {
        self.0.values().map(|adapter| adapter.fingerprint(&adapter.name, &Value::Null)).collect()
    }
}

impl Adapter {
    fn fingerprint(&self, id: &str, config: &Value) -> Fingerprint {
        let config = Sha256::of(in_order(config).to_string().as_bytes());
        Fingerprint {
            kind: self.kind,
            id: id.into(),
            adapter: self.name.clone(),
            version: self.version.clone(),
            config,
        }
    }
}

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
pub struct Bound {
    providers: BTreeMap<String, Provider>,
    fingerprints: Vec<Fingerprint>,
}

impl Bound {
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

fn adapter_name(provider: &ProviderManifest) -> &str {
    provider.adapter.as_deref().unwrap_or(&provider.id)
}

/// The fault of an address. The address is never repeated: it may carry a password.
pub(crate) fn wrong_address(url: &str) -> Option<&'static str> {
    let Some(rest) = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")) else {
        return Some("it is no http(s) address");
    };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.contains('@') {
        Some("it has a user or a password in it: use a credential")
    } else if host.is_empty() || host.chars().any(|each| each.is_whitespace() || each.is_control()) {
        Some("it names no host")
    } else {
        None
    }
}

/// The input of a fingerprint: the manifest, with the place of its key.
fn configuration(provider: &ProviderManifest, credentials: &[Credential]) -> Value {
    let mut config = serde_json::to_value(provider).unwrap_or_default();
    let credential = credentials.iter().find(|credential| Some(&credential.id) == provider.credentials.as_ref());
    let reference = credential.and_then(Credential::reference).map(crate::secret::SecretRef::from);
    if let Value::Object(config) = &mut config {
        config.insert("reference".into(), serde_json::to_value(reference).unwrap_or_default());
    }
    config
}

/// The same value with all keys in order.
fn in_order(value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            let sorted: BTreeMap<&String, &Value> = object.iter().collect();
            Value::Object(sorted.into_iter().map(|(key, item)| (key.clone(), in_order(item))).collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(in_order).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests;
