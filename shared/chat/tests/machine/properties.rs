//! Properties that hold for all inputs, in all orders.

use crate::{
    play::{Play, ask, ls},
    rollback,
};
use actor::{Input, Machine, StopTarget};
use buildscale_chat::{ChatEffect, ChatMachine, ChatState, Report};
use domain::{CallId, ChatCommand, ChatEvent, Message, StopId, TurnId, event::PermissionOutcome};
use proptest::prelude::*;
use serde_json::{Map, json};
use std::collections::{BTreeMap, BTreeSet};

/// The moves that may come next, in any state.
#[derive(Clone, Debug)]
enum Move {
    Say {
        interrupt: bool,
    },
    Stream,
    Answer {
        calls: Vec<u8>,
    },
    Fail,
    Postpone {
        ms: u16,
    },
    Tool,
    Stop,
    Crash,
    Reply,
    Decide {
        yes: bool,
        always: bool,
    },
    Forget,
    Expire,
    /// The turn that runs is taken back.
    RollBack,
    TakenBack {
        fails: bool,
    },
    /// Running work fails too often; then a person gives it up, or goes on without it.
    Park {
        delete: bool,
    },
    Delete {
        overtaking: bool,
    },
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        8 => usual(),
        1 => prop_oneof![
            any::<bool>().prop_map(|delete| Move::Park { delete }),
            any::<bool>().prop_map(|overtaking| Move::Delete { overtaking }),
        ],
    ];
    proptest::collection::vec(one, 0..60)
}

fn usual() -> impl Strategy<Value = Move> {
    prop_oneof![
        any::<bool>().prop_map(|interrupt| Move::Say { interrupt }),
        Just(Move::Stream),
        proptest::collection::vec(0..4_u8, 0..4).prop_map(|calls| Move::Answer { calls }),
        Just(Move::Fail),
        any::<u16>().prop_map(|ms| Move::Postpone { ms }),
        Just(Move::Tool),
        Just(Move::Tool),
        Just(Move::Stop),
        Just(Move::Crash),
        Just(Move::Reply),
        any::<(bool, bool)>().prop_map(|(yes, always)| Move::Decide { yes, always }),
        Just(Move::Forget),
        Just(Move::Expire),
        Just(Move::RollBack),
        any::<bool>().prop_map(|fails| Move::TakenBack { fails }),
    ]
}

fn make(play: &mut Play, step: Move) {
    let runs_model = play.running.keys().any(|key| key.0.starts_with("model"));
    let runs_tool = play.running.keys().any(|key| key.0.starts_with("tool"));
    match step {
        Move::Say { interrupt } => drop(play.say_with("hello", interrupt)),
        Move::Stream if runs_model => drop(play.streamed("some ")),
        Move::Answer { calls } if runs_model => {
            let system = ("write", json!({ "path": "/system/x", "content": "x" }));
            let choice = |call: &u8| match call {
                0 => ls(),
                1 => ask(),
                2 => system.clone(),
                _ => ("nonsense", json!("not an object")),
            };
            let calls: Vec<_> = calls.iter().map(choice).collect();
            play.answer("text", &calls);
        }
        Move::Fail if runs_model => {
            let message_id = play.message_id();
            play.running.clear();
            let error = domain::Error::new(domain::Code::UpstreamUnavailable, "gone");
            play.input(Input::Report(Report::ModelFailed { message_id, error, timed_out: false }));
        }
        Move::Postpone { ms } if runs_model => {
            let failures = play.request.as_ref().map_or(0, |request| request.failures) + 1;
            play.postpone(failures, std::time::Duration::from_millis(ms.into()));
        }
        Move::Tool if runs_tool => drop(play.tool("output")),
        Move::Stop => drop(play.stop()),
        Move::Crash => drop(play.crash()),
        Move::Reply => {
            let answers = Map::from_iter([("colour".to_owned(), json!("red"))]);
            let question_id = play.question();
            play.command(ChatCommand::Answer { question_id, answers, may_approve: false, may_not_run: false });
        }
        Move::Decide { yes, always } => {
            let outcome = if yes { PermissionOutcome::Approved } else { PermissionOutcome::Declined };
            let permission_id = play.permission();
            play.command(ChatCommand::Decide { permission_id, outcome, always, reason: None, option_id: None });
        }
        Move::RollBack => {
            let meant = rollback::turn(play);
            rollback::roll_back(play, meant, "hello");
        }
        Move::TakenBack { fails } if play.running.keys().any(|key| key.0.starts_with("rollback")) => {
            let error = domain::Error::new(domain::Code::UpstreamUnavailable, "gone");
            rollback::taken(play, if fails { Err(error) } else { rollback::done() });
        }
        Move::Forget => drop(play.command(ChatCommand::ForgetPermissions { rule_id: None })),
        Move::Expire => {
            if let Some(Ok(command)) = play.scheduled.pop().map(serde_json::from_value::<ChatCommand>) {
                play.command(command);
            }
        }
        Move::Park { delete } => {
            play.park("it fails");
            if delete {
                play.command(ChatCommand::Delete);
            } else {
                play.input(Input::Unpark { drop: true });
            }
        }
        Move::Delete { overtaking: false } => drop(play.command(ChatCommand::Delete)),
        Move::Delete { overtaking: true } => {
            let stop_id = StopId(play.id());
            play.stop_again(stop_id, StopTarget::Everything);
        }
        Move::Stream
        | Move::Answer { .. }
        | Move::Fail
        | Move::Postpone { .. }
        | Move::Tool
        | Move::TakenBack { .. } => {}
    }
}

