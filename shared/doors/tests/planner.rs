//! Logs of sessions, recorded from the machine of chats, as door 3 renders them: a line per frame. `BLESS=1` renders them anew.

#![expect(clippy::unwrap_used, reason = "tests")]

use buildscale_doors::{
    Frame, Projection,
    planner::{PlannerTurn, Shows},
};
use domain::{ChatEvent, ChatId, Timestamp, TurnId};
use std::{collections::BTreeMap, path::PathBuf};
use uuid::Uuid;

const LOGS: [&str; 5] = ["simple", "tool", "complex", "failed", "stopped"];

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/planner").join(name)
}

fn log(name: &str) -> Vec<ChatEvent> {
    serde_json::from_str(&std::fs::read_to_string(file(&format!("{name}.json"))).unwrap()).unwrap()
}

fn turn_of(log: &[ChatEvent]) -> TurnId {
    let begun = log.iter().find_map(|event| match event {
        ChatEvent::TurnStarted { turn_id, .. } => Some(*turn_id),
        _ => None,
    });
    begun.unwrap()
}

fn frames(log: &[ChatEvent], shows: Shows, from: u64) -> Vec<Frame> {
    let mut view = PlannerTurn::new(ChatId(Uuid::from_u128(2)), None, shows);
    let mut all = Vec::new();
    for (number, event) in (1..).zip(log) {
        let mut frames = Vec::new();
        if !view.is_over() {
            view.take_in(number, Timestamp::default(), event, &mut frames);
        }
        if number >= from {
            all.extend(frames);
        }
    }
    all
}

fn kind(frame: &Frame) -> &str {
    frame.data["type"].as_str().unwrap()
}

#[test]
fn recorded_logs_are_rendered_like_this() {
    for name in LOGS {
        let log = log(name);
        let line = |frame: &Frame| format!("{} {}\n", frame.number, frame.data);
        let text: String = frames(&log, Shows::Turn(turn_of(&log)), 1).iter().map(line).collect();
        let path = file(&format!("{name}.frames"));
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap_or_default(), text, "{name}: BLESS=1 renders it anew");
    }
}

#[test]
fn done_is_the_last_frame_of_every_log_and_an_error_stands_right_before_it() {
    for name in LOGS {
        let log = log(name);
        let frames = frames(&log, Shows::Turn(turn_of(&log)), 1);
        let kinds: Vec<&str> = frames.iter().map(kind).collect();
        assert_eq!(kinds.iter().position(|kind| *kind == "done"), Some(kinds.len() - 1), "{name}: {kinds:?}");
        let error = kinds.iter().position(|kind| *kind == "error");
        assert_eq!(error, (name == "failed").then(|| kinds.len() - 2), "{name}: {kinds:?}");
    }
}

#[test]
fn a_stream_that_breaks_anywhere_goes_on_with_the_same_frames() {
    for name in LOGS {
        let log = log(name);
        let whole = frames(&log, Shows::Turn(turn_of(&log)), 1);
        for after in 0..log.len() as u64 {
            let rest = frames(&log, Shows::EndingAfter(after), after + 1);
            let wanted: Vec<Frame> = whole.iter().filter(|frame| frame.number > after).cloned().collect();
            assert_eq!(rest, wanted, "{name} after {after}");
        }
    }
}

#[test]
fn the_text_of_a_turn_comes_once_also_after_a_crash_and_without_its_pieces() {
    let said = |frames: &[Frame]| -> String {
        frames
            .iter()
            .filter(|frame| kind(frame) == "text")
            .map(|frame| frame.data["content"].as_str().unwrap())
            .collect()
    };
    let whole = log("simple");
    assert_eq!(said(&frames(&whole, Shows::Turn(turn_of(&whole)), 1)), "Hello.");
    let expired: Vec<ChatEvent> = whole.iter().filter(|event| !event.is_transient()).cloned().collect();
    assert_eq!(said(&frames(&expired, Shows::Turn(turn_of(&whole)), 1)), "Hello.");
    let crashed = log("failed");
    assert_eq!(said(&frames(&crashed, Shows::Turn(turn_of(&crashed)), 1)), "Hello, my\n\nHello, dear");
}

#[test]
fn every_step_that_begins_ends_and_every_executor_has_a_result() {
    for name in ["complex", "stopped"] {
        let log = log(name);
        let mut open: BTreeMap<&'static str, i64> = BTreeMap::new();
        for frame in frames(&log, Shows::Turn(turn_of(&log)), 1) {
            match kind(&frame) {
                "step_start" => *open.entry("step").or_default() += 1,
                "executor_spawned" => *open.entry("executor").or_default() += 1,
                "executor_result" => *open.entry("executor").or_default() -= 1,
                "step_complete" if frame.data["step"]["status"] != "pending" => {
                    *open.entry("ended").or_default() += 1;
                }
                _ => {}
            }
        }
        assert_eq!(open["executor"], 0, "{name}");
        assert!(open["ended"] >= open["step"], "{name}: {open:?}");
    }
}

#[test]
fn another_turn_and_a_paused_session_end_the_stream_too() {
    let log = log("simple");
    assert_eq!(frames(&log, Shows::Turn(TurnId(Uuid::nil())), 1), []);
    let paused = ChatEvent::Paused { reason: "it panics".into(), at: Timestamp::default() };
    let kinds = |events: &[ChatEvent]| -> Vec<String> {
        frames(events, Shows::Turn(turn_of(&log)), 1).iter().map(|frame| kind(frame).to_owned()).collect()
    };
    assert_eq!(kinds(std::slice::from_ref(&paused)), ["error", "done"]);
    let half: Vec<ChatEvent> = log[..log.len() - 3].iter().cloned().chain([paused]).collect();
    assert!(kinds(&half).ends_with(&["error".to_owned(), "done".to_owned()]));
}
