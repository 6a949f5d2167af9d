//! The invariants of a log alone, and of a log and its mailbox.

use super::{Held, Log, broken, events, fold};
use crate::person::Sent;
use actor::{Entry, Machine as _};
use chat::ChatMachine;
use domain::{ChatEvent, Message, MessageId, Timestamp, TurnId};
use ports::{DeadLetter, ModelRequest, QueueMessage};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

/// Each entry begins where the one before ended: no event is lost, none is there twice, and numbers are never given twice.
pub fn entries_are_contiguous<E>(log: &[Entry<E>]) -> Held {
    const NAME: &str = "entries_are_contiguous";
    let mut next = 1;
    for entry in log {
        if entry.first != next {
            return broken(NAME, format!("entry {} follows after {next} was due", entry.first));
        }
        if entry.next < entry.first + (entry.events.len() as u64).max(1) {
            return broken(NAME, format!("entry {} ends before its own events", entry.first));
        }
        next = entry.next;
    }
    Ok(())
}

/// No command was consumed by two entries.
pub fn commands_were_consumed_once<E>(log: &[Entry<E>]) -> Held {
    let mut seen = BTreeSet::new();
    match log.iter().flat_map(|entry| &entry.commands).find(|command| !seen.insert(**command)) {
        None => Ok(()),
        Some(command) => broken("commands_were_consumed_once", format!("{command} was consumed twice")),
    }
}

/// Each message that was accepted became one turn, with its words; one that was refused, or that a deletion came in
/// between of, became at most one.
pub fn accepted_messages_became_turns(log: &Log, sent: &[Sent]) -> Held {
    const NAME: &str = "accepted_messages_became_turns";
    let (mut last_turn, mut steered) = (None, BTreeSet::new());
    let mut begun = BTreeMap::new();
    for event in events(log) {
        match event {
            ChatEvent::TurnStarted { turn_id, attempt: 1, .. } => last_turn = Some(*turn_id),
            ChatEvent::CompactionBegan { internal: true, .. } => last_turn = None,
            ChatEvent::Steered { words } => drop(steered.insert(words.command_id.0)),
            ChatEvent::MessageAdded { message: Message::User { id, content, .. } } => {
                // Words that steered a turn are known by their own request.
                let own = steered.remove(&id.0).then_some(TurnId(id.0));
                let Some(turn) = own.or_else(|| last_turn.take()) else {
                    return broken(NAME, format!("{content:?} is in no turn of its own"));
                };
                begun.insert(turn, content.as_str());
            }
            _ => {}
        }
    }
    let deleted = fold(log).deleted;
    for message in sent {
        match begun.remove(&message.turn) {
            Some(content) if content == message.content => {}
            Some(content) => return broken(NAME, format!("{:?} became {content:?}", message.content)),
            None if message.accepted && !deleted => {
                return broken(NAME, format!("{:?} was accepted and is lost", message.content));
            }
            None => {}
        }
    }
    match begun.pop_first() {
        None => Ok(()),
        Some((turn, content)) => broken(NAME, format!("{content:?} was never sent (turn {turn})")),
    }
}

/// Each turn has one beginning (its first attempt) and one end, and turns do not overlap.
pub fn turns_began_and_ended_once(log: &Log) -> Held {
    const NAME: &str = "turns_began_and_ended_once";
    let (mut running, mut known) = (None, BTreeSet::new());
    for event in events(log) {
        match event {
            ChatEvent::TurnStarted { turn_id, attempt: 1, .. } => {
                if !known.insert(*turn_id) {
                    return broken(NAME, format!("the turn {turn_id} began twice"));
                }
                if let Some(other) = running.replace(*turn_id) {
                    return broken(NAME, format!("the turn {turn_id} began while {other} was running"));
                }
            }
            ChatEvent::TurnStarted { turn_id, .. } if running != Some(*turn_id) => {
                return broken(NAME, format!("the turn {turn_id} began again while {running:?} was running"));
            }
            ChatEvent::Done { turn_id, .. } | ChatEvent::Stopped { turn_id, .. }
                if running.take() != Some(*turn_id) =>
            {
                return broken(NAME, format!("the turn {turn_id} ended, which was not running"));
            }
            _ => {}
        }
    }
    match running {
        None => Ok(()),
        Some(turn) => broken(NAME, format!("the turn {turn} has not ended")),
    }
}

