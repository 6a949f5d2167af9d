//! Stopping a turn (spec 000 §6): a running tool completes, a command is ended, the text so far is kept, the model is told, `stopped` is
//! sent once, and the chat goes on. A second stop, or one for a turn that has ended, changes nothing.

use crate::{
    machine::{ChatMachine, just, model_key, plan_key},
    phase::Phase,
    report,
    size::{MAX_ANSWER, beginning},
    state::{ChatState, Turn},
    turn::Step,
};
use actor::{Decision, StopRequest, Target};
use domain::{
    CallId, ChatCommand, ChatEvent, Code, Error, Message, MessageId, PermissionId, Stamp, Status, StopId, ToolCall,
    event::PermissionOutcome,
};

/// The reason of a stop by a person, as spec 000 §6 has it.
pub(crate) const USER_CANCELLED: &str = "user_cancelled";
/// The reason when the chat is deleted.
pub(crate) const DELETED: &str = "deleted";

/// Takes in a request to stop the turn.
pub(crate) fn stop(
    machine: &ChatMachine,
    state: &ChatState,
    request: &StopRequest,
    stamp: &Stamp,
) -> Decision<ChatMachine> {
    if request.target == Target::Everything {
        return give_up(machine, state, request.stop_id, stamp);
    }
    let Some(turn) = &state.turn else { return Decision::default() };
    let already = state.last_stop == Some(request.stop_id) || turn.stopping.is_some();
    // A message that interrupts stops the earlier turns, under its own id, and not itself.
    let own = request.stop_id.0 == turn.id.0;
    let meant = match request.target {
        Target::This(target) => target == turn.id.0,
        Target::First | Target::Everything => turn.asked_at <= request.at,
        Target::Tree => true,
    };
    if already || own || !meant {
        return Decision::default();
    }
    let mut step = Step::new(machine, state, stamp);
    stop_turn(&mut step, turn, request.stop_id, &request.reason);
    step.decision
}

/// The task that the agent works for was stopped, and nothing of the turn runs.
pub(crate) fn halt(
    machine: &ChatMachine,
    state: &ChatState,
    request: &StopRequest,
    stamp: &Stamp,
) -> Decision<ChatMachine> {
    let Some(turn) = &state.turn else { return Decision::default() };
    let mut step = Step::new(machine, state, stamp);
    if let Phase::Tool { call_id, attempt } = &turn.phase
        && step.runs_command(turn, *call_id)
    {
        step.kill_command(*call_id, *attempt);
    }
    if let Phase::Place { call_id, attempt, .. } = &turn.phase {
        end_if_begun(&mut step, *call_id, *attempt);
    }
    end_at_once(&mut step, turn, Some(request.stop_id), &request.reason);
    step.decision
}

/// Ends a command that waits, as an earlier attempt may have begun it.
fn end_if_begun(step: &mut Step<'_>, call_id: CallId, attempt: u32) {
    if attempt > 1 {
        step.end_command(call_id);
    }
}

fn stop_turn(step: &mut Step<'_>, turn: &Turn, stop_id: StopId, reason: &str) {
    match &turn.phase {
        Phase::Tool { call_id, attempt } if step.runs_command(turn, *call_id) => {
            step.kill_command(*call_id, *attempt);
            end_at_once(step, turn, Some(stop_id), reason);
        }
        Phase::Place { call_id, attempt, .. } => {
            end_if_begun(step, *call_id, *attempt);
            end_at_once(step, turn, Some(stop_id), reason);
        }
        Phase::Tool { .. } => step.push(ChatEvent::StopRequested { stop_id, reason: reason.to_owned() }),
        Phase::Model { message_id, attempt, .. } => {
            step.decision.cancel.push(model_key(*message_id, *attempt));
            end_at_once(step, turn, Some(stop_id), reason);
        }
        Phase::Slots { .. } | Phase::Backoff { .. } | Phase::Begun => {
            // Before a command that rests on a plan, the turn waits for a look at the plan.
            if let Some(call) = turn.calls.front().filter(|call| step.rests_on_plan(call).is_some()) {
                step.decision.cancel.push(plan_key(call.call_id));
            }
            end_at_once(step, turn, Some(stop_id), reason);
        }
        Phase::Permission { .. } | Phase::Question { .. } => end_at_once(step, turn, Some(stop_id), reason),
    }
}

/// Gives the chat up: its running turn, its queued turns and the rest of its mailbox. No turn begins after this. The
/// request to stop everything and the command to delete both lead here; the second of the two changes nothing.
pub(crate) fn give_up(
    machine: &ChatMachine,
    state: &ChatState,
    stop_id: StopId,
    stamp: &Stamp,
) -> Decision<ChatMachine> {
    if state.deleted {
        return Decision::default();
    }
    let mut step = Step::new(machine, state, stamp);
    let is_paused = state.paused.is_some();
    if is_paused {
        step.push(ChatEvent::Unpaused { at: stamp.at });
    }
    step.push(ChatEvent::Deleted { at: stamp.at });
    match &state.turn {
        // Nothing of a paused chat runs.
        Some(turn) if is_paused => end_at_once(&mut step, turn, Some(stop_id), DELETED),
        Some(turn) if turn.stopping.is_none() => stop_turn(&mut step, turn, stop_id, DELETED),
        _ => {}
    }
    step.decision
}

