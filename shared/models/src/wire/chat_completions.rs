//! `POST …/chat/completions`: OpenAI's format, and with small differences that of nearly every server.
//! <https://platform.openai.com/docs/api-reference/chat-streaming>

use super::{
    ANSWER, WireFault, WireRequest, count, data_url,
    draft::{Call, Draft},
    encoded,
    history::{self, HistoryItem},
    sampling::{is_of_reasoning_family, uses_tools_at_rest, wants_reasoning},
    text, written,
};
use crate::config::Effort;
use domain::{ToolSpec, event::StopReason};
use ports::Media;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Stands for the reasoning before calls that have none, as those of another model: Kimi takes an empty text for none.
const NO_REASONING: &str = ".";

pub(super) fn body(asked: &WireRequest<'_>) -> Value {
    let mut body = Map::new();
    body.insert("model".into(), json!(asked.model));
    body.insert("stream".into(), json!(true));
    let rests = asked.official && !asked.request.tools.is_empty() && uses_tools_at_rest(asked.model);
    if let Some(effort) = asked.effort.map(Effort::as_str).filter(|_| !rests).or(rests.then_some("none")) {
        body.insert("reasoning_effort".into(), json!(effort));
    }
    if !asked.request.tools.is_empty() {
        let tool = |tool: &Arc<ToolSpec>| {
            json!({"type": "function", "function": {"name": tool.name, "description": tool.description,
                "parameters": tool.parameters, "strict": false}})
        };
        body.insert("tools".into(), asked.request.tools.iter().map(tool).collect());
    }
    body.insert("messages".into(), Value::Array(messages(asked)));
    body.insert("stream_options".into(), json!({"include_usage": true}));
    let (temperature, top_p) = asked.sampling();
    if let Some(temperature) = temperature {
        body.insert("temperature".into(), json!(temperature));
    }
    if let Some(top_p) = top_p {
        body.insert("top_p".into(), json!(top_p));
    }
    if let Some(max_tokens) = asked.max_tokens {
        let field = if is_of_reasoning_family(asked.model) { "max_completion_tokens" } else { "max_tokens" };
        body.insert(field.into(), json!(max_tokens));
    }
    if let Some(schema) = asked.schema {
        let schema = json!({"name": ANSWER, "schema": schema, "strict": true});
        body.insert("response_format".into(), json!({"type": "json_schema", "json_schema": schema}));
    }
    if asked.official {
        // Routes requests with the same beginning to the same server, so that they meet its cache.
        body.insert("prompt_cache_key".into(), json!(asked.request.conversation));
    }
    Value::Object(body)
}

fn messages(asked: &WireRequest<'_>) -> Vec<Value> {
    let mut messages = Vec::new();
    // Providers refuse one that is empty.
    if !asked.request.system.is_empty() {
        messages.push(json!({"role": "system", "content": &*asked.request.system}));
    }
    for said in history::said(asked.request, asked.provider) {
        match said {
            HistoryItem::User(text, of) => {
                let media = asked.media(&of);
                let content = if media.is_empty() { json!(text) } else { parts(&text, &media) };
                messages.push(json!({"role": "user", "content": content}));
            }
            HistoryItem::Model { reasoning, text, calls, .. } => {
                let mut message = json!({"role": "assistant", "content": text});
                if !calls.is_empty() {
                    let call = |call: &history::Called<'_>| {
                        json!({"type": "function", "id": call.id,
                            "function": {"name": call.name, "arguments": call.args.to_string()}})
                    };
                    message["tool_calls"] = calls.iter().map(call).collect();
                    if wants_reasoning(asked.model) {
                        let reasoning = if reasoning.trim().is_empty() { NO_REASONING } else { reasoning };
                        message["reasoning_content"] = json!(reasoning);
                    }
                }
                messages.push(message);
            }
            HistoryItem::Results(results) => messages.extend(
                results
                    .iter()
                    .map(|result| json!({"role": "tool", "content": result.output, "tool_call_id": result.id})),
            ),
        }
    }
    messages
}

fn parts(text: &str, media: &[&Media]) -> Value {
    let part = |one: &&Media| match one.media_type.split_once('/') {
        Some(("image", _)) => json!({"type": "image_url", "image_url": {"url": data_url(one)}}),
        Some(("audio", kind)) => {
            let format = if kind == "mpeg" { "mp3" } else { kind };
            json!({"type": "input_audio", "input_audio": {"data": encoded(one), "format": format}})
        }
        _ => json!({"type": "file", "file": {"filename": one.name, "file_data": data_url(one)}}),
    };
    [json!({"type": "text", "text": text})].into_iter().chain(media.iter().map(part)).collect()
}

