//! The configuration of models: from the environment and from the hub's configuration file (its `[ai]` part).

use crate::{bedrock::AwsEnvironment, price::Price, retry::RetryPolicy, secret::Secret};
use serde::Deserialize;
use std::{collections::BTreeMap, path::PathBuf};

/// A configuration that cannot work.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A base URL is not one.
    #[error("the base URL of {provider} is not an http(s) URL: {reason}")]
    BaseUrl {
        /// The provider.
        provider: &'static str,
        /// The fault; never the URL itself, which may carry a password.
        reason: String,
    },
    /// A provider that has one format is told to speak another.
    #[error("{provider} has no `api` to choose: only openai, openrouter and ollama have")]
    Api {
        /// The provider.
        provider: &'static str,
    },
    /// A provider that is at one address for all regions is given one.
    #[error("{provider} has no `region`: only bedrock has")]
    Region {
        /// The provider.
        provider: &'static str,
    },
    /// A model that does not embed is to embed.
    #[error("{model:?} cannot embed texts: {reason}")]
    Embedding {
        /// The model.
        model: String,
        /// The reason.
        reason: String,
    },
    /// A model that takes text alone is to describe pictures.
    #[error("{model:?} cannot describe contents: {reason}")]
    Describing {
        /// The model.
        model: String,
        /// The reason.
        reason: String,
    },
    /// The script file could not be read.
    #[error("the script {path} cannot be read: {source}")]
    ScriptFile {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The script file makes no sense.
    #[error("the script {path} cannot be played: {source}")]
    Script {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: crate::ScriptError,
    },
}

impl ConfigError {
    /// The key of the hub's configuration that is wrong, such as `ai.openai.base_url`.
    pub fn key(&self) -> String {
        // OpenAI's configuration serves both of its formats.
        let of = |provider: &str, key| format!("ai.{}.{key}", provider.trim_end_matches("-responses"));
        match self {
            Self::BaseUrl { provider, .. } => of(provider, "base_url"),
            Self::Api { provider } => of(provider, "api"),
            Self::Region { provider } => of(provider, "region"),
            Self::Embedding { .. } => "search.embedding_model".to_owned(),
            Self::Describing { .. } => "documents.description_model".to_owned(),
            Self::ScriptFile { .. } | Self::Script { .. } => "ai.script".to_owned(),
        }
    }
}

/// Sets a key of the configuration.
type Setter = fn(&mut Config, String);

/// The variables that other programs read, too, each with its key in `[ai]` and with the way to set that.
const USUAL_VARIABLES: [(&str, &str, Setter); 12] = [
    ("OPENAI_API_KEY", "openai.api_key", |config, value| config.openai.api_key = Some(Secret::new(value))),
    ("OPENAI_BASE_URL", "openai.base_url", |config, value| config.openai.base_url = Some(value)),
    ("ANTHROPIC_API_KEY", "anthropic.api_key", |config, value| config.anthropic.api_key = Some(Secret::new(value))),
    ("ANTHROPIC_BASE_URL", "anthropic.base_url", |config, value| config.anthropic.base_url = Some(value)),
    ("GEMINI_API_KEY", "gemini.api_key", |config, value| config.gemini.api_key = Some(Secret::new(value))),
    ("GEMINI_BASE_URL", "gemini.base_url", |config, value| config.gemini.base_url = Some(value)),
    ("OPENROUTER_API_KEY", "openrouter.api_key", |config, value| config.openrouter.api_key = Some(Secret::new(value))),
    ("OPENROUTER_BASE_URL", "openrouter.base_url", |config, value| config.openrouter.base_url = Some(value)),
    ("OLLAMA_BASE_URL", "ollama.base_url", |config, value| config.ollama.base_url = Some(value)),
    ("AWS_BEARER_TOKEN_BEDROCK", "bedrock.api_key", |config, value| config.bedrock.api_key = Some(Secret::new(value))),
    ("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "bedrock.base_url", |config, value| config.bedrock.base_url = Some(value)),
    ("BUILDSCALE_MODEL", "model", |config, value| config.model = Some(value)),
];

/// The variables that other programs read, too, each with its key in `[ai]`, such as `OPENAI_API_KEY` with `openai.api_key`. `BUILDSCALE__AI__…`, which
/// is for this server alone, goes over each of them.
pub fn usual_variables() -> impl Iterator<Item = (&'static str, &'static str)> {
    USUAL_VARIABLES.into_iter().map(|(name, key, _)| (name, key))
}

/// The variable of this server for a key of `[ai]`, such as `BUILDSCALE__AI__OPENAI__API_KEY`.
fn own_variable(key: &str) -> String {
    format!("BUILDSCALE__AI__{}", key.replace('.', "__").to_uppercase())
}

/// One of OpenAI's formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Api {
    /// `chat/completions`, as nearly every server does.
    ChatCompletions,
    /// `responses`.
    Responses,
}

