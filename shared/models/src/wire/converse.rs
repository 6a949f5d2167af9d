//! `POST …/model/<model>/converse-stream` of Bedrock.
//! <https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html>
//!
//! Converse demands more of a history than others: people and models take turns, no text is blank, and tools are declared when the
//! history has calls. It refuses the request otherwise.

use super::{
    ANSWER, ANSWERS, WireFault, WireRequest, count,
    draft::Draft,
    encoded,
    history::{self, HistoryItem, Thought},
    messages::{Claude, WARMEST},
    subtype, text,
};
use crate::config::Effort;
use domain::event::StopReason;
use ports::Media;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

pub(super) fn body(asked: &WireRequest<'_>) -> Value {
    let mut body = Map::new();
    let publisher = publisher(asked.model);
    let caches = has_cache(asked.model);
    if !asked.request.system.is_empty() {
        let text = json!({"text": &*asked.request.system});
        body.insert("system".into(), [text].into_iter().chain(caches.then(cache_point)).collect());
    }
    let max_tokens = max_tokens(asked, publisher);
    let said = history::said(asked.request, asked.provider);
    let reasoning = reasoning(asked, publisher, max_tokens, &said);
    let mut messages = messages(asked, said);
    let tools = tools(asked, &messages);
    if caches {
        mark(&mut messages);
    }
    if !tools.is_empty() {
        let mut config = json!({ "tools": tools });
        if asked.schema.is_some() {
            config["toolChoice"] = json!({"tool": {"name": ANSWER}});
        }
        body.insert("toolConfig".into(), config);
    }
    body.insert("messages".into(), Value::Array(messages));
    let reasons = !reasoning.is_empty();
    // Nova takes none of these beside much reasoning.
    if !(reasons && publisher == "amazon" && asked.effort == Some(Effort::High)) {
        let mut inference = Map::new();
        inference.insert("maxTokens".into(), json!(max_tokens));
        // As in Anthropic's own format.
        let (temperature, top_p) = if reasons && publisher == "anthropic" { (None, None) } else { asked.sampling() };
        if let Some(temperature) = temperature {
            inference.insert("temperature".into(), json!(temperature.min(WARMEST)));
        }
        if let Some(top_p) = top_p {
            inference.insert("topP".into(), json!(top_p));
        }
        body.insert("inferenceConfig".into(), Value::Object(inference));
    }
    if reasons {
        body.insert("additionalModelRequestFields".into(), Value::Object(reasoning));
    }
    Value::Object(body)
}

/// Whether a request can force a call of a tool. <https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ToolChoice.html>
pub(super) fn can_be_forced(model: &str) -> bool {
    match publisher(model) {
        "anthropic" => Claude::of(model).can_be_forced,
        "amazon" => model.contains("nova"),
        _ => false,
    }
}

/// Whether a model has a cache of prompts: others refuse the marks. <https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html>
fn has_cache(model: &str) -> bool {
    match publisher(model) {
        "anthropic" => Claude::of(model).has_cache,
        "amazon" => model.contains("nova"),
        _ => false,
    }
}

/// The mark up to which a prompt is kept. Claude's declarations of tools are before the system text, and Nova refuses a mark among them.
fn cache_point() -> Value {
    json!({"cachePoint": {"type": "default"}})
}

/// Marks the ends of the last two messages to the model. The first of them is the end of the request before, whose mark is found again; the second one
/// is for the request to come.
fn mark(messages: &mut [Value]) {
    let to_model = messages.iter_mut().rev().filter(|message| message["role"] == "user").take(2);
    for content in to_model.filter_map(|message| message["content"].as_array_mut()) {
        content.push(cache_point());
    }
}

/// The publisher of a model, as in `eu.anthropic.claude-…`.
fn publisher(model: &str) -> &str {
    let mut parts = model.split('.');
    let first = parts.next().unwrap_or_default();
    let is_profile = ["us", "us-gov", "eu", "apac", "au", "ca", "jp", "in", "global"].contains(&first);
    if is_profile { parts.next().unwrap_or_default() } else { first }
}

