//! Providers that have to be asked again later: the chat rests meanwhile.

use crate::play::{Play, ls};
use actor::{Input, Machine};
use buildscale_chat::ChatMachine;
use domain::{ChatCommand, ChatEvent, Code, Limits, StopReason};
use serde_json::json;
use slots::SlotsCommand;
use std::time::Duration;

const AFTER: Duration = Duration::from_secs(17);

fn status(play: &Play) -> String {
    let body = ChatMachine::view(&play.state).and_then(|view| view.body).unwrap_or_default();
    let view: serde_json::Value = serde_json::from_str(&body).unwrap_or_default();
    view["status"].as_str().unwrap_or_default().to_owned()
}

/// The messages to the semaphore, in order.
fn sent(play: &Play) -> Vec<SlotsCommand> {
    play.scheduled.iter().filter_map(|message| serde_json::from_value(message.clone()).ok()).collect()
}

/// The last request for slots is granted.
fn granted(play: &mut Play) -> Vec<String> {
    let asked = sent(play).into_iter().rev().find_map(|told| match told {
        SlotsCommand::Ask { ask } => serde_json::from_value(ask.grant).ok(),
        SlotsCommand::Give { .. } | SlotsCommand::Release { .. } => None,
    });
    play.command(asked.unwrap_or(ChatCommand::Delete))
}

fn failures(play: &Play) -> Option<u32> {
    play.request.as_ref().map(|request| request.failures)
}

#[test]
fn an_answer_without_a_word_is_asked_for_once_more_and_then_ends_the_turn_in_words() {
    let mut play = Play::new();
    play.say("go");
    play.answer("", &[ls()]);
    play.tool("x");
    let happened = play.answer("\n", &[]);
    let [used, note, asked] = &happened[..] else { panic!("{happened:?}") };
    assert_eq!((used.as_str(), asked.as_str()), ("used", "model_started 1"));
    assert!(note.starts_with("[System: Your last answer was empty"), "{note}");
    assert_eq!(play.asked.last().and_then(|asked| asked.last()), Some(note));
    assert_eq!(play.answer("Done.", &[]), ["assistant: Done.", "used", "done EndTurn: Done."]);

    play.say("again");
    play.answer("", &[]);
    assert_eq!(play.answer("", &[]), ["used", "failed UPSTREAM_UNAVAILABLE", "done Error: "], "it ends with a reason");

    play.say("and again");
    play.answer("I look.", &[ls()]);
    play.tool("x");
    play.answer("", &[]);
    assert_eq!(play.answer("", &[]), ["used", "done EndTurn: I look."], "the turn has its words");

    let mut agent = Play::agent(&[("ls", None)]);
    agent.say("go");
    agent.answer("", &[ls()]);
    agent.tool("x");
    agent.answer("", &[]);
    assert_eq!(agent.answer("", &[]), ["used", "done EndTurn: "], "an error would have its calls made again");

    let mut last = Play::with(|config| config.limits.max_steps = 1);
    last.say("go");
    assert_eq!(last.answer("", &[]), ["used", "failed UPSTREAM_UNAVAILABLE", "done Error: "], "no step is left to ask");
}

#[test]
fn a_call_that_is_postponed_rests_and_is_made_again_when_it_is_due() {
    let mut play = Play::new();
    play.say("go");
    assert_eq!(failures(&play), Some(0));
    assert_eq!(play.postpone(2, AFTER), ["model_postponed"]);
    assert!(play.running.is_empty() && !ChatMachine::in_flight(&play.state));
    assert_eq!((play.due, status(&play)), (Some(play.at() + AFTER), "running".into()));
    assert_eq!(play.crash(), [""; 0], "a resting chat needs no worker");
    assert_eq!(play.message(), ["model_started 2"]);
    assert_eq!(failures(&play), Some(2));
    assert_eq!(play.message(), [""; 0], "a message that comes twice");
    assert_eq!(play.crash(), ["turn_started 2", "model_started 3"]);
    assert_eq!(failures(&play), Some(2), "the death of a worker is no failure of the provider");
    play.postpone(3, AFTER);
    play.message();
    let ended = play.answer("done", &[]);
    assert_eq!(ended.last().map(String::as_str), Some("done EndTurn: done"));
    assert_eq!(play.asked.windows(2).filter(|pair| pair[0] != pair[1]).count(), 0, "the same request each time");
    play.say("more");
    assert_eq!(failures(&play), Some(0), "another call has its own failures");
}

#[test]
fn a_stop_ends_a_turn_that_waits_for_its_provider() {
    let mut play = Play::new();
    play.say("go");
    play.postpone(1, AFTER);
    let stopped = play.stop();
    assert_eq!(stopped.last().map(String::as_str), Some("stopped user_cancelled: "));
    assert_eq!(play.message(), [""; 0], "the message comes too late");
    play.say("again");
    play.postpone(1, AFTER);
    let interrupted = play.say_with("no, this", true);
    assert_eq!(interrupted.last().map(String::as_str), Some("model_started 1"));
}

