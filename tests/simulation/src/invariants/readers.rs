//! The invariants of everything that is made from a log.

use super::{Held, Log, broken, events, fold};
use crate::watcher::Seen;
use actor::{Entry, Machine as _};
use chat::ChatMachine;
use domain::{
    ChatEvent, Message, TurnId,
    event::{RollbackFact, StopReason},
    native,
};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// The snapshot is equal to the fold of the log before it: it and the entries after it give the same state as the whole log.
pub fn snapshot_is_a_fold(log: &Log, snapshot: Option<&str>) -> Held {
    const NAME: &str = "snapshot_is_a_fold";
    #[derive(Deserialize)]
    struct Snapshot {
        next: u64,
        state: Value,
    }
    let Some(body) = snapshot else { return Ok(()) };
    let snapshot: Snapshot = match serde_json::from_str(body) {
        Ok(snapshot) => snapshot,
        Err(error) => return broken(NAME, format!("it cannot be read: {error}")),
    };
    let before = log.iter().take_while(|entry| entry.next <= snapshot.next).count();
    let covered = log.get(..before).unwrap_or_default();
    if covered.last().map_or(1, |entry| entry.next) != snapshot.next {
        return broken(NAME, format!("no entry begins with {}", snapshot.next));
    }
    let folded = serde_json::to_value(fold(covered)).unwrap_or_default();
    if folded == snapshot.state {
        Ok(())
    } else {
        broken(NAME, format!("at {}: {} instead of {folded}", snapshot.next, snapshot.state))
    }
}

/// The view that lists show is that of the state that the log folds to.
pub fn view_is_that_of_the_fold(log: &Log, view: Option<&str>) -> Held {
    // Three cases: not begun, and so with the view that it was made with; listed; given up.
    let Some(folded) = ChatMachine::view(&fold(log)).map(|view| view.body) else { return Ok(()) };
    match (folded, view) {
        (Some(folded), Some(view)) if folded == view => Ok(()),
        (None, None) => Ok(()),
        (folded, view) => broken("view_is_that_of_the_fold", format!("{view:?} instead of {folded:?}")),
    }
}

/// The list of what waits for people has the chat while it asks somebody, with the same requests, and at no other time.
pub fn waiting_is_that_of_the_fold(log: &Log, listed: Option<&str>) -> Held {
    let folded = ChatMachine::waiting(&fold(log)).and_then(|waiting| serde_json::to_string(&waiting).ok());
    if folded.as_deref() == listed {
        Ok(())
    } else {
        broken("waiting_is_that_of_the_fold", format!("{listed:?} instead of {folded:?}"))
    }
}

/// Each turn that asked a model or a coding agent has one record of its usage. `records` are the turns that have one.
pub fn usage_was_recorded_once(log: &Log, records: &[TurnId]) -> Held {
    const NAME: &str = "usage_was_recorded_once";
    let (mut running, mut asked, mut expected) = (None, false, BTreeSet::new());
    for event in events(log) {
        match event {
            ChatEvent::TurnStarted { turn_id, attempt: 1, .. } => (running, asked) = (Some(*turn_id), false),
            ChatEvent::ModelStarted { .. } | ChatEvent::AgentBegan { .. } => asked = true,
            ChatEvent::Done { .. } | ChatEvent::Stopped { .. } if asked => expected.extend(running.take()),
            _ => {}
        }
    }
    let found: BTreeSet<TurnId> = records.iter().copied().collect();
    if found.len() == records.len() && found == expected {
        Ok(())
    } else {
        broken(NAME, format!("{records:?} instead of {expected:?}"))
    }
}

/// A client that watched, and lost its connection now and then, got every visible event once and in order.
pub fn stream_brought_each_event_once(log: &Log, seen: &[Seen]) -> Held {
    let visible = log.iter().flat_map(Entry::numbered).filter_map(|(number, event)| {
        native::encode(event).map(|(name, data)| Seen { number, name: name.into(), data: data.to_string() })
    });
    let mut seen = seen.iter();
    for expected in visible {
        match seen.next() {
            Some(got) if *got == expected => {}
            got => return broken("stream_brought_each_event_once", format!("{got:?} instead of {expected:?}")),
        }
    }
    match seen.next() {
        None => Ok(()),
        Some(more) => broken("stream_brought_each_event_once", format!("{more:?} is in no log")),
    }
}

/// The chat's file has each message, call, result, question and error of the log once and in order, under a head that
/// names the chat.
pub fn chat_file_agrees_with_the_log(log: &Log, file: &str) -> Held {
    const NAME: &str = "chat_file_agrees_with_the_log";
    let expected: Vec<String> = log
        .iter()
        .flat_map(|entry| entry.events.iter().filter_map(|event| headline(event, &entry.at.to_string())))
        .collect();
    let found: Vec<&str> = file.lines().filter(|line| line.starts_with("## ") || line.starts_with("### ")).collect();
    if found != expected {
        let at = found.iter().zip(&expected).take_while(|(found, expected)| found == expected).count();
        let (found, expected) = (found.get(at), expected.get(at));
        return broken(NAME, format!("headline {at}: {found:?} instead of {expected:?} in:\n{file}"));
    }
    let markers: Vec<u64> =
        file.lines().filter_map(|line| line.strip_prefix("<!-- ")?.strip_suffix(" -->")?.parse().ok()).collect();
    if !markers.is_sorted_by(|a, b| a < b) {
        return broken(NAME, format!("the markers {markers:?} are out of order"));
    }
    if !log.is_empty() && !file.starts_with("---\nchat: ") {
        return broken(NAME, "it has no head");
    }
    Ok(())
}

fn headline(event: &ChatEvent, at: &str) -> Option<String> {
    match event {
        ChatEvent::MessageAdded { message } => {
            let who = match message {
                Message::User { .. } => "user",
                Message::Assistant { content, .. } if content.is_empty() => return None,
                Message::Assistant { .. } => "assistant",
                Message::System { .. } => "system",
                Message::Tool { .. } => return None,
            };
            Some(format!("## {who} · {}", message.at()))
        }
        ChatEvent::AgentUpdated { update, .. } if update["sessionUpdate"] == "tool_call" => {
            let kind = update["kind"].as_str().unwrap_or("other");
            Some(format!("### call {kind}: {}", update["title"].as_str().unwrap_or_default()))
        }
        ChatEvent::CallStarted { tool, attempt: 1, .. } => Some(format!("### call {tool}")),
        ChatEvent::Observed { tool, success: true, .. } => Some(format!("### result of {tool}")),
        ChatEvent::Observed { tool, .. } => Some(format!("### failure of {tool}")),
        ChatEvent::Asked { .. } => Some(format!("## question · {at}")),
        ChatEvent::Compacted { compaction } => match compaction.summary {
            Some(_) => Some(format!("## summary of lines 1 to {} · {}", compaction.last_line, compaction.at)),
            None => Some(format!("## left out of the context · {}", compaction.at)),
        },
        ChatEvent::Rollback { fact } => match &**fact {
            RollbackFact::Ended { error: None, at, .. } => Some(format!("## the turn before is taken back · {at}")),
            RollbackFact::Began { .. } | RollbackFact::Ended { .. } => None,
        },
        ChatEvent::Failed { .. } => Some(format!("## error · {at}")),
        ChatEvent::Done { stop_reason, .. } if *stop_reason != StopReason::EndTurn => Some(format!("## ended · {at}")),
        _ => None,
    }
}
