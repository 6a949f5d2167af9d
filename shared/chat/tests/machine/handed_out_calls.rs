//! Calls that programs elsewhere run: the turn rests until one of them answers, or the time is up.

use crate::play::Play;
use actor::{Input, Machine};
use buildscale_chat::{ChatMachine, ModelAnswer, Report};
use domain::{
    CallId, ChatCommand, ChatEvent, ClientEffects, ClientFunction, Code, Mode, StopReason, ToolSpec, Usage,
    event::{HandedOut, PermissionOutcome},
};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

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
    ChatCommand::AnswerCall { call_id, output: output.into(), success, may_approve: true, may_not_run: false }
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

/// A turn of a chat whose client has a function with these effects, which the model calls; and what happens then.
fn calls(effects: ClientEffects, mode: Mode) -> (Play, Vec<String>) {
    let name = "client__touch".to_owned();
    let parameters = json!({ "type": "object" });
    let spec = Arc::new(ToolSpec { name: name.clone(), description: "Touches.".into(), parameters });
    let mut play = Play::with(|config| {
        config.functions = vec![ClientFunction { spec, effects }];
        config.mode = mode;
    });
    play.may_approve = true;
    play.say("go");
    let happened = play.answer("", &[(&name, json!({ "command": "make all" }))]);
    (play, happened)
}

#[test]
fn arguments_with_a_number_that_would_change_go_back_to_the_model() {
    let (mut play, _) = calls(ClientEffects::Own, Mode::Chat);
    let Some(ChatEvent::HandedOut(HandedOut { call_id, .. })) = play.log.last().cloned() else {
        panic!("not handed out: {:?}", play.log.last())
    };
    play.command(answer(call_id, "touched", true));
    for tool in ["client__touch", "ls", "mcp__bank__pay"] {
        let answer = ModelAnswer {
            message_id: play.message_id(),
            text: String::new(),
            unreported: String::new(),
            reasoning: String::new(),
            calls: vec![(tool.into(), r#"{"account": 12345678901234567890123}"#.into())],
            reason: StopReason::EndTurn,
            usage: Usage::default(),
            provider: Value::Null,
            model: None,
        };
        play.running.clear();
        let happened = play.input(Input::Report(Report::ModelFinished(Box::new(answer)))).join("\n");
        let is_told =
            happened.contains("12345678901234567890123 cannot be kept exactly") && happened.contains("quotes");
        assert!(is_told && happened.ends_with("model_started 1"), "{tool}: {happened}");
    }
}

#[test]
fn a_client_is_handed_what_a_person_permits() {
    for effects in [ClientEffects::Own, ClientEffects::Read] {
        for mode in [Mode::Chat, Mode::Plan] {
            assert_eq!(calls(effects, mode).1.last().map(String::as_str), Some("handed_out"), "{effects:?}");
        }
    }
    for (effects, category, has_rule) in [
        (ClientEffects::Write, "file", true),
        (ClientEffects::Execute, "command", false),
        (ClientEffects::Mcp, "mcp", true),
    ] {
        let refused = calls(effects, Mode::Plan).1.join(" ");
        assert!(refused.contains("in plan mode"), "{refused}");
        let decided = |outcome| {
            let (mut play, happened) = calls(effects, Mode::Chat);
            assert_eq!(happened.last().map(String::as_str), Some("permission_required"));
            let Some(ChatEvent::PermissionRequired { category: asked, always, .. }) = play.log.last() else {
                panic!("not asked: {:?}", play.log.last())
            };
            assert_eq!((asked.as_str(), always.is_some()), (category, has_rule));
            let (permission_id, always, reason, option_id) =
                (play.permission(), has_rule && outcome == PermissionOutcome::Approved, None, None);
            let happened = play.command(ChatCommand::Decide { permission_id, outcome, always, reason, option_id });
            (play, happened.join(" "))
        };
        assert!(decided(PermissionOutcome::Declined).1.contains("a person declined"));
        let (mut play, happened) = decided(PermissionOutcome::Approved);
        assert!(happened.ends_with("handed_out"), "{happened}");
        let handed = play.log.iter().rev().find_map(|event| match event {
            ChatEvent::HandedOut(HandedOut { call_id, repeatable, .. }) => Some((*call_id, *repeatable)),
            _ => None,
        });
        let (call, is_repeatable) = handed.unwrap();
        assert_eq!(is_repeatable, effects == ClientEffects::Write, "what is no write runs once");
        assert_eq!(play.command(answer(call, "touched", true))[0], "observed true: touched");
        let again = play.answer("", &[("client__touch", json!({}))]);
        let next = if has_rule { "handed_out" } else { "permission_required" };
        assert_eq!(again.last().map(String::as_str), Some(next), "a rule covers all but commands");
    }
}
