//! The context of a model call: the system text and the turns that fit the budget, as whole turns, oldest left out first.
//!
//! The bytes that a model got once do not change: messages are kept as they were, and a cut leaves out so much at once that
//! it is rarely needed, so that the provider's cache of the prefix holds in between.

use crate::state::{ChatState, PastTurn, message_of};
use domain::{ChatEvent, Message};
use std::{collections::VecDeque, sync::Arc};

/// After a cut this many percent of the budget may be used.
const KEPT_PERCENT: u64 = 60;

/// The context of a model call after some more events.
pub(crate) struct Context {
    /// The messages.
    pub messages: Vec<Arc<Message>>,
    /// How many of the oldest turns have to be left out from now on.
    pub cut: u32,
}

/// A turn as the model would read it.
#[derive(Default)]
struct Reading<'a> {
    known: &'a [Arc<Message>],
    added: Vec<Arc<Message>>,
    tokens: u64,
}

/// The context of the next model call: the state, then what `events` change about it. None when the last turn, which is the
/// one that asks, is over the budget by itself.
pub(crate) fn assemble(state: &ChatState, events: &[ChatEvent]) -> Option<Context> {
    let config = state.config.as_ref();
    let budget = config.map_or(u64::MAX, |config| config.context_tokens);
    let system = config.map_or(0, |config| config.system.len() as u64 / 4);
    let mut turns = turns_after(state, events);
    let fixed = system + turns.back().map_or(0, |turn| turn.tokens);
    if fixed > budget {
        return None;
    }
    let mut tokens = system + turns.iter().map(|turn| turn.tokens).sum::<u64>();
    let mut cut = 0;
    if tokens > budget {
        let target = fixed.max(budget / 100 * KEPT_PERCENT);
        while tokens > target
            && turns.len() > 1
            && let Some(turn) = turns.pop_front()
        {
            tokens -= turn.tokens;
            cut += 1;
        }
    }
    let mut messages = Vec::with_capacity(turns.iter().map(|turn| turn.known.len() + turn.added.len()).sum());
    for turn in turns {
        messages.extend_from_slice(turn.known);
        messages.extend(turn.added);
    }
    Some(Context { messages, cut })
}

/// The turns of the state, then what `events` do to them: the same as [`ChatState::apply`] would, without a copy.
fn turns_after<'a>(state: &'a ChatState, events: &[ChatEvent]) -> VecDeque<Reading<'a>> {
    let known = |turn: &'a PastTurn| Reading { known: &turn.messages, added: Vec::new(), tokens: turn.tokens };
    let mut turns: VecDeque<Reading<'a>> = state.history.iter().map(known).collect();
    for event in events {
        match event {
            ChatEvent::TurnStarted { attempt: 1, .. } => turns.push_back(Reading::default()),
            ChatEvent::ContextCut { turns: cut } => {
                drop(turns.drain(..(*cut as usize).min(turns.len().saturating_sub(1))))
            }
            _ => {}
        }
        if let Some(message) = message_of(event) {
            if turns.is_empty() {
                turns.push_back(Reading::default());
            }
            if let Some(turn) = turns.back_mut() {
                turn.tokens += message.tokens();
                turn.added.push(Arc::new(message));
            }
        }
    }
    turns
}
