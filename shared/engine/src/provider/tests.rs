#![expect(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::secret::{Address, Recipient, SecretRef, Secrets};
use async_trait::async_trait;
use serde_json::json;

struct Host(&'static str);

#[async_trait]
impl Secrets for Host {
    async fn get(&self, reference: &SecretRef, _: Recipient<'_>) -> ports::Result<Option<Secret>> {
        Ok((*reference == SecretRef::Env("A_KEY".into())).then(|| Secret::new(self.0)))
    }
}

fn provider(manifest: Value) -> ProviderManifest {
    serde_json::from_value(manifest).unwrap()
}

fn credential(id: &str, env: &str) -> Credential {
    Credential { id: id.into(), env: Some(env.into()), ..Credential::default() }
}

async fn bind(providers: &[ProviderManifest], secret: &'static str) -> Result<BoundProviders, Error> {
    let credentials = [credential("key", "A_KEY"), credential("lost", "NO_KEY")];
    let vault = FlowSecrets::open(
        &credentials,
        Recipient {
            workspace: domain::WorkspaceId(uuid::Uuid::nil()),
            address: Address::Url("https://models.example"),
        },
        &Host(secret),
    )
    .await
    .unwrap();
    BoundProviders::of(&Adapters::builtin(), providers, &credentials, &vault)
}

#[tokio::test]
async fn s10_6_providers_are_bound_to_adapters_and_keys_before_anything_runs() {
    let providers = [
        provider(json!({"id": "fast", "adapter": "openai", "credentials": "key", "models": ["small"]})),
        provider(json!({"id": "ollama", "base_url": "http://127.0.0.1:11434/v1", "max_concurrency": 2})),
        provider(json!({"id": "local", "adapter": "openai", "base_url": "http://127.0.0.1:8000/v1"})),
    ];
    let bound = bind(&providers, "planted-secret").await.unwrap();
    let (fast, name) = bound.route("fast/small").unwrap().unwrap();
    assert_eq!((fast.adapter.as_str(), name), ("openai", "small"));
    assert_eq!(fast.secret.as_ref().map(Secret::expose), Some("planted-secret"));
    assert_eq!(bound.route("fast/large").unwrap_err().code, Code::Forbidden);
    assert_eq!(bound.route("ollama/a/b").unwrap().unwrap().1, "a/b");
    assert_eq!(bound.route("anthropic/claude").unwrap(), None);
    assert_eq!(bound.route("gpt-5").unwrap(), None);
    assert!(!format!("{bound:?}").contains("planted-secret"));
}

#[tokio::test]
async fn s10_6_all_faults_of_a_configuration_are_told_at_once() {
    let providers = [
        provider(json!({"id": "a", "adapter": "opneai"})),
        provider(json!({"id": "openai"})),
        provider(json!({"id": "openai", "credentials": "nope"})),
        provider(json!({"id": "gemini", "credentials": "lost"})),
        provider(json!({"id": "ollama", "base_url": "http://user:planted-secret@host/"})),
        provider(json!({"id": "scripted", "base_url": "ftp://x", "version": "99"})),
    ];
    let error = bind(&providers, "planted-secret").await.unwrap_err();
    let faults: Vec<(String, String)> = error.details["faults"]
        .as_array()
        .unwrap()
        .iter()
        .map(|fault| (fault["provider"].as_str().unwrap().to_owned(), fault["field"].as_str().unwrap().to_owned()))
        .collect();
    let expected = [
        ("a", "adapter"),
        ("openai", "credentials"),
        ("openai", "id"),
        ("openai", "credentials"),
        ("ollama", "base_url"),
        ("scripted", "version"),
        ("scripted", "base_url"),
        ("gemini", "credentials"),
    ];
    assert_eq!(faults, expected.map(|(one, other)| (one.to_owned(), other.to_owned())));
    assert!(!serde_json::to_string(&error).unwrap().contains("planted-secret"));
}

#[tokio::test]
async fn s10_2_a_fingerprint_tells_configurations_apart_and_knows_no_secret() {
    let of = async |manifest: Value, secret| {
        let bound = bind(&[provider(manifest)], secret).await.unwrap();
        bound.fingerprints().to_vec()
    };
    let one =
        of(json!({"id": "openai", "credentials": "key", "config": {"a": 1, "b": {"c": 2, "d": 3}}}), "secret-one")
            .await;
    let same =
        of(json!({"config": {"b": {"d": 3, "c": 2}, "a": 1}, "credentials": "key", "id": "openai"}), "other-secret")
            .await;
    assert_eq!(one, same, "neither the order of keys nor the secret counts");
    let other = of(json!({"id": "openai", "credentials": "key", "config": {"a": 2}}), "secret-one").await;
    assert_ne!(one, other);
    assert_eq!(
        (one[0].kind, one[0].adapter.as_str(), one[0].version.as_str()),
        (AdapterKind::Model, "openai", env!("CARGO_PKG_VERSION"))
    );
}
