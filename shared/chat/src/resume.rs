//! A turn whose worker is gone goes on as a new attempt.

use crate::{account::Account, machine::ChatMachine, phase::Phase, state::ChatState, turn::Step};
use actor::Decision;
use domain::{ChatEvent, Stamp};

/// The worker that ran this turn is gone. Its interrupted call runs again, as a new attempt that clients are told of.
pub(crate) fn resume(machine: &ChatMachine, state: &ChatState, stamp: &Stamp) -> Decision<ChatMachine> {
    let Some(turn) = &state.turn else { return Decision::default() };
    let mut step = Step::new(machine, state, stamp);
    let account = Account::of(turn);
    let attempt = turn.attempt + 1;
    let (turn_id, asked_at, limits) = (turn.id, turn.asked_at, turn.limits);
    let (may_approve, trace) = (turn.may_approve, turn.trace);
    let started = ChatEvent::TurnStarted { turn_id, attempt, asked_at, limits, may_approve, trace };
    match &turn.phase {
        Phase::Permission { .. }
        | Phase::Question { .. }
        | Phase::Slots { .. }
        | Phase::Backoff { .. }
        | Phase::Place { .. } => return Decision::default(),
        Phase::Model { message_id, attempt, .. } => {
            step.push(started);
            step.ask_model(&account, *message_id, attempt + 1);
        }
        Phase::Tool { call_id, attempt } => {
            step.push(started);
            match turn.calls.iter().find(|call| call.call_id == *call_id).cloned() {
                Some(call) => step.call_tool(call, attempt + 1),
                None => step.call_model(&account),
            }
        }
        Phase::Begun => {
            step.push(started);
            step.next_call(&account, turn.calls.iter().cloned());
        }
    }
    step.decision
}
