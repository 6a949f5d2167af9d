//! Vectors of a provider: its requests and answers.

use super::{Provider, start_of};
use crate::{failure, kind::ProviderKind, price, wire::count};
use domain::Usage;
use futures::{StreamExt, stream::FuturesOrdered};
use ports::{EmbedAs, ModelError};
use reqwest::Url;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::timeout;

/// How a model is asked for vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// OpenAI's `embeddings`, which OpenRouter, Ollama and most servers speak, too.
    OpenAi,
    /// Gemini's `batchEmbedContents`.
    Gemini,
    /// Amazon Titan at Bedrock, a text per request.
    Titan,
    /// Cohere at Bedrock.
    Cohere,
}

impl Form {
    /// The form of a kind of provider.
    pub(crate) fn of(kind: ProviderKind, model: &str) -> Option<Self> {
        match kind {
            ProviderKind::OpenAi | ProviderKind::OpenAiResponses | ProviderKind::OpenRouter | ProviderKind::Ollama => {
                Some(Self::OpenAi)
            }
            ProviderKind::Gemini => Some(Self::Gemini),
            ProviderKind::Bedrock if model.contains("titan-embed") => Some(Self::Titan),
            ProviderKind::Bedrock if model.contains("cohere.embed") => Some(Self::Cohere),
            ProviderKind::Bedrock | ProviderKind::Anthropic => None,
        }
    }

    /// As many as the providers take, or fewer: a passage has up to about a thousand tokens.
    pub(crate) fn most_texts(self, kind: ProviderKind) -> usize {
        match self {
            // Of a machine of one's own a request should not take minutes.
            Self::OpenAi if kind == ProviderKind::Ollama => 16,
            Self::OpenAi | Self::Cohere => 96,
            Self::Gemini => 100,
            Self::Titan => 16,
        }
    }
}

/// The bytes of an answer that are read: a hundred vectors of 4,096 numbers, as JSON, are 10 MB.
const LARGEST: usize = 64 << 20;
/// How many requests of a batch are under way where each has one text.
const AT_ONCE: usize = 8;
/// The header in which Bedrock counts the tokens of any model.
const TOKENS: &str = "x-amzn-bedrock-input-token-count";

/// A request for vectors, without its texts.
#[derive(Clone, Copy)]
pub(crate) struct VectorRequest<'a> {
    pub form: Form,
    pub model: &'a str,
    pub dimensions: Option<u32>,
    pub purpose: EmbedAs,
    /// How long one request may take.
    pub lasts: Duration,
}

/// The vectors that came. A request that was answered is paid for, whatever became of the others.
#[derive(Default)]
pub(crate) struct Answered {
    /// The vector of each text, where it came.
    pub vectors: Vec<Option<Vec<f32>>>,
    pub usage: Usage,
    /// Why one of them did not come.
    pub failed: Option<ModelError>,
}

impl Provider {
    /// The vectors of these texts.
    pub(crate) async fn embed(&self, asked: VectorRequest<'_>, texts: &[String]) -> Answered {
        let mut answered = match asked.form {
            Form::Titan => self.one_by_one(asked, texts).await,
            Form::OpenAi | Form::Gemini | Form::Cohere => self.at_once(asked, texts).await,
        };
        let name = format!("{}/{}", self.kind.name(), asked.model);
        if let Some(price) = price::price(&name, asked.model, &self.config.prices) {
            answered.usage.cost_usd = price.cost(&answered.usage, 0);
        }
        answered
    }

    /// With a request per text. After a failure no further request begins; the answers to those under way count.
    async fn one_by_one(&self, asked: VectorRequest<'_>, texts: &[String]) -> Answered {
        let (mut waiting, mut under_way, mut all) = (texts.iter(), FuturesOrdered::new(), Answered::default());
        loop {
            while all.failed.is_none()
                && under_way.len() < AT_ONCE
                && let Some(text) = waiting.next()
            {
                under_way.push_back(self.at_once(asked, std::slice::from_ref(text)));
            }
            let Some(one) = under_way.next().await else { break };
            all.vectors.extend(one.vectors);
            all.usage += one.usage;
            all.failed = all.failed.or(one.failed);
        }
        all.vectors.resize(texts.len(), None);
        all
    }

    /// With one request for all.
    async fn at_once(&self, asked: VectorRequest<'_>, texts: &[String]) -> Answered {
        let answer = timeout(asked.lasts, self.vectors(asked, texts)).await;
        let answer = answer.unwrap_or_else(|_| Err(ModelError::Unavailable("its vectors did not come in time".into())));
        let none = || vec![None; texts.len()];
        match answer {
            Err(failure) => Answered { vectors: none(), usage: Usage::default(), failed: Some(failure) },
            Ok((vectors, usage)) if vectors.len() == texts.len() && vectors.iter().all(|each| !each.is_empty()) => {
                Answered { vectors: vectors.into_iter().map(Some).collect(), usage, failed: None }
            }
            Ok((_, usage)) => {
                let failed = Some(ModelError::Broken("its answer has not one vector per text".into()));
                Answered { vectors: none(), usage, failed }
            }
        }
    }

