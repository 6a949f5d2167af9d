//! `providers.yaml` and `provider_credentials.yaml`: the models that a flow reaches, and the places of their keys.
//!
//! A manifest never holds a key. It names its place: an environment variable, a file, or a secret of the host.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The providers of a flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("required" = ["providers"]))]
pub struct Providers {
    /// The version of this file, for people.
    pub version: Value,
    /// The providers.
    pub providers: Vec<ProviderManifest>,
}

/// One provider.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProviderManifest {
    /// Its id: the first part of `provider/model`.
    #[schemars(length(min = 1))]
    pub id: String,
    /// Its name, for people.
    pub name: Option<String>,
    /// Its purpose.
    pub description: Option<String>,
    /// The adapter that speaks with it, such as `openai`; its id when nothing is said.
    pub adapter: Option<String>,
    /// The version of the adapter that it was made for.
    pub version: Option<String>,
    /// Its base URL.
    pub base_url: Option<String>,
    /// Its credential: an id of provider_credentials.yaml.
    pub credentials: Option<String>,
    /// The models that may be used; all when nothing is said.
    #[serde(default)]
    pub models: Vec<String>,
    /// Calls at once.
    #[schemars(range(min = 1))]
    pub max_concurrency: Option<u32>,
    /// Anything more that its adapter takes.
    pub config: Option<Map<String, Value>>,
}

/// The places of the keys.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("required" = ["provider_credentials"]))]
pub struct Credentials {
    /// The version of this file, for people.
    pub version: Value,
    /// One entry per key.
    pub provider_credentials: Vec<Credential>,
}

/// The place of one key: exactly one of `env`, `file`, `secret` and `auth`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Credential {
    /// Its id.
    #[schemars(length(min = 1))]
    pub id: String,
    /// The provider that it is for: one that there is.
    pub provider: Option<String>,
    /// Its purpose, for people.
    pub description: Option<String>,
    /// The environment variable that holds it.
    pub env: Option<String>,
    /// The file that holds it.
    pub file: Option<String>,
    /// Its name in the secrets of the host.
    pub secret: Option<String>,
    /// The same in the field's longer form.
    pub auth: Option<Auth>,
    /// Without effect here, and noted so; never a key.
    pub config: Option<Map<String, Value>>,
}

/// The place of a key, in the longer form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Auth {
    /// Its kind, such as `api_key`, for people.
    #[serde(rename = "type")]
    pub sort: Option<String>,
    /// The kind of place.
    pub source: AuthSource,
    /// For `env`: the environment variable.
    pub env_var: Option<String>,
    /// For `file`: the file.
    pub file_path: Option<String>,
    /// For `secret`: the name.
    pub secret_name: Option<String>,
}

/// The kind of place of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AuthSource {
    /// In the environment.
    Env,
    /// In a file.
    File,
    /// In the secrets of the host.
    Secret,
}

/// The place of a key, from either form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretReference {
    /// An environment variable.
    Env(String),
    /// A file.
    File(String),
    /// A name in the secrets of the host.
    Secret(String),
}

impl Credential {
    /// The place of the key; none when the manifest names no place, or two.
    pub fn reference(&self) -> Option<SecretReference> {
        let auth = self.auth.as_ref();
        let of = |source| auth.filter(|auth| auth.source == source);
        let mut ways = [
            self.env.clone().map(SecretReference::Env),
            self.file.clone().map(SecretReference::File),
            self.secret.clone().map(SecretReference::Secret),
            of(AuthSource::Env).and_then(|auth| auth.env_var.clone()).map(SecretReference::Env),
            of(AuthSource::File).and_then(|auth| auth.file_path.clone()).map(SecretReference::File),
            of(AuthSource::Secret).and_then(|auth| auth.secret_name.clone()).map(SecretReference::Secret),
        ]
        .into_iter()
        .flatten();
        ways.next().filter(|_| ways.next().is_none())
    }
}
