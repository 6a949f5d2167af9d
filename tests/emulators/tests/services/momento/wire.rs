//! Our messages and those of Momento's own client are the same bytes.

use super::stock::Stock;
use aws::momento_wire::{Content, Kind, PublishRequest, SubscriptionItem, SubscriptionRequest, TopicItem, TopicValue};
use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use prost::Message;
use serde_json::{Value, json};
use std::fmt::Debug;

/// Momento's own types, in its client, which connects to nothing for them.
struct Theirs(Stock);

/// The message of a method: the request or the response.
type Part = (&'static str, &'static str);

const PUBLISH: Part = ("Publish", "request");
const PUBLISHED: Part = ("Publish", "response");
const SUBSCRIBE: Part = ("Subscribe", "request");
const EVENT: Part = ("Subscribe", "response");

impl Theirs {
    fn start() -> Self {
        Self(Stock::start("nowhere.test"))
    }

    async fn decode(&self, (method, part): Part, encoded: &[u8]) -> Value {
        let encoded = STANDARD.encode(encoded);
        let told = self.0.answer("read", json!({ "method": method, "part": part, "encoded": encoded })).await;
        told["content"].clone()
    }

    async fn encode(&self, (method, part): Part, content: &Value) -> Vec<u8> {
        let told = self.0.answer("write", json!({ "method": method, "part": part, "content": content })).await;
        STANDARD.decode(told["encoded"].as_str().unwrap()).unwrap()
    }

    /// Bytes of ours are read as the same by Momento's own type, and its bytes by ours.
    async fn agree<Ours: Message + Default + PartialEq + Debug>(&self, part: Part, ours: Ours, theirs: Value) {
        assert_eq!(self.decode(part, &ours.encode_to_vec()).await, theirs);
        assert_eq!(Ours::decode(&*self.encode(part, &theirs).await).unwrap(), ours);
    }
}

fn binary(content: &'static [u8]) -> Option<TopicValue> {
    Some(TopicValue { content: Some(Content::Binary(Bytes::from_static(content))) })
}

#[tokio::test]
async fn every_message_is_read_the_same_by_the_protocols_own_types() {
    let theirs = Theirs::start();
    let (cache_name, topic) = ("the cache".to_owned(), "a topic".to_owned());
    for content in [&b"\0\xff"[..], b""] {
        let (our_value, their_value) = (binary(content), json!({ "binary": STANDARD.encode(content) }));
        let ours = PublishRequest { cache_name: cache_name.clone(), topic: topic.clone(), value: our_value.clone() };
        let same = json!({ "cache_name": cache_name, "topic": topic, "value": their_value });
        theirs.agree(PUBLISH, ours, same).await;

        let ours = TopicItem { topic_sequence_number: 1 << 40, value: our_value, sequence_page: 7 };
        let same = json!({
            "topic_sequence_number": 1_u64 << 40, "value": their_value, "publisher_id": "", "sequence_page": 7,
        });
        theirs.agree(EVENT, SubscriptionItem { kind: Some(Kind::Item(ours)) }, json!({ "item": same })).await;
    }
    let ours = SubscriptionRequest { cache_name: cache_name.clone(), topic: topic.clone() };
    let same = json!({
        "cache_name": cache_name, "topic": topic, "resume_at_topic_sequence_number": 0, "sequence_page": 0,
    });
    theirs.agree(SUBSCRIBE, ours, same).await;
    let nowhere = json!({ "last_topic_sequence": 0, "new_topic_sequence": 0, "new_sequence_page": 0 });
    for (ours, same) in [
        (Kind::Heartbeat(()), json!({ "heartbeat": {} })),
        (Kind::Discontinuity(()), json!({ "discontinuity": nowhere })),
    ] {
        theirs.agree(EVENT, SubscriptionItem { kind: Some(ours) }, same).await;
    }
    theirs.agree(PUBLISHED, (), json!({})).await;

    let text = TopicValue { content: Some(Content::Text(Bytes::from_static("é".as_bytes()))) };
    let same = json!({ "cache_name": cache_name, "topic": topic, "value": { "text": "é" } });
    theirs.agree(PUBLISH, PublishRequest { cache_name, topic, value: Some(text) }, same).await;
}

/// Fields that we leave out do not keep us from reading the rest.
#[tokio::test]
async fn unneeded_fields_are_skipped() {
    let theirs = Theirs::start();
    let skipped = json!({ "last_topic_sequence": 1, "new_topic_sequence": 9, "new_sequence_page": 3 });
    let item = json!({ "value": { "text": "not ours" }, "publisher_id": "somebody" });
    let value = Some(TopicValue { content: Some(Content::Text(Bytes::from_static(b"not ours"))) });
    for (written, ours) in [
        (json!({ "discontinuity": skipped }), Kind::Discontinuity(())),
        (json!({ "item": item }), Kind::Item(TopicItem { value, ..TopicItem::default() })),
    ] {
        let read = SubscriptionItem::decode(&*theirs.encode(EVENT, &written).await).unwrap();
        assert_eq!(read.kind.unwrap(), ours);
    }
}
