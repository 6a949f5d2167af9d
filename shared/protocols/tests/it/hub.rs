//! Golden transcripts of the hub: recorded logs, rendered. A log and its transcript stay as they are; `BLESS=1` writes a new transcript.

use buildscale_protocols::{
    Projection,
    hub::{Frames, History},
};
use domain::{ChatEvent, ChatId, Timestamp, TurnId};
use serde_json::Value;
use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/hub").join(name)
}

/// The events of a recorded log. Its events have the numbers 1, 2, …, a second apart.
fn log(name: &str) -> Vec<(u64, Timestamp, ChatEvent)> {
    let text = std::fs::read_to_string(golden(name)).unwrap();
    let events: Vec<ChatEvent> = serde_json::from_str(&text).unwrap();
    let at = |number: u64| Timestamp::from_millis(1_767_225_600_000 + i64::try_from(number).unwrap() * 1000);
    (1..).zip(events).map(|(number, event)| (number, at(number), event)).collect()
}

fn thread() -> ChatId {
    "019bf537-f228-7cd3-aa1c-000000000002".parse().unwrap()
}

fn rendered(mut frames: Frames, log: &[(u64, Timestamp, ChatEvent)]) -> String {
    let (mut out, mut of_event) = (String::new(), Vec::new());
    for (number, at, event) in log {
        assert!(!frames.is_over() || matches!(event, ChatEvent::TurnStarted { .. }), "there are events after the end");
        if frames.is_over() {
            break;
        }
        frames.take_in(*number, *at, event, &mut of_event);
        for frame in of_event.drain(..) {
            writeln!(out, "{} {} {}", frame.number, frame.event.unwrap(), frame.data).unwrap();
        }
    }
    out
}

#[track_caller]
fn check(name: &str, found: &str) {
    let path = golden(name);
    if std::env::var_os("BLESS").is_some() && !path.exists() {
        std::fs::write(&path, found).unwrap();
    }
    assert_eq!(found, std::fs::read_to_string(&path).unwrap_or_default(), "{name}");
}

#[test]
fn a_thread_is_rendered_as_its_transcript_says() {
    let log = log("thread.log.json");
    check("thread.frames.txt", &rendered(Frames::of_thread(thread()), &log));
}

#[test]
fn one_turn_is_the_part_of_the_thread_that_is_its_own() {
    let log = log("thread.log.json");
    let whole = rendered(Frames::of_thread(thread()), &log);
    let turns: Vec<(u64, TurnId)> = log
        .iter()
        .filter_map(|(number, _, event)| match event {
            ChatEvent::TurnStarted { turn_id, attempt: 1, .. } => Some((*number, *turn_id)),
            _ => None,
        })
        .collect();
    assert!(turns.len() > 2);
    for (first, turn) in turns {
        let own: String = whole.lines().filter(|line| line.contains(&format!("\"turnId\":\"{turn}\""))).fold(
            String::new(),
            |mut own, line| {
                writeln!(own, "{line}").unwrap();
                own
            },
        );
        let from_first: Vec<_> = log.iter().filter(|(number, ..)| *number >= first).cloned().collect();
        assert_eq!(rendered(Frames::of_turn(thread(), turn), &from_first), own);
        assert!(own.lines().last().unwrap().contains(" turn_completed "), "{own}");
    }
}

#[test]
fn pieces_that_have_expired_come_with_the_whole_message() {
    let log = log("thread.log.json");
    let text = |log: &[_]| -> String {
        let mut text = String::new();
        for line in rendered(Frames::of_thread(thread()), log).lines() {
            let mut parts = line.splitn(3, ' ').skip(1);
            if parts.next() == Some("message_delta") {
                let data: Value = serde_json::from_str(parts.next().unwrap()).unwrap();
                text.push_str(data["delta"].as_str().unwrap());
            }
        }
        text
    };
    // The pieces of the message that was given up are shown to those who watched, and to nobody else.
    let kept: Vec<_> = log.iter().filter(|(.., event)| !event.is_transient()).cloned().collect();
    assert_eq!(text(&log).replace("I wi", ""), text(&kept));
}

#[test]
fn the_history_has_the_turns_and_the_frames_of_each() {
    let log = log("thread.log.json");
    let fold = |with_events| {
        let mut history = History::of(thread(), with_events);
        log.iter().for_each(|(number, at, event)| history.take_in(*number, *at, event));
        history.turns()
    };
    check("thread.history.json", &format!("{}\n", serde_json::to_string_pretty(&fold(false)).unwrap()));
    let with_events: Vec<String> = fold(true)
        .into_iter()
        .flat_map(|turn| turn.events.unwrap())
        .map(|event| format!("{} {} {}", event["seq"], event["type"].as_str().unwrap(), event["data"]))
        .collect();
    let frames = rendered(Frames::of_thread(thread()), &log);
    assert_eq!(with_events, frames.lines().collect::<Vec<_>>());
}