/// The chat's own work fails again and again, or `command` does, before it was taken in. A deleted chat is not paused, as no
/// person can resume it: its running tool is given up, too. Nor is the chat of a task's agent, as people do not watch it: its
/// turn fails, also one that never began, and the task decides how to go on.
pub(crate) fn park(
    machine: &ChatMachine,
    state: &ChatState,
    reason: String,
    command: Option<&ChatCommand>,
    stamp: &Stamp,
) -> Decision<ChatMachine> {
    let mut step = Step::new(machine, state, stamp);
    // Queued turns could not begin here; a task sends its next message only after an answer.
    let works_for_task = state.queued.is_empty() && state.config.as_ref().is_some_and(|config| config.agent.is_some());
    match &state.turn {
        Some(turn) if state.deleted => {
            let stop_id = turn.stopping.as_ref().map(|(stop_id, _)| *stop_id);
            end_at_once(&mut step, turn, stop_id, DELETED);
        }
        Some(turn) if works_for_task => drop_turn(&mut step, turn, &reason),
        _ if state.deleted => {}
        turn => match command
            .filter(|_| turn.is_none())
            .and_then(|command| report::not_taken_in(state, command, given_up(&reason)))
        {
            Some(letter) => step.decision.send.push(letter),
            None => {
                // A chat that never began is there all the same, for people who see it on their list.
                if let (None, Some(ChatCommand::StartTurn { create: Some(config), .. })) = (&state.config, command) {
                    step.push(ChatEvent::Created { config: config.clone() });
                }
                step.push(ChatEvent::Paused { reason, at: stamp.at });
                return step.decision;
            }
        },
    }
    step.decision.gives_up = true;
    step.decision
}

/// Ends a turn of which nothing runs, and withdraws its question.
pub(crate) fn end_at_once(step: &mut Step<'_>, turn: &Turn, stop_id: Option<StopId>, reason: &str) {
    match &turn.phase {
        Phase::Model { message_id, text, .. } => {
            step.keep_partial(*message_id, text);
            return end(step, turn, std::iter::empty(), stop_id, reason, text.clone());
        }
        Phase::Permission { permission_id, .. } => withdraw(step, *permission_id),
        Phase::Question { .. }
        | Phase::Tool { .. }
        | Phase::Place { .. }
        | Phase::Slots { .. }
        | Phase::Backoff { .. }
        | Phase::Begun => {}
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
    const NOT_RUN: &str = "not run: the turn was stopped";
    const GIVEN_UP: &str = "given up: it may have taken effect or not";
    let current = turn.calls.front().map(|call| call.call_id);
    for call in unanswered {
        // A call that has begun is only answered; the others are told of, too.
        match &turn.phase {
            Phase::Question { .. } if current == Some(call.call_id) => {
                step.observe(&call, NOT_RUN.into(), Status::Partial)
            }
            Phase::Tool { .. } | Phase::Place { attempt: 2.., .. } if current == Some(call.call_id) => {
                step.observe(&call, GIVEN_UP.into(), Status::Partial)
            }
            _ => step.refuse(&call, NOT_RUN, Status::Partial),
        }
    }
    let content = match reason {
        USER_CANCELLED => format!("[System: Response was interrupted by user ({USER_CANCELLED})]"),
        other => format!("[System: Response was interrupted ({other})]"),
    };
    let message = Message::System { id: MessageId(step.id()), at: step.stamp.at, content };
    step.push(ChatEvent::MessageAdded { message });
    let (turn_id, reason, at) = (turn.id, reason.to_owned(), step.stamp.at);
    // The log of an earlier version may have more of it than fits into an entry.
    let partial_response = match beginning(&partial_response, MAX_ANSWER).len() {
        whole if whole == partial_response.len() => partial_response,
        cut => partial_response[..cut].to_owned(),
    };
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
    drop_turn(&mut step, turn, state.paused.as_deref().unwrap_or("it failed again and again"));
    step.decision
}

/// The error of a turn that failed again and again.
fn given_up(why: &str) -> Error {
    Error::new(Code::Paused, format!("the turn was given up: {why}"))
        .hint("the log of the server says what failed; once that is mended, send it again, or retry the task")
}

/// Ends a turn that failed again and again.
fn drop_turn(step: &mut Step<'_>, turn: &Turn, why: &str) {
    const DROPPED: &str = "dropped";
    let error = given_up(why);
    match &turn.phase {
        Phase::Model { message_id, text, .. } => {
            step.keep_partial(*message_id, text);
            step.push(ChatEvent::Failed { error });
            end(step, turn, std::iter::empty(), None, DROPPED, text.clone());
        }
        phase @ (Phase::Begun
        | Phase::Slots { .. }
        | Phase::Backoff { .. }
        | Phase::Place { .. }
        | Phase::Tool { .. }
        | Phase::Permission { .. }
        | Phase::Question { .. }) => {
            if let Phase::Permission { permission_id, .. } = phase {
                withdraw(step, *permission_id);
            }
            step.push(ChatEvent::Failed { error });
            end(step, turn, turn.calls.iter().cloned(), None, DROPPED, turn.last_text.clone());
        }
    }
}
