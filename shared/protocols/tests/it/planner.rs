//! Logs of sessions, recorded from the machine of chats, as door 3 renders them: a line per frame. `BLESS=1` renders them anew.

use buildscale_protocols::{
    Frame, Projection,
    planner::{PlannerTurn, Records, Shows},
};
use domain::{
    ChatEvent, ChatId, CommandId, Message, PermissionId, StopReason, Timestamp, TurnId,
    event::{CompactionRecord, PermissionOutcome, SteeringWords},
};
use serde_json::json;
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

/// The plan of the specification has constraints (spec 003 §2 (6)); a task without any has no such field, as the recorded logs show.
#[test]
fn an_executor_that_is_spawned_is_shown_with_the_constraints_of_its_task() {
    let mut log = log("complex");
    let given = vec!["one page".to_owned(), "no prices".to_owned()];
    for event in &mut log {
        if let ChatEvent::StepStarted { task, .. } = event {
            task.constraints.clone_from(&given);
        }
    }
    let all = frames(&log, Shows::Turn(turn_of(&log)), 1);
    let spawned: Vec<_> = all.iter().filter(|frame| kind(frame) == "executor_spawned").collect();
    assert!(!spawned.is_empty());
    assert!(spawned.iter().all(|frame| frame.data["task"]["constraints"] == json!(given)), "{spawned:?}");
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

#[test]
fn every_end_of_a_turn_ends_the_stream_with_done_and_each_that_is_no_answer_with_an_error_before_it() {
    let log = log("simple");
    let ends = |end: Vec<ChatEvent>| -> Vec<(String, serde_json::Value)> {
        let events: Vec<ChatEvent> = log[..log.len() - 1].iter().cloned().chain(end).collect();
        let all = frames(&events, Shows::Turn(turn_of(&log)), 1);
        let last = all.iter().rev().take_while(|frame| ["error", "done"].contains(&kind(frame)));
        let mut last: Vec<_> =
            last.map(|frame| (kind(frame).to_owned(), frame.data["finished_reason"].clone())).collect();
        last.reverse();
        last
    };
    let (turn_id, at) = (turn_of(&log), Timestamp::default());
    for (stop_reason, told, is_error) in [
        (StopReason::EndTurn, "stop", false),
        (StopReason::MaxOutputTokens, "length", false),
        (StopReason::Refusal, "refusal", true),
        (StopReason::StepLimit, "step_limit", true),
        (StopReason::TokenLimit, "token_limit", true),
        (StopReason::TimeLimit, "time_limit", true),
        (StopReason::CostLimit, "cost_limit", true),
        (StopReason::ContextLimit, "context_limit", true),
        (StopReason::Error, "error", true),
    ] {
        let told_of = ends(vec![ChatEvent::Done { turn_id, message: String::new(), stop_reason, at }]);
        let done = ("done".to_owned(), told.into());
        let error = is_error.then(|| ("error".to_owned(), serde_json::Value::Null));
        assert_eq!(told_of, error.into_iter().chain([done]).collect::<Vec<_>>());
    }
    let stopped = |stop: &str| ChatEvent::Stopped {
        turn_id,
        stop_id: None,
        reason: stop.into(),
        partial_response: String::new(),
        at,
    };
    let kinds = |end: Vec<ChatEvent>| ends(end).into_iter().map(|(kind, _)| kind).collect::<Vec<_>>();
    assert_eq!(kinds(vec![stopped("user_cancelled")]), ["done"], "the person wanted it");
    assert_eq!(kinds(vec![ChatEvent::Deleted { turn_id: None, at }, stopped("deleted")]), ["done"]);
    let error = domain::Error::new(domain::Code::Internal, "the store does not answer");
    assert_eq!(kinds(vec![ChatEvent::Failed { error }, stopped("dropped")]), ["error", "done"]);
}

#[test]
fn words_that_steer_are_answered_by_the_turn_that_takes_them_in() {
    let (log, command_id) = (log("simple"), CommandId(Uuid::from_u128(77)));
    let (content, files, context, at) = ("in blue".to_owned(), Vec::new(), String::new(), Timestamp::default());
    let words = Box::new(SteeringWords { command_id, at, content, files, context, user_id: None });
    let shows = Shows::Steered(TurnId(command_id.0));
    let kinds = |log: &[ChatEvent]| -> Vec<String> {
        frames(log, shows, 1).iter().map(|frame| kind(frame).to_owned()).collect()
    };
    let dones = |log: &[ChatEvent]| kinds(log).iter().filter(|kind| *kind == "done").count();
    // The turn that runs takes them in: its end is theirs.
    let (end, before) = log.split_last().unwrap();
    let steered: Vec<ChatEvent> = before.iter().cloned().chain([ChatEvent::Steered { words }, end.clone()]).collect();
    assert_eq!((dones(&steered), kinds(&steered).pop().as_deref()), (1, Some("done")));
    // It ends before them: they begin a turn of their own.
    assert_eq!(dones(&log), 0);
    let own: Vec<ChatEvent> = log
        .iter()
        .cloned()
        .map(|event| match event {
            ChatEvent::TurnStarted { attempt, asked_at, limits, may_approve, trace, .. } => {
                let turn_id = TurnId(command_id.0);
                ChatEvent::TurnStarted { turn_id, attempt, asked_at, limits, may_approve, trace }
            }
            other => other,
        })
        .collect();
    let both: Vec<ChatEvent> = log.iter().cloned().chain(own).collect();
    assert_eq!((dones(&both), kinds(&both).pop().as_deref()), (1, Some("done")));
}

#[test]
fn a_plan_that_waits_for_a_person_is_shown_before_it_is_carried_out() {
    let log = log("complex");
    let begins = log.iter().position(|event| matches!(event, ChatEvent::Planned { .. })).unwrap();
    let ChatEvent::Planned { call_id, .. } = &log[begins] else { panic!() };
    let calls = log.iter().filter_map(|event| match event {
        ChatEvent::MessageAdded { message: Message::Assistant { calls, .. } } => Some(calls),
        _ => None,
    });
    let call = calls.flatten().find(|call| call.call_id == *call_id).cloned().unwrap();
    let asks = ChatEvent::PermissionRequired {
        permission_id: PermissionId(Uuid::from_u128(7)),
        call_id: call.call_id,
        category: "plan".into(),
        tool: call.tool,
        args: call.args,
        reason: "plans of this session are approved".into(),
        always: None,
        agent: None,
        at: Timestamp::default(),
        expires_at: Timestamp::from_millis(1_000),
    };
    let log = [&log[..begins], &[asks], &log[begins..]].concat();
    let frames = frames(&log, Shows::Turn(turn_of(&log)), 1);
    let plans: Vec<_> =
        frames.iter().filter(|frame| kind(frame) == "plan_created").map(|frame| &frame.data["plan"]).collect();
    let [asked, begun, ..] = plans.as_slice() else { panic!("{plans:?}") };
    assert_eq!((&asked["status"], &begun["status"]), (&json!("pending"), &json!("executing")));
    assert_eq!((&asked["id"], &asked["version"]), (&begun["id"], &begun["version"]));
    assert_eq!(asked["steps"], begun["steps"], "the very steps that are carried out");
    assert_eq!(asked["permission"], json!({ "id": Uuid::from_u128(7), "expires_at": Timestamp::from_millis(1_000) }));
    assert!(begun.get("permission").is_none());

    // The rows of the session say the same, to a client that was not there.
    let rows = |log: &[ChatEvent]| {
        let mut records = Records::default();
        log.iter().for_each(|event| records.take_in(event));
        records.plans(ChatId(Uuid::from_u128(9)))
    };
    let waiting = rows(&log[..=begins]).pop().unwrap();
    assert_eq!((&waiting["status"], &waiting["id"], &waiting["version"]), (&json!("pending"), &asked["id"], &json!(1)));
    assert_eq!(waiting["permission"], asked["permission"]);
    assert!(waiting["steps"].as_array().unwrap().iter().all(|step| step["status"] == "pending"), "{waiting}");
    let carried_out = rows(&log);
    assert_eq!(carried_out.len(), rows(&[&log[..begins], &log[begins + 1..]].concat()).len(), "it is one plan");
    assert!(carried_out.iter().all(|plan| plan.get("permission").is_none()), "{carried_out:?}");
    let decided = ChatEvent::PermissionResolved {
        permission_id: PermissionId(Uuid::from_u128(7)),
        outcome: PermissionOutcome::Declined,
        by: "user".into(),
        always: None,
        reason: None,
        option_id: None,
        at: Timestamp::default(),
    };
    let declined = rows(&[&log[..=begins], &[decided]].concat()).pop().unwrap();
    assert_eq!((&declined["status"], &declined["steps"][0]["status"]), (&json!("cancelled"), &json!("cancelled")));
}

/// The only step ran when the turn was stopped.
#[test]
fn section_5_a_stop_cancels_the_step_that_runs_and_its_plan() {
    let mut records = Records::default();
    log("stopped").iter().for_each(|event| records.take_in(event));
    let session = ChatId(Uuid::from_u128(9));
    let (plans, agents) = (records.plans(session), records.agents(session));
    let [plan] = plans.as_slice() else { panic!("{plans:?}") };
    let statuses =
        [&plan["status"], &plan["steps"][0]["status"], &plan["executions"][0]["status"], &agents[0]["status"]];
    assert_eq!(statuses, [&json!("cancelled"); 4], "{plan}");
    assert_eq!(plan["executions"][0]["error"]["code"], json!("CANCELLED"));
}

#[test]
fn section_10_plans_executions_and_compressions_are_folded_from_the_log() {
    let kept = |log: &[ChatEvent]| {
        let mut records = Records::default();
        log.iter().for_each(|event| records.take_in(event));
        records
    };
    let session = ChatId(Uuid::from_u128(9));
    let plans = |log: &[ChatEvent]| kept(log).plans(session);
    let log = log("complex");
    // The first plan had a step that failed and one that could not begin, so the rest was planned anew.
    let [first, second] = plans(&log).try_into().unwrap();
    assert_eq!(
        (&first["status"], &first["version"], &first["session_id"]),
        (&json!("failed"), &json!(1), &json!(session))
    );
    assert_eq!((&second["status"], &second["version"]), (&json!("completed"), &json!(2)));
    let statuses: Vec<_> = first["executions"].as_array().unwrap().iter().map(|one| one["status"].clone()).collect();
    assert_eq!(statuses, ["completed", "failed"]);
    let steps: Vec<_> = first["steps"].as_array().unwrap().iter().map(|step| step["status"].clone()).collect();
    assert_eq!(steps, ["completed", "failed", "failed"], "one that could not begin failed, too");
    let agents = kept(&log).agents(session);
    let [one, other, another] = agents.as_slice() else { panic!("{agents:?}") };
    assert_eq!(
        (&one["id"], &one["execution_id"]),
        (&first["executions"][0]["executor_id"], &first["executions"][0]["id"])
    );
    assert_eq!((&one["status"], &other["status"]), (&json!("completed"), &json!("failed")));
    assert_eq!((&another["plan_id"], &another["session_id"]), (&second["id"], &json!(session)));
    assert!(agents.iter().all(|agent| agent["completed_at"].is_string()), "{agents:?}");
    let failed = &first["executions"][1];
    assert_eq!((&failed["plan_id"], &failed["step"]), (&first["id"], &json!(2)));
    assert!(failed["error"]["code"].is_string() && failed["duration_ms"].is_u64() && failed["ended_at"].is_string());

    let begun = log.iter().position(|event| matches!(event, ChatEvent::StepStarted { .. })).unwrap();
    let open = plans(&log[..=begun]);
    assert_eq!((&open[0]["status"], &open[0]["executions"][0]["status"]), (&json!("executing"), &json!("executing")));
    let over = plans(&[&log[..=begun], &log[log.len() - 1..]].concat());
    assert_eq!((&over[0]["status"], &over[0]["executions"][0]["status"]), (&json!("cancelled"), &json!("cancelled")));
    let steps = |plan: &serde_json::Value| [plan["steps"][0]["status"].clone(), plan["steps"][2]["status"].clone()];
    assert_eq!(
        (steps(&open[0]), steps(&over[0])),
        ([json!("executing"), json!("pending")], [json!("cancelled"), json!("cancelled")])
    );

    let compaction = CompactionRecord {
        message_id: domain::MessageId(Uuid::from_u128(5)),
        turns: 3,
        last_line: 40,
        summary: Some("Both drafts were read.".into()),
        error: None,
        tokens_before: 8_000,
        tokens_after: 2_000,
        at: Timestamp::default(),
    };
    let compactions: Vec<_> =
        (0..101).map(|_| ChatEvent::Compacted { compaction: Box::new(compaction.clone()) }).collect();
    let compressions = kept(&compactions).compressions(session);
    assert_eq!(
        (compressions.len(), &compressions[0]["ratio"], &compressions[0]["turns"]),
        (100, &json!(0.25), &json!(3))
    );
}
