//! Webhooks through the door. No worker runs here: events wait in the queue.

use crate::support::Door;
use serde_json::{Value, json};

fn hook() -> Value {
    json!({ "name": "Team channel", "url": "https://receiver.example/hook?room=7", "events": ["turn.ended", "task.ended"] })
}

#[tokio::test]
async fn a_secret_is_shown_when_it_is_made_and_never_again() {
    let door = Door::open();
    let at = format!("{}/webhooks", door.workspace().await);
    let made = door.keyed("one", &at, hook()).await.is(201);
    assert_eq!(made.header("cache-control"), "no-store");
    let secret = made.text("secret");
    assert!(secret.starts_with("whsec_") && secret.len() == 50, "{}", secret.len());
    let id = made.json["webhook"]["webhook_id"].as_str().unwrap().to_owned();
    assert!(made.header("location").ends_with(&id));
    assert_eq!(door.keyed("one", &at, hook()).await.is(201).json, made.json, "the same request makes it once");

    let listed = door.get(&at).await.is(200);
    assert_eq!(listed.json["webhooks"], json!([made.json["webhook"]]));
    let one = format!("{at}/{id}");
    let shown = door.get(&one).await.is(200);
    assert_eq!(shown.json, made.json["webhook"]);
    assert_eq!((&shown.json["enabled"], &shown.json["events"]), (&json!(true), &json!(["turn.ended", "task.ended"])));

    let other = door.json("POST", &format!("{one}/secret"), json!({})).await.is(200);
    assert_ne!(other.text("secret"), secret);
    assert!(other.json["webhook"]["previous_secret_until"].is_string());
    for _ in 0..2 {
        door.json("POST", &format!("{one}/secret"), json!({})).await.is(200);
    }
    let fifth = door.json("POST", &format!("{one}/secret"), json!({})).await;
    fifth.refuses(409, "CONFLICT");
    for reply in [&listed, &shown, &door.get(&one).await] {
        let text = String::from_utf8_lossy(&reply.bytes).into_owned();
        assert!(!text.contains("whsec_") && !text.contains(&secret), "{text}");
    }
}

#[tokio::test]
async fn webhooks_are_changed_tried_and_removed() {
    let door = Door::open();
    let at = format!("{}/webhooks", door.workspace().await);
    let made = door.json("POST", &at, hook()).await.is(201);
    let one = format!("{at}/{}", made.json["webhook"]["webhook_id"].as_str().unwrap());
    let changed = door.json("PATCH", &one, json!({ "name": "Other", "events": ["question.asked"] })).await.is(200);
    assert_eq!((changed.text("name").as_str(), &changed.json["events"]), ("Other", &json!(["question.asked"])));

    let tried = door.json("POST", &format!("{one}/test"), json!({})).await.is(202);
    assert_eq!((&tried.json["status"], &tried.json["type"]), (&json!("pending"), &json!("webhook.test")));
    let deliveries = door.get(&format!("{one}/deliveries")).await.is(200);
    assert_eq!(deliveries.json["deliveries"], json!([tried.json]));
    let again = format!("{one}/deliveries/{}/retry", tried.text("delivery_id"));
    door.json("POST", &again, json!({})).await.is(202);
    assert_eq!(door.take_messages().await.len(), 2, "one for the trial and one for the retry");

    let off = door.json("PATCH", &one, json!({ "enabled": false })).await.is(200);
    assert_eq!((&off.json["enabled"], &off.json["disabled"]["because"]), (&json!(false), &json!("person")));
    door.json("POST", &format!("{one}/test"), json!({})).await.refuses(409, "CONFLICT");
    door.json("POST", &again, json!({})).await.refuses(409, "CONFLICT");
    door.json("PATCH", &one, json!({ "enabled": true })).await.is(200);
    let none = format!("{one}/deliveries/{}/retry", uuid::Uuid::now_v7());
    door.json("POST", &none, json!({})).await.refuses(404, "NOT_FOUND");
    door.ask("DELETE", &one, &[], "").await.is(204);
    for gone in [one.clone(), format!("{one}/deliveries")] {
        door.get(&gone).await.refuses(404, "NOT_FOUND");
    }
    door.ask("DELETE", &one, &[], "").await.refuses(404, "NOT_FOUND");
}

#[tokio::test]
async fn addresses_that_only_the_host_can_reach_are_refused() {
    let door = Door::open();
    let at = format!("{}/webhooks", door.workspace().await);
    let made = door.json("POST", &at, hook()).await.is(201);
    let one = format!("{at}/{}", made.json["webhook"]["webhook_id"].as_str().unwrap());
    for url in [
        "http://127.0.0.1:8686/",
        "http://localhost/",
        "http://169.254.169.254/latest",
        "http://[fd00::1]/",
        "http://10.0.0.1/",
    ] {
        let mut private = hook();
        private["url"] = json!(url);
        door.json("POST", &at, private).await.refuses(403, "FORBIDDEN");
        door.json("PATCH", &one, json!({ "url": url })).await.refuses(403, "FORBIDDEN");
    }
    assert_eq!(door.get(&one).await.is(200).json["url"], "https://receiver.example/hook?room=7");
}

#[tokio::test]
async fn webhooks_that_make_no_sense_are_refused_by_field() {
    let door = Door::open();
    let at = format!("{}/webhooks", door.workspace().await);
    for (field, value) in [
        ("name", json!("")),
        ("name", json!("two\nlines")),
        ("url", json!("ftp://receiver.example/")),
        ("url", json!("https://user:word@receiver.example/")),
        ("url", json!(format!("https://receiver.example/{}", "x".repeat(2_100)))),
        ("events", json!([])),
        ("events", json!(["webhook.test"])),
        ("events", json!(["event.lost"])),
        ("flow", json!("")),
    ] {
        let mut bad = hook();
        bad[field] = value;
        let refused = door.json("POST", &at, bad).await.refuses(400, "INVALID_ARGUMENT");
        assert_eq!(refused.json["error"]["details"]["field"], field);
    }
    let mut unknown = hook();
    unknown["events"] = json!(["turn.began"]);
    door.json("POST", &at, unknown).await.refuses(400, "INVALID_ARGUMENT");
    let mut of_none = hook();
    of_none["chat_id"] = json!(uuid::Uuid::now_v7());
    door.json("POST", &at, of_none).await.refuses(404, "NOT_FOUND");
    for _ in 0..20 {
        door.json("POST", &at, hook()).await.is(201);
    }
    door.json("POST", &at, hook()).await.refuses(409, "CONFLICT");
}
