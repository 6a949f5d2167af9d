//! Messages in the form of LangChain.

use crate::plan::parsed;
use domain::{CallId, Message, MessageId, ToolCall};
use serde_json::{Value, json};
use uuid::Uuid;

pub(super) fn human(id: Uuid, content: &str) -> Value {
    json!({ "type": "human", "id": id, "content": content, "additional_kwargs": {}, "response_metadata": {} })
}

pub(super) fn ai(id: MessageId, content: &str, reasoning: &str, calls: &[ToolCall]) -> Value {
    let (mut valid, mut invalid) = (Vec::new(), Vec::new());
    for ToolCall { call_id, tool, args } in calls {
        match parsed(args) {
            args @ Value::Object(_) => {
                valid.push(json!({ "id": call_id, "name": tool, "args": args, "type": "tool_call" }))
            }
            _ => invalid.push(json!({
                "id": call_id, "name": tool, "args": args, "error": "the arguments are no JSON object",
                "type": "invalid_tool_call",
            })),
        }
    }
    json!({
        "type": "ai", "id": id, "content": content, "additional_kwargs": kwargs(reasoning), "response_metadata": {},
        "tool_calls": valid, "invalid_tool_calls": invalid,
    })
}

pub(super) fn tool(call: CallId, tool: &str, output: &str, success: bool) -> Value {
    json!({
        "type": "tool", "id": format!("{call}-result"), "tool_call_id": call, "name": tool, "content": output,
        "status": if success { "success" } else { "error" }, "additional_kwargs": {}, "response_metadata": {},
    })
}

/// A message of the log; answers of tools are no messages there.
pub(super) fn of(message: &Message) -> Value {
    match message {
        Message::User { id, content, .. } => human(id.0, content),
        Message::Assistant { id, content, reasoning, calls, .. } => ai(*id, content, reasoning, calls),
        Message::Tool { call_id, tool: name, output, success, .. } => tool(*call_id, name, output, *success),
        Message::System { id, content, .. } => {
            json!({ "type": "system", "id": id, "content": content, "additional_kwargs": {}, "response_metadata": {} })
        }
    }
}

/// A piece of a message: new words, or new reasoning.
pub(super) fn piece(id: MessageId, text: &str, reasoning: &str) -> Value {
    chunk(id, text, reasoning, &json!([]))
}

/// The calls of a message, as its last piece.
pub(super) fn calls(id: MessageId, calls: &[ToolCall]) -> Value {
    let call = |(index, call): (usize, &ToolCall)| json!({ "index": index, "id": call.call_id, "name": call.tool, "args": call.args, "type": "tool_call_chunk" });
    chunk(id, "", "", &Value::Array(calls.iter().enumerate().map(call).collect()))
}

fn chunk(id: MessageId, content: &str, reasoning: &str, calls: &Value) -> Value {
    json!({
        "type": "AIMessageChunk", "id": id, "content": content, "additional_kwargs": kwargs(reasoning),
        "response_metadata": {}, "tool_call_chunks": calls,
    })
}

fn kwargs(reasoning: &str) -> Value {
    if reasoning.is_empty() { json!({}) } else { json!({ "reasoning_content": reasoning }) }
}