pub(super) fn take(_: &str, chunk: &Value, draft: &mut Draft) -> Result<(), WireFault> {
    let choice = &chunk["choices"][0];
    draft.answered_by(&chunk["model"]);
    // OpenAI's place comes last, Groq's and Moonshot's before it.
    for usage in [&choice["usage"], &chunk["x_groq"]["usage"], &chunk["usage"]] {
        take_usage(usage, draft);
    }
    if let Some(error) = choice.get("error").filter(|error| !error.is_null()) {
        return Err(WireFault::Told(json!({ "error": error })));
    }
    // Servers that stream an answer in one piece send it as a message.
    let delta = choice.get("delta").filter(|delta| !delta.is_null()).unwrap_or(&choice["message"]);
    if let Some(piece) = text(delta, &["/reasoning_content", "/reasoning"]) {
        draft.reasoning(piece);
    }
    match &delta["content"] {
        Value::String(piece) => draft.text(piece),
        Value::Array(pieces) => pieces.iter().for_each(|piece| take_piece(piece, draft)),
        _ => {}
    }
    if let Some(piece) = text(delta, &["/refusal"]) {
        draft.text(piece);
        draft.refused_for = Some("refusal".into());
    }
    for piece in delta["tool_calls"].as_array().into_iter().flatten() {
        take_call(piece, &mut draft.calls);
        draft.check()?;
    }
    match choice["finish_reason"].as_str() {
        None | Some("") => {}
        Some("error") => return Err(WireFault::Nonsense("the provider says only that it failed".into())),
        Some("length" | "max_tokens" | "model_length") => draft.finished = Some(StopReason::MaxOutputTokens),
        Some(why @ ("content_filter" | "refusal" | "safety")) => draft.refuse(why),
        Some(_) if draft.refused_for.is_some() => draft.refuse("refusal"),
        Some(_) => draft.finished = Some(StopReason::EndTurn),
    }
    Ok(())
}

/// Mistral's reasoning models send typed pieces.
fn take_piece(piece: &Value, draft: &mut Draft) {
    match &piece["thinking"] {
        Value::String(text) => draft.reasoning(text),
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part["text"].as_str()).for_each(|text| draft.reasoning(text));
        }
        _ => draft.text(piece["text"].as_str().unwrap_or_default()),
    }
}

/// A piece of a call. Its index says which one; servers that leave the index out, or give each call the same one, are understood by
/// the ids.
fn take_call(piece: &Value, calls: &mut Vec<Call>) {
    let index = piece.get("index").and_then(Value::as_u64);
    let id = piece["id"].as_str().unwrap_or_default();
    let function = &piece["function"];
    let name = function["name"].as_str().unwrap_or_default();
    let args = written(&function["arguments"]).unwrap_or_default();
    // A new id with a name begins a call; without a name it is the whim of a server that makes a new id for each piece.
    let goes_on = |call: &Call| id.is_empty() || call.id.is_empty() || call.id == id || name.is_empty();
    let found = match index {
        // The last one of that index: another id may have begun one anew.
        Some(_) => calls.iter().rposition(|call| call.key == index).filter(|at| goes_on(&calls[*at])),
        None if !id.is_empty() => {
            let same = calls.iter().position(|call| call.id == id);
            same.or_else(|| calls.len().checked_sub(1).filter(|_| name.is_empty()))
        }
        // Neither an index nor an id: a piece without a name belongs to the last call.
        None => calls.len().checked_sub(1).filter(|_| name.is_empty()),
    };
    let at = found.unwrap_or_else(|| {
        calls.push(Call { key: index, ..Call::default() });
        calls.len() - 1
    });
    let call = &mut calls[at];
    if call.id.is_empty() {
        id.clone_into(&mut call.id);
    }
    // A name comes in one piece, in several, or whole each time.
    if name.starts_with(&call.name) {
        name.clone_into(&mut call.name);
    } else if call.args.is_empty() {
        call.name.push_str(name);
    }
    call.args.push_str(&args);
}

fn take_usage(usage: &Value, draft: &mut Draft) {
    if !usage.is_object() {
        return;
    }
    let read = |places: &[&str]| places.iter().filter_map(|place| usage.pointer(place)).map(count).find(|&n| n > 0);
    let tokens = &mut draft.tokens;
    tokens.input = read(&["/prompt_tokens", "/input_tokens"]).unwrap_or(tokens.input);
    let (total, reasoning) = (read(&["/total_tokens"]), read(&["/completion_tokens_details/reasoning_tokens"]));
    let written = read(&["/completion_tokens", "/output_tokens"]);
    // xAI, and Gemini in this format, count reasoning beside the completion; the sum of all shows it.
    let beside = reasoning
        .filter(|reasoning| total.is_some_and(|total| total >= tokens.input + written.unwrap_or_default() + reasoning));
    tokens.output = match (written, beside) {
        (None, None) => tokens.output,
        (written, beside) => written.unwrap_or_default() + beside.unwrap_or_default(),
    };
    // OpenRouter tells the cost itself, in US dollars.
    tokens.cost_usd = usage["cost"].as_f64().or(tokens.cost_usd);
    let cached = read(&["/prompt_tokens_details/cached_tokens", "/prompt_cache_hit_tokens", "/cached_tokens"]);
    tokens.cached = cached.unwrap_or(tokens.cached);
}