/// Everything about models. Every field may be left out.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The model that serves requests that name none, such as `openai/gpt-4o-mini`.
    pub model: Option<String>,
    /// OpenAI, or any server that speaks chat completions; also `openai-responses/…`.
    pub openai: ProviderConfig,
    /// Anthropic.
    pub anthropic: ProviderConfig,
    /// Gemini.
    pub gemini: ProviderConfig,
    /// OpenRouter.
    pub openrouter: ProviderConfig,
    /// Ollama.
    pub ollama: ProviderConfig,
    /// Amazon Bedrock; without a key, with the credentials of AWS that the environment has, as a Lambda has its role's.
    pub bedrock: ProviderConfig,
    /// Prices by model name, with or without its provider.
    pub prices: BTreeMap<String, Price>,
    /// Attempts and waits.
    pub retry: RetryPolicy,
    /// How much reasoning to ask for, from models that can be asked.
    pub reasoning: Option<Effort>,
    /// The tokens that a model may write in one answer; 1 or more. Without it the provider's own limit holds.
    pub max_output_tokens: Option<u32>,
    /// A YAML script to play as `scripted/script`, the default model where no other one is configured.
    pub script: Option<PathBuf>,
    #[serde(skip)]
    pub(crate) aws: AwsEnvironment,
}

/// One provider.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProviderConfig {
    /// The key. A server of your own, at another base URL, may need none.
    pub api_key: Option<Secret>,
    /// The base URL, such as `http://127.0.0.1:8000/v1`.
    pub base_url: Option<String>,
    /// `openai`, `openrouter` and `ollama` only: the format that it is spoken to in; chat completions when none.
    pub api: Option<Api>,
    /// The models to list, the default one first; any other can still be asked for by name.
    pub models: Vec<String>,
    /// Whether its models take images, PDFs and sounds, as far as the format has them. By default those of OpenAI, Anthropic, Gemini and of Claude
    /// and Nova on Bedrock do, and those behind a base URL of one's own, of OpenRouter and of Ollama do not: they get a note, and documents as Markdown.
    pub media: Option<bool>,
    /// Bedrock only: the region of the models. Setting one enables them, with or without a key.
    pub region: Option<String>,
}

impl ProviderConfig {
    /// Whether it can be asked: a server of one's own needs no key. That there are credentials of AWS alone says nothing: a
    /// function always has some.
    pub(crate) fn is_configured(&self) -> bool {
        self.api_key.is_some() || self.base_url.is_some() || self.region.is_some()
    }
}

/// How much reasoning to ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    /// A little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
}

impl Effort {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

impl Config {
    /// The settings that do not depend on a provider.
    pub(crate) fn without_providers(&self) -> Self {
        let (prices, retry, aws) = (self.prices.clone(), self.retry.clone(), self.aws.without_credentials());
        let (reasoning, max_output_tokens) = (self.reasoning, self.max_output_tokens);
        Self { prices, retry, reasoning, max_output_tokens, aws, ..Self::default() }
    }

    /// The region of Bedrock's models.
    pub(crate) fn region(&self) -> &str {
        self.aws.region(self.bedrock.region.as_deref())
    }

