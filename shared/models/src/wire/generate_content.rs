//! `POST …/models/<model>:streamGenerateContent?alt=sse` of Gemini. <https://ai.google.dev/api/generate-content>

use super::{
    WireFault, WireRequest, count,
    draft::{Block, Call, Draft},
    encoded,
    history::{self, HistoryItem, Thought},
    text, written,
};
use crate::config::Effort;
use domain::{ToolSpec, event::StopReason};
use ports::Media;
use serde_json::{Map, Value, json};
use std::sync::Arc;

pub(super) fn body(asked: &WireRequest<'_>) -> Value {
    let mut body = Map::new();
    let config = generation_config(asked);
    if !config.is_empty() {
        body.insert("generationConfig".into(), Value::Object(config));
    }
    if !asked.request.system.is_empty() {
        body.insert("systemInstruction".into(), json!({"parts": [{"text": &*asked.request.system}]}));
    }
    if !asked.request.tools.is_empty() {
        let tool = |tool: &Arc<ToolSpec>| json!({"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.parameters});
        let tools: Vec<Value> = asked.request.tools.iter().map(tool).collect();
        body.insert("tools".into(), json!([{"functionDeclarations": tools}]));
    }
    body.insert("contents".into(), Value::Array(contents(asked)));
    Value::Object(body)
}

fn generation_config(asked: &WireRequest<'_>) -> Map<String, Value> {
    let mut thinking = Map::new();
    let by_level = asked.model.contains("gemini-3") || asked.model.contains("gemma-4");
    match asked.effort {
        None => {}
        Some(effort) if by_level => {
            thinking.insert("thinkingLevel".into(), json!(effort.as_str().to_uppercase()));
        }
        Some(effort) => {
            let budget = match effort {
                Effort::Low => 1000,
                Effort::Medium => 8000,
                Effort::High => 24_000,
            };
            thinking.insert("thinkingBudget".into(), json!(budget));
        }
    }
    if asked.reasons {
        thinking.insert("includeThoughts".into(), json!(true));
    }
    let mut config = Map::new();
    if !thinking.is_empty() {
        config.insert("thinkingConfig".into(), Value::Object(thinking));
    }
    if let Some(temperature) = asked.request.temperature {
        config.insert("temperature".into(), json!(temperature));
    }
    if let Some(top_p) = asked.request.top_p {
        config.insert("topP".into(), json!(top_p));
    }
    if let Some(max_tokens) = asked.max_tokens {
        config.insert("maxOutputTokens".into(), json!(max_tokens));
    }
    if let Some(schema) = asked.schema {
        config.insert("responseMimeType".into(), json!("application/json"));
        config.insert("responseJsonSchema".into(), schema.clone());
    }
    config
}

/// The first call of a message of Gemini 3 must be signed; this stands for a signature that there never was, as in a history of
/// another provider. <https://ai.google.dev/gemini-api/docs/thought-signatures>
const UNSIGNED: &str = "skip_thought_signature_validator";

fn contents(asked: &WireRequest<'_>) -> Vec<Value> {
    // The names without a version stand for the newest model.
    let must_sign = asked.model.contains("gemini-3") || asked.model.ends_with("-latest");
    let content = |said: HistoryItem<'_>| match said {
        HistoryItem::User(text, of) => {
            // The name that Gemini has for the usual type of MP3.
            let kind = |one: &Media| if one.media_type == "audio/mpeg" { "audio/mp3" } else { one.media_type };
            let part = |one: &Media| json!({"inlineData": {"mimeType": kind(one), "data": encoded(one)}});
            let media = asked.media(&of).into_iter().map(part);
            let parts: Vec<Value> = media.chain([json!({"text": text})]).collect();
            json!({"role": "user", "parts": parts})
        }
        HistoryItem::Model { thoughts, text, calls, .. } => {
            let signature = |thought| match thought {
                Thought::Signature(signature) => Some(signature),
                Thought::Reasoning(_) | Thought::Block(_) => None,
            };
            let mut pending = thoughts.into_iter().filter_map(signature).next_back();
            let mut parts = Vec::new();
            let sign = |mut part: Value, signature: Option<String>| {
                if let Some(signature) = signature {
                    part["thoughtSignature"] = json!(signature);
                }
                part
            };
            if !text.is_empty() {
                parts.push(sign(json!({ "text": text }), pending.take()));
            }
            for (index, call) in calls.into_iter().enumerate() {
                let stand_in = || (must_sign && index == 0).then(|| UNSIGNED.to_owned());
                let signature = call.signature.or_else(|| pending.take()).or_else(stand_in);
                let part = json!({"functionCall": {"id": call.id, "name": call.name, "args": call.args}});
                parts.push(sign(part, signature));
            }
            json!({"role": "model", "parts": parts})
        }
        HistoryItem::Results(results) => {
            let part = |result: &history::ToolResult<'_>| {
                let response = json!({"name": result.name, "content": result.output});
                json!({"functionResponse": {"name": result.name, "response": response, "id": result.id}})
            };
            json!({"role": "user", "parts": results.iter().map(part).collect::<Vec<_>>()})
        }
    };
    history::said(asked.request, asked.provider).into_iter().map(content).collect()
}