/// Most publishers want a number.
fn max_tokens(asked: &WireRequest<'_>, publisher: &str) -> u32 {
    asked.max_tokens.unwrap_or(match publisher {
        "anthropic" => Claude::of(asked.model).max_tokens,
        "amazon" => 5000,
        // Reasoning counts as output.
        "openai" => 16_384,
        _ => 4096,
    })
}

/// The fields that ask for reasoning: each publisher has its own. Of Nova only version 2 reasons.
/// <https://docs.aws.amazon.com/nova/latest/nova2-userguide/using-converse-api.html>
fn reasoning(
    asked: &WireRequest<'_>,
    publisher: &str,
    max_tokens: u32,
    said: &[HistoryItem<'_>],
) -> Map<String, Value> {
    let Some(level) = asked.effort.map(Effort::as_str) else { return Map::new() };
    let (field, value) = match publisher {
        "anthropic" => return Claude::of(asked.model).reasoning(asked.effort, max_tokens, said),
        "amazon" if asked.model.contains("nova-2") => {
            ("reasoningConfig", json!({"type": "enabled", "maxReasoningEffort": level}))
        }
        "openai" if asked.model.contains("gpt-oss") => ("reasoning_effort", json!(level)),
        "openai" => ("reasoning", json!({"effort": level})),
        _ => return Map::new(),
    };
    Map::from_iter([(field.to_owned(), value)])
}

/// The offered tools or, if there are none, the tools that the history has calls of.
fn tools(asked: &WireRequest<'_>, messages: &[Value]) -> Vec<Value> {
    let spec = |name: &str, schema: &Value, description: &str| {
        let mut spec = json!({"name": name, "inputSchema": {"json": schema}});
        if !description.trim().is_empty() {
            spec["description"] = json!(description);
        }
        json!({ "toolSpec": spec })
    };
    if let Some(schema) = asked.schema {
        return vec![spec(ANSWER, schema, ANSWERS)];
    }
    if !asked.request.tools.is_empty() {
        let offered = asked.request.tools.iter();
        return offered.map(|tool| spec(&tool.name, &tool.parameters, &tool.description)).collect();
    }
    let blocks = messages.iter().flat_map(|message| message["content"].as_array().into_iter().flatten());
    let names: BTreeSet<&str> = blocks.filter_map(|block| block["toolUse"]["name"].as_str()).collect();
    names.into_iter().map(|name| spec(name, &json!({"type": "object"}), "Cannot be used any more.")).collect()
}

/// With everything that is said to the model between two of its answers in one message.
fn messages(asked: &WireRequest<'_>, said: Vec<HistoryItem<'_>>) -> Vec<Value> {
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    for said in said {
        let (role, blocks) = blocks(asked, said);
        match turns.last_mut() {
            _ if blocks.is_empty() => {}
            Some((last, all)) if *last == role => all.extend(blocks),
            _ => turns.push((role, blocks)),
        }
    }
    turns.into_iter().map(|(role, content)| json!({"role": role, "content": content})).collect()
}

fn blocks(asked: &WireRequest<'_>, said: HistoryItem<'_>) -> (&'static str, Vec<Value>) {
    // Places that must be filled.
    let filled =
        |text: &str, stand_in: &str| if text.trim().is_empty() { stand_in.to_owned() } else { text.to_owned() };
    match said {
        HistoryItem::User(text, of) => {
            let words = json!({"text": filled(&text, "(nothing)")});
            ("user", asked.media(&of).into_iter().enumerate().map(media).chain([words]).collect())
        }
        HistoryItem::Results(results) => {
            let block = |result: &history::ToolResult<'_>| {
                let content = json!([{"text": filled(result.output, "(no output)")}]);
                json!({"toolResult": {"toolUseId": result.id, "content": content}})
            };
            ("user", results.iter().map(block).collect())
        }
        HistoryItem::Model { thoughts, text, calls, .. } => {
            let mut blocks: Vec<Value> = history::signed(thoughts).into_iter().filter_map(thought).collect();
            if !text.is_empty() {
                blocks.push(json!({ "text": text }));
            }
            let call = |call: history::Called<'_>| json!({"toolUse": {"toolUseId": call.id, "name": call.name, "input": call.args}});
            blocks.extend(calls.into_iter().map(call));
            // Thoughts alone are no message.
            let says = blocks.iter().any(|block| block.get("reasoningContent").is_none());
            ("assistant", if says { blocks } else { Vec::new() })
        }
    }
}

