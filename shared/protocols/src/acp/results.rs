//! Messages to an editor: results, errors, notifications, requests.

use super::updates::{EditorUpdate, Updates, chunk};
use serde_json::{Map, Value, json};

const INVALID_PARAMS: i64 = -32_602;
const INTERNAL_ERROR: i64 = -32_603;
/// As the protocol numbers it.
const NOT_FOUND: i64 = -32_002;

/// The answer to a request.
pub fn success(id: &Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// The refusal of a request.
pub fn failure(id: &Value, code: i64, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}

/// The refusal of a request by the hub: its code, message and hint.
pub fn refused(id: &Value, code: &str, message: &str, hint: Option<&str>) -> Value {
    let number = match code {
        "NOT_FOUND" => NOT_FOUND,
        "INVALID_ARGUMENT" => INVALID_PARAMS,
        _ => INTERNAL_ERROR,
    };
    let hint = hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
    let mut answer = failure(id, number, &format!("{message}{hint}"));
    answer["error"]["data"] = json!({ "code": code });
    answer
}

/// A session update.
pub fn notification(session: &str, update: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": session, "update": update } })
}

/// A request to the editor about a session, as a message with this number.
pub fn of_editor(id: u64, session: &str, (method, mut params): (&str, Value)) -> Value {
    params["sessionId"] = json!(session);
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// The result of the end of a prompt.
pub fn prompted(stop_reason: &str) -> Value {
    json!({ "stopReason": stop_reason })
}

/// The result of a session that is made or loaded, by the options of its thread: `GET /v1/threads/{id}/config-options`.
pub fn opened(session: Option<&str>, options: &Value) -> Value {
    let mut result = Map::new();
    if let Some(session) = session {
        result.insert("sessionId".into(), json!(session));
    }
    let options = &options["configOptions"];
    if let Some(mode) = options.as_array().and_then(|all| all.iter().find(|option| option["id"] == "mode")) {
        let named = |choice: &Value| json!({ "id": choice["value"], "name": choice["name"] });
        let modes: Vec<Value> = mode["options"].as_array().into_iter().flatten().map(named).collect();
        result.insert("modes".into(), json!({ "currentModeId": mode["currentValue"], "availableModes": modes }));
    }
    result.insert("configOptions".into(), if options.is_array() { options.clone() } else { json!([]) });
    Value::Object(result)
}

/// The result of a list of sessions, by the answer of `GET /v1/threads`.
pub fn listed(threads: &Value, cwd: Option<&str>) -> Value {
    let all = threads["threads"].as_array().into_iter().flatten();
    let of_folder = all.filter(|thread| cwd.is_none_or(|cwd| thread["cwd"] == cwd));
    let sessions: Vec<Value> = of_folder
        .map(|thread| {
            json!({
                "sessionId": thread["threadId"], "cwd": thread["cwd"], "title": thread["title"],
                "updatedAt": thread["updatedAt"],
            })
        })
        .collect();
    let mut result = json!({ "sessions": sessions });
    if threads["nextCursor"].is_string() {
        result["nextCursor"] = threads["nextCursor"].clone();
    }
    result
}

/// The update that tells the slash commands of an agent, by the answer of `GET /v1/threads/{id}/slash-commands`.
pub fn commands(listed: &Value) -> Value {
    let shown = |command: &Value| {
        let description = command["description"].as_str().unwrap_or_default();
        let mut shown = json!({ "name": command["name"], "description": description });
        if command["inputHint"].is_string() {
            shown["input"] = json!({ "hint": command["inputHint"] });
        }
        shown
    };
    let all: Vec<Value> = listed["commands"].as_array().into_iter().flatten().map(shown).collect();
    json!({ "sessionUpdate": "available_commands_update", "availableCommands": all })
}

/// The updates that tell the conversation so far, by the answer of `GET /v1/threads/{id}/history?includeEvents=true`; and the turn that runs, which is
/// not among them.
pub fn replay(history: &Value) -> (Vec<Value>, Option<String>) {
    let (mut updates, mut running) = (Vec::new(), None);
    for turn in history["turns"].as_array().into_iter().flatten() {
        updates.push(chunk("user_message_chunk", turn["requestText"].as_str().unwrap_or_default()));
        if turn["status"] == "running" {
            running = turn["turnId"].as_str().map(ToOwned::to_owned);
            continue;
        }
        let mut fold = Updates::default();
        for event in turn["events"].as_array().into_iter().flatten() {
            let told = fold.take_in(event["type"].as_str().unwrap_or_default(), &event["data"]);
            updates.extend(told.into_iter().filter_map(|told| match told {
                EditorUpdate::Update(update) => Some(update),
                // A turn of the history has its answers.
                EditorUpdate::Wants(_) | EditorUpdate::Calls(_) | EditorUpdate::Ended(_) => None,
            }));
        }
    }
    (updates, running)
}