    /// The configuration with the usual variables on top; `lookup` returns the value of a variable. `file` has the values of `BUILDSCALE__AI__…` already,
    /// but the model and the script. An empty variable counts as not set, because container files cannot leave one out.
    pub fn from_lookup(file: Option<Self>, lookup: impl Fn(&str) -> Option<String>) -> Self {
        let mut config = file.unwrap_or_default();
        let set = |name: &str| lookup(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        for (name, key, apply) in USUAL_VARIABLES {
            // A key that somebody chose for this server is not the one that all programs of the machine find.
            if let Some(value) = set(name).filter(|_| set(&own_variable(key)).is_none()) {
                apply(&mut config, value);
            }
        }
        config.model = set("BUILDSCALE__AI__MODEL").or(config.model);
        config.script = set("BUILDSCALE__AI__SCRIPT").map(PathBuf::from).or(config.script);
        config.aws = AwsEnvironment::from_lookup(set);
        config
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn lookup<'a>(variables: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
        |name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    }

    #[test]
    fn the_environment_goes_over_the_file_and_nothing_is_not_something() {
        let file: Config = serde_json::from_value(serde_json::json!({
            "model": "anthropic/from-file",
            "openai": {"api_key": "from-file", "base_url": "http://file/v1", "models": ["a"]},
            "prices": {"a": {"input": 1.0, "output": 2.0}},
            "retry": {"attempts": 7},
        }))
        .unwrap();
        let config = Config::from_lookup(
            Some(file),
            lookup(&[("OPENAI_API_KEY", " from-env\n"), ("OPENAI_BASE_URL", ""), ("GEMINI_API_KEY", "  ")]),
        );
        assert_eq!(config.openai.api_key.as_ref().map(Secret::expose), Some("from-env"));
        assert_eq!(config.openai.base_url.as_deref(), Some("http://file/v1"));
        assert_eq!(config.gemini.api_key, None);
        assert_eq!(config.model.as_deref(), Some("anthropic/from-file"));
        assert_eq!(config.retry.attempts, 7);
        let config =
            Config::from_lookup(Some(config), lookup(&[("BUILDSCALE_MODEL", "b"), ("BUILDSCALE__AI__MODEL", "c")]));
        assert_eq!(config.model.as_deref(), Some("c"));
    }

    #[test]
    fn a_variable_of_this_server_goes_over_the_usual_one_of_its_provider() {
        let value = |config: &Config, key: &str| {
            let Some((provider, field)) = key.split_once('.') else { return config.model.clone() };
            let provider = match provider {
                "openai" => &config.openai,
                "anthropic" => &config.anthropic,
                "gemini" => &config.gemini,
                "openrouter" => &config.openrouter,
                "ollama" => &config.ollama,
                "bedrock" => &config.bedrock,
                other => panic!("there is no provider {other}"),
            };
            match field {
                "api_key" => provider.api_key.as_ref().map(|key| key.expose().to_owned()),
                "base_url" => provider.base_url.clone(),
                other => panic!("there is no key {other}"),
            }
        };
        for (usual, key) in usual_variables() {
            let alone = Config::from_lookup(None, lookup(&[(usual, "http://usual")]));
            assert_eq!(value(&alone, key).as_deref(), Some("http://usual"), "{usual}");
            let own = own_variable(key);
            // The hub has read its own variables before, as it reads its file.
            let file = match key.split_once('.') {
                Some((provider, field)) => serde_json::json!({ provider: { field: "http://own" } }),
                None => serde_json::json!({ key: "http://own" }),
            };
            let file = serde_json::from_value(file).unwrap();
            let both =
                Config::from_lookup(Some(file), lookup(&[(usual, "http://usual"), (own.as_str(), "http://own")]));
            assert_eq!(value(&both, key).as_deref(), Some("http://own"), "{own}");
        }
    }

    #[test]
    fn a_fault_of_a_provider_names_its_key() {
        let key = |config: serde_json::Value| {
            let config = Config::from_lookup(Some(serde_json::from_value(config).unwrap()), |_| None);
            crate::Router::new(config).err().map(|error| error.key())
        };
        assert_eq!(key(serde_json::json!({})), None);
        assert_eq!(key(serde_json::json!({"bedrock": {"region": "eu-west-1"}})), None);
        // Without this, a provider without a key would count as configured.
        assert_eq!(key(serde_json::json!({"openai": {"region": "eu-west-1"}})).as_deref(), Some("ai.openai.region"));
        let wrong = serde_json::json!({"openrouter": {"base_url": "nonsense"}});
        assert_eq!(key(wrong).as_deref(), Some("ai.openrouter.base_url"));
        assert_eq!(key(serde_json::json!({"gemini": {"api": "responses"}})).as_deref(), Some("ai.gemini.api"));
        assert_eq!(key(serde_json::json!({"script": "/nowhere/at/all.yaml"})).as_deref(), Some("ai.script"));
    }

    #[test]
    fn unknown_fields_are_refused_and_keys_are_not_shown() {
        let error = serde_json::from_str::<Config>(r#"{"openia": {"api_key": "hunter2-hunter2"}}"#).unwrap_err();
        assert!(error.to_string().contains("openia") && !error.to_string().contains("hunter2"), "{error}");
        let config = Config::from_lookup(None, lookup(&[("ANTHROPIC_API_KEY", "hunter2-hunter2")]));
        assert!(!format!("{config:?}").contains("hunter2"));
    }
}