/// The model reads the name of a document. Bedrock allows few characters in it, and each name once per request: so the name has the id of its message,
/// which no other message has.
fn media((at, one): (usize, &Media)) -> Value {
    let content = json!({"format": subtype(one), "source": {"bytes": encoded(one)}});
    if one.media_type.starts_with("image/") {
        return json!({ "image": content });
    }
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { ' ' };
    let name: String = one.name.chars().map(plain).take(60).collect();
    let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
    let name = format!("{name} {}-{}", one.of.simple(), at + 1);
    json!({ "document": {"format": subtype(one), "name": name, "source": {"bytes": encoded(one)}} })
}

fn thought((thought, text): (Thought, Option<String>)) -> Option<Value> {
    match (thought, text) {
        (Thought::Signature(signature), Some(text)) => Some(signed(&text, &signature)),
        (Thought::Signature(sealed), None) => Some(json!({"reasoningContent": {"redactedContent": sealed}})),
        (Thought::Block(block), _) => Some(block),
        (Thought::Reasoning(_), _) => None,
    }
}

fn signed(text: &str, signature: &str) -> Value {
    json!({"reasoningContent": {"reasoningText": {"text": text, "signature": signature}}})
}

pub(super) fn take(name: &str, event: &Value, draft: &mut Draft) -> Result<(), WireFault> {
    let index = event.get("contentBlockIndex").and_then(Value::as_u64);
    match name {
        "contentBlockStart" => {
            let call = &event["start"]["toolUse"];
            if call.is_object() {
                draft.calls.push(super::draft::Call {
                    key: index,
                    id: call["toolUseId"].as_str().unwrap_or_default().to_owned(),
                    name: call["name"].as_str().unwrap_or_default().to_owned(),
                    ..super::draft::Call::default()
                });
            }
        }
        "contentBlockDelta" => {
            let delta = &event["delta"];
            if let Some(piece) = text(delta, &["/text"]) {
                draft.text(piece);
            }
            if let Some(piece) = text(delta, &["/reasoningContent/text"]) {
                draft.block(index).text.push_str(piece);
                draft.reasoning(piece);
            }
            if let Some(piece) = text(delta, &["/reasoningContent/signature"]) {
                let block = draft.block(index);
                block.signature.push_str(piece);
                // Without a text, a signature alone would stand for a sealed thought.
                block.whole = block.text.is_empty().then(|| signed("", &block.signature));
            }
            if let Some(piece) = text(delta, &["/reasoningContent/redactedContent"]) {
                draft.block(index).signature.push_str(piece);
            }
            if let Some(piece) = text(delta, &["/toolUse/input"]) {
                draft.call(index).args.push_str(piece);
            }
        }
        "messageStop" => match event["stopReason"].as_str().unwrap_or_default() {
            "max_tokens" | "model_context_window_exceeded" => draft.finished = Some(StopReason::MaxOutputTokens),
            why @ ("guardrail_intervened" | "content_filtered" | "refusal") => draft.refuse(why),
            why if why.starts_with("malformed") => {
                return Err(WireFault::Nonsense(format!("the model's answer makes no sense ({why})")));
            }
            _ => draft.finished = Some(StopReason::EndTurn),
        },
        "metadata" => {
            let of = |field: &str| count(&event["usage"][field]);
            let tokens = &mut draft.tokens;
            // Tokens read from the cache and written to it are counted beside the input, not within.
            (tokens.cached, tokens.written_to_cache) = (of("cacheReadInputTokens"), of("cacheWriteInputTokens"));
            tokens.input = of("inputTokens") + tokens.cached + tokens.written_to_cache;
            tokens.output = of("outputTokens");
            draft.over = draft.finished.is_some();
        }
        _ => {}
    }
    Ok(())
}