#[test]
fn a_wait_that_outlasts_the_turns_time_is_not_begun() {
    let mut play = Play::with(|config| config.limits = Limits { max_wall_ms: 60_000, ..Limits::default() });
    play.say("go");
    assert_eq!(play.postpone(1, AFTER), ["model_postponed"], "17 of 60 s");
    play.now += 17_000;
    play.message();
    play.now += 30_000;
    assert_eq!(play.postpone(2, AFTER), ["failed RATE_LIMITED", "done Error: "]);
    let why = play.log.iter().rev().find_map(|event| match event {
        ChatEvent::Failed { error } => Some(error.code),
        _ => None,
    });
    assert_eq!(why, Some(Code::RateLimited));
    let ended = |event: &ChatEvent| matches!(event, ChatEvent::Done { stop_reason: StopReason::Error, .. });
    assert_eq!(play.count(ended), 1);
}

#[test]
fn slots_are_given_back_for_the_wait_and_asked_for_anew() {
    let mut play = Play::agent(&[]);
    if let Some(agent) = &mut play.config.agent {
        agent.turns = vec![("provider".into(), 1)];
    }
    assert_eq!(play.say("go").last().map(String::as_str), Some("slots_awaited"));
    let [SlotsCommand::Ask { ask }] = &sent(&play)[..] else { panic!("{:?}", play.scheduled) };
    let (holder, wake) = (ask.holder.clone(), ask.grant.clone());
    let wake = |play: &mut Play| play.command(serde_json::from_value(wake.clone()).unwrap_or(ChatCommand::Delete));
    assert_eq!(wake(&mut play), ["model_started 1"]);
    play.postpone(1, AFTER);
    assert_eq!(sent(&play).get(1), Some(&SlotsCommand::Give { holder }));
    let due = play.scheduled.iter().find(|message| message["command"] == json!("ask_again")).cloned();
    let due: ChatCommand = due.and_then(|due| serde_json::from_value(due).ok()).unwrap_or(ChatCommand::Delete);
    assert_eq!(play.command(due), ["slots_awaited"]);
    assert!(matches!(sent(&play)[..], [_, _, SlotsCommand::Ask { .. }]), "{:?}", play.scheduled);
    assert_eq!(wake(&mut play), [""; 0], "those were given back");
    assert_eq!(granted(&mut play), ["model_started 2"]);
    assert_eq!(failures(&play), Some(1));
    play.answer("done", &[]);
    assert!(matches!(sent(&play)[..], [.., SlotsCommand::Give { .. }]));
}

#[test]
fn a_chat_that_is_paused_while_it_waits_for_slots_leaves_the_line_and_asks_anew_when_it_goes_on() {
    let mut play = Play::agent(&[]);
    if let Some(agent) = &mut play.config.agent {
        agent.turns = vec![("provider".into(), 1)];
    }
    play.say("go");
    // Without a message that waits the turn of a task's agent is given up.
    assert_eq!(play.say("more"), ["turn_queued"]);
    let grant = sent(&play).last().cloned();
    play.park("a message fails again and again");
    assert!(matches!(sent(&play)[..], [SlotsCommand::Ask { .. }, SlotsCommand::Give { .. }]), "{:?}", play.scheduled);
    assert_eq!(play.input(Input::Unpark { drop: false }), ["unpaused", "slots_awaited"]);
    assert!(matches!(sent(&play)[2..], [SlotsCommand::Ask { .. }]), "{:?}", play.scheduled);
    let Some(SlotsCommand::Ask { ask }) = grant else { panic!("nothing was asked for") };
    let grant = serde_json::from_value(ask.grant).unwrap_or(ChatCommand::Delete);
    assert_eq!(play.command(grant), [""; 0], "those were given back");
    assert_eq!(granted(&mut play), ["model_started 1"]);
}

#[test]
fn another_priority_reaches_the_slots_that_an_agent_waits_for_and_those_that_it_asks_for_later() {
    let mut play = Play::agent(&[]);
    if let Some(agent) = &mut play.config.agent {
        agent.turns = vec![("provider".into(), 1)];
    }
    let asked = |play: &Play| {
        let messages = play.scheduled.iter().filter_map(|message| serde_json::from_value(message.clone()).ok());
        let asks = messages.filter_map(|command| match command {
            SlotsCommand::Ask { ask } => Some((ask.holder, ask.priority)),
            SlotsCommand::Give { .. } | SlotsCommand::Release { .. } => None,
        });
        asks.collect::<Vec<_>>()
    };
    play.say("go");
    let [(holder, 0)] = &asked(&play)[..] else { panic!("{:?}", play.scheduled) };
    let holder = holder.clone();
    play.command(ChatCommand::Prioritize { priority: 7 });
    assert_eq!(asked(&play).get(1), Some(&(holder, 7)), "the same request, at another place");
    let count = play.scheduled.len();
    play.command(ChatCommand::Prioritize { priority: 7 });
    assert_eq!(play.scheduled.len(), count, "nothing new");
    assert_eq!(play.state.config.as_ref().and_then(|config| Some(config.agent.as_ref()?.priority)), Some(7));
}
