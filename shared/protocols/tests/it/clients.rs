//! Recorded logs as the protocols of stock clients render them: a line per frame, part by part. `BLESS=1` renders them anew.

use crate::logs::{LOGS, file, golden, log};
use buildscale_protocols::{
    ChatParts, Frame, Part, Projection,
    a2a::{Shows, Task, TaskId},
    agui::Events,
    ai_sdk::Chunks,
    langgraph::{ChatRun, Conversation, Mode, RunId, Status, TaskRun, TaskThread},
    openai::{Completion, Response, ResponseId, StartingAfter},
    task_as_turn::{TaskAsTurn, TaskParts, TaskTranslation, chat_of, turn_of},
};
use domain::{ChatEvent, ChatId, Message, StopReason, TaskConfig, TaskEvent, Timestamp, task_native};
use serde_json::Value;
use std::{collections::BTreeSet, fmt::Write};
use uuid::Uuid;

pub const PROTOCOLS: [&str; 10] = [
    "response",
    "completion",
    "completion-whole",
    "ai-sdk",
    "ag-ui",
    "a2a",
    "a2a-whole",
    "langgraph",
    "langgraph-messages",
    "langgraph-whole",
];

pub type View = Box<dyn Projection<Event = ChatEvent>>;

fn chat() -> ChatId {
    ChatId(Uuid::from_u128(2))
}

fn response(part: Part, shows: StartingAfter) -> Response {
    Response::new(ResponseId { chat: chat(), part }, "assistant".into(), Timestamp::default(), shows)
}

pub fn task(part: Part, through: u32, shows: Shows) -> Task {
    let id = TaskId { chat: chat(), turn: part.turn };
    Task::new(id, through, Value::from(1), "https://hub.example/files".into(), shows)
}

pub fn view(protocol: &str, part: Part) -> View {
    let (model, at) = ("assistant".to_owned(), Timestamp::default());
    match protocol {
        "response" => Box::new(response(part, StartingAfter::Frame(None))),
        "completion" => Box::new(Completion::new(chat(), part, model, at, true, true)),
        "completion-whole" => Box::new(Completion::new(chat(), part, model, at, false, true)),
        "ai-sdk" => Box::new(Chunks::of(chat(), part)),
        "a2a" => Box::new(task(part, part.number, Shows::Updates)),
        "a2a-whole" => Box::new(task(part, part.number, Shows::Whole(Some(2)))),
        "langgraph" => run(part, &[Mode::Values, Mode::Tuples, Mode::Updates, Mode::Custom, Mode::Tools]),
        "langgraph-messages" => run(part, &[Mode::Messages]),
        "langgraph-whole" => Box::new(ChatRun::whole(part, "the thread".into(), model)),
        _ => Box::new(Events::new(part, "the thread".into(), "the run".into())),
    }
}

pub fn run(part: Part, modes: &[Mode]) -> View {
    Box::new(ChatRun::new(part, "the thread".into(), "assistant".into(), modes.to_vec()))
}

/// All parts of a log, those that have not begun left out.
pub fn parts(log: &[ChatEvent]) -> Vec<Part> {
    let (mut parts, mut all) = (ChatParts::default(), Vec::new());
    for (number, event) in (1..).zip(log) {
        parts.take_in(number, event);
        if let Some(part) = parts.last().filter(|part| !all.contains(part)) {
            all.push(part);
        }
    }
    all
}

pub fn fold(view: &mut dyn Projection<Event = ChatEvent>, log: &[ChatEvent]) -> Vec<Frame> {
    let mut frames = Vec::new();
    for (number, event) in (1..).zip(log) {
        if !view.is_over() {
            view.take_in(number, Timestamp::default(), event, &mut frames);
        }
    }
    frames
}

fn frames(protocol: &str, part: Part, log: &[ChatEvent]) -> Vec<Frame> {
    fold(&mut *view(protocol, part), log)
}

fn each(check: impl Fn(&str, &[ChatEvent], Part)) {
    for (name, path) in LOGS {
        let log = log(path);
        for part in parts(&log) {
            check(name, &log, part);
        }
    }
}

fn write(text: &mut String, frames: &[Frame]) {
    for Frame { number, event, data } in frames {
        // Protocols whose data has the name of the event say it once.
        let event = event.filter(|event| data["type"] != *event).map(|event| format!("{event} ")).unwrap_or_default();
        writeln!(text, "{number} {event}{data}").unwrap();
    }
}

