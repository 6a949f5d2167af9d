//! The invariants of compactions.

use super::{Held, Log, broken};
use chat::ChatState;
use domain::{ChatEvent, Message, TurnId};
use std::collections::BTreeSet;
use std::sync::Arc;

fn words(state: &ChatState) -> Vec<Arc<Message>> {
    state.history.iter().flat_map(|turn| turn.messages.iter().cloned()).collect()
}

fn is_of_call(message: &Message) -> bool {
    match message {
        Message::Tool { .. } => true,
        Message::Assistant { calls, .. } => !calls.is_empty(),
        Message::User { .. } | Message::System { .. } => false,
    }
}

/// A compaction with a summary keeps every call with its result and the last four messages; it comes at most once in a turn; and when it is
/// taken back, the model reads all words again.
pub fn compactions_lose_nothing(log: &Log) -> Held {
    const NAME: &str = "compactions_lose_nothing";
    let (mut state, mut replaced, mut turn, mut compacted) =
        (ChatState::default(), None, None::<TurnId>, BTreeSet::new());
    for (number, event) in log.iter().flat_map(actor::Entry::numbered) {
        let before = words(&state);
        state.apply(number, event);
        let after = words(&state);
        match event {
            ChatEvent::TurnStarted { turn_id, .. } => turn = Some(*turn_id),
            ChatEvent::Compacted { compaction } => {
                if turn.is_some_and(|turn| !compacted.insert(turn)) {
                    return broken(NAME, format!("{turn:?} compacted twice"));
                }
                let calls = |messages: &[Arc<Message>]| -> Vec<Arc<Message>> {
                    messages.iter().filter(|message| is_of_call(message)).cloned().collect()
                };
                if compaction.summary.is_some() && calls(&before) != calls(&after) {
                    return broken(NAME, "a call or a result is gone");
                }
                let last = before.len().saturating_sub(4);
                if !after.ends_with(&before[last..]) {
                    return broken(NAME, "one of the last four messages is gone");
                }
                if state.summary.as_ref().is_none_or(|summary| summary.tokens == 0) && compaction.summary.is_some() {
                    return broken(NAME, "the summary is not read");
                }
                replaced = Some((before, after.len()));
            }
            ChatEvent::CompactionUndone { .. } => {
                let Some((restored, kept)) = replaced.take() else {
                    return broken(NAME, "what was never compacted was taken back");
                };
                let since = before.get(kept..).unwrap_or_default();
                if after != [&restored, since].concat() {
                    return broken(NAME, "the words are not those from before");
                }
            }
            ChatEvent::ContextCut { .. } => replaced = None,
            _ => {}
        }
    }
    Ok(())
}
