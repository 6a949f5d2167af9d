//! Bedrock's side of Converse: its events, and its refusals.

use super::{eventstream, frames::Piece};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use wiremock::{Request, ResponseTemplate};

/// `POST /model/…/converse-stream`. `stop` is `end_turn`, `tool_use` or `max_tokens`.
pub fn frames(pieces: &[Piece<'_>], stop: &str) -> Vec<u8> {
    let mut body = event("messageStart", &json!({"role": "assistant", "p": "abcdefgh"}));
    for (index, piece) in pieces.iter().enumerate() {
        let mut delta = |delta: Value| {
            body.extend(event(
                "contentBlockDelta",
                &json!({"contentBlockIndex": index, "delta": delta, "p": "abcdefghijklmnopqrstuvwxyz"}),
            ));
        };
        match piece {
            Piece::Think(text) => {
                delta(json!({"reasoningContent": {"text": text}}));
                delta(json!({"reasoningContent": {"signature": "signed-thought"}}));
            }
            Piece::Say(text) => delta(json!({ "text": text })),
            Piece::Call(id, name, args) => {
                let start = json!({"contentBlockIndex": index, "start": {"toolUse": {"toolUseId": id, "name": name}}});
                body.extend(event("contentBlockStart", &start));
                for part in *args {
                    let input = json!({"toolUse": {"input": part}});
                    let delta = json!({"contentBlockIndex": index, "delta": input, "p": "abc"});
                    body.extend(event("contentBlockDelta", &delta));
                }
            }
        }
        body.extend(event("contentBlockStop", &json!({"contentBlockIndex": index, "p": "abcdef"})));
    }
    body.extend(event("messageStop", &json!({"stopReason": stop, "p": "abcd"})));
    let usage = json!({"inputTokens": 30, "outputTokens": 20, "totalTokens": 120, "cacheReadInputTokens": 64, "cacheWriteInputTokens": 6});
    body.extend(event("metadata", &json!({"metrics": {"latencyMs": 1000}, "usage": usage, "p": "abcdefghij"})));
    body
}

fn event(kind: &str, payload: &Value) -> Vec<u8> {
    eventstream::event(kind, &payload.to_string())
}

/// Bedrock's event for a failure in the middle of an answer.
pub fn exception(kind: &str, words: &str) -> Vec<u8> {
    eventstream::exception(kind, &json!({ "message": words }).to_string())
}

/// Bedrock's refusal of a faulty request; none for a valid one, and for requests to others.
pub fn refusal(request: &Request) -> Option<ResponseTemplate> {
    if !request.url.path().ends_with("/converse-stream") {
        return None;
    }
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    let reason = valid(&body).err()?;
    let refusal = ResponseTemplate::new(400).insert_header("x-amzn-errortype", "ValidationException");
    Some(refusal.set_body_json(json!({ "message": reason })))
}

fn valid(body: &Value) -> Result<(), String> {
    for key in body.as_object().ok_or("it must be an object")?.keys() {
        let known = ["messages", "system", "toolConfig", "inferenceConfig", "additionalModelRequestFields"]
            .contains(&key.as_str());
        known.then_some(()).ok_or(format!("extraneous key [{key}] is not permitted"))?;
    }
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let texts: Vec<Value> = list(&body["system"]);
    for tool in list(&body["toolConfig"]["tools"]) {
        let spec = &tool["toolSpec"];
        let named = |field: &str| spec[field].as_str().is_some_and(|text| !text.is_empty());
        if !named("name") || !named("description") || !spec["inputSchema"]["json"].is_object() {
            return Err(format!("toolConfig: {tool} is no tool"));
        }
    }
    let mut asked = BTreeSet::new();
    let mut role = "assistant";
    for (index, message) in list(&body["messages"]).iter().enumerate() {
        let own = message["role"].as_str().unwrap_or_default();
        if own == role || !["user", "assistant"].contains(&own) {
            return Err("A conversation must alternate between user and assistant roles. Make sure the conversation \
                        alternates between user and assistant roles and try again."
                .into());
        }
        role = if own == "user" { "user" } else { "assistant" };
        let blocks = list(&message["content"]);
        if blocks.is_empty() {
            return Err(format!("messages.{index}.content must not be empty"));
        }
        let answered: BTreeSet<_> =
            blocks.iter().filter_map(|block| block["toolResult"]["toolUseId"].as_str().map(str::to_owned)).collect();
        if answered != asked {
            return Err(format!("messages.{index}: Expected toolResult blocks for {asked:?}, found {answered:?}"));
        }
        asked = blocks.iter().filter_map(|block| block["toolUse"]["toolUseId"].as_str().map(str::to_owned)).collect();
        if !(asked.is_empty() && answered.is_empty()) && list(&body["toolConfig"]["tools"]).is_empty() {
            return Err("The toolConfig field must be defined when using toolUse and toolResult content blocks.".into());
        }
        for block in &blocks {
            block_is_valid(block).map_err(|reason| format!("messages.{index}.content: {reason}"))?;
        }
    }
    texts.iter().try_for_each(block_is_valid)
}

fn block_is_valid(block: &Value) -> Result<(), String> {
    let (kind, inner) =
        block.as_object().filter(|block| block.len() == 1).and_then(|block| block.iter().next()).ok_or("one kind")?;
    let blank = |text: &Value| text.as_str().is_none_or(|text| text.trim().is_empty());
    match kind.as_str() {
        "text" if blank(inner) => {
            Err("The text field in the ContentBlock object is blank. Add text to the text field, and try again.".into())
        }
        "toolUse" if !inner["input"].is_object() => {
            Err("The format of the value at toolUse.input is invalid. Provide a json object".into())
        }
        "toolResult" => inner["content"].as_array().into_iter().flatten().try_for_each(block_is_valid),
        "reasoningContent" if blank(&inner["reasoningText"]["signature"]) && blank(&inner["redactedContent"]) => {
            Err("the signature of reasoning is missing".into())
        }
        "text" | "toolUse" | "reasoningContent" | "cachePoint" => Ok(()),
        other => Err(format!("{other} is no block")),
    }
}
