//! Forks of chats: they begin with the history of another chat, and each goes its own way.

use crate::hub::Hub;
use buildscale_chat::{ForkPoint, HistoryRange, NewChat, NewMessage};
use domain::{ChatId, ChatStatus, ChatView, Code, CommandId, Message, Mode, Principal, TurnId, UserId};
use ports::Clock;
use uuid::Uuid;

/// A chat of three turns, and the last words of its history.
async fn chat(hub: &Hub) -> (ChatId, Vec<TurnId>) {
    let (by, chat) = (Principal::local(), ChatId(hub.clock.id()));
    hub.put("/projects/app/in.md", "input").await;
    let first = CommandId(hub.clock.id());
    let new = NewChat { goal: "look at it".into(), ..NewChat::default() };
    hub.chats.create(hub.workspace, chat, first, new, &by).await.unwrap();
    hub.drive().await;
    let mut turns = vec![TurnId(first.0)];
    for word in ["second", "third"] {
        turns.push(post(hub, chat, word).await);
    }
    (chat, turns)
}

async fn post(hub: &Hub, chat: ChatId, word: &str) -> TurnId {
    let command = CommandId(hub.clock.id());
    let new = NewMessage { content: word.into(), ..NewMessage::default() };
    hub.chats.post(hub.workspace, chat, command, new, &Principal::local()).await.unwrap();
    hub.drive().await;
    TurnId(command.0)
}

async fn fork(hub: &Hub, chat: ChatId, point: ForkPoint) -> Result<ChatView, domain::Error> {
    let ids = (ChatId(hub.clock.id()), CommandId(hub.clock.id()));
    hub.chats.fork(hub.workspace, chat, point, ids, None, &Principal::local()).await
}

async fn said(hub: &Hub, chat: ChatId) -> Vec<(u64, Message)> {
    let page = hub.chats.history(hub.workspace, chat, 0, 1000).await.unwrap();
    page.messages.into_iter().map(|one| (one.seq, one.message)).collect()
}

fn words(said: &[(u64, Message)]) -> Vec<Message> {
    said.iter().map(|(_, message)| message.clone()).collect()
}

#[tokio::test]
async fn a_fork_keeps_the_authors_and_an_edit_of_a_message_is_by_the_person_who_edits() {
    let hub = Hub::new().await;
    let (source, turns) = chat(&hub).await;
    let made = fork(&hub, source, ForkPoint::Before(turns[2])).await.unwrap();
    let bob = Principal::User { id: UserId(Uuid::from_u128(22)) };
    let new = NewMessage { content: "another third".into(), ..NewMessage::default() };
    hub.chats.post(hub.workspace, made.chat_id, CommandId(hub.clock.id()), new, &bob).await.unwrap();
    hub.drive().await;
    let authors = said(&hub, made.chat_id).await.into_iter().filter_map(|(_, message)| match message {
        Message::User { content, user_id, .. } => Some((content, user_id)),
        _ => None,
    });
    let ann = Principal::local();
    let written = [("look at it", ann.person()), ("second", ann.person()), ("another third", bob.person())];
    assert_eq!(authors.collect::<Vec<_>>(), written.map(|(words, by)| (words.to_owned(), by)));
}

#[tokio::test]
async fn a_fork_has_the_turns_up_to_its_point_and_both_go_their_own_way() {
    let hub = Hub::new().await;
    let (source, turns) = chat(&hub).await;
    let all = said(&hub, source).await;
    let second =
        all.iter().position(|(_, message)| matches!(message, Message::User { content, .. } if content == "second"));
    let (second, third) = (second.unwrap(), all.len() - 2);
    let seq = all[second].0;
    for (point, has) in [
        (ForkPoint::Now, all.len()),
        (ForkPoint::Turn(turns[2]), all.len()),
        (ForkPoint::Turn(turns[1]), third),
        (ForkPoint::Before(turns[2]), third),
        (ForkPoint::Before(turns[1]), second),
        (ForkPoint::Seq(seq), second),
        (ForkPoint::Before(turns[0]), 0),
        (ForkPoint::Seq(1), 0),
    ] {
        let made = fork(&hub, source, point).await.unwrap();
        assert_eq!(words(&said(&hub, made.chat_id).await), words(&all[..has]), "{point:?}");
        assert_eq!(made.status, ChatStatus::Idle);
        assert_eq!(made.forked_from.map(|from| from.chat_id), Some(source));
        assert_eq!(hub.chats.get(hub.workspace, made.chat_id).await.unwrap(), made);
    }
    let made = fork(&hub, source, ForkPoint::Before(turns[2])).await.unwrap();
    let listed = hub.chats.list(hub.workspace, 1, None).await.unwrap().chats;
    assert_eq!(listed[0].chat_id, made.chat_id, "a fork is the chat that was active last");
    post(&hub, made.chat_id, "another third").await;
    assert_eq!(words(&said(&hub, source).await), words(&all), "the source is as it was");
    let own = said(&hub, made.chat_id).await;
    assert_eq!(own.len(), all.len());
    assert!(matches!(&own[third].1, Message::User { content, .. } if content == "another third"));
    let view = hub.chats.get(hub.workspace, made.chat_id).await.unwrap();
    assert_eq!((view.turns, view.forked_from), (3, made.forked_from));
    // Its file has what its log has.
    let files = hub.workspaces.open(hub.workspace, workspace::Access::platform("a test")).await.unwrap();
    let text = files.read(&format!("/chats/{}.md", made.chat_id).parse().unwrap(), None).await.unwrap().bytes;
    let text = String::from_utf8(text.to_vec()).unwrap();
    let at = |word: &str| text.find(word).unwrap_or_else(|| panic!("{word} is not in {text}"));
    assert!(at("look at it") < at("### call read") && at("### call read") < at("second"));
    assert!(at("second") < at("another third") && !text.contains("\nthird"));
}

