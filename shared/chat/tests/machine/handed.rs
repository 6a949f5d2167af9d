//! Calls that programs elsewhere run: the turn rests until one of them answers, or the time is up.

use crate::play::Play;
use actor::Machine;
use buildscale_chat::ChatMachine;
use domain::{CallId, ChatCommand, ChatEvent, Code, event::HandedOut};
use std::time::Duration;

/// A turn whose call was handed out.
fn waiting(is_repeatable: bool) -> (Play, CallId) {
    let mut play = Play::new();
    play.say("go");
    play.answer("", &[crate::play::ls()]);
    let happened =
        play.tool_ends(ports::HandedOut { timeout: Duration::from_secs(60), is_repeatable }.error("code__ring").into());
    assert_eq!(happened, ["handed_out"]);
    let call = play.log.iter().rev().find_map(|event| match event {
        ChatEvent::HandedOut(HandedOut { call_id, .. }) => Some(*call_id),
        _ => None,
    });
    (play, call.unwrap())
}

fn answer(call_id: CallId, output: &str, success: bool) -> ChatCommand {
    ChatCommand::AnswerCall { call_id, output: output.into(), success, may_approve: true }
}

#[test]
fn a_turn_rests_until_a_program_answers_and_survives_its_worker() {
    let (mut play, call) = waiting(false);
    assert!(!ChatMachine::in_flight(&play.state) && play.crash().is_empty());
    let view = ChatMachine::view(&play.state).unwrap().body.unwrap();
    assert!(view.contains("call_handed_out") && view.contains("suspended"), "{view}");
    assert!(play.command(answer(CallId(uuid::Uuid::nil()), "x", true)).is_empty(), "of another call");
    assert_eq!(play.command(answer(call, "rung", true)), ["observed true: rung", "model_started 1"]);
    assert!(play.command(answer(call, "rung", true)).is_empty(), "again");
}

#[test]
fn a_program_may_fail_and_may_be_late() {
    let (mut play, call) = waiting(false);
    assert_eq!(play.command(answer(call, "no bell", false))[0], "observed false: no bell");
    for (is_repeatable, code) in [(true, Code::Timeout), (false, Code::OutcomeUnknown)] {
        let (mut play, call) = waiting(is_repeatable);
        let happened = play.message();
        assert!(happened[0].contains("no program answered in time"), "{happened:?}");
        let codes = play.log.iter().filter_map(|event| match event {
            ChatEvent::Observed { code, .. } => *code,
            _ => None,
        });
        assert_eq!(codes.collect::<Vec<_>>(), [code]);
        assert!(play.command(answer(call, "rung", true)).is_empty(), "too late");
    }
}

#[test]
fn a_stop_ends_the_wait() {
    let (mut play, call) = waiting(false);
    let happened = play.stop();
    assert!(happened[0].contains("given up"), "{happened:?}");
    assert!(play.command(answer(call, "rung", true)).is_empty());
}