/// Recorded tasks, and in how many parts each is told: a flow with a question and a split; a flow whose agent needs a permission and then asks.
pub const TASKS: [(&str, u32); 2] = [("flow", 2), ("flow-agent", 3)];

pub fn task_log(name: &str) -> (TaskConfig, Vec<TaskEvent>) {
    let text = std::fs::read_to_string(file(&format!("clients/{name}.log.json"))).unwrap();
    let log: Vec<TaskEvent> = serde_json::from_str(&text).unwrap();
    let Some(TaskEvent::Created { config }) = log.first() else { panic!("no task") };
    ((**config).clone(), log)
}

/// The frames of a task in a view, to its end.
pub fn fold_task(view: &mut dyn Projection<Event = TaskEvent>, log: &[TaskEvent]) -> Vec<Frame> {
    let mut frames = Vec::new();
    for (number, event) in (1..).zip(log) {
        if !view.is_over() {
            view.take_in(number, Timestamp::default(), event, &mut frames);
        }
    }
    assert!(view.is_over());
    frames
}

/// A task in our own format and as LangGraph has it.
#[test]
fn a_recorded_task_is_rendered_like_this() {
    for (name, runs) in TASKS {
        let (config, log) = task_log(name);
        let mut native = String::new();
        for (number, event) in (1..).zip(&log) {
            if let Some((name, data)) = task_native::encode(event) {
                writeln!(native, "{number} {name} {data}").unwrap();
            }
        }
        golden(&format!("{name}.native"), &native);
        for (protocol, modes) in
            [("langgraph", Some(vec![Mode::Values, Mode::Updates, Mode::Custom])), ("langgraph-whole", None)]
        {
            let mut text = String::new();
            for number in 0..runs {
                let run = RunId { of: config.task.0, number };
                writeln!(text, "# run {run}").unwrap();
                let mut view = TaskRun::new(run, "the thread".into(), config.flow.name.clone(), modes.clone());
                write(&mut text, &fold_task(&mut view, &log));
            }
            golden(&format!("{name}.{protocol}"), &text);
        }
    }
}

/// The protocols that show a task as the turn of a chat.
pub const TELL_TASKS: [&str; 6] = ["response", "completion", "completion-whole", "ai-sdk", "ag-ui", "a2a-whole"];

#[test]
fn a_recorded_task_is_told_as_a_turn() {
    for (name, parts) in TASKS {
        let (config, log) = task_log(name);
        let (mut told, mut as_chat) = (TaskParts::of(config.task), Vec::new());
        let mut telling = TaskTranslation::of(config.task);
        for (number, event) in (1..).zip(&log) {
            told.take_in(number, event);
            as_chat.extend(telling.numbered(number, Timestamp::default(), event));
        }
        assert!(as_chat.is_sorted_by(|(one, _), (next, _)| one < next), "each has a number of its own");
        assert_eq!((told.last().number + 1, told.waits()), (parts, false), "{name}: it asks nothing any more");
        for protocol in TELL_TASKS {
            let mut text = String::new();
            for number in 0..parts {
                let part = Part { turn: turn_of(config.task), number };
                writeln!(text, "# part {number}").unwrap();
                let frames = fold_task(&mut TaskAsTurn::new(config.task, view(protocol, part)), &log);
                let at: Vec<usize> = (0..frames.len()).filter(|at| ends(protocol, &frames[*at].data)).collect();
                assert_eq!(at, [frames.len() - 1], "{name} {protocol}: the end is the last frame");
                assert!(frames.iter().all(|frame| frame.number <= log.len() as u64), "cursors are those of the task");
                write(&mut text, &frames);
            }
            golden(&format!("{name}.{protocol}"), &text);
        }
    }
}