/// A deletion that was answered, at `answered`, came to pass; no turn and no model call begins after it in the log, and the chat is in no
/// list. It did not wait for earlier requests: none of them went on to its end for long.
pub fn deleted_chats_stay_deleted(log: &Log, view: Option<&str>, answered: Option<Timestamp>) -> Held {
    const NAME: &str = "deleted_chats_stay_deleted";
    /// A worker that has missed the announcement looks every two seconds, and stores may fail then.
    const SOON: Duration = Duration::from_secs(10);
    let mut deleted = false;
    for event in events(log) {
        match event {
            ChatEvent::Deleted { .. } if deleted => return broken(NAME, "it was deleted twice"),
            ChatEvent::Deleted { .. } => deleted = true,
            ChatEvent::TurnStarted { attempt: 1, .. } | ChatEvent::ModelStarted { .. } if deleted => {
                return broken(NAME, format!("after it was deleted: {event:?}"));
            }
            ChatEvent::Done { at, .. } if answered.is_some_and(|answered| *at > answered + SOON) => {
                return broken(NAME, format!("nothing stopped the earlier request: {event:?}"));
            }
            _ => {}
        }
    }
    match (answered, view) {
        (Some(_), Some(view)) => broken(NAME, format!("it is back: {view}")),
        (Some(_), None) if !deleted => broken(NAME, "its log says nothing of it"),
        _ => Ok(()),
    }
}

/// Attempts of turns, of model calls and of tool calls count up by one: a client that is told of attempt `n` was told of
/// `n - 1`, and nothing is run again without being told.
pub fn attempts_count_up(log: &Log) -> Held {
    let mut last: BTreeMap<uuid::Uuid, u32> = BTreeMap::new();
    for event in events(log) {
        let (id, attempt) = match event {
            ChatEvent::TurnStarted { turn_id, attempt, .. } => (turn_id.0, *attempt),
            ChatEvent::ModelStarted { message_id, attempt, .. } => (message_id.0, *attempt),
            ChatEvent::CallStarted { call_id, attempt, .. } => (call_id.0, *attempt),
            _ => continue,
        };
        let before = last.insert(id, attempt).unwrap_or(0);
        if attempt != before + 1 {
            return broken("attempts_count_up", format!("attempt {attempt} of {id} follows attempt {before}"));
        }
    }
    Ok(())
}

/// Each call that a model made has one answer, after the call and before the next message.
pub fn calls_were_answered_once(log: &Log) -> Held {
    const NAME: &str = "calls_were_answered_once";
    let mut open: Vec<domain::CallId> = Vec::new();
    for event in events(log) {
        match event {
            ChatEvent::MessageAdded { message } => {
                if !open.is_empty() {
                    return broken(NAME, format!("{open:?} had no answer when the next message came"));
                }
                if let Message::Assistant { calls, .. } = message {
                    open = calls.iter().map(|call| call.call_id).collect();
                }
            }
            ChatEvent::Observed { call_id, .. } => match open.iter().position(|call| call == call_id) {
                Some(0) => drop(open.remove(0)),
                Some(_) => return broken(NAME, format!("{call_id} was answered out of order")),
                None => return broken(NAME, format!("{call_id} was answered, which was not open")),
            },
            _ => {}
        }
    }
    if open.is_empty() { Ok(()) } else { broken(NAME, format!("{open:?} have no answer")) }
}

/// A model takes the history: each call is followed by its result, and the other demands of providers hold.
pub fn history_can_be_sent_to_a_model(log: &Log) -> Held {
    let state = fold(log);
    let next = Message::User {
        id: MessageId(uuid::Uuid::nil()),
        at: Timestamp::default(),
        content: "next".into(),
        files: Vec::new(),
        context: String::new(),
        user_id: None,
    };
    let summary = state.summary.iter().map(|summary| summary.message.clone());
    let messages = summary.chain(state.history.iter().flat_map(|turn| turn.messages.iter().cloned()));
    let request = ModelRequest {
        system: "system".into(),
        messages: messages.chain([Arc::new(next)]).collect(),
        tools: tools::Registry::builtin().specs(),
        ..ModelRequest::default()
    };
    models::check(&request).or_else(|what| broken("history_can_be_sent_to_a_model", what))
}

/// Nothing is in flight, nothing waits, and nothing was put aside: neither in the chat nor in the queue.
pub fn nothing_is_stranded(log: &Log, waiting: &[QueueMessage], dead: &[DeadLetter]) -> Held {
    const NAME: &str = "nothing_is_stranded";
    let state = fold(log);
    if ChatMachine::in_flight(&state) || state.turn.is_some() {
        return broken(NAME, format!("a turn is left: {:?}", state.turn));
    }
    if !state.queued.is_empty() {
        return broken(NAME, format!("turns are left: {:?}", state.queued));
    }
    if let Some(reason) = &state.paused {
        return broken(NAME, format!("the chat is paused: {reason}"));
    }
    if let Some(message) = waiting.first() {
        return broken(NAME, format!("the queue still has {}", message.body));
    }
    match dead.first() {
        None => Ok(()),
        Some(message) => broken(NAME, format!("a dead letter: {}", message.message.body)),
    }
}
