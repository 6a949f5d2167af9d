//! Every recorded log in every protocol. The protocols that have tests of their own beside these are rendered here: our own events, the hub's, those of
//! an editor, and those of the planner chat. Each of them has all that a log says, and each part that begins in a transcript ends there.

use crate::{
    acp::line,
    clients::{PROTOCOLS, TASKS, TELL_TASKS},
    logs::{LOGS, file, golden, log, numbered},
};
use buildscale_protocols::{
    Frame, Projection,
    acp::{EditorUpdate, PersonAsked, Updates},
    hub::Frames,
    planner::{PlannerTurn, Shows},
};
use domain::{ChatEvent, ChatId, Message, TurnId, native};
use serde_json::Value;
use std::{collections::BTreeSet, fmt::Write};
use uuid::Uuid;

/// The protocols that have words of their own for tasks. Those in [`TELL_TASKS`] show one as a turn, and any other one offers no flows.
const OF_TASKS: [&str; 3] = ["native", "langgraph", "langgraph-whole"];
/// The protocols that are rendered here.
const HERE: [&str; 4] = ["native", "hub", "acp", "planner"];

fn thread() -> ChatId {
    ChatId(Uuid::from_u128(2))
}

fn turns(log: &[ChatEvent]) -> Vec<TurnId> {
    let begun = log.iter().filter_map(|event| match event {
        ChatEvent::TurnStarted { turn_id, attempt: 1, .. } => Some(*turn_id),
        _ => None,
    });
    begun.collect()
}

fn hub(log: &[ChatEvent]) -> Vec<Frame> {
    let (mut view, mut frames) = (Frames::of_thread(thread()), Vec::new());
    for (number, at, event) in numbered(log) {
        view.take_in(number, at, event, &mut frames);
    }
    frames
}

fn acp(log: &[ChatEvent]) -> Vec<EditorUpdate> {
    let mut updates = Updates::default();
    hub(log).iter().filter_map(|frame| updates.take_in(frame.event.unwrap(), &frame.data)).collect()
}

fn planner(log: &[ChatEvent], turn: TurnId) -> Vec<Frame> {
    let (mut view, mut frames) = (PlannerTurn::new(thread(), None, Shows::Turn(turn)), Vec::new());
    for (number, at, event) in numbered(log) {
        if !view.is_over() {
            view.take_in(number, at, event, &mut frames);
        }
    }
    frames
}

fn transcript(protocol: &str, log: &[ChatEvent]) -> String {
    let mut text = String::new();
    match protocol {
        "native" => {
            for (number, _, event) in numbered(log) {
                if let Some((name, data)) = native::encode(event) {
                    writeln!(text, "{number} {name} {data}").unwrap();
                }
            }
        }
        "hub" => {
            for Frame { number, event, data } in hub(log) {
                writeln!(text, "{number} {} {data}", event.unwrap()).unwrap();
            }
        }
        "acp" => {
            for told in acp(log) {
                writeln!(text, "{}", line(&told)).unwrap();
            }
        }
        _ => {
            for turn in turns(log) {
                writeln!(text, "# turn {turn}").unwrap();
                for Frame { number, data, .. } in planner(log, turn) {
                    writeln!(text, "{number} {data}").unwrap();
                }
            }
        }
    }
    text
}

#[test]
fn recorded_logs_are_rendered_by_our_own_doors_like_this() {
    for (name, path) in LOGS {
        let log = log(path);
        for protocol in HERE {
            golden(&format!("{name}.{protocol}"), &transcript(protocol, &log));
        }
    }
}

/// No log and no protocol is left out, and no transcript stays behind when one of them goes.
#[test]
fn each_protocol_has_a_transcript_of_each_log() {
    let protocols = || HERE.into_iter().chain(PROTOCOLS);
    let mut wanted: BTreeSet<String> =
        LOGS.iter().flat_map(|(log, _)| protocols().map(move |protocol| format!("{log}.{protocol}"))).collect();
    let of_tasks = || OF_TASKS.into_iter().chain(TELL_TASKS);
    wanted.extend(TASKS.iter().flat_map(|(log, _)| of_tasks().map(move |protocol| format!("{log}.{protocol}"))));
    let kept = std::fs::read_dir(file("clients")).unwrap().map(|entry| entry.unwrap().file_name());
    let kept = kept.map(|name| name.into_string().unwrap()).filter(|name| !name.ends_with(".log.json"));
    assert_eq!(kept.collect::<BTreeSet<_>>(), wanted);
}