/// A request of a node's agent is an interrupt of the run until the agent goes on.
#[test]
fn the_requests_of_a_tasks_agent_are_those_of_its_run() {
    let (config, log) = task_log("flow-agent");
    let (mut parts, mut course, mut seen) = (TaskParts::of(config.task), TaskThread::of(config.task), Vec::new());
    for (number, event) in (1..).zip(&log) {
        parts.take_in(number, event);
        course.take_in(number, Timestamp::default(), event);
        let ids: Vec<&str> = course.history().interrupts().iter().filter_map(|one| one["id"].as_str()).collect();
        let open: Vec<String> = parts.agent.iter().map(|(id, _)| id.to_string()).collect();
        assert_eq!(ids, open, "event {number}");
        assert_eq!((course.is_agent(), parts.waits()), (!open.is_empty(), !open.is_empty()), "event {number}");
        if let TaskEvent::AgentWaits { asked, .. } = event {
            assert_eq!((course.waits(), asked.is_some()), (asked.as_ref().map(|_| "write"), !open.is_empty()));
            seen.push(course.history().interrupts().first().map_or(Value::Null, |one| one["value"]["type"].clone()));
        }
    }
    assert_eq!(seen, [Value::Null, Value::Null, "question".into(), Value::Null], "a permission has no type");
    let runs: Vec<&str> = course.history().runs().iter().map(|run| run.status.name()).collect();
    assert_eq!(runs, ["interrupted", "interrupted", "success"]);
    let id = TaskId { chat: chat_of(config.task), turn: turn_of(config.task) };
    let mut states = Vec::new();
    for part in 0..3 {
        let task = Task::new(id, part, Value::from(1), "https://hub.example/files".into(), Shows::Whole(None));
        let frames = fold_task(&mut TaskAsTurn::new(config.task, Box::new(task)), &log);
        states.push(frames[0].data["result"]["task"]["status"]["state"].as_str().unwrap().to_owned());
    }
    assert_eq!(states, ["TASK_STATE_INPUT_REQUIRED", "TASK_STATE_INPUT_REQUIRED", "TASK_STATE_COMPLETED"]);
}

fn ends(protocol: &str, data: &Value) -> bool {
    match protocol {
        "response" => ["response.completed", "response.incomplete", "response.failed"].contains(&kind(data)),
        "completion" => data["usage"].is_object() || data["error"].is_object(),
        "completion-whole" | "langgraph-whole" => true,
        "langgraph" | "langgraph-messages" => data["run_id"].is_string() && data["status"].is_string(),
        "ai-sdk" => ["finish", "abort", "error"].contains(&kind(data)),
        "a2a-whole" => true,
        _ => ["RUN_FINISHED", "RUN_ERROR"].contains(&kind(data)),
    }
}

#[test]
fn recorded_logs_are_rendered_like_this() {
    for (name, path) in LOGS {
        let log = log(path);
        for protocol in PROTOCOLS {
            let mut text = String::new();
            for part in parts(&log) {
                writeln!(text, "# turn {} part {}", part.turn, part.number).unwrap();
                write(&mut text, &frames(protocol, part, &log));
            }
            golden(&format!("{name}.{protocol}"), &text);
        }
    }
}

#[test]
fn every_part_ends_and_its_end_is_the_last_frame() {
    each(|name, log, part| {
        // The updates of a task are those of all parts of its turn.
        for protocol in PROTOCOLS.into_iter().filter(|protocol| *protocol != "a2a") {
            let frames = frames(protocol, part, log);
            let at: Vec<usize> = (0..frames.len()).filter(|at| ends(protocol, &frames[*at].data)).collect();
            assert_eq!(at, [frames.len() - 1], "{name} {protocol} {part:?}");
        }
    });
}

fn kind(data: &Value) -> &str {
    data["type"].as_str().unwrap_or_default()
}

#[test]
fn everything_that_begins_ends() {
    each(|name, log, part| {
        for protocol in ["ai-sdk", "ag-ui"] {
            let mut open = BTreeSet::new();
            for Frame { data, .. } in frames(protocol, part, log) {
                let kind = kind(&data).to_lowercase().replace('-', "_");
                let of = ["id", "messageId", "toolCallId", "stepName"].iter().find_map(|name| data[name].as_str());
                let of = of.unwrap_or_default();
                for (begins, ends) in [
                    ("text_start", "text_end"),
                    ("reasoning_start", "reasoning_end"),
                    ("text_message_start", "text_message_end"),
                    ("reasoning_message_start", "reasoning_message_end"),
                    ("tool_call_start", "tool_call_end"),
                    ("step_started", "step_finished"),
                    ("start_step", "finish_step"),
                ] {
                    if kind == begins {
                        assert!(open.insert((begins, of.to_owned())), "{name} {protocol}: {of} is open");
                    }
                    if kind == ends {
                        assert!(open.remove(&(begins, of.to_owned())), "{name} {protocol}: {of} is not open");
                    }
                }
                if ["error", "abort"].contains(&kind.as_str()) {
                    // The step ends with the message.
                    open.remove(&("start_step", String::new()));
                }
            }
            assert!(open.is_empty(), "{name} {protocol} {part:?}: {open:?}");
        }
    });
}