#[test]
fn each_turn_of_a_history_knows_the_session_that_it_ran_in() {
    let mut history = History::of(thread(), false);
    let bound = |session: &str| ChatEvent::AgentBound { session_id: session.into() };
    let log = log("thread.log.json");
    let turns = log.iter().filter(|(.., event)| matches!(event, ChatEvent::TurnStarted { attempt: 1, .. }));
    for (place, (number, at, event)) in turns.enumerate() {
        history.take_in(*number, *at, event);
        // The agent tells its session when it changes: in the first turn, and in the third.
        for session in [(0, "a"), (2, "b")].into_iter().filter(|(of, _)| *of == place).map(|(_, session)| session) {
            history.take_in(*number + 1, *at, &bound(session));
        }
    }
    let sessions: Vec<Option<String>> = history.turns().into_iter().map(|turn| turn.session).collect();
    assert_eq!(sessions, ["a", "a", "b", "b"].map(|session| Some(session.to_owned())));
}

#[test]
fn a_turn_names_the_session_that_took_the_place_of_its_first_one() {
    let (turn_id, at, limits) = (TurnId(thread().0), Timestamp::from_millis(0), domain::Limits::default());
    let begun =
        || ChatEvent::TurnStarted { turn_id, attempt: 1, asked_at: at, limits, may_approve: false, trace: None };
    let bound = |session: &str| ChatEvent::AgentBound { session_id: session.into() };
    let end = ChatEvent::Done { turn_id, message: String::new(), stop_reason: domain::StopReason::EndTurn, at };
    let mut history = History::of(thread(), true);
    // The agent has lost its session before the third turn.
    let events = [begun(), bound("a"), end.clone(), begun(), end.clone(), begun(), bound("b"), end];
    for (number, event) in (1..).zip(&events) {
        assert!(!history.has_begun("b") || number > 7, "{number}");
        history.take_in(number, at, event);
    }
    assert!(history.has_begun("a") && history.has_begun("b") && !history.has_begun("c"));
    let named = |turn: &Value| {
        let events = turn["events"].as_array().unwrap().iter();
        let bound = events.filter(|event| event["type"] == "session_bound");
        bound.map(|event| event["data"]["sessionId"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let turns = serde_json::to_value(history.turns()).unwrap();
    assert_eq!(turns.as_array().unwrap().iter().map(named).collect::<Vec<_>>(), [["a"], ["a"], ["b"]]);
}

#[test]
fn words_that_steer_a_turn_are_not_those_that_it_began_with() {
    let (turn_id, at, limits) = (TurnId(thread().0), Timestamp::from_millis(0), domain::Limits::default());
    let said = |content: &str, file: &str| {
        let (id, files) = (domain::MessageId(thread().0), vec![domain::FilePath::parse(file).unwrap()]);
        let message =
            domain::Message::User { id, at, content: content.into(), files, context: String::new(), user_id: None };
        ChatEvent::MessageAdded { message }
    };
    let mut history = History::of(thread(), true);
    let begun = ChatEvent::TurnStarted { turn_id, attempt: 1, asked_at: at, limits, may_approve: false, trace: None };
    // Files may come without words.
    for (number, event) in (1..).zip([begun, said("", "/first.md"), said("This one, too", "/second.md")]) {
        history.take_in(number, at, &event);
    }
    let turns = history.turns();
    assert_eq!((turns[0].request_text.as_str(), turns[0].files[0].name()), ("", "first.md"));
    let prompts = turns[0].events.iter().flatten().filter(|event| event["type"] == "user_prompt");
    let named: Vec<_> = prompts.map(|event| &event["data"]["prompt"][1]["name"]).collect();
    assert_eq!(named, ["first.md"]);
}

/// The turn of a compaction is the system's own: its words are the summary, and streams show none of them as an answer.
#[test]
fn the_turn_of_a_compaction_is_internal() {
    let (turn_id, at) = (TurnId(thread().0), Timestamp::from_millis(0));
    let message_id = domain::MessageId(thread().0);
    let compaction = domain::event::CompactionRecord {
        message_id,
        turns: 3,
        last_line: 20,
        summary: Some("They met.".into()),
        error: None,
        tokens_before: 90,
        tokens_after: 30,
        at,
    };
    let limits = domain::Limits::default();
    let events = [
        ChatEvent::TurnStarted { turn_id, attempt: 1, asked_at: at, limits, may_approve: false, trace: None },
        ChatEvent::CompactionBegan { internal: true, max_chars: 400, at },
        ChatEvent::Chunk { text: "They m".into(), message_id },
        ChatEvent::Compacted { compaction: Box::new(compaction) },
        ChatEvent::Done { turn_id, message: String::new(), stop_reason: domain::StopReason::EndTurn, at },
    ];
    let mut history = History::of(thread(), true);
    let (mut frames, mut shown) = (Frames::of_thread(thread()), Vec::new());
    for (number, event) in (1..).zip(&events) {
        history.take_in(number, at, event);
        frames.take_in(number, at, event, &mut shown);
    }
    let turns = history.turns();
    assert_eq!((turns.len(), turns[0].is_internal, turns[0].response_text.as_str()), (1, true, "They met."));
    let names: Vec<_> = shown.iter().filter_map(|frame| frame.event).collect();
    assert_eq!(names, ["turn_started", "turn_completed"]);
}
