//! What a new user does, on AWS: a workspace, a goal, the stream, the file and its versions, a stop, a question.

use crate::world::{Deployment, World, token};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn a_goal_becomes_files_that_can_be_watched_stopped_and_found_again() {
    let world = World::deploy(Deployment::default()).await;
    let client = &world.client;
    let workspace = client.workspace().await;
    let api = format!("/api/v1/workspaces/{workspace}");

    let chat = client.chat(&workspace, "novel").await;
    let events = client.watch(&chat, 0, |event| event.name == "done").await;
    let done = events.last().unwrap();
    assert_eq!(
        (&done.data["stop_reason"], &done.data["message"]),
        (&json!("end_turn"), &json!("The file of novel is done."))
    );
    for name in ["turn_started", "message", "thought", "chunk", "call", "observation", "file_updated", "usage"] {
        assert!(events.iter().any(|event| event.name == name), "no {name}");
    }
    assert!(events.windows(2).all(|pair| pair[0].id < pair[1].id), "in order, each once");
    let replayed = client.watch(&chat, 0, |event| event.name == "done").await;
    let message = |events: &[crate::client::Event]| events.last().map(|event| event.data["message"].clone());
    assert_eq!(message(&replayed), message(&events));

    let file = client.get(&format!("{api}/files/by-path?path=/projects/novel/a.md")).await;
    let file = format!("{api}/files/{}", file["file_id"].as_str().unwrap());
    assert_eq!(client.get(&format!("{file}/content")).await, json!("second"));
    assert_eq!(client.get(&format!("{file}/versions")).await["versions"].as_array().map(Vec::len), Some(2));

    // The chat's file is made from its log by whoever reads it.
    let transcript =
        client.get(&format!("{api}/files/by-path?path=/chats/{}.md", chat.rsplit('/').next().unwrap())).await;
    let transcript = format!("{api}/files/{}/content", transcript["file_id"].as_str().unwrap());
    let text = client.get(&transcript).await;
    assert!(text.as_str().is_some_and(|text| text.contains("The file of novel is done.")), "{text}");

    // Stop while it writes; a second stop is harmless; the chat goes on.
    let after = events.last().unwrap().id;
    client.post(&chat, json!({ "content": "slow please" })).await;
    client.watch(&chat, after, |event| event.name == "chunk").await;
    for _ in 0..2 {
        assert_eq!(client.post(&format!("{chat}/stop"), Value::Null).await["status"], "cancelled");
    }
    let events = client.watch(&chat, after, |event| event.name == "stopped").await;
    let stopped = events.last().unwrap();
    assert_eq!(stopped.data["reason"], "user_cancelled");

    // Ask and answer, with nothing running in between.
    client.post(&chat, json!({ "content": "ask me" })).await;
    let events = client.watch(&chat, stopped.id, |event| event.name == "question").await;
    let question = events.last().unwrap();
    let answers = format!("{chat}/answers/{}", question.data["question_id"].as_str().unwrap());
    let (status, refused) = client.call(Method::POST, &answers, json!({ "answers": { "colour": "green" } })).await;
    assert_eq!((status, &refused["error"]["code"]), (StatusCode::BAD_REQUEST, &json!("INVALID_ARGUMENT")));
    client.post(&answers, json!({ "answers": { "colour": "blue" } })).await;
    let events = client.watch(&chat, question.id, |event| event.name == "done").await;
    assert_eq!(events.last().unwrap().data["message"], "You said blue.");
    let text = client.get(&transcript).await;
    assert!(text.as_str().is_some_and(|text| text.contains("You said blue.")), "{text}");

    // Nobody else sees any of it, here and where the streams are.
    let stranger = client.with_token(token("eve"));
    for path in [api, chat.clone(), file, format!("{chat}/events")] {
        let (status, body) = stranger.call(Method::GET, &path, Value::Null).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path} {body}");
    }
}
