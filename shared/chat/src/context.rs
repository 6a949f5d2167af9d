//! The context of a model call: the system text and the turns that fit the budget, as whole turns, oldest left out first.
//!
//! The bytes that a model got once do not change: messages are kept as they were, and a cut leaves out so much at once that
//! it is rarely needed, so that the provider's cache of the prefix holds in between.

use crate::state::{ChatState, PastTurn};
use domain::Message;
use std::sync::Arc;

/// After a cut this many percent of the budget may be used.
const KEPT_PERCENT: u64 = 60;

/// The context of a model call.
pub(crate) struct Context {
    /// The messages.
    pub messages: Vec<Arc<Message>>,
    /// How many of the oldest turns have to be left out from now on.
    pub cut: u32,
}

/// The context of the next model call. None when the last turn, which is the one that asks, is over the budget by itself.
pub(crate) fn assemble(state: &ChatState) -> Option<Context> {
    let config = state.config.as_ref();
    let budget = config.map_or(u64::MAX, |config| config.context_tokens);
    let system = config.map_or(0, |config| config.system.len() as u64 / 4);
    let turns = &state.history;
    let fixed = system + turns.back().map_or(0, |turn| turn.tokens);
    if fixed > budget {
        return None;
    }
    let mut tokens = system + turns.iter().map(|turn| turn.tokens).sum::<u64>();
    let mut cut = 0;
    if tokens > budget {
        let target = fixed.max(budget / 100 * KEPT_PERCENT);
        let older = turns.iter().take(turns.len().saturating_sub(1));
        for turn in older {
            if tokens <= target {
                break;
            }
            tokens -= turn.tokens;
            cut += 1;
        }
    }
    let kept = || turns.iter().skip(cut).map(|turn: &PastTurn| turn.messages.as_slice());
    let mut messages = Vec::with_capacity(kept().map(<[_]>::len).sum());
    kept().for_each(|of_turn| messages.extend_from_slice(of_turn));
    Some(Context { messages, cut: u32::try_from(cut).unwrap_or(u32::MAX) })
}
