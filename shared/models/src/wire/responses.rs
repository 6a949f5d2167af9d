//! `POST …/responses` of OpenAI. <https://platform.openai.com/docs/api-reference/responses-streaming>

use super::{
    ANSWER, WireFault, WireRequest, count, data_url,
    draft::{Block, Call, Draft},
    history::{self, HistoryItem, Thought},
    text, written,
};
use domain::{ToolSpec, event::StopReason};
use ports::Media;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The fewest tokens that can be asked for.
const FEWEST: u32 = 16;

pub(super) fn body(asked: &WireRequest<'_>) -> Value {
    let mut body = Map::new();
    body.insert("store".into(), json!(false));
    body.insert("model".into(), json!(asked.model));
    body.insert("stream".into(), json!(true));
    if !asked.request.system.is_empty() {
        body.insert("instructions".into(), json!(&*asked.request.system));
    }
    let mut reasoning = Map::new();
    if let Some(effort) = asked.effort {
        reasoning.insert("effort".into(), json!(effort.as_str()));
    }
    if asked.reasons {
        // `auto` is the most detailed summary that the model has. A model refuses the name of a summary that it does not have.
        reasoning.insert("summary".into(), json!("auto"));
    }
    if !reasoning.is_empty() {
        body.insert("reasoning".into(), Value::Object(reasoning));
    }
    if asked.reasons {
        body.insert("include".into(), json!(["reasoning.encrypted_content"]));
    }
    if !asked.request.tools.is_empty() {
        // Strict when nothing is said, which makes every optional argument a required one.
        let tool = |tool: &Arc<ToolSpec>| {
            json!({"type": "function", "name": tool.name, "parameters": tool.parameters,
                "description": tool.description, "strict": false})
        };
        body.insert("tools".into(), asked.request.tools.iter().map(tool).collect());
    }
    body.insert("input".into(), Value::Array(input(asked)));
    let (temperature, top_p) = asked.sampling();
    if let Some(temperature) = temperature {
        body.insert("temperature".into(), json!(temperature));
    }
    if let Some(top_p) = top_p {
        body.insert("top_p".into(), json!(top_p));
    }
    if let Some(max_tokens) = asked.max_tokens {
        body.insert("max_output_tokens".into(), json!(max_tokens.max(FEWEST)));
    }
    if let Some(schema) = asked.schema {
        let format = json!({"type": "json_schema", "name": ANSWER, "schema": schema, "strict": true});
        body.insert("text".into(), json!({ "format": format }));
    }
    if asked.official {
        body.insert("prompt_cache_key".into(), json!(asked.request.conversation));
    }
    Value::Object(body)
}

fn input(asked: &WireRequest<'_>) -> Vec<Value> {
    let mut input = Vec::new();
    for said in history::said(asked.request, asked.provider) {
        match said {
            HistoryItem::User(text, of) => {
                let media = asked.media(&of);
                let content = if media.is_empty() { json!(text) } else { parts(&text, &media) };
                input.push(json!({"role": "user", "content": content}));
            }
            HistoryItem::Model { thoughts, text, calls, .. } => {
                input.extend(thoughts.into_iter().filter_map(|thought| match thought {
                    // A model that cannot reason refuses the thoughts of one that can.
                    Thought::Signature(sealed) if asked.reasons => {
                        Some(json!({"type": "reasoning", "encrypted_content": sealed, "summary": []}))
                    }
                    Thought::Signature(_) | Thought::Reasoning(_) | Thought::Block(_) => None,
                }));
                if !text.is_empty() {
                    let content = json!([{"type": "output_text", "text": text}]);
                    input.push(json!({"type": "message", "role": "assistant", "content": content}));
                }
                input.extend(calls.iter().map(|call| {
                    json!({"type": "function_call", "call_id": call.id, "name": call.name,
                        "arguments": call.args.to_string()})
                }));
            }
            HistoryItem::Results(results) => {
                input.extend(results.iter().map(
                    |result| json!({"type": "function_call_output", "call_id": result.id, "output": result.output}),
                ))
            }
        }
    }
    input
}

fn parts(text: &str, media: &[&Media]) -> Value {
    let part = |one: &&Media| match one.media_type.starts_with("image/") {
        true => json!({"type": "input_image", "image_url": data_url(one)}),
        false => json!({"type": "input_file", "filename": one.name, "file_data": data_url(one)}),
    };
    [json!({"type": "input_text", "text": text})].into_iter().chain(media.iter().map(part)).collect()
}

