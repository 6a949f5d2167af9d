//! The kinds of providers: how each is named, reached and configured.

use crate::{
    bedrock,
    config::{Api, Config, ProviderConfig},
    wire::Wire,
};
use ports::ModelRequest;
use std::borrow::Cow;

/// A provider as model names and the configuration call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ProviderKind {
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
    /// Amazon Bedrock, by Converse.
    Bedrock,
}

impl ProviderKind {
    /// In the order in which the default model is looked for.
    pub(crate) const ALL: [Self; 7] = [
        Self::OpenAi,
        Self::OpenAiResponses,
        Self::Anthropic,
        Self::Gemini,
        Self::OpenRouter,
        Self::Ollama,
        Self::Bedrock,
    ];

    /// The prefix of its models' names.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::OpenAiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::OpenRouter => "openrouter",
            Self::Ollama => "ollama",
            Self::Bedrock => "bedrock",
        }
    }

    /// The kind that a model name without a prefix belongs to, if the name tells.
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
            Self::Bedrock => &config.bedrock,
        }
    }

    pub(crate) fn config_mut(self, config: &mut Config) -> &mut ProviderConfig {
        match self {
            Self::OpenAi | Self::OpenAiResponses => &mut config.openai,
            Self::Anthropic => &mut config.anthropic,
            Self::Gemini => &mut config.gemini,
            Self::OpenRouter => &mut config.openrouter,
            Self::Ollama => &mut config.ollama,
            Self::Bedrock => &mut config.bedrock,
        }
    }

    /// How it is spoken to; none for a format that it does not have.
    pub(crate) fn wire(self, api: Option<Api>) -> Option<Wire> {
        Some(match (self, api) {
            (Self::OpenAi | Self::OpenRouter | Self::Ollama, Some(Api::Responses)) => Wire::Responses,
            (Self::OpenAi | Self::OpenRouter | Self::Ollama, _) => Wire::ChatCompletions,
            // OpenAI's configuration serves both of its formats.
            (Self::OpenAiResponses, _) => Wire::Responses,
            (_, Some(_)) => return None,
            (Self::Anthropic, None) => Wire::Messages,
            (Self::Gemini, None) => Wire::GenerateContent,
            (Self::Bedrock, None) => Wire::Converse,
        })
    }

    /// Whether this model is known to take a schema of its answer beside the tools of the request. Other models refuse such a request, or call no
    /// tool any more.
    pub(crate) fn holds_to_schema(self, wire: Wire, model: &str, request: &ModelRequest) -> bool {
        match self {
            Self::Gemini | Self::Ollama | Self::Anthropic | Self::Bedrock if !request.tools.is_empty() => false,
            Self::OpenAi | Self::OpenAiResponses => has_schemas(model),
            Self::OpenRouter => wire == Wire::ChatCompletions && model.strip_prefix("openai/").is_some_and(has_schemas),
            Self::Gemini => model.starts_with("gemini-") && !model.starts_with("gemini-1"),
            // For every model; old versions ignore the field.
            Self::Ollama => wire == Wire::ChatCompletions,
            Self::Anthropic | Self::Bedrock => wire.can_force(model),
        }
    }

    /// The name under which messages keep its own data: providers of one format do not understand each other's, and neither do the publishers of
    /// Bedrock's models.
    pub(crate) fn keeps_as(self, wire: Wire, model: &str) -> &'static str {
        match (self, wire) {
            (Self::OpenAi, Wire::Responses) => Self::OpenAiResponses.name(),
            (Self::OpenRouter, Wire::Responses) => "openrouter-responses",
            (Self::Ollama, Wire::Responses) => "ollama-responses",
            (Self::Bedrock, _) if model.contains("openai") => "bedrock-openai",
            (Self::Bedrock, _) if !model.contains("claude") => "bedrock-others",
            _ => self.name(),
        }
    }

    /// Its address if the configuration sets none.
    pub(crate) fn base_url(self, config: &Config) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::OpenAi | Self::OpenAiResponses => "https://api.openai.com/v1/",
            Self::Anthropic => "https://api.anthropic.com/v1/",
            Self::Gemini => "https://generativelanguage.googleapis.com/v1beta/",
            Self::OpenRouter => "https://openrouter.ai/api/v1/",
            Self::Ollama => "http://127.0.0.1:11434/v1/",
            Self::Bedrock => return Cow::Owned(bedrock::base_url(config.region())),
        })
    }

    /// The version that its base URL ends in. People write base URLs as the provider's own library takes them: for
    /// OpenAI with the version, for the others without; Bedrock's has none.
    pub(crate) fn version(self) -> Option<&'static str> {
        match self {
            Self::Gemini => Some("v1beta"),
            Self::Bedrock => None,
            _ => Some("v1"),
        }
    }

    /// The variable that names its key.
    pub(crate) fn key_variable(self) -> Option<&'static str> {
        match self {
            Self::OpenAi | Self::OpenAiResponses => Some("OPENAI_API_KEY"),
            Self::Anthropic => Some("ANTHROPIC_API_KEY"),
            Self::Gemini => Some("GEMINI_API_KEY"),
            Self::OpenRouter => Some("OPENROUTER_API_KEY"),
            Self::Bedrock => Some("AWS_BEARER_TOKEN_BEDROCK"),
            Self::Ollama => None,
        }
    }

    /// Its models if the configuration lists none; the first one is the default. None means: ask the server.
    pub(crate) fn models(self) -> &'static [&'static str] {
        match self {
            Self::OpenAi => &["gpt-5-mini", "gpt-5", "gpt-4o-mini"],
            Self::OpenAiResponses => &["gpt-5-mini", "gpt-5"],
            Self::Anthropic => &["claude-sonnet-4-5", "claude-haiku-4-5"],
            Self::Gemini => &["gemini-2.5-flash", "gemini-2.5-pro"],
            Self::OpenRouter => &["openai/gpt-5-mini"],
            Self::Ollama => &[],
            Self::Bedrock => {
                &["global.anthropic.claude-sonnet-4-5-20250929-v1:0", "global.anthropic.claude-haiku-4-5-20251001-v1:0"]
            }
        }
    }
}

