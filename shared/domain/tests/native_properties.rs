//! Properties of the data of events, for all texts and numbers in them.
#![expect(clippy::unwrap_used, reason = "tests")]

use buildscale_domain::{
    CallId, ChatEvent, Code, Error, Message, MessageId, NodeId, Status, TaskEvent, Timestamp, Usage, native, task,
    task_native,
};
use proptest::{collection::vec, prelude::*};
use serde_json::{Serializer, Value, json};
use uuid::Uuid;

/// Texts with everything in them that JSON escapes.
fn texts() -> impl Strategy<Value = String> {
    vec(prop_oneof![any::<char>(), "[\\x00-\\x1f\\x7f\"\\\\/\u{2028}\u{2029}]".prop_map(first)], 0..40)
        .prop_map(|characters| characters.into_iter().collect())
}

fn first(text: String) -> char {
    text.chars().next().unwrap()
}

/// Arguments of calls: JSON that is not compact, with numbers that a value keeps or does not keep, and other texts.
fn arguments() -> impl Strategy<Value = String> {
    let json = (texts(), any::<f64>(), "-?[1-9][0-9]{0,24}(\\.[0-9]{1,3})?").prop_map(|(text, double, number)| {
        format!("{{ \"z\": {}, \"a\" : [{}, {number}],\n\"z\": {{}} }}", json!(text), json!(double))
    });
    prop_oneof![json, texts()]
}

fn events(text: &str, args: String, cost_usd: f64, number: u64) -> Vec<ChatEvent> {
    let (message_id, call_id, at) = (MessageId(Uuid::nil()), CallId(Uuid::nil()), Timestamp::default());
    let usage = Usage { input_tokens: number, cost_usd, ..Usage::default() };
    let error = Error::new(Code::Conflict, text).hint(text).detail(text, cost_usd);
    let update = json!({ "sessionUpdate": text, "cost": cost_usd, text: number });
    let message = Message::Assistant {
        id: message_id,
        at,
        content: text.into(),
        calls: Vec::new(),
        reasoning: String::new(),
        provider: Value::Null,
    };
    vec![
        ChatEvent::Chunk { text: text.into(), message_id },
        ChatEvent::MessageAdded { message },
        ChatEvent::CallStarted { call_id, attempt: 1, tool: text.into(), path: None, args, at: None },
        ChatEvent::AgentUpdated { call_id: Some(call_id), update, at },
        ChatEvent::Used { usage, context_used: number, context_limit: 1, model: None, estimated: false },
        ChatEvent::Failed { error },
    ]
}

fn task_event(text: &str, double: f64, number: u64) -> TaskEvent {
    let output = json!({ "b": text, "a": [double, number, -1, null, {}], text: [] });
    let usage = Usage { cost_usd: double, ..Usage::default() };
    TaskEvent::NodeFinished {
        node: NodeId::from(text),
        attempt: 1,
        status: Status::Success,
        output,
        error: Some(Error::new(Code::Conflict, text)),
        metrics: task::NodeMetrics { usage, ..Default::default() },
        at: Timestamp::default(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn data_that_is_written_as_text_is_the_text_of_its_value_on_one_line(
        text in texts(), args in arguments(), double: f64, number: u64,
    ) {
        for event in events(&text, args, double, number) {
            let mut written = Vec::new();
            let (name, ()) = native::write(&event, &mut Serializer::new(&mut written)).unwrap().unwrap();
            let (same_name, data) = native::encode(&event).unwrap();
            prop_assert_eq!(name, same_name);
            prop_assert_eq!(std::str::from_utf8(&written).unwrap(), data.to_string());
            prop_assert!(!written.contains(&b'\n') && !written.contains(&b'\r'));
        }
        let event = task_event(&text, double, number);
        let mut written = Vec::new();
        task_native::write(&event, &mut Serializer::new(&mut written)).unwrap().unwrap();
        prop_assert_eq!(String::from_utf8(written).unwrap(), task_native::encode(&event).unwrap().1.to_string());
    }
}
