//! The authors of messages.

use crate::{
    play::{Play, ls},
    steer::{announced, turn, words},
};
use actor::Machine;
use buildscale_chat::ChatMachine;
use domain::{ChatEvent, ChatId, ChatView, Message, Principal, TaskId, UserId};
use uuid::Uuid;

const ANN: UserId = UserId(Uuid::from_u128(21));
const BOB: UserId = UserId(Uuid::from_u128(22));

/// The words of the messages that began turns or steered them, with their authors.
fn said(play: &Play) -> Vec<(&str, Option<UserId>)> {
    let messages = play.log.iter().filter_map(|event| match event {
        ChatEvent::MessageAdded { message: Message::User { content, user_id, .. } } => {
            Some((content.as_str(), *user_id))
        }
        _ => None,
    });
    messages.collect()
}

#[test]
fn a_message_has_the_person_of_its_command_also_after_a_wait() {
    let mut play = Play::new();
    play.by = Principal::User { id: ANN };
    play.say("paint it");
    play.by = Principal::User { id: BOB };
    play.say("and the door");
    let view = ChatMachine::view(&play.state).and_then(|view| view.body).unwrap();
    let view: ChatView = serde_json::from_str(&view).unwrap();
    assert_eq!((view.user_id, view.queued[0].user_id), (Some(play.config.user), Some(BOB)));
    play.answer("Done.", &[]);
    assert_eq!(said(&play), [("paint it", Some(ANN)), ("and the door", Some(BOB))]);
}

#[test]
fn words_that_steer_have_the_person_who_wrote_them_also_when_they_come_too_late() {
    let mut play = Play::new();
    play.by = Principal::User { id: ANN };
    play.say("paint it");
    let (turn, command) = (turn(&play), play.id());
    announced(&mut play, turn, command);
    play.answer("I look.", &[ls()]);
    play.tool("a");
    play.by = Principal::User { id: BOB };
    words(&mut play, turn, command);
    play.answer("Blue.", &[]);
    let command = play.id();
    words(&mut play, turn, command);
    assert_eq!(said(&play), [("paint it", Some(ANN)), ("in blue", Some(BOB)), ("in blue", Some(BOB))]);
}

#[test]
fn a_message_of_a_program_has_no_author_also_where_it_works_for_a_person() {
    let (task, chat) = (TaskId(Uuid::from_u128(3)), ChatId(Uuid::from_u128(4)));
    for by in [
        Principal::System,
        Principal::Task { task, user: ANN },
        Principal::Agent { role: "builder".into(), chat, user: ANN },
    ] {
        let mut play = Play::new();
        play.by = by;
        play.say("paint it");
        assert_eq!(said(&play), [("paint it", None)]);
    }
}
