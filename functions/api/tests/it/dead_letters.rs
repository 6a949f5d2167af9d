//! Messages that the queue put aside.

use crate::support::Door;
use ports::QueueMessage;
use serde_json::json;
use std::time::Duration;

const AT: &str = "/api/v1/dead-letters";

/// Sends a message, and tries it in vain until it is put aside.
async fn dies(door: &Door, group: &str) {
    let message =
        QueueMessage { group: group.into(), id: "m".into(), body: "SECRET words".into(), ..QueueMessage::default() };
    door.queue.send(vec![message]).await.unwrap();
    for _ in 0..embedded::Options::default().max_attempts {
        assert_eq!(door.queue.receive(1, Duration::ZERO).await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn dead_letters_are_listed_without_their_content_and_sent_again() {
    let door = Door::open();
    let redrive = async |group: &str| door.json("POST", &format!("{AT}/redrive"), json!({ "group": group })).await;
    assert_eq!(door.get(AT).await.is(200).json, json!({ "dead_letters": [], "has_more": false }));
    redrive("chat/w/a").await.refuses(404, "NOT_FOUND");
    dies(&door, "chat/w/a").await;
    dies(&door, "chat/w/b").await;

    let listed = door.get(&format!("{AT}?limit=1")).await.is(200);
    assert!(!String::from_utf8_lossy(&listed.bytes).contains("SECRET"));
    let letter = &listed.json["dead_letters"][0];
    assert_eq!((&letter["group"], &letter["id"], &letter["attempts"]), (&json!("chat/w/a"), &json!("m"), &json!(5)));
    assert_eq!((listed.json["dead_letters"].as_array().unwrap().len(), &listed.json["has_more"]), (1, &json!(true)));

    assert_eq!(redrive("chat/w/a").await.is(200).json, json!({ "redriven": 1 }));
    let again = door.queue.receive(9, Duration::from_secs(60)).await.unwrap();
    assert_eq!((again.len(), again[0].group.as_str(), again[0].attempt), (1, "chat/w/a", 1));
    let left = door.get(AT).await.is(200);
    assert_eq!((&left.json["dead_letters"][0]["group"], &left.json["has_more"]), (&json!("chat/w/b"), &json!(false)));
    door.get(&format!("{AT}?limit=0")).await.refuses(400, "INVALID_ARGUMENT");
}
