//! The readers of a chat see which person wrote a message.

use super::world::{World, token, user_id, uuid};
use axum::body::Body;
use domain::{ChatEvent, Message, MessageId, Timestamp, UserId};
use futures::StreamExt;
use http::{Request, header};
use identity::Role;
use serde_json::Value;

fn said(content: &str, user_id: Option<UserId>) -> ChatEvent {
    let (id, at, content) = (MessageId(uuid()), Timestamp::default(), content.to_owned());
    ChatEvent::MessageAdded {
        message: Message::User { id, at, content, files: Vec::new(), context: String::new(), user_id },
    }
}

/// The words of messages with their authors.
fn authors<'a>(messages: impl Iterator<Item = &'a Value>) -> Vec<(String, Option<String>)> {
    let of = |message: &Value| {
        let author = message.get("user_id").map(|id| id.as_str().unwrap().to_owned());
        (message["content"].as_str().unwrap().to_owned(), author)
    };
    messages.map(of).collect()
}

#[tokio::test]
async fn a_viewer_sees_in_history_and_stream_which_of_two_people_wrote_a_message() {
    let world = World::open();
    let ann = world.tenant("ann").await;
    let editor = user_id(&world.person_as(&ann, Role::Editor).await);
    let viewer = token(&world.person_as(&ann, Role::Viewer).await);
    let chat = ann.fill(&format!("{}/chats/{{chat_id}}", ann.workspace), None);
    let owner = user_id("ann");
    let end = ChatEvent::Paused { reason: "the end".into(), at: Timestamp::default() };
    let events = vec![
        said("by the owner", Some(owner.parse().unwrap())),
        said("by the editor", Some(editor.parse().unwrap())),
        said("by a program", None),
        end,
    ];
    // The tenant's chat has two events.
    world.door.put_events_from(3, &chat, events).await;
    let written = [("by the owner", Some(owner)), ("by the editor", Some(editor)), ("by a program", None)];
    let written = written.map(|(words, by)| (words.to_owned(), by));

    let history = world.call(Some(&viewer), "GET", &chat, "").await.is(200);
    assert_eq!(authors(history.json["messages"].as_array().unwrap().iter()), written);

    let request = Request::get(format!("{chat}/events?after=2"));
    let request = request.header(header::HOST, "buildscale.test");
    let request = request.header(header::AUTHORIZATION, format!("Bearer {viewer}"));
    let response = world.door.send(request.body(Body::empty()).unwrap()).await;
    let (mut body, mut text) = (response.into_body().into_data_stream(), String::new());
    while !text.contains("the end") {
        text.push_str(&String::from_utf8_lossy(&body.next().await.unwrap().unwrap()));
    }
    world.door.shutdown.cancel();
    let data = text.lines().filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok());
    let messages: Vec<_> = data.filter(|data| data["role"] == "user").collect();
    assert_eq!(authors(messages.iter()), written);
}
