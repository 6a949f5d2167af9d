//! The invariants of a state at rest, after any faults. Pure functions over stored data; the name of each is the rule, its
//! error the violation. Production can count the same.

mod agents;
mod contexts;
mod files;
mod logs;
mod readers;
mod slots;
mod tasks;
mod teams;

pub use agents::{agents_heard_their_own_answers, agents_updates_are_in_the_log, prompts_were_given_once};
pub use contexts::compactions_lose_nothing;
pub use files::{FileOnDisk, StoredFile, Versioned, latest_agrees_with_the_index, writes_took_effect_once};
pub use logs::{
    accepted_messages_became_turns, attempts_count_up, calls_were_answered_once, commands_were_consumed_once,
    deleted_chats_stay_deleted, entries_are_contiguous, history_can_be_sent_to_a_model, nothing_is_stranded,
    turns_began_and_ended_once,
};
pub use readers::{
    chat_file_agrees_with_the_log, snapshot_is_a_fold, stream_brought_each_event_once, usage_was_recorded_once,
    view_is_that_of_the_fold, waiting_is_that_of_the_fold,
};

pub use slots::slots_are_held_by_work;
pub use tasks::{
    Family, arrivals_are_taken_in_once, children_were_forked, merges_begin_once, node_attempts_count_up,
    nodes_end_once, places_are_given_back, tasks_end_once, the_queue_is_empty, the_root_ends_as_undisturbed,
    tools_took_effect_once,
};

pub use teams::{steps_have_one_live_agent, steps_of_plans_ended_once, steps_were_done_once, usage_adds_up};

use actor::Entry;
use chat::ChatState;
use domain::ChatEvent;

/// The log of one chat, oldest first.
pub type Log = [Entry<ChatEvent>];

/// Something that must hold and does not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{invariant}: {what}")]
pub struct Violation {
    /// The function that found it.
    pub invariant: &'static str,
    /// The violation, in words.
    pub what: String,
}

/// Whether an invariant holds.
pub type Held = Result<(), Violation>;

fn broken(invariant: &'static str, what: impl Into<String>) -> Held {
    Err(Violation { invariant, what: what.into() })
}

/// The state that a log folds to.
pub fn fold(log: &Log) -> ChatState {
    let mut state = ChatState::default();
    for (number, event) in log.iter().flat_map(Entry::numbered) {
        state.apply(number, event);
    }
    state
}

fn events(log: &Log) -> impl Iterator<Item = &ChatEvent> {
    log.iter().flat_map(|entry| &entry.events)
}
