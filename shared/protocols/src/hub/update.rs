//! Session updates of the Agent Client Protocol, as the frames of a turn. Fields pass as the agent sent them; text comes by other events.

use serde_json::{Map, Value, json};

/// The parts of a tool call that clients get.
const TOOL_CALL: [&str; 8] = ["toolCallId", "title", "kind", "status", "content", "locations", "rawInput", "rawOutput"];

/// The name and the data of an update, without its turn; none for one that streams do not show.
pub(crate) fn encode(update: &Value) -> Option<(&'static str, Value)> {
    let data = match update.get("sessionUpdate").and_then(Value::as_str)? {
        "tool_call" => ("tool_call", parts(update, &TOOL_CALL)),
        "tool_call_update" => ("tool_call_update", parts(update, &TOOL_CALL)),
        "plan" => ("plan_update", json!({ "entries": update.get("entries").cloned().unwrap_or_else(|| json!([])) })),
        "agent_message_chunk" => ("message_content", parts(update, &["content"])),
        "current_mode_update" => ("mode_update", json!({ "modeId": update.get("currentModeId")? })),
        "config_option_update" => ("config_options_update", json!({ "configOptions": update.get("configOptions")? })),
        "session_info_update" => ("session_info_update", parts(update, &["sessionId", "title"])),
        _ => return None,
    };
    Some(data)
}

fn parts(update: &Value, names: &[&str]) -> Value {
    let part = |name: &&str| Some(((*name).to_owned(), update.get(*name)?.clone()));
    Value::Object(names.iter().filter_map(part).collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_pass_with_the_fields_of_the_contract_alone() {
        let check = |update: Value, expected: Option<(&str, Value)>| assert_eq!(encode(&update), expected, "{update}");
        check(
            json!({ "sessionUpdate": "tool_call", "toolCallId": "t", "title": "ls", "_meta": { "x": 1 } }),
            Some(("tool_call", json!({ "toolCallId": "t", "title": "ls" }))),
        );
        check(
            json!({ "sessionUpdate": "current_mode_update", "currentModeId": "code" }),
            Some(("mode_update", json!({ "modeId": "code" }))),
        );
        let options = json!([{ "id": "effort", "currentValue": "high" }]);
        check(
            json!({ "sessionUpdate": "config_option_update", "configOptions": options, "changed": ["effort"] }),
            Some(("config_options_update", json!({ "configOptions": options }))),
        );
        let entries = json!([{ "content": "look", "status": "pending", "priority": "high" }]);
        check(
            json!({ "sessionUpdate": "plan", "entries": entries }),
            Some(("plan_update", json!({ "entries": entries }))),
        );
        let image = json!({ "type": "image", "data": "aGk=", "mimeType": "image/png" });
        check(
            json!({ "sessionUpdate": "agent_message_chunk", "content": image }),
            Some(("message_content", json!({ "content": image }))),
        );
        check(json!({ "sessionUpdate": "available_commands_update", "availableCommands": [] }), None);
        check(json!("nothing"), None);
    }
}
