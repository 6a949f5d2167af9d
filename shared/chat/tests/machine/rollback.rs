//! Rollbacks: the turn that runs is stopped and taken back, and the chat goes on as if it had not been.

use crate::play::{Play, ls};
use actor::{Input, StopRequest, StopTarget};
use buildscale_chat::{ChatEffect, FileRewindResult, Report};
use domain::{ChatCommand, ChatEvent, Code, CommandId, Error, StopId, TurnId, event::RollbackFact};
use uuid::Uuid;

pub fn turn(play: &Play) -> TurnId {
    play.state.turn.as_ref().map_or(TurnId(Uuid::nil()), |turn| turn.id)
}

/// The request to stop the turn, and then the message that takes it back, as they are sent.
pub fn roll_back(play: &mut Play, meant: TurnId, words: &str) -> Vec<String> {
    let id = play.id();
    let (stop_id, target) = (StopId(id), StopTarget::This(meant.0));
    let request = StopRequest { stop_id, target, at: play.at(), reason: "rolled_back".into() };
    let mut happened = play.input(Input::Stop(request));
    happened.extend(message(play, id, meant, words));
    happened
}

fn message(play: &mut Play, id: Uuid, meant: TurnId, words: &str) -> Vec<String> {
    let mut start = play.words(words, true);
    if let ChatCommand::StartTurn(request) = &mut start {
        request.rolls_back = Some(meant);
    }
    let (at, by) = (play.at(), play.by.clone());
    play.input(Input::Command { id: CommandId(id), by, at, command: start })
}

/// The files of the turn have gone back.
pub fn taken(play: &mut Play, taken: Result<FileRewindResult, Error>) -> Vec<String> {
    let turn = play.running.values().find_map(|effect| match effect {
        ChatEffect::TakeBack(take_back) => Some(take_back.turn),
        _ => None,
    });
    play.running.clear();
    let turn = turn.unwrap_or(TurnId(Uuid::nil()));
    play.input(Input::Report(Report::TakenBack { turn, taken: Box::new(taken) }))
}

pub fn done() -> Result<FileRewindResult, Error> {
    Ok(FileRewindResult { rewind_id: Uuid::from_u128(9), changes: 2, kept: Vec::new() })
}

/// A chat with one turn that has ended, and one that has called a tool and runs.
fn running() -> Play {
    let mut play = Play::new();
    play.say("first");
    play.answer("One.", &[]);
    play.say("second");
    play.answer("I write.", &[ls()]);
    play.tool("a");
    play
}

#[test]
fn a_turn_is_stopped_and_none_of_it_is_read_any_more() {
    let mut play = running();
    let second = turn(&play);
    let happened = roll_back(&mut play, second, "rather so");
    assert_eq!(happened[happened.len() - 3..], ["turn_started 1", "user: rather so", "rollback began"]);
    assert!(happened.iter().any(|word| word.starts_with("stopped rolled_back")), "{happened:?}");
    let Some(ChatEffect::TakeBack(take_back)) = play.running.values().next() else { panic!("{:?}", play.running) };
    assert_eq!((take_back.turn, take_back.calls.len()), (second, 1));
    assert_eq!(taken(&mut play, done()), ["rollback ended", "model_started 1"]);
    assert_eq!(play.asked.last().unwrap()[..], ["user: first", "assistant: One.", "user: rather so"]);
    play.answer("So.", &[]);
    assert_eq!(play.state.turns, 3, "its usage stays");
}

#[test]
fn a_turn_without_calls_is_taken_back_at_once() {
    let mut play = Play::new();
    play.say("first");
    let first = turn(&play);
    let happened = roll_back(&mut play, first, "rather so");
    assert_eq!(happened[happened.len() - 2..], ["rollback ended", "model_started 1"]);
    assert_eq!(play.asked.last().unwrap()[..], ["user: rather so"]);
}

#[test]
fn a_turn_that_asks_a_person_is_taken_back_too() {
    let mut play = Play::new();
    play.say("first");
    play.answer("", &[crate::play::ask()]);
    let (first, id) = (turn(&play), play.id());
    // Nothing runs, so the message itself ends the turn.
    let happened = message(&mut play, id, first, "rather so");
    assert!(happened.iter().any(|word| word == "rollback began"), "{happened:?}");
    taken(&mut play, done());
    assert_eq!(play.asked.last().unwrap()[..], ["user: rather so"]);
}

#[test]
fn a_turn_that_had_ended_stays_and_the_message_says_so() {
    let mut play = running();
    let second = turn(&play);
    play.answer("Two.", &[]);
    let happened = roll_back(&mut play, second, "rather so");
    assert_eq!(happened, ["turn_started 1", "user: rather so", "rollback ended", "model_started 1"]);
    let told = play.log.iter().find_map(|event| match event {
        ChatEvent::Rollback { fact } => match &**fact {
            RollbackFact::Ended { error, .. } => error.clone(),
            RollbackFact::Began { .. } => None,
        },
        _ => None,
    });
    assert_eq!(told.unwrap().code, Code::Conflict);
    assert!(play.asked.last().unwrap().contains(&"assistant: Two.".to_owned()));
}

#[test]
fn a_crash_repeats_the_rewind_and_a_stop_waits_for_it() {
    let mut play = running();
    let second = turn(&play);
    roll_back(&mut play, second, "rather so");
    assert_eq!(play.crash(), ["turn_started 2", "rollback began"]);
    assert_eq!(play.stop(), ["stop_requested"]);
    let happened = taken(&mut play, done());
    assert_eq!(happened.first().map(String::as_str), Some("rollback ended"));
    assert!(happened.last().unwrap().starts_with("stopped user_cancelled"), "{happened:?}");
    play.say("third");
    let last = play.asked.last().unwrap();
    assert!(!last.contains(&"user: second".to_owned()) && last.contains(&"user: rather so".to_owned()), "{last:?}");
}

#[test]
fn files_that_cannot_go_back_end_the_turn_with_the_reason() {
    let mut play = running();
    let second = turn(&play);
    roll_back(&mut play, second, "rather so");
    let happened = taken(&mut play, Err(Error::new(Code::UpstreamUnavailable, "no store")));
    assert_eq!(happened.first().map(String::as_str), Some("rollback ended"));
    assert!(happened.last().unwrap().starts_with("done Error"), "{happened:?}");
}

#[test]
fn a_message_that_comes_between_the_stop_and_the_rollback_takes_nothing_back() {
    let mut play = running();
    let second = turn(&play);
    let id = play.id();
    let (stop_id, target) = (StopId(id), StopTarget::This(second.0));
    let request = StopRequest { stop_id, target, at: play.at(), reason: "rolled_back".into() };
    play.input(Input::Stop(request));
    let happened = play.say("and then?");
    assert!(happened.iter().all(|word| !word.starts_with("rollback")), "{happened:?}");
    assert!(play.asked.last().unwrap().contains(&"user: second".to_owned()));
}
