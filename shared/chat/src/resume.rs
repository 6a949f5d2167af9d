//! A turn whose worker is gone goes on as a new attempt.

use crate::{phase::Phase, step::Step};
use domain::ChatEvent;

/// The worker that ran this turn is gone. Its interrupted call runs again, as a new attempt that clients are told of.
pub(crate) fn resume(step: &mut Step<'_>) {
    let Some(turn) = step.turn() else { return };
    let (turn_id, asked_at, limits) = (turn.id, turn.asked_at, turn.limits);
    let (may_approve, trace) = (turn.may_approve, turn.trace);
    let attempt = turn.attempt + 1;
    let started = ChatEvent::TurnStarted { turn_id, attempt, asked_at, limits, may_approve, trace };
    match turn.phase {
        Phase::Permission { .. }
        | Phase::Question { .. }
        | Phase::Handed { .. }
        | Phase::Slots { .. }
        | Phase::Backoff { .. }
        | Phase::Plan { .. }
        | Phase::Steer { .. }
        | Phase::Place { .. } => {}
        Phase::Team => {
            step.push(started);
            step.look_again();
        }
        Phase::Model { message_id, attempt, .. } => {
            step.count_part();
            step.push(started);
            step.ask_model(message_id, attempt + 1);
        }
        Phase::Agent { leg, attempt, .. } => {
            // Its text is not written anew.
            step.keep_partial();
            step.push(started);
            step.follow_again(leg, attempt);
        }
        Phase::Rollback { turn_id, attempt, ref calls, since } => {
            let calls = calls.clone();
            step.push(started);
            step.take_back(turn_id, attempt + 1, calls, since);
        }
        Phase::Tool { call_id, attempt } => {
            let call = turn.calls.iter().find(|call| call.call_id == call_id).cloned();
            step.push(started);
            match call {
                Some(call) => step.call_tool(call, attempt + 1),
                None => step.call_model(),
            }
        }
        Phase::Begun => {
            step.push(started);
            step.next_call();
        }
    }
}