#[test]
fn a_response_goes_on_after_any_of_its_events() {
    each(|name, log, part| {
        let all = frames("response", part, log);
        let number = |frame: &Frame| frame.data["sequence_number"].as_u64().unwrap();
        assert!(all.is_sorted_by_key(number), "{name}");
        for (at, frame) in all.iter().enumerate() {
            let rest = fold(&mut response(part, StartingAfter::Frame(Some(number(frame)))), log);
            assert_eq!(rest, all[at + 1..], "{name} after {at}");
        }
        let mut whole = response(part, StartingAfter::Whole);
        let last = fold(&mut whole, log);
        assert_eq!(last.len(), 1);
        assert_eq!((&last[0].data, &whole.whole()), (&all.last().unwrap().data["response"], &last[0].data));
    });
}

#[test]
fn a_response_is_the_same_without_the_pieces_that_expire() {
    let whole = |part: Part, log: &[ChatEvent]| {
        let mut view = response(part, StartingAfter::Whole);
        fold(&mut view, log);
        view.whole()
    };
    for name in ["planner/simple.json", "planner/tool.json", "clients/asks.log.json"] {
        let log = log(name);
        let kept: Vec<ChatEvent> = log.iter().filter(|event| !event.is_transient()).cloned().collect();
        for part in parts(&log) {
            assert_eq!(whole(part, &log), whole(part, &kept), "{name}");
        }
    }
}

#[test]
fn a_client_that_comes_back_gets_the_turn_from_its_beginning() {
    let log = log("clients/asks.log.json");
    let part = parts(&log)[1];
    let all = fold(&mut Chunks::through(chat(), part), &log);
    let count = |wanted: &str| all.iter().filter(|frame| kind(&frame.data) == wanted).count();
    assert_eq!((count("start"), count("finish"), count("text-start")), (1, 1, 2));
    let input = all.iter().position(|frame| kind(&frame.data) == "tool-input-available").unwrap();
    let output = all.iter().position(|frame| kind(&frame.data) == "tool-output-available").unwrap();
    assert!(input < output);
}

#[test]
fn a_task_is_the_sum_of_its_updates() {
    each(|name, log, part| {
        let mut whole = task(part, part.number, Shows::Whole(None));
        let last = fold(&mut whole, log);
        assert_eq!(last.len(), 1, "{name}");
        let whole = &last[0].data["result"]["task"];
        let (mut status, mut text, mut files) = (Value::Null, String::new(), BTreeSet::new());
        for Frame { data, .. } in frames("a2a", part, log) {
            let update = &data["result"]["artifactUpdate"]["artifact"];
            match update["artifactId"].as_str() {
                Some("answer") => text.push_str(update["parts"][0]["text"].as_str().unwrap()),
                Some(file) => _ = files.insert(file.to_owned()),
                None => status = data["result"]["statusUpdate"]["status"].clone(),
            }
        }
        assert_eq!(whole["status"], status, "{name} {part:?}");
        let artifacts = whole["artifacts"].as_array().unwrap();
        let answer = artifacts.iter().find(|one| one["artifactId"] == "answer");
        assert_eq!(answer.map_or("", |one| one["parts"][0]["text"].as_str().unwrap()), text, "{name} {part:?}");
        assert_eq!(artifacts.len() - usize::from(answer.is_some()), files.len(), "{name} {part:?}");
    });
}

#[test]
fn a_watched_task_goes_on_over_its_questions() {
    let log = log("clients/asks.log.json");
    let mut view = task(parts(&log)[0], u32::MAX, Shows::Updates);
    let all = fold(&mut view, &log);
    let states: Vec<&str> = all
        .iter()
        .filter(|frame| {
            let told = &frame.data["result"]["statusUpdate"]["metadata"];
            ["call", "result", "thought"].iter().all(|about| told.get(about).is_none())
        })
        .filter_map(|frame| frame.data["result"]["statusUpdate"]["status"]["state"].as_str())
        .collect();
    let at = states.iter().position(|state| *state == "TASK_STATE_INPUT_REQUIRED").unwrap();
    assert_eq!((states[0], states[at + 1]), ("TASK_STATE_WORKING", "TASK_STATE_WORKING"));
    assert_eq!((states.last(), view.is_over()), (Some(&"TASK_STATE_COMPLETED"), true));
}

