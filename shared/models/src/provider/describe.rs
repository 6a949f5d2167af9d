//! Descriptions by a provider: its requests and answers.

use super::{Provider, start_of};
use crate::{failure, kind::ProviderKind, price, wire::count};
use base64::{Engine, engine::general_purpose::STANDARD};
use domain::Usage;
use ports::{Description, ModelError};
use reqwest::Url;
use serde_json::{Value, json};

/// How a model is asked about a content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// OpenAI's chat completions, which OpenRouter, Ollama and most servers speak, too.
    OpenAi,
    /// Anthropic's messages.
    Anthropic,
    /// Gemini's `generateContent`.
    Gemini,
    /// Bedrock's Converse.
    Bedrock,
}

impl Form {
    /// The form of a kind of provider.
    pub(crate) fn of(kind: ProviderKind) -> Self {
        match kind {
            ProviderKind::OpenAi | ProviderKind::OpenAiResponses | ProviderKind::OpenRouter | ProviderKind::Ollama => {
                Self::OpenAi
            }
            ProviderKind::Anthropic => Self::Anthropic,
            ProviderKind::Gemini => Self::Gemini,
            ProviderKind::Bedrock => Self::Bedrock,
        }
    }

    /// The longest content in bytes: what the providers take, less what its form in JSON adds.
    pub(crate) fn longest(self) -> usize {
        match self {
            Self::Anthropic | Self::Bedrock => 3_750_000,
            Self::OpenAi | Self::Gemini => 14_000_000,
        }
    }

    /// Whether the provider documents this type for its models. One that a certain model does not take is refused by it.
    pub(crate) fn takes(self, model: &str, media_type: &str) -> bool {
        const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
        const FILMS: [&str; 4] = ["video/mp4", "video/quicktime", "video/webm", "video/mpeg"];
        let is_audio = media_type.starts_with("audio/");
        PICTURES.contains(&media_type)
            || match self {
                Self::Gemini => is_audio || FILMS.contains(&media_type),
                Self::Bedrock => model.contains("nova") && FILMS.contains(&media_type),
                Self::OpenAi => model.contains("audio") && ["audio/wav", "audio/mpeg"].contains(&media_type),
                Self::Anthropic => false,
            }
    }
}

/// The bytes of an answer that are read.
const LARGEST: usize = 1 << 20;
/// The most tokens of a description; a model that thinks needs some of them for that.
const TOKENS: u32 = 2048;
/// The same words for every content.
const ASK: &str = "Describe this content for somebody who cannot see or hear it, and who searches for it later. Say what it shows or what is said \
    in it, who and what is there, and give every text in it word for word. Use Markdown without headings. Write the description alone.";

impl Provider {
    /// A description of this content.
    pub(crate) async fn describe(
        &self,
        form: Form,
        model: &str,
        media_type: &str,
        content: &[u8],
    ) -> Result<Description, ModelError> {
        let body = body(form, model, self.official, media_type, &STANDARD.encode(content));
        let answer =
            self.ask(self.with_head(self.http.client()?.post(url(&self.base, form, model)).json(&body))?).await?;
        let body = start_of(answer, LARGEST).await.map_err(|error| failure::transport(error, &self.redactor))?;
        let body: Value = serde_json::from_slice(&body)
            .map_err(|_| ModelError::Broken("its answer is no JSON, or is too long".into()))?;
        let (text, mut usage) = (text(form, &body), usage(form, &body));
        if text.trim().is_empty() && usage.is_none() {
            return Err(ModelError::Rejected("it wrote no description".into()));
        }
        if let Some(price) = price::price(&format!("{}/{model}", self.kind.name()), model, &self.config.prices) {
            usage.cost_usd = price.cost(&usage, 0);
        }
        Ok(Description { text, usage })
    }
}

fn url(base: &Url, form: Form, model: &str) -> Url {
    let mut url = base.clone();
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty();
        match form {
            Form::OpenAi => path.extend(["chat", "completions"]),
            Form::Anthropic => path.push("messages"),
            Form::Gemini => path.extend(["models", &format!("{model}:generateContent")]),
            Form::Bedrock => path.extend(["model", model, "converse"]),
        };
    }
    if form == Form::Bedrock {
        // As for Converse: the signature of a request counts a colon escaped.
        url.set_path(&url.path().replace(':', "%3A"));
    }
    url
}

fn body(form: Form, model: &str, official: bool, media_type: &str, data: &str) -> Value {
    let (kind, format) = media_type.split_once('/').unwrap_or((media_type, ""));
    match form {
        Form::OpenAi => {
            let content = match kind {
                "audio" => {
                    let format = if format == "mpeg" { "mp3" } else { format };
                    json!({ "type": "input_audio", "input_audio": { "data": data, "format": format } })
                }
                _ => json!({ "type": "image_url", "image_url": { "url": format!("data:{media_type};base64,{data}") } }),
            };
            let limit = if official { "max_completion_tokens" } else { "max_tokens" };
            let content = [json!({ "type": "text", "text": ASK }), content];
            let mut body = json!({ "model": model, "messages": [{ "role": "user", "content": content }] });
            body[limit] = TOKENS.into();
            body
        }
        Form::Anthropic => {
            let source = json!({ "type": "base64", "media_type": media_type, "data": data });
            let content = [json!({ "type": "image", "source": source }), json!({ "type": "text", "text": ASK })];
            json!({ "model": model, "max_tokens": TOKENS, "messages": [{ "role": "user", "content": content }] })
        }
        Form::Gemini => {
            let parts = [json!({ "inline_data": { "mime_type": media_type, "data": data } }), json!({ "text": ASK })];
            json!({
                "contents": [{ "role": "user", "parts": parts }],
                "generationConfig": { "maxOutputTokens": TOKENS },
            })
        }
        Form::Bedrock => {
            let format = if format == "quicktime" { "mov" } else { format };
            let content = json!({ kind: { "format": format, "source": { "bytes": data } } });
            json!({
                "messages": [{ "role": "user", "content": [content, { "text": ASK }] }],
                "inferenceConfig": { "maxTokens": TOKENS },
            })
        }
    }
}

fn text(form: Form, body: &Value) -> String {
    let pieces = match form {
        Form::OpenAi => {
            return body["choices"][0]["message"]["content"].as_str().unwrap_or_default().to_owned();
        }
        Form::Anthropic => &body["content"],
        Form::Gemini => &body["candidates"][0]["content"]["parts"],
        Form::Bedrock => &body["output"]["message"]["content"],
    };
    // Gemini marks thoughts.
    let said = pieces.as_array().into_iter().flatten().filter(|piece| piece["thought"] != true);
    said.filter_map(|piece| piece["text"].as_str()).collect()
}

fn usage(form: Form, body: &Value) -> Usage {
    let (input, output) = match form {
        Form::OpenAi => {
            let usage = &body["usage"];
            (count(&usage["prompt_tokens"]), count(&usage["completion_tokens"]))
        }
        Form::Anthropic => (count(&body["usage"]["input_tokens"]), count(&body["usage"]["output_tokens"])),
        Form::Gemini => {
            let usage = &body["usageMetadata"];
            let output = count(&usage["candidatesTokenCount"]) + count(&usage["thoughtsTokenCount"]);
            (count(&usage["promptTokenCount"]), output)
        }
        Form::Bedrock => (count(&body["usage"]["inputTokens"]), count(&body["usage"]["outputTokens"])),
    };
    Usage { input_tokens: input, output_tokens: output, ..Usage::default() }
}