/// The words of the model, as far as messages of it are whole.
fn words(log: &[ChatEvent]) -> Vec<&str> {
    let said = log.iter().filter_map(|event| match event {
        ChatEvent::MessageAdded { message: Message::Assistant { content, .. } } if !content.is_empty() => {
            Some(content.as_str())
        }
        _ => None,
    });
    said.collect()
}

fn joined<'a>(pieces: impl Iterator<Item = Option<&'a str>>) -> String {
    pieces.flatten().collect()
}

#[test]
fn all_words_of_the_model_are_in_each_transcript() {
    for (name, path) in LOGS {
        let log = log(path);
        let hub = hub(&log);
        let in_hub = joined(hub.iter().map(|frame| match frame.event {
            Some("message_delta") => frame.data["delta"].as_str(),
            _ => None,
        }));
        let acp = acp(&log);
        let in_acp = joined(acp.iter().map(|told| match told {
            EditorUpdate::Update(update) if update["sessionUpdate"] == "agent_message_chunk" => {
                update["content"]["text"].as_str()
            }
            _ => None,
        }));
        let planner: Vec<Frame> = turns(&log).into_iter().flat_map(|turn| planner(&log, turn)).collect();
        let in_planner = joined(planner.iter().map(|frame| match frame.data["type"].as_str() {
            Some("text") => frame.data["content"].as_str(),
            _ => None,
        }));
        for words in words(&log) {
            for (protocol, text) in [("hub", &in_hub), ("acp", &in_acp), ("planner", &in_planner)] {
                assert!(text.contains(words), "{name}: {protocol} lacks {words:?} in {text:?}");
            }
        }
    }
}

#[test]
fn each_turn_ends_once_and_its_end_is_its_last_frame() {
    for (name, path) in LOGS {
        let log = log(path);
        let over = log.iter().filter(|event| event.is_terminal()).count();
        let hub = hub(&log);
        let ends = hub.iter().filter(|frame| frame.event == Some("turn_completed")).count();
        assert_eq!(ends, over, "{name}");
        // A paused chat ends the answers of those who wait for one; its turn has not ended.
        let over = over + log.iter().filter(|event| matches!(event, ChatEvent::Paused { .. })).count();
        assert!(hub.is_sorted_by_key(|frame| frame.number), "{name}");
        let told = acp(&log).iter().filter(|told| matches!(told, EditorUpdate::Ended(_))).count();
        assert_eq!(told, over, "{name}");
        for (number, turn) in turns(&log).into_iter().enumerate() {
            let frames = planner(&log, turn);
            let done: Vec<usize> = (0..frames.len()).filter(|at| frames[*at].data["type"] == "done").collect();
            let wanted = (number < over).then(|| frames.len() - 1);
            assert_eq!(done, wanted.into_iter().collect::<Vec<_>>(), "{name} {turn}");
        }
    }
}

#[test]
fn each_request_for_permission_is_told_and_each_call_that_begins_ends() {
    for (name, path) in LOGS {
        let log = log(path);
        let asked = log.iter().filter(|event| matches!(event, ChatEvent::PermissionRequired { .. })).count();
        let hub = hub(&log);
        assert_eq!(hub.iter().filter(|frame| frame.event == Some("permission_required")).count(), asked, "{name}");
        let acp = acp(&log);
        let wants =
            acp.iter().filter(|told| matches!(told, EditorUpdate::Wants(PersonAsked::Permission { .. }))).count();
        assert_eq!(wants, asked, "{name}");
        let mut open = BTreeSet::new();
        for told in &acp {
            match told {
                EditorUpdate::Update(update) if update["sessionUpdate"] == "tool_call" => {
                    assert!(open.insert(id(update)), "{name}: {update} began twice");
                }
                EditorUpdate::Update(update)
                    if update["sessionUpdate"] == "tool_call_update"
                        && ["completed", "failed"].iter().any(|end| update["status"] == *end) =>
                {
                    assert!(open.remove(&id(update)), "{name}: {update} had not begun");
                }
                // A turn that ends takes its calls along.
                EditorUpdate::Ended(_) => open.clear(),
                _ => {}
            }
        }
        assert!(open.is_empty(), "{name}: {open:?}");
    }
}

fn id(update: &Value) -> String {
    update["toolCallId"].as_str().unwrap().to_owned()
}
