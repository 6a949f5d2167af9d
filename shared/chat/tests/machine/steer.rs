//! Steering: words that reach the turn that runs, and no other one.

use crate::play::{Play, ask, ls};
use actor::{Input, StopRequest, StopTarget};
use domain::{ChatCommand, ChatEvent, CommandId, StopId, TurnId};
use serde_json::{Map, json};
use uuid::Uuid;

pub fn turn(play: &Play) -> TurnId {
    play.state.turn.as_ref().map_or(TurnId(Uuid::nil()), |turn| turn.id)
}

/// The request that words are on their way.
pub fn announced(play: &mut Play, turn: TurnId, command: Uuid) -> Vec<String> {
    let request = StopRequest {
        stop_id: StopId(command),
        target: StopTarget::This(turn.0),
        at: play.at(),
        reason: "steered".into(),
    };
    play.input(Input::Stop(request))
}

pub fn words(play: &mut Play, turn_id: TurnId, command: Uuid) -> Vec<String> {
    let (id, at, by) = (CommandId(command), play.at(), play.by.clone());
    let (content, context) = ("in blue".to_owned(), String::new());
    let command =
        ChatCommand::Steer { turn_id, content, files: vec![], context, may_approve: true, may_not_run: false };
    play.input(Input::Command { id, by, at, command })
}

#[test]
fn words_are_read_at_the_next_decision_of_the_turn() {
    let mut play = Play::new();
    play.say("paint it");
    play.answer("I look.", &[ls()]);
    let (turn, command) = (turn(&play), play.id());
    assert_eq!(announced(&mut play, turn, command), ["steer_requested"]);
    assert_eq!(announced(&mut play, turn, command), Vec::<String>::new(), "once");
    assert_eq!(play.tool("a"), ["observed true: a", "steer_awaited"], "the turn rests until the words are there");
    assert_eq!(words(&mut play, turn, command), ["steered", "user: in blue", "model_started 1"]);
    assert_eq!(play.asked.last().unwrap().last().unwrap(), "user: in blue");
    assert_eq!(announced(&mut play, turn, command), Vec::<String>::new(), "the words are there already");
    assert_eq!(play.answer("Blue.", &[]), ["assistant: Blue.", "used", "done EndTurn: Blue."]);
}

#[test]
fn a_turn_that_was_about_to_end_reads_them_first() {
    let mut play = Play::new();
    play.say("paint it");
    let (turn, command) = (turn(&play), play.id());
    announced(&mut play, turn, command);
    assert_eq!(play.answer("Done.", &[]), ["assistant: Done.", "used", "steer_awaited"]);
    assert_eq!(words(&mut play, turn, command), ["steered", "user: in blue", "model_started 1"]);
    assert_eq!(play.answer("Blue.", &[]), ["assistant: Blue.", "used", "done EndTurn: Blue."]);
    assert_eq!(play.state.turns, 1);
}

#[test]
fn words_for_a_turn_that_asks_wait_for_the_answer() {
    let mut play = Play::new();
    play.say("paint it");
    play.answer("", &[ask()]);
    let (turn, command) = (turn(&play), play.id());
    assert_eq!(announced(&mut play, turn, command), Vec::<String>::new(), "nothing runs: the words come by themselves");
    assert_eq!(words(&mut play, turn, command), ["steered"], "not between a call and its result");
    let answers = Map::from_iter([("colour".to_owned(), json!("red"))]);
    let answer = ChatCommand::Answer { question_id: play.question(), answers, may_approve: true, may_not_run: false };
    assert_eq!(play.command(answer), [r#"observed true: {"colour":"red"}"#, "user: in blue", "model_started 1"]);
}

#[test]
fn words_that_come_too_late_hit_no_other_turn() {
    let mut play = Play::new();
    play.say("paint it");
    let (first, command) = (turn(&play), play.id());
    play.answer("Done.", &[]);
    play.say("another");
    assert_eq!(announced(&mut play, first, command), Vec::<String>::new(), "it names another turn");
    assert_eq!(play.answer("Yes.", &[ls()]), ["assistant: Yes. -> ls", "used", "call ls 1"]);
    play.tool("a");
    play.answer("End.", &[]);
    assert_eq!(words(&mut play, first, command), ["turn_started 1", "user: in blue", "model_started 1"]);
    assert_eq!(play.count(|event| matches!(event, ChatEvent::Steered { .. })), 0);
}

#[test]
fn a_crash_and_a_stop_while_words_are_awaited() {
    let mut play = Play::new();
    play.say("paint it");
    let (turn, command) = (turn(&play), play.id());
    announced(&mut play, turn, command);
    play.answer("I look.", &[ls()]);
    play.tool("a");
    assert_eq!(play.crash(), Vec::<String>::new(), "it rests");
    assert_eq!(words(&mut play, turn, command), ["steered", "user: in blue", "model_started 1"]);
    let command = play.id();
    announced(&mut play, turn, command);
    play.answer("More.", &[]);
    assert!(play.stop().last().is_some_and(|word| word == "stopped user_cancelled: More."));
}
