//! The kinds of providers: how each is named, reached and configured.

use crate::config::{Config, ProviderConfig};
use genai::adapter::AdapterKind;

/// A provider as model names and the configuration call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// OpenAI's chat completions, and every server that speaks them.
    OpenAi,
    /// OpenAI's Responses.
    OpenAiResponses,
    Anthropic,
    Gemini,
    /// OpenRouter, by chat completions.
    OpenRouter,
    /// Ollama, by its chat completions.
    Ollama,
}

impl Kind {
    /// In the order in which the default model is looked for.
    pub(crate) const ALL: [Self; 6] =
        [Self::OpenAi, Self::OpenAiResponses, Self::Anthropic, Self::Gemini, Self::OpenRouter, Self::Ollama];

    /// The prefix of its models' names.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::OpenAiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::OpenRouter => "openrouter",
            Self::Ollama => "ollama",
        }
    }

    /// The one that a model name without a prefix belongs to, where its name tells.
    pub(crate) fn of_bare_name(model: &str) -> Option<Self> {
        let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| model.starts_with(prefix));
        if starts(&["gpt-", "chatgpt-", "o1", "o3", "o4"]) {
            Some(Self::OpenAi)
        } else if starts(&["claude-"]) {
            Some(Self::Anthropic)
        } else if starts(&["gemini-"]) {
            Some(Self::Gemini)
        } else {
            None
        }
    }

    pub(crate) fn config(self, config: &Config) -> &ProviderConfig {
        match self {
            Self::OpenAi | Self::OpenAiResponses => &config.openai,
            Self::Anthropic => &config.anthropic,
            Self::Gemini => &config.gemini,
            Self::OpenRouter => &config.openrouter,
            Self::Ollama => &config.ollama,
        }
    }

    pub(crate) fn config_mut(self, config: &mut Config) -> &mut ProviderConfig {
        match self {
            Self::OpenAi | Self::OpenAiResponses => &mut config.openai,
            Self::Anthropic => &mut config.anthropic,
            Self::Gemini => &mut config.gemini,
            Self::OpenRouter => &mut config.openrouter,
            Self::Ollama => &mut config.ollama,
        }
    }

    /// How genai talks to it.
    pub(crate) fn adapter(self) -> AdapterKind {
        match self {
            Self::OpenAi | Self::OpenRouter | Self::Ollama => AdapterKind::OpenAI,
            Self::OpenAiResponses => AdapterKind::OpenAIResp,
            Self::Anthropic => AdapterKind::Anthropic,
            Self::Gemini => AdapterKind::Gemini,
        }
    }

    /// Where it is when the configuration does not say.
    pub(crate) fn base_url(self) -> &'static str {
        match self {
            Self::OpenAi | Self::OpenAiResponses => "https://api.openai.com/v1/",
            Self::Anthropic => "https://api.anthropic.com/v1/",
            Self::Gemini => "https://generativelanguage.googleapis.com/v1beta/",
            Self::OpenRouter => "https://openrouter.ai/api/v1/",
            Self::Ollama => "http://127.0.0.1:11434/v1/",
        }
    }

    /// The version that its base URL ends in. People write base URLs as the provider's own library takes them: for
    /// OpenAI with the version, for the others without.
    pub(crate) fn version(self) -> &'static str {
        match self {
            Self::Gemini => "v1beta",
            _ => "v1",
        }
    }

    /// The variable that names its key.
    pub(crate) fn key_variable(self) -> Option<&'static str> {
        match self {
            Self::OpenAi | Self::OpenAiResponses => Some("OPENAI_API_KEY"),
            Self::Anthropic => Some("ANTHROPIC_API_KEY"),
            Self::Gemini => Some("GEMINI_API_KEY"),
            Self::OpenRouter => Some("OPENROUTER_API_KEY"),
            Self::Ollama => None,
        }
    }

    /// What it serves when the configuration lists nothing; the first one is the default. None means: ask the server.
    pub(crate) fn models(self) -> &'static [&'static str] {
        match self {
            Self::OpenAi => &["gpt-5-mini", "gpt-5", "gpt-4o-mini"],
            Self::OpenAiResponses => &["gpt-5-mini", "gpt-5"],
            Self::Anthropic => &["claude-sonnet-4-5", "claude-haiku-4-5"],
            Self::Gemini => &["gemini-2.5-flash", "gemini-2.5-pro"],
            Self::OpenRouter => &["openai/gpt-5-mini"],
            Self::Ollama => &[],
        }
    }
}
