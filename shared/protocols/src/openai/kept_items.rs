//! Items that a client names by their ids, since they are kept here: the AI SDK sends a conversation so, unless it is told otherwise.

use super::{AskedId, ItemId, ResponseId};
use serde_json::Value;

/// The item that an `item_reference` names; none for any other item.
fn named(item: &Value) -> Option<ItemId> {
    item["id"].as_str().filter(|_| item["type"] == "item_reference")?.parse().ok()
}

/// The response of the last named item, and the items that its chat does not have: instructions, and all that come after the item.
pub(super) fn behind_the_last(items: &[Value]) -> Option<(ResponseId, Vec<Value>)> {
    let (at, last) = items.iter().enumerate().rev().find_map(|(at, item)| Some((at, named(item)?)))?;
    let instructs = |item: &&Value| matches!(item["role"].as_str(), Some("system" | "developer"));
    let (before, behind) = items.split_at(at + 1);
    Some((last.response, before.iter().filter(instructs).chain(behind).cloned().collect()))
}

/// Whether an item is the call, or the request for permission, that another one answers.
pub(super) fn is_answered_by(call: &Value, answer: &Value) -> bool {
    let is_request = call["id"].is_string() && call["id"] == answer["approval_request_id"];
    match call["type"].as_str() {
        Some("function_call") => call["call_id"].is_string() && call["call_id"] == answer["call_id"],
        Some("mcp_approval_request") => is_request,
        Some("item_reference") => {
            let asked = answer["call_id"].as_str().and_then(|id| id.parse::<AskedId>().ok());
            let is_call =
                |item: ItemId| asked.is_some_and(|asked| (asked.chat, asked.id) == (item.response.chat, item.id));
            is_request || named(call).is_some_and(is_call)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::super::{Input, response};
    use super::*;
    use crate::Part;
    use domain::{ChatId, TurnId};
    use serde_json::json;
    use uuid::Uuid;

    #[test]
    fn a_conversation_that_names_its_items_goes_on_after_the_last_one() {
        let part = Part { turn: TurnId(Uuid::from_u128(2)), number: 1 };
        let kept = ResponseId { chat: ChatId(Uuid::from_u128(1)), part };
        let asked = AskedId { chat: kept.chat, id: Uuid::from_u128(3) };
        let reference = |kind: &str| json!({ "type": "item_reference", "id": ItemId { response: kept, id: asked.id }.as_item(kind) });
        let user = |content: &str| json!({ "role": "user", "content": content });
        let read = |items: Value| response(json!({ "model": "a", "input": items }).as_object().unwrap());
        let system = json!({ "role": "system", "content": "Be brief." });
        let request = read(json!([system, user("Hello"), reference("rs"), reference("msg"), user("More")])).unwrap();
        let earlier = "instructions: Be brief.\n".to_owned();
        let said = Input::Words { content: "More".into(), earlier, repeats: false, files: Vec::new() };
        assert_eq!((request.input, request.previous), (said, Some(kept)));
        let output = json!({ "type": "function_call_output", "call_id": asked.as_call(), "output": "7" });
        let request = read(json!([user("Hello"), reference("fc"), output])).unwrap();
        assert_eq!(request.input, Input::Answers(asked, "7".to_owned()));
        let unknown = json!({ "type": "item_reference", "id": "msg_1" });
        assert!(read(json!([user("Hello"), unknown, user("More")])).is_err());
    }
}
