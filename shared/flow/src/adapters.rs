//! Adapters (spec 002 §10.6): the backends that manifests may name, and the credentials that each needs.
//!
//! The graph knows no provider: an agent says `provider/model`, a tool its entry point, a plugin its type. This registry
//! checks what `providers.yaml` says about them and gives each a fingerprint, so that a run tells which code and which
//! configuration it was made with (§10.2). It looks at references to credentials and never at their values.

use crate::{
    canonical,
    manifest::{Credential, ProviderManifest},
};
use domain::{Code, Error, Sha256};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The purpose of an adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdapterKind {
    /// It answers agents.
    Model,
    /// It runs tools.
    Tool,
    /// It takes events.
    Sink,
}

/// Whether an adapter needs a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CredentialNeed {
    /// It takes none.
    Nothing,
    /// It needs one, unless a server of one's own is named (`base_url`).
    Key,
}

/// One adapter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adapter {
    /// Its purpose.
    pub kind: AdapterKind,
    /// Its name, as manifests say it.
    pub name: String,
    /// Its version, as fingerprints tell it.
    pub version: String,
    /// Whether it needs a credential.
    pub needs: CredentialNeed,
}

/// The exact adapter and configuration of a run; never a secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Fingerprint {
    /// Its purpose.
    pub kind: AdapterKind,
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
pub struct AdapterFault {
    /// The provider's id.
    pub provider: String,
    /// The field at fault.
    pub field: &'static str,
    /// The fault, as a sentence.
    pub message: String,
}

/// The adapters that there are. Cheap enough to clone.
#[derive(Clone, Debug, Default)]
pub struct Adapters(BTreeMap<(AdapterKind, String), Adapter>);

impl Adapters {
    /// The adapters that BuildScale comes with.
    pub fn builtin() -> Self {
        let version = env!("CARGO_PKG_VERSION");
        let adapter = |kind, name: &str, needs| Adapter { kind, name: name.into(), version: version.into(), needs };
        let keyed = ["openai", "openai-responses", "anthropic", "gemini", "openrouter"];
        let models = keyed.map(|name| adapter(AdapterKind::Model, name, CredentialNeed::Key)).into_iter();
        let open = ["ollama", "scripted"].map(|name| adapter(AdapterKind::Model, name, CredentialNeed::Nothing));
        let tools =
            ["builtin", "function", "command"].map(|name| adapter(AdapterKind::Tool, name, CredentialNeed::Nothing));
        let sinks = ["jsonl", "otlp", "prometheus", "webhook"]
            .map(|name| adapter(AdapterKind::Sink, name, CredentialNeed::Nothing));
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
    pub fn get(&self, kind: AdapterKind, name: &str) -> Option<&Adapter> {
        self.0.get(&(kind, name.to_owned()))
    }

    /// The names of a kind, in order.
    pub fn known(&self, kind: AdapterKind) -> impl Iterator<Item = &str> {
        self.0.keys().filter(move |(each, _)| *each == kind).map(|(_, name)| name.as_str())
    }

    /// All faults of the providers of a flow: unknown adapters, credentials that are missing or unknown, invalid
    /// addresses. It looks at references only.
    pub fn check(&self, providers: &[ProviderManifest], credentials: &[Credential]) -> Vec<AdapterFault> {
        let mut faults = Vec::new();
        let mut ids = BTreeSet::new();
        for provider in providers {
            let mut fault = |field, message: String| {
                faults.push(AdapterFault { provider: provider.id.clone(), field, message });
            };
            if !ids.insert(&provider.id) {
                fault("id", "there are two providers of this id".into());
            }
            let name = adapter_name(provider);
            let Some(adapter) = self.get(AdapterKind::Model, name) else {
                let known = self.known(AdapterKind::Model).collect::<Vec<_>>().join(", ");
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
                None if adapter.needs == CredentialNeed::Key && provider.base_url.is_none() => {
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

    /// The fingerprints of all adapters as they are without configuration, for a run whose flow names no providers.
    pub fn fingerprints(&self) -> Vec<Fingerprint> {
        self.0.values().map(|adapter| adapter.fingerprint(&adapter.name, &Value::Null)).collect()
    }
}

impl Adapter {
    /// The fingerprint of a provider of this id that is configured so. The order of keys does not count.
    pub fn fingerprint(&self, id: &str, config: &Value) -> Fingerprint {
        let config = canonical::hash(config);
        Fingerprint {
            kind: self.kind,
            id: id.into(),
            adapter: self.name.clone(),
            version: self.version.clone(),
            config,
        }
    }
}

/// The name of the adapter behind a provider: its own id where it names none.
pub fn adapter_name(provider: &ProviderManifest) -> &str {
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

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn s10_6_models_tools_and_sinks_share_one_registry() {
        let mut adapters = Adapters::builtin();
        assert!(
            adapters.get(AdapterKind::Tool, "builtin").is_some() && adapters.get(AdapterKind::Sink, "otlp").is_some()
        );
        assert!(adapters.get(AdapterKind::Sink, "openai").is_none());
        let own =
            Adapter { kind: AdapterKind::Sink, name: "kafka".into(), version: "1".into(), needs: CredentialNeed::Key };
        adapters.register(own.clone()).unwrap();
        assert_eq!(adapters.register(own).unwrap_err().code, Code::Conflict);
        assert!(adapters.known(AdapterKind::Sink).eq(["jsonl", "kafka", "otlp", "prometheus", "webhook"]));
        let (fingerprints, builtin) = (adapters.fingerprints(), Adapters::builtin().fingerprints());
        assert!(fingerprints.is_sorted() && fingerprints.len() == builtin.len() + 1, "{fingerprints:?}");
        assert!(builtin.iter().all(|adapter| fingerprints.contains(adapter)), "{fingerprints:?}");
    }
}