pub(super) fn take(name: &str, event: &Value, draft: &mut Draft) -> Result<(), WireFault> {
    // Some servers name the event in the frame only.
    let kind = event["type"].as_str().unwrap_or(name);
    let index = event.get("output_index").and_then(Value::as_u64);
    let delta = event["delta"].as_str().unwrap_or_default();
    match kind {
        "response.output_text.delta" => draft.text(delta),
        "response.refusal.delta" => {
            draft.text(delta);
            draft.refused_for = Some("refusal".into());
        }
        "response.reasoning_summary_part.added" if event["summary_index"].as_u64() > Some(0) => {
            draft.reasoning("\n\n");
        }
        "response.reasoning_text.delta" | "response.reasoning_summary_text.delta" => draft.reasoning(delta),
        "response.function_call_arguments.delta" => {
            draft.call(index).args.push_str(delta);
        }
        "response.output_item.added" | "response.output_item.done" => take_item(index, &event["item"], draft),
        "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" | "response.done" => {
            draft.answered_by(&event["response"]["model"]);
            return end(kind, &event["response"], draft);
        }
        "error" => return Err(WireFault::Told(event.clone())),
        _ => {}
    }
    Ok(())
}

/// An item of the answer when it begins and when it is done. A finished item is whole and wins over its pieces.
fn take_item(index: Option<u64>, item: &Value, draft: &mut Draft) {
    match item["type"].as_str() {
        Some("function_call") => {
            // Without an index, the item is the call of its id.
            let id = item["call_id"].as_str().or_else(|| item["id"].as_str()).unwrap_or_default().to_owned();
            let known = draft.calls.iter().position(|call| match index {
                Some(_) => call.key == index,
                None => call.id == id,
            });
            let at = known.unwrap_or_else(|| {
                draft.calls.push(Call { key: index, ..Call::default() });
                draft.calls.len() - 1
            });
            let call = &mut draft.calls[at];
            if !id.is_empty() {
                call.id = id;
            }
            if let Some(name) = item["name"].as_str().filter(|name| !name.is_empty()) {
                name.clone_into(&mut call.name);
            }
            if let Some(args) = written(&item["arguments"]).filter(|args| !args.is_empty()) {
                call.args = args;
            }
        }
        Some("reasoning") => {
            if let Some(sealed) = text(item, &["/encrypted_content"])
                && !draft.blocks.iter().any(|block| block.signature == sealed)
            {
                // An item that has only begun is sealed, too, and by another text than the finished one.
                match draft.blocks.iter_mut().find(|block| index.is_some() && block.key == index) {
                    Some(block) => sealed.clone_into(&mut block.signature),
                    None => {
                        let signature = sealed.to_owned();
                        draft.blocks.push(Block { key: index, signature, ..Block::default() });
                    }
                }
            }
        }
        _ => {}
    }
}

fn end(kind: &str, response: &Value, draft: &mut Draft) -> Result<(), WireFault> {
    let status = response["status"].as_str().or_else(|| kind.strip_prefix("response.")).unwrap_or_default();
    if let Some(error) = response.get("error").filter(|error| !error.is_null()) {
        return Err(WireFault::Told(json!({ "error": error })));
    }
    if matches!(status, "failed" | "cancelled") {
        return Err(WireFault::Nonsense(format!("the provider says only that the response {status}")));
    }
    let usage = &response["usage"];
    let tokens = &mut draft.tokens;
    tokens.input = count(&usage["input_tokens"]);
    tokens.output = count(&usage["output_tokens"]);
    tokens.cached = count(&usage["input_tokens_details"]["cached_tokens"]);
    // Servers that send the whole answer at its end only.
    let (has_text, has_reasoning, has_calls) = (draft.has_text(), draft.has_reasoning(), !draft.calls.is_empty());
    for (index, item) in (0..).zip(response["output"].as_array().into_iter().flatten()) {
        let parts = |field: &str| item[field].as_array().into_iter().flatten();
        match item["type"].as_str() {
            Some("message") if !has_text => {
                for part in parts("content") {
                    draft.text(text(part, &["/text", "/refusal"]).unwrap_or_default());
                }
            }
            Some("reasoning") => {
                for part in parts("summary").filter(|_| !has_reasoning) {
                    draft.reasoning(part["text"].as_str().unwrap_or_default());
                }
                take_item(Some(index), item, draft);
            }
            Some("function_call") if !has_calls => take_item(Some(index), item, draft),
            _ => {}
        }
        draft.check()?;
    }
    match (status, response["incomplete_details"]["reason"].as_str()) {
        ("incomplete", Some(why @ "content_filter")) => draft.refuse(why),
        ("incomplete", _) => draft.finished = Some(StopReason::MaxOutputTokens),
        _ if draft.refused_for.is_some() => draft.refuse("refusal"),
        _ => draft.finished = Some(StopReason::EndTurn),
    }
    draft.over = true;
    Ok(())
}
