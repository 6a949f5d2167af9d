//! The updates of a coding agent in the native wire format. Its tool calls look like those of the system's own agents, so that a client shows
//! them without knowing of the Agent Client Protocol; everything else of that protocol is passed on as it is.

use crate::CallId;
use serde_json::{Value, json};

pub(super) fn encode(call_id: Option<CallId>, update: &Value) -> (&'static str, Value) {
    let is_over = matches!(update["status"].as_str(), Some("completed" | "failed"));
    match (update["sessionUpdate"].as_str(), call_id) {
        (Some("tool_call"), Some(call_id)) => ("call", call(call_id, update)),
        (Some("tool_call_update"), Some(call_id)) if is_over => ("observation", observation(call_id, update)),
        (Some("plan"), _) => ("agent_plan", json!({ "entries": update["entries"] })),
        _ => {
            let mut data = json!({ "update": update });
            if let Some(call_id) = call_id {
                data["call_id"] = json!(call_id);
            }
            ("agent_update", data)
        }
    }
}

/// The update `tool_call_update` with the status `in_progress`: the call was told before, and begins again.
pub fn in_progress(call_id: CallId) -> Value {
    json!({ "sessionUpdate": "tool_call_update", "toolCallId": call_id, "status": "in_progress" })
}

fn call(call_id: CallId, update: &Value) -> Value {
    let args = match &update["rawInput"] {
        Value::Null => json!({}),
        raw => raw.clone(),
    };
    let mut data = json!({ "call_id": call_id, "tool": tool(update), "args": args });
    if let Some(title) = update["title"].as_str() {
        data["title"] = json!(title);
    }
    if let Some(path) = update["locations"][0]["path"].as_str() {
        data["path"] = json!(path);
    }
    data
}

fn observation(call_id: CallId, update: &Value) -> Value {
    let success = update["status"] == "completed";
    json!({ "call_id": call_id, "tool": tool(update), "output": output(update), "success": success })
}

/// The kind of a tool, such as `execute`: agents name no tools.
fn tool(update: &Value) -> &str {
    update["kind"].as_str().unwrap_or("other")
}

/// The text of a call's content, else its raw output.
fn output(update: &Value) -> String {
    let line = |content: &Value| match content["type"].as_str() {
        Some("content") => content["content"]["text"].as_str().map(ToOwned::to_owned),
        Some("diff") => content["path"].as_str().map(|path| format!("changed {path}")),
        _ => None,
    };
    let lines: Vec<String> = update["content"].as_array().into_iter().flatten().filter_map(line).collect();
    match &update["rawOutput"] {
        Value::Null => lines.join("\n"),
        _ if !lines.is_empty() => lines.join("\n"),
        Value::String(text) => text.clone(),
        raw => raw.to_string(),
    }
}
