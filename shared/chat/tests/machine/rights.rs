//! The right to run flows: no file that an agent writes starts one in a turn that a person without that right has begun, or continued. The home of a person:
//! the agent has it in no turn that another person has begun, or continued.

use crate::play::{Play, ask, ls};
use buildscale_chat::ChatEffect;
use domain::{ChatCommand, ChatEvent, Principal, UserId};
use serde_json::{Map, json};
use uuid::Uuid;

/// Whether the files of the call that runs may start flows.
fn may_run(play: &Play) -> Option<bool> {
    play.running.values().find_map(|effect| match effect {
        ChatEffect::CallTool { may_run, .. } => Some(*may_run),
        _ => None,
    })
}

fn answers(play: &mut Play, may_not_run: bool) {
    let answers = Map::from_iter([("colour".to_owned(), json!("red"))]);
    let question_id = play.question();
    play.command(ChatCommand::Answer { question_id, answers, may_approve: true, may_not_run });
}

#[test]
fn a_turn_has_the_right_of_its_sender_to_start_flows_also_after_it_has_waited() {
    let mut play = Play::new();
    play.say("ask me");
    play.answer("", &[ask()]);
    play.may_not_run = true;
    assert_eq!(play.say("and on"), ["turn_queued"]);
    play.may_not_run = false;
    answers(&mut play, false);
    play.answer("", &[ls()]);
    assert_eq!(may_run(&play), Some(true), "the message behind it is another turn's");
    play.tool("x");
    play.answer("done", &[]);
    play.answer("", &[ls()]);
    assert_eq!(may_run(&play), Some(false));
    play.crash();
    assert_eq!(may_run(&play), Some(false), "in each attempt");
    play.tool("x");
    play.answer("done", &[]);
    play.say("again");
    play.answer("", &[ls()]);
    assert_eq!(may_run(&play), Some(true), "the next turn has its own sender");
}

#[test]
fn a_turn_that_a_person_without_the_right_to_run_flows_leads_on_starts_none_from_there() {
    let mut play = Play::new();
    play.say("ask me");
    play.answer("", &[ls(), ask()]);
    assert_eq!(may_run(&play), Some(true));
    play.tool("x");
    answers(&mut play, true);
    play.answer("", &[ls()]);
    assert_eq!(may_run(&play), Some(false));
    play.tool("x");
    play.answer("", &[ask()]);
    answers(&mut play, true);
    assert_eq!(play.count(|event| matches!(event, ChatEvent::RunWithheld)), 1, "once is enough");
    answers(&mut play, false);
    play.answer("", &[ls()]);
    assert_eq!(may_run(&play), Some(false), "nobody gives it back");
}

/// Whether the call that runs has the home of the person of the chat.
fn has_home(play: &Play) -> Option<bool> {
    play.running.values().find_map(|effect| match effect {
        ChatEffect::CallTool { has_home, .. } => Some(*has_home),
        _ => None,
    })
}

#[test]
fn a_turn_that_another_person_begins_or_leads_on_has_no_home_from_there() {
    let mut play = Play::new();
    play.say("ask me");
    play.answer("", &[ls(), ask()]);
    assert_eq!(has_home(&play), Some(true));
    play.tool("x");
    play.by = Principal::User { id: UserId(Uuid::from_u128(22)) };
    answers(&mut play, false);
    play.answer("", &[ls()]);
    assert_eq!(has_home(&play), Some(false), "the answer has words of another person");
    play.crash();
    assert_eq!(has_home(&play), Some(false), "in each attempt");
    play.tool("x");
    play.answer("done", &[]);
    play.say("again");
    play.answer("", &[ls()]);
    assert_eq!(has_home(&play), Some(false), "and so has the message");
    play.tool("x");
    play.answer("done", &[]);
    play.by = Principal::local();
    play.say("mine");
    play.answer("", &[ls()]);
    assert_eq!(has_home(&play), Some(true), "the next turn has its own sender");
    assert_eq!(play.count(|event| matches!(event, ChatEvent::HomeWithheld)), 2);
}
