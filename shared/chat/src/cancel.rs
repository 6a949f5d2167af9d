//! Stopping a turn (seed 000 §6): a running tool completes, what was said is kept, the model is told, `stopped` is sent
//! once, and the chat goes on. A second stop, or one for a turn that has ended, changes nothing.

use crate::{
    machine::{ChatMachine, just, model_key},
    state::{ChatState, Phase, Turn},
    turn::Step,
};
use actor::{Decision, StopRequest};
use domain::{ChatEvent, Message, MessageId, PermissionId, Stamp, StopId, ToolCall, event::PermissionOutcome};

/// The reason of a stop by a person, as seed 000 §6 has it.
pub(crate) const USER_CANCELLED: &str = "user_cancelled";

/// Somebody wants the turn stopped.
pub(crate) fn stop(
    machine: &ChatMachine,
    state: &ChatState,
    request: &StopRequest,
    stamp: &Stamp,
) -> Decision<ChatMachine> {
    let Some(turn) = &state.turn else { return Decision::default() };
    let already = state.last_stop == Some(request.stop_id) || turn.stopping.is_some();
    let meant = match request.target {
        Some(target) => target == turn.id.0,
        // Nothing was seen running: the first turn that was asked for before the request.
        None => turn.asked_at <= request.at,
    };
    if already || !meant {
        return Decision::default();
    }
    let mut step = Step::new(machine, state, stamp);
    let stop_id = Some(request.stop_id);
    match &turn.phase {
        Phase::Tool { .. } => {
            step.push(ChatEvent::StopRequested { stop_id: request.stop_id, reason: request.reason.clone() });
        }
        Phase::Model { message_id, attempt, text } => {
            step.decision.cancel.push(model_key(*message_id, *attempt));
            step.keep_partial(*message_id, text);
            end(&mut step, turn, std::iter::empty(), stop_id, &request.reason, text.clone());
        }
        Phase::Permission { .. } | Phase::Question { .. } | Phase::Begun => {
            end_waiting(&mut step, turn, stop_id, &request.reason);
        }
    }
    step.decision
}

/// Ends a turn that waits for a person, and withdraws what it asked.
pub(crate) fn end_waiting(step: &mut Step<'_>, turn: &Turn, stop_id: Option<StopId>, reason: &str) {
    if let Phase::Permission { permission_id, .. } = &turn.phase {
        withdraw(step, *permission_id);
    }
    end(step, turn, turn.calls.iter().cloned(), stop_id, reason, turn.last_text.clone());
}

fn withdraw(step: &mut Step<'_>, permission_id: PermissionId) {
    let (outcome, by) = (PermissionOutcome::Cancelled, "stop".to_owned());
    step.push(ChatEvent::PermissionResolved { permission_id, outcome, by, at: step.stamp.at });
}

/// Ends the turn: calls without an answer get one, the model is told, and the next turn that waits begins.
pub(crate) fn end(
    step: &mut Step<'_>,
    turn: &Turn,
    unanswered: impl Iterator<Item = ToolCall>,
    stop_id: Option<StopId>,
    reason: &str,
    partial_response: String,
) {
    for call in unanswered {
        step.observe(&call, "not run: the turn was stopped".into(), false);
    }
    let content = match reason {
        USER_CANCELLED => format!("[System: Response was interrupted by user ({USER_CANCELLED})]"),
        other => format!("[System: Response was interrupted ({other})]"),
    };
    let message = Message::System { id: MessageId(step.id()), at: step.stamp.at, content };
    step.push(ChatEvent::MessageAdded { message });
    let (turn_id, reason, at) = (turn.id, reason.to_owned(), step.stamp.at);
    step.push(ChatEvent::Stopped { turn_id, stop_id, reason, partial_response, at });
    step.begin_queued();
}

/// A person resumes a paused chat; with `drop`, the turn that was running is given up.
pub(crate) fn unpark(machine: &ChatMachine, state: &ChatState, drop: bool, stamp: &Stamp) -> Decision<ChatMachine> {
    let unpaused = ChatEvent::Unpaused { at: stamp.at };
    let Some(turn) = state.turn.as_ref().filter(|turn| drop && !turn.phase.is_suspended()) else {
        return just(unpaused);
    };
    let mut step = Step::new(machine, state, stamp);
    step.push(unpaused);
    let (partial, reason) = (turn.last_text.clone(), "dropped");
    match &turn.phase {
        Phase::Model { message_id, text, .. } => {
            step.keep_partial(*message_id, text);
            step.push(ChatEvent::Failed { error: given_up(state) });
            end(&mut step, turn, std::iter::empty(), None, reason, text.clone());
        }
        Phase::Begun | Phase::Tool { .. } | Phase::Permission { .. } | Phase::Question { .. } => {
            step.push(ChatEvent::Failed { error: given_up(state) });
            end(&mut step, turn, turn.calls.iter().cloned(), None, reason, partial);
        }
    }
    step.decision
}

fn given_up(state: &ChatState) -> domain::Error {
    let why = state.paused.as_deref().unwrap_or("it failed again and again");
    domain::Error::new(domain::Code::Paused, format!("the turn was given up: {why}"))
}
