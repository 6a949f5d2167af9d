//! Pauses that were ended: each protocol tells the rest of the turn, and the later turns of the chat.

use crate::{
    clients::{PROTOCOLS, fold, fold_task, parts, task, task_log, view},
    logs::{LOGS, log},
};
use buildscale_protocols::{
    ChatParts, Frame, PauseFilter, Projection,
    a2a::{Shows, State},
    after_pauses,
    langgraph::{Conversation, Mode, RunId, TaskRun, TaskThread},
    task_as_turn::{TaskAsTurn, TaskParts},
};
use domain::{ChatEvent, TaskEvent, TaskId, Timestamp};
use serde_json::Value;
use uuid::Uuid;

fn pause() -> [ChatEvent; 2] {
    let at = Timestamp::default();
    [ChatEvent::Paused { reason: "it panics".into(), at }, ChatEvent::Unpaused { at }]
}

fn told(frames: Vec<Frame>) -> Vec<(Option<&'static str>, Value)> {
    frames.into_iter().map(|frame| (frame.event, frame.data)).collect()
}

#[test]
fn a_pause_that_was_ended_is_in_no_answer_to_a_later_turn() {
    let mut compared = 0;
    for (name, path) in LOGS {
        let log = log(path);
        if log.iter().any(|event| matches!(event, ChatEvent::Paused { .. } | ChatEvent::Unpaused { .. })) {
            continue;
        }
        let paused = [&pause()[..], &log[..]].concat();
        let (mut known, mut conversation) = (ChatParts::default(), Conversation::default());
        for (number, event) in (1..).zip(&paused) {
            known.take_in(number, event);
            conversation.take_in(number, Timestamp::default(), event);
        }
        assert_eq!((known.resumed(), conversation.resumed()), (2, 2), "{name}");
        for part in parts(&log) {
            for protocol in PROTOCOLS {
                let wanted = told(fold(&mut *view(protocol, part), &log));
                let shown = told(fold(&mut *after_pauses(2, view(protocol, part)), &paused));
                assert_eq!(shown, wanted, "{name} {protocol}");
                compared += 1;
            }
        }
    }
    assert!(compared > 100, "{compared}");
}

#[test]
fn a_turn_that_was_paused_and_went_on_is_told_to_its_end() {
    let log = log("clients/text.log.json");
    let at = log.iter().position(|event| matches!(event, ChatEvent::ModelStarted { .. })).unwrap();
    let paused = [&log[..at], &pause()[..], &log[at..]].concat();
    let (part, resumed) = (parts(&log)[0], at as u64 + 2);
    for protocol in PROTOCOLS {
        let mut while_it_lasts = view(protocol, part);
        fold(&mut *while_it_lasts, &paused[..=at]);
        assert!(while_it_lasts.is_over(), "{protocol}: it waits for a person who resumes the chat");
        let wanted = fold(&mut *view(protocol, part), &log);
        let shown = fold(&mut *after_pauses(resumed, view(protocol, part)), &paused);
        assert_eq!(shown.len(), wanted.len(), "{protocol}");
    }
    let state = |log: &[ChatEvent]| {
        let mut view = task(part, u32::MAX, Shows::Whole(None));
        let (mut pauses, mut frames) = (PauseFilter::default(), Vec::new());
        let mut show = |number, at, event: &ChatEvent| view.take_in(number, at, event, &mut frames);
        for (number, event) in (1..).zip(log) {
            pauses.take_in(number, Timestamp::default(), event, &mut show);
        }
        pauses.end(show);
        view.state()
    };
    assert_eq!((state(&paused), state(&paused[..=at])), (State::Completed, State::Failed));
}

#[test]
fn a_task_that_goes_on_behind_a_breakpoint_ends_its_pause() {
    let (mut parts, at) = (TaskParts::of(TaskId(Uuid::from_u128(1))), Timestamp::default());
    parts.take_in(1, &TaskEvent::PausedBefore { node: "draft".into(), at });
    assert_eq!(parts.parts.resumed(), 0);
    parts.take_in(2, &TaskEvent::Continued { step: false, at });
    let first = parts.parts.resumed();
    parts.take_in(3, &TaskEvent::Parked { reason: "it panics".into(), at });
    parts.take_in(4, &TaskEvent::Unparked { at });
    assert!(0 < first && first < parts.parts.resumed());
}

#[test]
fn a_run_of_a_task_that_was_paused_is_told_to_its_end() {
    let (config, log) = task_log("flow");
    let at = Timestamp::default();
    let pause = [TaskEvent::Parked { reason: "it panics".into(), at }, TaskEvent::Unparked { at }];
    let paused = [&log[..1], &pause[..], &log[1..]].concat();
    let modes = || Some(vec![Mode::Values, Mode::Updates]);
    let run = || TaskRun::new(RunId { of: config.task.0, number: 0 }, "the thread".into(), "flow".into(), modes());
    let mut course = TaskThread::of(config.task);
    for (number, event) in (1..).zip(&paused) {
        course.take_in(number, at, event);
    }
    assert_eq!(course.resumed(), 3);
    let wanted = told(fold_task(&mut run(), &log));
    assert_eq!(told(fold_task(&mut run().after_pauses(3), &paused)), wanted);
    assert!(fold_task(&mut run(), &paused).len() < wanted.len(), "it ends at a pause that lasts");
}

/// A client would take the end of a stream for that of the answer. An answer in one piece is refused instead.
#[test]
fn a_stream_that_is_interrupted_breaks_off_in_each_protocol() {
    let part = parts(&log("clients/text.log.json"))[0];
    for protocol in PROTOCOLS {
        let is_stream = !protocol.ends_with("whole");
        let as_turn = TaskAsTurn::new(TaskId(Uuid::from_u128(1)), view(protocol, part));
        let all = [
            view(protocol, part).ends_with_its_stream(),
            after_pauses(9, view(protocol, part)).ends_with_its_stream(),
            as_turn.ends_with_its_stream(),
        ];
        assert_eq!(all, [is_stream; 3], "{protocol}");
    }
}
