//! What the model reads: the system text and the turns that fit the budget, as whole turns, oldest left out first.
//!
//! The bytes that a model got once do not change: messages are kept as they were, and a cut leaves out so much at once that
//! it is rarely needed, so that the provider's cache of the prefix holds in between.

use crate::state::{ChatState, message_of};
use domain::{ChatEvent, Message};
use std::sync::Arc;

/// After a cut this many percent of the budget may be used.
const KEPT_PERCENT: u64 = 60;

/// What a model call would read after some more events.
pub(crate) struct Context {
    /// The messages.
    pub messages: Vec<Arc<Message>>,
    /// How many of the oldest turns have to be left out from now on.
    pub cut: u32,
}

/// The context of the next model call: the state, then the messages that `events` add to the running turn. None when the
/// running turn alone is over the budget.
pub(crate) fn assemble(state: &ChatState, events: &[ChatEvent]) -> Option<Context> {
    let config = state.config.as_ref();
    let budget = config.map_or(u64::MAX, |config| config.context_tokens);
    let system = config.map_or(0, |config| config.system.len() as u64 / 4);
    let added: Vec<Arc<Message>> = events.iter().filter_map(message_of).map(Arc::new).collect();
    let added_tokens = added.iter().map(|message| message.tokens()).sum::<u64>();
    // The turn that these events begin is not in the history yet; the one before it has ended by then.
    let begins = events.iter().any(|event| matches!(event, ChatEvent::TurnStarted { attempt: 1, .. }));
    let running = usize::from(state.turn.is_some() && !begins);
    let past = state.history.len() - running.min(state.history.len());
    let running_tokens = state.history.iter().skip(past).map(|turn| turn.tokens).sum::<u64>() + added_tokens;
    let fixed = system + running_tokens;
    if fixed > budget {
        return None;
    }
    let mut tokens = fixed + state.history.iter().take(past).map(|turn| turn.tokens).sum::<u64>();
    let mut cut = 0;
    if tokens > budget {
        let target = fixed.max(budget / 100 * KEPT_PERCENT);
        for turn in state.history.iter().take(past) {
            if tokens <= target {
                break;
            }
            tokens -= turn.tokens;
            cut += 1;
        }
    }
    let kept = state.history.iter().skip(cut as usize);
    let mut messages = Vec::with_capacity(kept.clone().map(|turn| turn.messages.len()).sum::<usize>() + added.len());
    messages.extend(kept.flat_map(|turn| turn.messages.iter().cloned()));
    messages.extend(added);
    Some(Context { messages, cut })
}