/// The models of OpenAI with structured outputs. <https://platform.openai.com/docs/guides/structured-outputs>
fn has_schemas(model: &str) -> bool {
    const FAMILIES: [&str; 6] = ["gpt-4o", "gpt-4.1", "gpt-5", "gpt-6", "o3", "o4"];
    const WITHOUT: [&str; 6] = ["2024-05-13", "audio", "realtime", "search", "chat", "deep-research"];
    FAMILIES.iter().any(|family| model.starts_with(family)) && !WITHOUT.iter().any(|part| model.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::ToolSpec;
    use serde_json::json;
    use std::sync::Arc;

    #[test]
    fn a_schema_goes_beside_tools_to_models_that_still_call_them() {
        let tool = Arc::new(ToolSpec { name: "ls".into(), description: String::new(), parameters: json!({}) });
        let requests = [ModelRequest::default(), ModelRequest { tools: [tool].into(), ..ModelRequest::default() }];
        for (kind, wire, model, beside_tools) in [
            (ProviderKind::OpenAi, Wire::ChatCompletions, "gpt-5-mini", true),
            (ProviderKind::OpenAiResponses, Wire::Responses, "gpt-5-mini", true),
            (ProviderKind::Gemini, Wire::GenerateContent, "gemini-2.5-flash", false),
            (ProviderKind::Ollama, Wire::ChatCompletions, "llama3.2", false),
            (ProviderKind::Anthropic, Wire::Messages, "claude-sonnet-4-5", false),
        ] {
            let holds = requests.each_ref().map(|request| kind.holds_to_schema(wire, model, request));
            assert_eq!(holds, [true, beside_tools], "{model}");
        }
    }
}