#[test]
fn the_states_of_a_thread_grow_and_its_last_one_is_that_of_its_stream() {
    each(|name, log, part| {
        let mut conversation = Conversation::default();
        for (number, event) in (1..).zip(log) {
            conversation.take_in(number, Timestamp::default(), event);
        }
        let history = conversation.history();
        let states = history.states("the thread", usize::MAX, None);
        let lengths: Vec<usize> =
            states.iter().map(|state| state["values"]["messages"].as_array().unwrap().len()).collect();
        assert!(lengths.is_sorted_by(|newer, older| newer >= older), "{name}: {lengths:?}");
        for (newer, older) in states.iter().zip(&states[1..]) {
            assert_eq!(newer["parent_checkpoint"], older["checkpoint"], "{name}");
        }
        let run = history.run(part.into());
        let waits = parts(log).last() == Some(&part) && !history.interrupts().is_empty();
        assert!(waits || run.is_some_and(|run| run.status.is_over()), "{name} {part:?}: {run:?}");
        let frames = frames("langgraph", part, log);
        let end = frames.last().unwrap().data["status"].as_str().unwrap().to_owned();
        if run.is_some_and(|run| run.status != Status::Running) && parts(log).last() == Some(&part) {
            assert_eq!(run.unwrap().status.name(), end, "{name} {part:?}");
        }
    });
}

#[test]
fn the_last_state_of_a_thread_has_the_words_of_the_message_that_is_being_written() {
    let log = log("clients/stop.log.json");
    let states = |log: &[ChatEvent]| {
        let mut conversation = Conversation::default();
        for (number, event) in (1..).zip(log) {
            conversation.take_in(number, Timestamp::default(), event);
        }
        conversation.history().states("the thread", usize::MAX, None)
    };
    let said = |state: &Value| -> Vec<(Value, Value)> {
        let messages = state["values"]["messages"].as_array().unwrap();
        messages.iter().map(|message| (message["id"].clone(), message["content"].clone())).collect()
    };
    let chunk = log.iter().position(|event| matches!(event, ChatEvent::Chunk { .. })).unwrap();
    let (running, stopped) = (states(&log[..=chunk]), states(&log));
    assert_eq!(said(&running[0])[1].1, "one t");
    // The stop keeps it under its id, and the checkpoint before it is as it was.
    assert_eq!(said(&running[0]), said(&stopped[0])[..2]);
    assert_eq!(said(stopped.last().unwrap()).len(), 1);
    // A message that begins again has no words yet, and a summary is no message.
    let again = [&log[..=chunk], &log[chunk - 1..chunk]].concat();
    let began = ChatEvent::CompactionBegan { internal: false, max_chars: 400, at: Timestamp::default() };
    let summary = [&log[..chunk], std::slice::from_ref(&began), &log[chunk..=chunk]].concat();
    assert_eq!((said(&states(&again)[0]).len(), said(&states(&summary)[0]).len()), (1, 1));
}

#[test]
fn a_response_has_the_settings_of_its_model_and_one_that_is_cut_says_so() {
    let mut log = log("clients/text.log.json");
    for event in &mut log {
        match event {
            ChatEvent::Created { config } => config.model_settings.temperature = Some(0.5),
            ChatEvent::Done { stop_reason, .. } => *stop_reason = StopReason::MaxOutputTokens,
            _ => {}
        }
    }
    let part = *parts(&log).first().unwrap();
    for protocol in ["completion", "completion-whole"] {
        let reasons: Vec<_> = fold(&mut *view(protocol, part), &log)
            .iter()
            .filter_map(|frame| frame.data["choices"][0]["finish_reason"].as_str().map(str::to_owned))
            .collect();
        assert_eq!(reasons, ["length"], "{protocol}");
    }
    let frames = fold(&mut *view("response", part), &log);
    let response = &frames.last().unwrap().data["response"];
    assert_eq!((response["status"].as_str(), response["temperature"].as_f64()), (Some("incomplete"), Some(0.5)));
    assert_eq!(response["incomplete_details"]["reason"], "max_output_tokens");
    assert_eq!(frames.first().unwrap().data["response"]["temperature"], 0.5);
}

#[test]
fn the_author_of_a_message_is_told_in_our_own_format_alone() {
    let author = log("clients/text.log.json").into_iter().find_map(|event| match event {
        ChatEvent::MessageAdded { message: Message::User { user_id, .. } } => user_id,
        _ => None,
    });
    let author = author.unwrap().to_string();
    let mut tell = BTreeSet::new();
    for rendered in std::fs::read_dir(file("clients")).unwrap() {
        let path = rendered.unwrap().path();
        if path.is_file() && std::fs::read_to_string(&path).unwrap().contains(&author) {
            tell.insert(path.file_name().unwrap().to_str().unwrap().to_owned());
        }
    }
    assert_eq!(tell.into_iter().collect::<Vec<_>>(), ["text.log.json", "text.native"]);
}
