//! `POST …/messages` of Anthropic. <https://docs.anthropic.com/en/api/messages-streaming>

use super::{
    ANSWER, ANSWERS, WireFault, WireRequest, count,
    draft::Draft,
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
    body.insert("model".into(), json!(asked.model));
    body.insert("stream".into(), json!(true));
    // Marks tools and system text for the cache and, if the server is sure to understand it, lets the provider move a second mark along the
    // history. Marks of our own there would change bytes that were already sent.
    let mark = json!({"type": "ephemeral"});
    let has_system = !asked.request.system.is_empty();
    if has_system {
        let block = json!({"type": "text", "text": &*asked.request.system, "cache_control": mark});
        body.insert("system".into(), json!([block]));
    }
    if let Some(schema) = asked.schema {
        body.insert("tools".into(), json!([{"name": ANSWER, "input_schema": schema, "description": ANSWERS}]));
        body.insert("tool_choice".into(), json!({"type": "tool", "name": ANSWER}));
    } else if !asked.request.tools.is_empty() {
        let tool = |tool: &Arc<ToolSpec>| json!({"name": tool.name, "input_schema": tool.parameters, "description": tool.description});
        let mut tools: Vec<Value> = asked.request.tools.iter().map(tool).collect();
        if let Some(last) = tools.last_mut().filter(|_| !has_system) {
            last["cache_control"] = mark.clone();
        }
        body.insert("tools".into(), Value::Array(tools));
    }
    let said = history::said(asked.request, asked.provider);
    let claude = Claude::of(asked.model);
    let max_tokens = asked.max_tokens.unwrap_or(claude.max_tokens);
    let reasoning = claude.reasoning(asked.effort, max_tokens, &said);
    body.insert("messages".into(), Value::Array(messages(asked, said)));
    // Beside thinking it takes neither. <https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking>
    let (temperature, top_p) = if reasoning.is_empty() { asked.sampling() } else { (None, None) };
    body.extend(reasoning);
    if let Some(temperature) = temperature {
        body.insert("temperature".into(), json!(temperature.min(WARMEST)));
    }
    if let Some(top_p) = top_p {
        body.insert("top_p".into(), json!(top_p));
    }
    body.insert("max_tokens".into(), json!(max_tokens));
    if asked.official {
        body.insert("cache_control".into(), mark);
    }
    Value::Object(body)
}

/// The highest temperature that Anthropic and Bedrock take. Other providers take up to 2.
pub(super) const WARMEST: f64 = 1.0;

/// The tokens of thinking of models that count them.
fn budget(effort: Effort) -> u32 {
    match effort {
        Effort::Low => 1024,
        Effort::Medium => 8000,
        Effort::High => 24_000,
    }
}

/// The features of a Claude model, by its name: `claude-<family>-<version>`, with older ones the other way around.
/// <https://docs.anthropic.com/en/docs/about-claude/models/overview>
pub(super) struct Claude {
    pub max_tokens: u32,
    /// Whether a request can force a call: not where the model always thinks, and not for a name that tells nothing.
    pub can_be_forced: bool,
    /// Whether it refuses a temperature and a `top_p`, also without thinking.
    pub refuses_sampling: bool,
    /// Whether Bedrock has a cache of prompts for it.
    pub has_cache: bool,
    thinking: Thinking,
}

/// How a model is asked to think.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Thinking {
    /// It cannot, and refuses to be asked.
    Never,
    /// By the number of tokens.
    Budget,
    /// By the effort; newer ones refuse a number.
    Adaptive,
}

impl Claude {
    pub fn of(model: &str) -> Self {
        let name = model.rsplit_once("claude-").map_or(model, |(_, name)| name);
        let family = ["opus", "sonnet", "haiku", "fable", "mythos"].into_iter().find(|family| name.contains(family));
        // Numbers of up to two digits are versions; longer ones are dates.
        let mut numbers = name.split(['-', '.']).filter(|part| part.len() <= 2).filter_map(|part| part.parse().ok());
        let version: (u32, u32) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
        let (max_tokens, thinking) = match family {
            Some("fable" | "mythos") => (128_000, Thinking::Adaptive),
            Some("opus") if version >= (4, 8) => (128_000, Thinking::Adaptive),
            Some("opus") if version >= (4, 6) => (64_000, Thinking::Adaptive),
            Some("opus") if version >= (4, 5) => (64_000, Thinking::Budget),
            Some("opus") if version >= (4, 0) => (32_000, Thinking::Budget),
            Some("sonnet") if version >= (4, 6) => (64_000, Thinking::Adaptive),
            Some("sonnet") if version >= (3, 7) => (64_000, Thinking::Budget),
            Some("haiku") if version >= (5, 0) => (128_000, Thinking::Adaptive),
            Some("haiku") if version >= (4, 0) => (64_000, Thinking::Budget),
            Some("sonnet" | "haiku") if version >= (3, 5) => (8192, Thinking::Never),
            Some(_) if version >= (3, 0) => (4096, Thinking::Never),
            // Models of others that are asked in this format take a number, too.
            _ => (64_000, Thinking::Budget),
        };
        let can_be_forced = matches!(family, Some("opus" | "sonnet" | "haiku")) && version >= (3, 0);
        let refuses_sampling = matches!(family, Some("fable" | "mythos")) || family.is_some() && version > (4, 6);
        let has_cache = family.is_some() && (version >= (3, 7) || family == Some("haiku") && version >= (3, 5));
        Self { max_tokens, can_be_forced, refuses_sampling, has_cache, thinking }
    }

