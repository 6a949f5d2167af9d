//! The stream of a thread of LangGraph: its runs, one after the other.

use crate::{
    clients::{fold, parts, run},
    logs::{LOGS, log},
};
use buildscale_protocols::langgraph::{Mode, ThreadRuns};
use domain::{ChatEvent, Timestamp};

#[test]
fn a_thread_of_langgraph_is_its_runs_one_after_the_other() {
    const MODES: [Mode; 3] = [Mode::Tuples, Mode::Updates, Mode::Tools];
    let mut threads = 0;
    for (name, path) in LOGS.iter().filter(|(name, _)| ["permission", "question", "thread"].contains(name)) {
        let log = log(path);
        let mut runs = Vec::new();
        for part in parts(&log) {
            let mut frames = fold(&mut *run(part, &MODES), &log);
            if part.number > 0 {
                // In a thread a run begins with the first event after the interrupt before it.
                frames[0].number += 1;
            }
            runs.extend(frames);
        }
        let mut thread = ThreadRuns::new("the thread".into(), "assistant".into(), MODES.to_vec());
        assert_eq!(fold(&mut thread, &log), runs, "{name}");
        threads += 1;
    }
    assert_eq!(threads, 3);
}

#[test]
fn what_happens_to_a_chat_while_its_thread_of_langgraph_waits_is_no_run() {
    let mut log = log("clients/permission.log.json");
    let asks = log.iter().position(|event| matches!(event, ChatEvent::PermissionRequired { .. })).unwrap();
    log.truncate(asks + 1);
    let (turn_id, at) = (parts(&log)[0].turn, Timestamp::default());
    log.push(ChatEvent::PermissionsForgotten { rule: None, by: "ann".into(), at });
    let (reason, partial_response) = ("user_cancelled".into(), String::new());
    log.push(ChatEvent::Stopped { turn_id, stop_id: None, reason, partial_response, at });
    let mut thread = ThreadRuns::new("the thread".into(), "assistant".into(), Vec::new());
    let events: Vec<_> = fold(&mut thread, &log).into_iter().filter_map(|frame| frame.event).collect();
    assert_eq!(events, ["metadata", "end"]);
}

#[test]
fn a_thread_of_langgraph_is_one_view_for_all_who_ask_for_the_same_modes() {
    let view =
        |modes: &[Mode]| format!("{:?}", ThreadRuns::new("the thread".into(), "assistant".into(), modes.to_vec()));
    assert_eq!(view(&[Mode::Values, Mode::Tools, Mode::Values]), view(&[Mode::Tools, Mode::Values]));
    assert_ne!(view(&[Mode::Values]), view(&[]));
}