    async fn vectors(&self, asked: VectorRequest<'_>, texts: &[String]) -> Result<(Vec<Vec<f32>>, Usage), ModelError> {
        let url = url(&self.base, asked.form, asked.model);
        let body = body(asked, texts);
        let answer = self.ask(self.with_head(self.http.client()?.post(url).json(&body))?).await?;
        let counted = answer.headers().get(TOKENS).and_then(|count| count.to_str().ok()?.parse().ok());
        let body = start_of(answer, LARGEST).await.map_err(|error| failure::transport(error, &self.redactor))?;
        let body: Value = serde_json::from_slice(&body)
            .map_err(|_| ModelError::Broken("its answer is no JSON, or is too long".into()))?;
        let tokens = counted.or_else(|| tokens(asked.form, &body)).unwrap_or_else(|| {
            // Gemini does not say. About four characters are a token.
            texts.iter().map(|text| text.chars().count().div_ceil(4) as u64).sum()
        });
        Ok((read(asked.form, &body), Usage { input_tokens: tokens, ..Usage::default() }))
    }
}

fn url(base: &Url, form: Form, model: &str) -> Url {
    let mut url = base.clone();
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty();
        match form {
            Form::OpenAi => path.push("embeddings"),
            Form::Gemini => path.extend(["models", &format!("{model}:batchEmbedContents")]),
            Form::Titan | Form::Cohere => path.extend(["model", model, "invoke"]),
        };
    }
    if matches!(form, Form::Titan | Form::Cohere) {
        // As for Converse: the signature of a request counts a colon escaped.
        url.set_path(&url.path().replace(':', "%3A"));
    }
    url
}

fn body(asked: VectorRequest<'_>, texts: &[String]) -> Value {
    let VectorRequest { form, model, dimensions, purpose, .. } = asked;
    let mut body = match form {
        Form::OpenAi => json!({ "model": model, "input": texts, "encoding_format": "float" }),
        Form::Gemini => {
            let task = match purpose {
                EmbedAs::Query => "RETRIEVAL_QUERY",
                EmbedAs::Passage => "RETRIEVAL_DOCUMENT",
            };
            let request = |text: &String| {
                let content = json!({ "parts": [{ "text": text }] });
                let mut request = json!({ "model": format!("models/{model}"), "content": content, "taskType": task });
                if let Some(dimensions) = dimensions {
                    request["outputDimensionality"] = dimensions.into();
                }
                request
            };
            return json!({ "requests": texts.iter().map(request).collect::<Vec<_>>() });
        }
        // The first version takes nothing but a text.
        Form::Titan if model.contains("-v1") => return json!({ "inputText": texts.first() }),
        Form::Titan => json!({ "inputText": texts.first(), "normalize": true }),
        Form::Cohere => {
            let kind = match purpose {
                EmbedAs::Query => "search_query",
                EmbedAs::Passage => "search_document",
            };
            json!({ "texts": texts, "input_type": kind, "truncate": "END", "embedding_types": ["float"] })
        }
    };
    if let Some(dimensions) = dimensions {
        let field = if form == Form::Cohere { "output_dimension" } else { "dimensions" };
        body[field] = dimensions.into();
    }
    body
}

fn read(form: Form, body: &Value) -> Vec<Vec<f32>> {
    match form {
        Form::OpenAi => {
            let mut data: Vec<&Value> = body["data"].as_array().into_iter().flatten().collect();
            // Stable: a server that gives no index, or the same one, answers in order.
            data.sort_by_key(|each| each["index"].as_u64());
            data.into_iter().map(|each| numbers(&each["embedding"])).collect()
        }
        Form::Gemini => {
            body["embeddings"].as_array().into_iter().flatten().map(|each| numbers(&each["values"])).collect()
        }
        Form::Titan => vec![numbers(&body["embedding"])],
        Form::Cohere => {
            let all = &body["embeddings"];
            all["float"].as_array().or_else(|| all.as_array()).into_iter().flatten().map(numbers).collect()
        }
    }
}

/// The numbers of an array; none where one of them is something else.
fn numbers(array: &Value) -> Vec<f32> {
    let number = |number: &Value| number.as_f64().map(|number| number as f32).filter(|number| number.is_finite());
    array.as_array().and_then(|array| array.iter().map(number).collect()).unwrap_or_default()
}

fn tokens(form: Form, body: &Value) -> Option<u64> {
    match form {
        Form::OpenAi => counted(&body["usage"]["prompt_tokens"]).or_else(|| counted(&body["usage"]["total_tokens"])),
        Form::Titan => counted(&body["inputTextTokenCount"]),
        Form::Gemini | Form::Cohere => None,
    }
}

fn counted(tokens: &Value) -> Option<u64> {
    tokens.is_u64().then(|| count(tokens))
}