    /// The fields that ask for this effort, in Anthropic's own format and in Bedrock's; none where the request would be refused with them.
    /// <https://docs.anthropic.com/en/docs/build-with-claude/adaptive-thinking>
    pub fn reasoning(&self, effort: Option<Effort>, max_tokens: u32, said: &[HistoryItem<'_>]) -> Map<String, Value> {
        let mut fields = Map::new();
        let Some(effort) = effort else { return fields };
        match self.thinking {
            Thinking::Adaptive => {
                fields.insert("output_config".into(), json!({"effort": effort.as_str()}));
                fields.insert("thinking".into(), json!({"type": "adaptive", "display": "summarized"}));
            }
            // A budget has to leave room for the answer. A request with results of calls also has to have the thoughts before these calls.
            Thinking::Budget if budget(effort) < max_tokens && !history::calls_without_thought(said) => {
                fields.insert("thinking".into(), json!({"type": "enabled", "budget_tokens": budget(effort)}));
            }
            Thinking::Budget | Thinking::Never => {}
        }
        fields
    }
}

fn messages(asked: &WireRequest<'_>, said: Vec<HistoryItem<'_>>) -> Vec<Value> {
    let message = |said: HistoryItem<'_>| match said {
        HistoryItem::User(text, of) => {
            let media = asked.media(&of);
            let content = if media.is_empty() { json!(text) } else { parts(&text, &media) };
            json!({"role": "user", "content": content})
        }
        HistoryItem::Model { thoughts, text, calls, .. } => {
            let mut blocks = thinking(thoughts);
            if blocks.is_empty() && calls.is_empty() {
                return json!({"role": "assistant", "content": text});
            }
            if !text.is_empty() {
                blocks.push(json!({"type": "text", "text": text}));
            }
            blocks.extend(
                calls
                    .into_iter()
                    .map(|call| json!({"type": "tool_use", "id": call.id, "name": call.name, "input": call.args})),
            );
            json!({"role": "assistant", "content": blocks})
        }
        HistoryItem::Results(results) => {
            let block = |result: &history::ToolResult<'_>| json!({"type": "tool_result", "content": result.output, "tool_use_id": result.id});
            json!({"role": "user", "content": results.iter().map(block).collect::<Vec<_>>()})
        }
    };
    said.into_iter().map(message).collect()
}

fn parts(text: &str, media: &[&Media]) -> Value {
    let part = |one: &&Media| {
        let source = json!({"type": "base64", "media_type": one.media_type, "data": encoded(one)});
        let kind = if one.media_type.starts_with("image/") { "image" } else { "document" };
        json!({"type": kind, "source": source})
    };
    media.iter().map(part).chain([json!({"type": "text", "text": text})]).collect()
}

/// Blocks of thinking come back as they were signed.
fn thinking(thoughts: Vec<Thought>) -> Vec<Value> {
    let block = |(thought, text): (Thought, Option<String>)| match (thought, text) {
        (Thought::Block(block), _) => Some(block),
        // A model that does not show its thoughts signs an empty text.
        (Thought::Signature(signature), text) => {
            Some(json!({"type": "thinking", "thinking": text.unwrap_or_default(), "signature": signature}))
        }
        (Thought::Reasoning(_), _) => None,
    };
    history::signed(thoughts).into_iter().filter_map(block).collect()
}

pub(super) fn take(name: &str, event: &Value, draft: &mut Draft) -> Result<(), WireFault> {
    let kind = event["type"].as_str().unwrap_or(name);
    let index = event.get("index").and_then(Value::as_u64);
    match kind {
        "message_start" => {
            draft.answered_by(&event["message"]["model"]);
            take_usage(&event["message"]["usage"], draft);
        }
        "content_block_start" => begin(index, &event["content_block"], draft),
        "content_block_delta" => go_on(index, &event["delta"], draft),
        "message_delta" => {
            take_usage(&event["usage"], draft);
            match event["delta"]["stop_reason"].as_str() {
                None => {}
                Some("max_tokens" | "model_context_window_exceeded") => {
                    draft.finished = Some(StopReason::MaxOutputTokens);
                }
                Some(why @ "refusal") => draft.refuse(why),
                Some(_) => draft.finished = Some(StopReason::EndTurn),
            }
        }
        "message_stop" => {
            draft.finished.get_or_insert(StopReason::EndTurn);
            draft.over = true;
        }
        _ => {}
    }
    Ok(())
}