#[tokio::test]
async fn a_fork_is_made_once_and_is_of_its_maker_alone() {
    let hub = Hub::new().await;
    let (source, _) = chat(&hub).await;
    let by = Principal::User { id: UserId(Uuid::from_u128(5)) };
    let ids = (ChatId(hub.clock.id()), CommandId(hub.clock.id()));
    let again = async || hub.chats.fork(hub.workspace, source, ForkPoint::Now, ids, Some("Other".into()), &by).await;
    let made = again().await.unwrap();
    assert_eq!((made.title.as_str(), made.mode), ("Other", Mode::Chat));
    assert_eq!(made.usage, domain::Usage::default(), "the costs are the source's");
    post(&hub, ids.0, "on").await;
    let view = again().await.unwrap();
    assert_eq!(view.turns, made.turns + 1, "it was not made anew");
    assert_eq!(hub.runtime.warm_actors(), 2);
    hub.chats.delete(hub.workspace, source, &by).await.unwrap();
    hub.settle().await;
    assert_eq!(hub.runtime.warm_actors(), 1, "a deleted chat is not kept in memory");
    post(&hub, ids.0, "without the source").await;
    assert_eq!(hub.chats.get(hub.workspace, ids.0).await.unwrap().turns, made.turns + 2);
}

#[tokio::test]
async fn points_that_are_not_there_and_turns_that_run_are_refused() {
    let hub = Hub::new().await;
    let (source, _) = chat(&hub).await;
    let code = async |point| fork(&hub, source, point).await.map(|_| ()).map_err(|error| error.code);
    assert_eq!(code(ForkPoint::Turn(TurnId(Uuid::from_u128(1)))).await, Err(Code::NotFound));
    assert_eq!(code(ForkPoint::Before(TurnId(Uuid::from_u128(1)))).await, Err(Code::NotFound));
    assert_eq!(code(ForkPoint::Seq(100_000)).await, Err(Code::NotFound));
    let last = said(&hub, source).await.last().map(|(seq, _)| *seq).unwrap_or_default();
    for seq in [u64::MAX, 100_000] {
        let refused = hub.chats.calls_in(hub.workspace, source, HistoryRange::After(seq)).await.unwrap_err();
        assert_eq!(refused.code, Code::NotFound, "{refused:?}");
        let end = refused.details["last_seq"].as_u64().unwrap_or_default();
        assert!(end >= last, "{refused:?}");
        // The last event itself is a point, after which nothing was done.
        let after = hub.chats.calls_in(hub.workspace, source, HistoryRange::After(end)).await.unwrap();
        assert!(after.calls.is_empty(), "{after:?}");
        let one_more = hub.chats.calls_in(hub.workspace, source, HistoryRange::After(end + 1)).await;
        assert_eq!(one_more.unwrap_err().code, Code::NotFound);
    }
    let nobody = fork(&hub, ChatId(Uuid::from_u128(1)), ForkPoint::Now).await;
    assert_eq!(nobody.unwrap_err().code, Code::NotFound);
    // A chat that was accepted and has not begun.
    let (young, command) = (ChatId(hub.clock.id()), CommandId(hub.clock.id()));
    let new = NewChat { goal: "later".into(), ..NewChat::default() };
    hub.chats.create(hub.workspace, young, command, new, &Principal::local()).await.unwrap();
    assert_eq!(fork(&hub, young, ForkPoint::Now).await.unwrap_err().code, Code::Conflict);
}