pub(super) fn take(chunk: &Value, draft: &mut Draft) -> Result<(), WireFault> {
    draft.answered_by(&chunk["modelVersion"]);
    take_usage(&chunk["usageMetadata"], draft);
    let feedback = &chunk["promptFeedback"];
    if let Some(why) = text(feedback, &["/blockReason"]) {
        let words = text(feedback, &["/blockReasonMessage"]);
        draft.refuse(&words.map_or_else(|| why.to_owned(), |words| format!("{why}, {words}")));
        return Ok(());
    }
    let candidate = &chunk["candidates"][0];
    for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
        take_part(part, draft);
    }
    let Some(reason) = candidate["finishReason"].as_str() else { return Ok(()) };
    match reason {
        "FINISH_REASON_UNSPECIFIED" => {}
        "MAX_TOKENS" => draft.finished = Some(StopReason::MaxOutputTokens),
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => {
            let words = text(candidate, &["/finishMessage"]);
            draft.refuse(&words.map_or_else(|| reason.to_owned(), |words| format!("{reason}, {words}")));
        }
        _ if reason.contains("MALFORMED") || reason.contains("TOOL_CALL") => {
            return Err(WireFault::Nonsense(format!("the model's tool call makes no sense ({reason})")));
        }
        _ => draft.finished = Some(StopReason::EndTurn),
    }
    Ok(())
}

fn take_part(part: &Value, draft: &mut Draft) {
    let signature = text(part, &["/thoughtSignature", "/thought_signature"]).map(str::to_owned);
    let call = part.get("functionCall").or_else(|| part.get("function_call")).filter(|call| call.is_object());
    if let Some(call) = call {
        draft.calls.push(Call {
            key: None,
            id: call["id"].as_str().unwrap_or_default().to_owned(),
            name: call["name"].as_str().unwrap_or_default().to_owned(),
            args: written(&call["args"]).unwrap_or_default(),
            signature,
        });
        return;
    }
    if let Some(signature) = signature {
        draft.blocks.push(Block { signature, ..Block::default() });
    }
    let piece = part["text"].as_str().unwrap_or_default();
    if part["thought"] == true { draft.reasoning(piece) } else { draft.text(piece) }
}

/// Thoughts are counted beside the visible text. Each chunk counts all so far.
fn take_usage(usage: &Value, draft: &mut Draft) {
    if !usage.is_object() {
        return;
    }
    let of = |field: &str| count(&usage[field]);
    let tokens = &mut draft.tokens;
    tokens.input = of("promptTokenCount") + of("toolUsePromptTokenCount");
    tokens.cached = of("cachedContentTokenCount");
    tokens.output = of("candidatesTokenCount") + of("thoughtsTokenCount");
}
