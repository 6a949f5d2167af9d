//! Sessions and their messages as clients read them (spec 003 §10).

use domain::{CallId, ChatStatus, ChatView, Message};
use serde_json::{Value, json};

/// A session.
pub fn session(view: &ChatView) -> Value {
    let about = view.session.clone().unwrap_or_default();
    let mut usage = view.usage;
    usage += view.agents_usage;
    let tokens = usage.input_tokens + usage.output_tokens;
    json!({
        "id": view.chat_id,
        "user_id": view.user_id,
        "workspace_id": view.workspace_id,
        "context_type": about.context,
        "entity_id": about.entity,
        "project_focus": about.focus,
        "status": "active",
        "title": view.title,
        "turns": view.turns,
        "message_count": view.message_count,
        "total_tokens_used": tokens,
        "agent_metadata": { "running": view.status != ChatStatus::Idle, "turn_id": view.turn_id, "cut": about.cut, "approve_plans": about.approve_plans },
        "created_at": view.created_at,
        "updated_at": view.active_at,
    })
}

/// The first event of each stream, as bytes: it is sent when the message is durable, before the log has anything of its turn. So it has no
/// number.
pub fn session_frame(view: &ChatView) -> String {
    format!("data: {}\n\n", json!({ "type": "session", "session": session(view) }))
}

/// A message of a session; none for notes that only the model reads.
pub fn message(session: &ChatView, message: &Message) -> Option<Value> {
    let (id, user) = (session.chat_id, session.user_id);
    Some(match message {
        Message::User { at, content, .. } => {
            json!({ "session_id": id, "user_id": user, "role": "user", "content": content, "created_at": at })
        }
        Message::Assistant { at, content, calls, .. } => {
            let mut data =
                json!({ "session_id": id, "user_id": user, "role": "assistant", "content": content, "created_at": at });
            if !calls.is_empty() {
                let calls: Vec<Value> =
                    calls.iter().map(|call| tool_call(&call.call_id.to_string(), &call.tool, &call.args)).collect();
                data["tool_calls"] = json!(calls);
            }
            data
        }
        Message::Tool { call_id, tool, at, output, success } => json!({
            "session_id": id, "user_id": user, "role": "tool", "content": output, "tool_call_id": call_id, "tool_name": tool,
            "tool_result": tool_result(*call_id, *success, output), "created_at": at,
        }),
        Message::System { .. } => return None,
    })
}

/// A call of a tool in the form that clients know.
pub(super) fn tool_call(id: &str, tool: &str, args: &str) -> Value {
    json!({ "id": id, "type": "function", "function": { "name": tool, "arguments": args } })
}

/// The result of a call in the form that clients know.
pub(super) fn tool_result(call: CallId, success: bool, output: &str) -> Value {
    let mut result = json!({ "tool_call_id": call, "success": success });
    match success {
        true => result["result"] = domain::exact_numbers::value_or_text(output),
        false => result["error"] = json!(output),
    }
    result
}
