//! Answers with a format: clients parse all words of an answer, so it is its JSON alone.

use crate::{
    clients::{fold, parts, view},
    logs::log,
};
use domain::{AnswerFormat, CallId, ChatEvent, Message, MessageId, StopReason, ToolCall};
use serde_json::json;
use std::sync::Arc;
use uuid::Uuid;

#[test]
fn an_answer_with_a_format_is_its_json_alone_and_comes_when_the_turn_ends_well() {
    let mut events = log("clients/text.log.json");
    let format = AnswerFormat { name: Some("bees".into()), schema: Arc::new(json!({})), strict: true };
    events.insert(2, ChatEvent::FormatAsked { format });
    let is_answer = |event: &ChatEvent| matches!(event, ChatEvent::MessageAdded { message: Message::Assistant { .. } });
    let at = events.iter().position(is_answer).unwrap();
    let mut before = events[at].clone();
    if let ChatEvent::MessageAdded { message: Message::Assistant { id, content, calls, .. } } = &mut before {
        *id = MessageId(Uuid::from_u128(7));
        "I look.".clone_into(content);
        *calls = vec![ToolCall { call_id: CallId(Uuid::from_u128(8)), tool: "ls".into(), args: "{}".into() }];
    }
    if let ChatEvent::MessageAdded { message: Message::Assistant { content, .. } } = &mut events[at] {
        "```json\n{\"make\": \"honey\"}\n```".clone_into(content);
    }
    events.insert(at, before);
    let part = parts(&events)[0];
    let whole = fold(&mut *view("completion-whole", part), &events).pop().unwrap().data;
    let message = &whole["choices"][0]["message"];
    let answer = json!(r#"{"make": "honey"}"#);
    assert_eq!((&message["content"], &message["reasoning_content"]), (&answer, &json!("I look.")));
    let response = fold(&mut *view("response", part), &events).pop().unwrap().data["response"].take();
    assert_eq!(response["output"][1]["content"][0]["text"], answer);
    assert_eq!(response["text"]["format"]["name"], "bees");

    if let Some(ChatEvent::Done { stop_reason, .. }) = events.last_mut() {
        *stop_reason = StopReason::Error;
    }
    let failed = fold(&mut *view("response", part), &events).pop().unwrap().data["response"].take();
    assert_eq!((&failed["status"], &failed["output"][1]), (&json!("failed"), &json!(null)));
}