fn chat(is_agent: bool) -> Play {
    if is_agent { Play::agent(&[("ls", None), ("ask_user", None), ("write", None)]) } else { Play::new() }
}

/// A call that people were asked about begins with the tool and the arguments that they were shown, and with no others.
fn calls_begin_as_they_were_shown(log: &[ChatEvent]) {
    let mut shown = BTreeMap::new();
    for event in log {
        match event {
            ChatEvent::PermissionRequired { call_id, tool, args, .. } => {
                shown.insert(*call_id, (tool, args));
            }
            ChatEvent::CallStarted { call_id, tool, args, .. } => {
                if let Some(shown) = shown.get(call_id) {
                    assert_eq!(*shown, (tool, args), "another call was carried out than the one that was shown");
                }
            }
            _ => {}
        }
    }
}

/// Each call of a message is answered once, directly after it, in order, unless its turn still runs.
fn calls_are_paired(messages: &[&Message], open: usize) {
    let mut waiting: Vec<CallId> = Vec::new();
    for message in messages {
        match message {
            Message::Assistant { calls, .. } => {
                assert!(waiting.is_empty(), "calls without an answer");
                waiting = calls.iter().map(|call| call.call_id).collect();
            }
            Message::Tool { call_id, .. } => {
                assert_eq!(waiting.first(), Some(call_id), "an answer without its call");
                waiting.remove(0);
            }
            Message::User { .. } | Message::System { .. } => assert!(waiting.is_empty(), "calls without an answer"),
        }
    }
    assert_eq!(waiting.len(), open, "calls without an answer at the end");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn turns_end_once_and_calls_are_paired_in_all_sequences(moves in moves(), is_agent: bool) {
        let mut play = chat(is_agent);
        for step in moves {
            make(&mut play, step);
            if is_agent && !play.state.deleted {
                let rounds: Vec<u32> = play.reports.iter().map(|report| report.round).collect();
                let ended = u32::try_from(play.count(ChatEvent::is_terminal)).unwrap_or(u32::MAX);
                prop_assert_eq!(rounds, (1..=ended).collect::<Vec<_>>(), "each turn is reported once");
            }
            let started = play.count(|event| matches!(event, ChatEvent::TurnStarted { attempt: 1, .. }));
            let ended = play.count(ChatEvent::is_terminal);
            prop_assert_eq!(started, ended + usize::from(play.state.turn.is_some()));
            let messages: Vec<&Message> =
                play.state.history.iter().flat_map(|turn| turn.messages.iter().map(|message| &**message)).collect();
            let open = play.state.turn.as_ref().map_or(0, |turn| turn.calls.len());
            calls_are_paired(&messages, open);
        }
        calls_begin_as_they_were_shown(&play.log);
        let first = |event: &ChatEvent| match event {
            ChatEvent::CallStarted { call_id, attempt: 1, .. } => Some(*call_id),
            _ => None,
        };
        let told: Vec<CallId> = play.log.iter().filter_map(first).collect();
        prop_assert!(told.iter().collect::<BTreeSet<_>>().len() == told.len(), "a call was begun twice");
        let deleted = play.log.iter().skip_while(|event| !matches!(event, ChatEvent::Deleted { .. }));
        let begun = |event: &&ChatEvent| matches!(event, ChatEvent::TurnStarted { attempt: 1, .. } | ChatEvent::ModelStarted { .. });
        prop_assert_eq!(deleted.clone().filter(begun).count(), 0, "a deleted chat went on");
        let names = |event: &ChatEvent| match event {
            ChatEvent::Deleted { turn_id, .. } => Some(*turn_id),
            _ => None,
        };
        let ends = |event: &ChatEvent| match event {
            ChatEvent::Done { turn_id, .. } | ChatEvent::Stopped { turn_id, .. } => Some(*turn_id),
            _ => None,
        };
        let named: Vec<TurnId> = deleted.clone().filter_map(names).flatten().collect();
        let going_on = play.state.turn.iter().filter(|_| play.state.deleted).map(|turn| turn.id);
        let ended: Vec<TurnId> = deleted.filter_map(ends).chain(going_on).collect();
        prop_assert_eq!(ended, named, "a deletion names the turn that ends after it");
        for effect in play.running.values() {
            if let ChatEffect::CallModel { request, .. } = effect {
                let messages: Vec<&Message> = request.messages.iter().map(|message| &**message).collect();
                calls_are_paired(&messages, 0);
            }
        }
    }

    #[test]
    fn a_snapshot_is_the_fold(moves in moves(), is_agent: bool) {
        let mut play = chat(is_agent);
        for step in moves {
            make(&mut play, step);
        }
        let mut folded = ChatState::default();
        for (position, event) in play.log.iter().enumerate() {
            ChatMachine::apply(&mut folded, position as u64 + 1, event);
        }
        let text = |state: &ChatState| serde_json::to_string(state).unwrap_or_default();
        prop_assert_eq!(text(&folded), text(&play.state));
        let read: ChatState = serde_json::from_str(&text(&folded)).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(text(&read), text(&folded));
    }
}
