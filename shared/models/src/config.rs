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
    /// The tokens that a model may write in one answer; none for the provider's own limit.
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

    /// The file's configuration with the environment's on top; `lookup` returns the value of a variable. An empty variable counts as not
    /// set, because container files cannot leave one out.
    pub fn from_lookup(file: Option<Self>, lookup: impl Fn(&str) -> Option<String>) -> Self {
        let mut config = file.unwrap_or_default();
        let get = |name: &str| lookup(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let key = |slot: &mut Option<Secret>, name: &str| {
            if let Some(value) = get(name) {
                *slot = Some(Secret::new(value));
            }
        };
        let text = |slot: &mut Option<String>, name: &str| {
            if let Some(value) = get(name) {
                *slot = Some(value);
            }
        };
        key(&mut config.openai.api_key, "OPENAI_API_KEY");
        text(&mut config.openai.base_url, "OPENAI_BASE_URL");
        key(&mut config.anthropic.api_key, "ANTHROPIC_API_KEY");
        text(&mut config.anthropic.base_url, "ANTHROPIC_BASE_URL");
        key(&mut config.gemini.api_key, "GEMINI_API_KEY");
        text(&mut config.gemini.base_url, "GEMINI_BASE_URL");
        key(&mut config.openrouter.api_key, "OPENROUTER_API_KEY");
        text(&mut config.openrouter.base_url, "OPENROUTER_BASE_URL");
        text(&mut config.ollama.base_url, "OLLAMA_BASE_URL");
        key(&mut config.bedrock.api_key, "AWS_BEARER_TOKEN_BEDROCK");
        text(&mut config.bedrock.base_url, "AWS_ENDPOINT_URL_BEDROCK_RUNTIME");
        config.aws = AwsEnvironment::from_lookup(get);
        text(&mut config.model, "BUILDSCALE_MODEL");
        text(&mut config.model, "BUILDSCALE__AI__MODEL");
        if let Some(path) = get("BUILDSCALE__AI__SCRIPT") {
            config.script = Some(path.into());
        }
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
    fn unknown_fields_are_refused_and_keys_are_not_shown() {
        let error = serde_json::from_str::<Config>(r#"{"openia": {"api_key": "hunter2-hunter2"}}"#).unwrap_err();
        assert!(error.to_string().contains("openia") && !error.to_string().contains("hunter2"), "{error}");
        let config = Config::from_lookup(None, lookup(&[("ANTHROPIC_API_KEY", "hunter2-hunter2")]));
        assert!(!format!("{config:?}").contains("hunter2"));
    }
}