fn begin(index: Option<u64>, block: &Value, draft: &mut Draft) {
    match block["type"].as_str() {
        Some("tool_use") => {
            draft.calls.push(super::draft::Call {
                key: index,
                id: block["id"].as_str().unwrap_or_default().to_owned(),
                name: block["name"].as_str().unwrap_or_default().to_owned(),
                // A server that does not stream arguments has them here; otherwise this is an empty object.
                args: written(&block["input"]).filter(|args| args != "{}").unwrap_or_default(),
                signature: None,
            });
        }
        Some("thinking") => {
            let (thought, signature) = (&block["thinking"], &block["signature"]);
            draft.blocks.push(super::draft::Block { key: index, ..super::draft::Block::default() });
            go_on(index, &json!({"thinking": thought, "signature": signature}), draft);
        }
        Some("redacted_thinking") => {
            let whole = Some(block.clone());
            draft.blocks.push(super::draft::Block { key: index, whole, ..super::draft::Block::default() });
        }
        Some("text") => draft.text(block["text"].as_str().unwrap_or_default()),
        _ => {}
    }
}

/// A piece is known by its fields, so that a server may leave out its type.
fn go_on(index: Option<u64>, delta: &Value, draft: &mut Draft) {
    if let Some(piece) = text(delta, &["/text"]) {
        draft.text(piece);
    }
    if let Some(piece) = text(delta, &["/thinking"]) {
        draft.block(index).text.push_str(piece);
        draft.reasoning(piece);
    }
    if let Some(piece) = text(delta, &["/signature"]) {
        draft.block(index).signature.push_str(piece);
    }
    if let Some(piece) = text(delta, &["/partial_json"]) {
        // Blocks of tools that run at the provider are written, too.
        if index.is_none() || draft.calls.iter().any(|call| call.key == index) {
            draft.call(index).args.push_str(piece);
        }
    }
}

/// The input is counted at the start and, by newer editions, again at the end; the output at the end.
fn take_usage(usage: &Value, draft: &mut Draft) {
    if !usage.is_object() {
        return;
    }
    let tokens = &mut draft.tokens;
    let (read, into) = ("cache_read_input_tokens", "cache_creation_input_tokens");
    let counted = |field: &str| usage.get(field).filter(|tokens| !tokens.is_null()).map(count);
    let plain = counted("input_tokens").filter(|&input| input > 0);
    let own = tokens.input.saturating_sub(tokens.cached + tokens.written_to_cache);
    tokens.cached = counted(read).unwrap_or(tokens.cached);
    tokens.written_to_cache = counted(into).unwrap_or(tokens.written_to_cache);
    tokens.input = plain.unwrap_or(own) + tokens.cached + tokens.written_to_cache;
    tokens.output = counted("output_tokens").unwrap_or(tokens.output);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_features_of_a_model_follow_from_its_name() {
        let check = |model: &str, max_tokens: u32, thinking: Thinking| {
            let claude = Claude::of(model);
            assert_eq!((claude.max_tokens, claude.thinking), (max_tokens, thinking), "{model}");
        };
        check("claude-sonnet-4-5", 64_000, Thinking::Budget);
        check("claude-sonnet-4-5-20250929", 64_000, Thinking::Budget);
        check("claude-sonnet-4-6", 64_000, Thinking::Adaptive);
        check("claude-opus-4-1-20250805", 32_000, Thinking::Budget);
        check("claude-opus-4-20250514", 32_000, Thinking::Budget);
        check("claude-opus-4-5", 64_000, Thinking::Budget);
        check("claude-opus-4-8", 128_000, Thinking::Adaptive);
        check("claude-haiku-4-5-20251001", 64_000, Thinking::Budget);
        check("claude-haiku-5", 128_000, Thinking::Adaptive);
        check("claude-fable-5", 128_000, Thinking::Adaptive);
        check("claude-3-7-sonnet-20250219", 64_000, Thinking::Budget);
        check("claude-3-5-haiku-20241022", 8192, Thinking::Never);
        check("claude-3-opus-20240229", 4096, Thinking::Never);
        check("eu.anthropic.claude-sonnet-4-5-20250929-v1:0", 64_000, Thinking::Budget);
        check("us.anthropic.claude-opus-4-7", 64_000, Thinking::Adaptive);
        check("a-model-of-a-gateway", 64_000, Thinking::Budget);
    }
}
