//! The fields of messages to the planner chat: what a session makes of them.

use crate::hub::Hub;
use buildscale_chat::{NewSessionMessage, SessionChange, Sessions, actor_id};
use domain::{ChatEvent, ChatId, ChatStatus, Code, CommandId, Message, Principal, SessionContext};
use ports::Clock;
use std::time::Duration;

fn message(text: &str) -> NewSessionMessage {
    NewSessionMessage { message: text.into(), ..NewSessionMessage::default() }
}

async fn events(hub: &Hub, chat: ChatId) -> Vec<ChatEvent> {
    let page = actor::read_after::<ChatEvent>(&*hub.log, &actor_id(hub.workspace, chat), 0, 100).await.unwrap();
    page.entries.into_iter().flat_map(|entry| entry.events).collect()
}

#[tokio::test]
async fn a_new_session_reads_the_newest_words_that_a_client_brings_along() {
    let hub = Hub::new().await;
    let chat = ChatId(hub.clock.id());
    let earlier = (0..2_000).map(|number| format!("person: word{number}.\n")).collect();
    let new = NewSessionMessage { earlier, ..message("And now?") };
    let sessions = Sessions::new(hub.chats.clone());
    sessions.create(hub.workspace, chat, CommandId(hub.clock.id()), new, &Principal::local()).await.unwrap();
    hub.settle().await;
    let read = events(&hub, chat).await.into_iter().find_map(|event| match event {
        ChatEvent::MessageAdded { message: Message::User { context, .. } } => Some(context),
        _ => None,
    });
    let read = read.unwrap();
    assert!(read.ends_with("person: word1999.\n") && !read.contains("word0."), "{read}");
    assert!(read.starts_with("The conversation before, as the client has it:\n(cut: the last "), "{read}");
    assert!(read.len() <= 10_200, "{} bytes of 2,500 tokens", read.len());
}

#[tokio::test(start_paused = true)]
async fn a_session_is_queued_until_a_worker_has_its_message() {
    let (hub, by) = (Hub::new().await, Principal::local());
    let (sessions, chat) = (Sessions::new(hub.chats.clone()), ChatId(hub.clock.id()));
    sessions.create(hub.workspace, chat, CommandId(hub.clock.id()), message("Hello!"), &by).await.unwrap();
    hub.settle().await;
    let status = async || sessions.look(hub.workspace, chat).await.unwrap().status;
    assert_eq!(status().await, ChatStatus::Idle);
    let command = CommandId(hub.clock.id());
    let posted = sessions.post(hub.workspace, chat, command, message("And now?"), &by).await.unwrap();
    assert_eq!((posted.status, status().await), (ChatStatus::Queued, ChatStatus::Queued));
    hub.settle().await;
    assert_eq!(status().await, ChatStatus::Idle);
    let beside = hub.table.partition(actor_id(hub.workspace, chat).as_str());
    assert!(!beside.iter().any(|item| item.key.sk.starts_with("waiting/")), "the note is gone");

    // A repetition is noted again, and was taken in before.
    sessions.post(hub.workspace, chat, command, message("And now?"), &by).await.unwrap();
    assert_eq!(status().await, ChatStatus::Idle);

    // The note of a sender that died before it sent the message counts for a while.
    sessions.post(hub.workspace, chat, CommandId(hub.clock.id()), message("And then?"), &by).await.unwrap();
    tokio::time::advance(Duration::from_secs(601)).await;
    assert_eq!(status().await, ChatStatus::Idle);
}

#[tokio::test]
async fn a_session_knows_the_day_where_its_person_is() {
    let (hub, by) = (Hub::new().await, Principal::local());
    hub.put(&format!("/users/{}/profile.md", by.user()), "---\ntime_zone: Pacific/Honolulu\n---\nI am Ann.").await;
    let (sessions, chat) = (Sessions::new(hub.chats.clone()), ChatId(hub.clock.id()));
    let new = message("Which tasks are due tomorrow?");
    sessions.create(hub.workspace, chat, CommandId(hub.clock.id()), new, &by).await.unwrap();
    hub.settle().await;
    let system = events(&hub, chat).await.into_iter().find_map(|event| match event {
        ChatEvent::Created { config } => Some(config.system),
        _ => None,
    });
    let system = system.unwrap();
    // It is 2026 in Greenwich.
    assert!(system.contains("\n\nToday is Wednesday, 2025-12-31 (Pacific/Honolulu).\n\n# Location\n"), "{system}");
}

#[tokio::test]
async fn a_session_may_be_about_a_file_whose_path_is_as_long_as_paths_are() {
    let hub = Hub::new().await;
    let path = format!("/projects/atlas/{}/tasks/draw.md", vec!["部".repeat(80); 4].join("/"));
    hub.put(&path, "---\ntitle: Draw\nstatus: backlog\n---\nWith ink.").await;
    let sessions = Sessions::new(hub.chats.clone());
    let about = async |entity: String| {
        let (context, entity) = (Some(SessionContext::Task), Some(entity));
        let change = SessionChange { context, entity, ..SessionChange::default() };
        let new = NewSessionMessage { change, ..message("Hello!") };
        let ids = (ChatId(hub.clock.id()), CommandId(hub.clock.id()));
        sessions.create(hub.workspace, ids.0, ids.1, new, &Principal::local()).await
    };
    let view = about(path.clone()).await.unwrap();
    assert_eq!(view.session.and_then(|session| session.entity), Some(path));
    let refused = about("x".repeat(4_097)).await.unwrap_err();
    assert_eq!((refused.code, &refused.details["field"]), (Code::InvalidArgument, &"entity_id".into()));
}
