//! Stopping a turn (spec 000 §6): a running tool completes, a command is ended, the text so far is kept, the model is told, `stopped` is
//! sent once, and the chat goes on. A second stop, or one for a turn that has ended, changes nothing.

use crate::{
    agent,
    keys::{kill_key, model_key, plan_key, server_key, tool_key},
    machine::ChatEffect,
    phase::Phase,
    report, sampling,
    size::{MAX_ANSWER, beginning},
    state::ROLLED_BACK,
    step::Step,
};
use actor::{StopRequest, StopTarget};
use domain::{
    CallId, ChatCommand, ChatEvent, Code, Error, Message, MessageId, Status, StopId, TurnId, TurnRequest,
    event::PermissionOutcome,
};
use tools::ToolKind;

/// The reason of a stop by a person, as spec 000 §6 has it.
pub(crate) const USER_CANCELLED: &str = "user_cancelled";
/// The reason when the chat is deleted.
pub(crate) const DELETED: &str = "deleted";

/// The reason of the stop of a message that interrupts.
pub(crate) fn interruption(takes_back: Option<TurnId>) -> &'static str {
    if takes_back.is_some() { ROLLED_BACK } else { "interrupted" }
}

impl Step<'_> {
    /// Whether a call that runs is a command, or is run by a server: it may take long, and nothing of ours is lost when it is ended.
    pub fn may_be_ended(&self, call_id: CallId) -> bool {
        matches!(self.kind_of_call(call_id), Some(ToolKind::Exec | ToolKind::Served))
    }

    fn kind_of_call(&self, call_id: CallId) -> Option<ToolKind> {
        let call = self.turn()?.calls.iter().find(|call| call.call_id == call_id)?;
        self.kind(&call.tool)
    }

    /// Ends a call that may be ended, and drops its report. A server is told by the end of the effect.
    pub fn end_call(&mut self, call_id: CallId, attempt: u32) {
        let is_command = self.kind_of_call(call_id) == Some(ToolKind::Exec);
        self.cancel(tool_key(call_id, attempt));
        if is_command {
            self.end_command(call_id);
        }
    }

    /// Leaves the server of a call that waits for a person there.
    fn leave_server(&mut self) {
        let Some(config) = self.config().cloned() else { return };
        let Some(call) = self.next_unanswered().filter(|call| agent::is_served(&config, &call.tool)) else { return };
        let has_home = self.has_home();
        self.run(server_key(call.call_id), ChatEffect::LeaveServer { call, config, has_home });
    }

    /// Ends a command that no effect follows.
    pub fn end_command(&mut self, call_id: CallId) {
        let Some(workspace) = self.config().map(|config| config.workspace) else { return };
        self.run(kill_key(call_id), ChatEffect::KillCommand { workspace, call_id });
    }
}

/// Takes in a request to stop the turn.
pub(crate) fn stop(step: &mut Step<'_>, request: &StopRequest) {
    if request.target == StopTarget::Everything {
        return give_up(step, request.stop_id);
    }
    let Some(turn) = step.turn() else { return };
    let already = step.state().last_stop == Some(request.stop_id) || turn.stopping.is_some();
    // A message that interrupts stops the earlier turns, under its own id, and not itself.
    let own = request.stop_id.0 == turn.id.0;
    // A task asks its agent for nothing after it has stopped it. So no later turn is to be spared, whatever the clocks of both say.
    let is_last = step.config().and_then(|config| config.agent.as_ref()?.of_task()).is_some();
    let meant = match request.target {
        StopTarget::This(target) => target == turn.id.0,
        StopTarget::First | StopTarget::Everything => is_last || turn.asked_at <= request.at,
        StopTarget::Tree => true,
    };
    if !already && !own && meant {
        stop_turn(step, request.stop_id, &request.reason);
    }
}

/// The task that the agent works for was stopped, and nothing of the turn runs.
pub(crate) fn halt(step: &mut Step<'_>, request: &StopRequest) {
    match step.turn().map(|turn| &turn.phase) {
        Some(&Phase::Tool { call_id, attempt }) if step.may_be_ended(call_id) => step.end_call(call_id, attempt),
        Some(&Phase::Place { call_id, attempt, .. }) => end_if_begun(step, call_id, attempt),
        _ => {}
    }
    end_at_once(step, Some(request.stop_id), &request.reason);
}

/// Ends a command that waits, as an earlier attempt may have begun it.
fn end_if_begun(step: &mut Step<'_>, call_id: CallId, attempt: u32) {
    if attempt > 1 {
        step.end_command(call_id);
    }
}

fn stop_turn(step: &mut Step<'_>, stop_id: StopId, reason: &str) {
    let Some(turn) = step.turn() else { return };
    match turn.phase {
        Phase::Tool { call_id, attempt } if step.may_be_ended(call_id) => step.end_call(call_id, attempt),
        Phase::Tool { .. } | Phase::Rollback { .. } => {
            return step.push(ChatEvent::StopRequested { stop_id, reason: reason.to_owned() });
        }
        Phase::Place { call_id, attempt, .. } => end_if_begun(step, call_id, attempt),
        Phase::Model { message_id, attempt, .. } => step.cancel(model_key(message_id, attempt)),
        Phase::Agent { leg, attempt, .. } => step.unfollow(leg, attempt),
        Phase::Plan { .. } => step.stop_executors(stop_id, reason),
        Phase::Team => step.stop_team(stop_id, reason),
        Phase::Slots { .. } | Phase::Backoff { .. } | Phase::Begun => {
            // Before a command that rests on a plan, the turn waits for a look at the plan.
            if let Some(call) = turn.calls.front().filter(|call| step.rests_on_plan(call).is_some()) {
                step.cancel(plan_key(call.call_id));
            }
        }
        Phase::Permission { .. } | Phase::Question { .. } | Phase::Handed { .. } | Phase::Steer { .. } => {}
    }
    end_at_once(step, Some(stop_id), reason);
}

/// Ends a turn that waits, for a message that does not.
pub(crate) fn interrupt(step: &mut Step<'_>, reason: &str) {
    stop_helpers(step, None, reason);
    end_at_once(step, None, reason);
}

/// Stops what works for a turn outside of its chat: executors, agents of a team, and a command.
fn stop_helpers(step: &mut Step<'_>, stop_id: Option<StopId>, reason: &str) {
    match step.turn().map(|turn| &turn.phase) {
        Some(&Phase::Place { call_id, attempt, .. }) => end_if_begun(step, call_id, attempt),
        Some(Phase::Plan { .. }) => {
            let stop_id = stop_id.unwrap_or_else(|| StopId(step.id()));
            step.stop_executors(stop_id, reason);
        }
        Some(Phase::Team) => {
            let stop_id = stop_id.unwrap_or_else(|| StopId(step.id()));
            step.stop_team(stop_id, reason);
        }
        _ => {}
    }
}

/// Gives the chat up: its running turn, its queued turns and the rest of its mailbox. No turn begins after this. The
/// request to stop everything and the command to delete both lead here; the second of the two changes nothing.
pub(crate) fn give_up(step: &mut Step<'_>, stop_id: StopId) {
    if step.state().deleted {
        return;
    }
    let (is_paused, at) = (step.state().paused.is_some(), step.stamp.at);
    if is_paused {
        step.push(ChatEvent::Unpaused { at });
    }
    let turn_id = step.turn().map(|turn| turn.id);
    step.push(ChatEvent::Deleted { turn_id, at });
    match step.turn() {
        // No effect of a paused chat runs. Its executors are chats of their own, which are not paused.
        Some(_) if is_paused => {
            stop_helpers(step, Some(stop_id), DELETED);
            end_at_once(step, Some(stop_id), DELETED);
        }
        Some(turn) if turn.stopping.is_none() => stop_turn(step, stop_id, DELETED),
        _ => {}
    }
    step.end_agent();
}

/// The chat's own work fails again and again, or `command` does, before it was taken in. A deleted chat is not paused, as no
/// person can resume it: its running tool is given up, too. Nor is the chat of a task's agent, as people do not watch it: its
/// turn fails, also one that never began, and the task decides how to go on.
pub(crate) fn park(step: &mut Step<'_>, reason: String, command: Option<&ChatCommand>) {
    let state = step.state();
    // Queued turns could not begin here; a task sends its next message only after an answer.
    let works_for_task = state.queued.is_empty()
        && state.config.as_ref().is_some_and(|config| config.agent.is_some() || config.member.is_some());
    match &state.turn {
        Some(turn) if state.deleted => {
            let stop_id = turn.stopping.as_ref().map(|(stop_id, _)| *stop_id);
            end_at_once(step, stop_id, DELETED);
        }
        Some(_) if works_for_task => drop_turn(step, &reason),
        None if state.deleted => {}
        turn => match command
            .filter(|_| turn.is_none())
            .and_then(|command| report::not_taken_in(state, command, given_up(&reason)))
        {
            Some(message) => step.send(message),
            None => {
                // A chat that never began is there all the same, for people who see it on their list.
                if let (None, Some(ChatCommand::StartTurn(TurnRequest { create: Some(config), .. }))) =
                    (&state.config, command)
                {
                    step.push(ChatEvent::Created { config: config.clone() });
                }
                step.withdraw_request();
                let at = step.stamp.at;
                return step.push(ChatEvent::Paused { reason, at });
            }
        },
    }
    step.give_up();
}

/// Ends a turn of which nothing runs, and withdraws its question.
pub(crate) fn end_at_once(step: &mut Step<'_>, stop_id: Option<StopId>, reason: &str) {
    let partial_response = leave_off(step);
    end(step, stop_id, reason, partial_response);
}

/// Withdraws the turn's question, and keeps the text of the model so far; returns the last text.
fn leave_off(step: &mut Step<'_>) -> String {
    let Some(turn) = step.turn() else { return String::new() };
    let text = match &turn.phase {
        Phase::Model { text, .. } | Phase::Agent { text, .. } => text.clone(),
        Phase::Permission { .. }
        | Phase::Question { .. }
        | Phase::Handed { .. }
        | Phase::Tool { .. }
        | Phase::Place { .. }
        | Phase::Slots { .. }
        | Phase::Backoff { .. }
        | Phase::Plan { .. }
        | Phase::Team
        | Phase::Steer { .. }
        | Phase::Rollback { .. }
        | Phase::Begun => turn.last_text.clone(),
    };
    let open = match turn.phase {
        Phase::Permission { permission_id, .. } => Some(permission_id),
        _ => None,
    };
    if matches!(turn.phase, Phase::Question { .. }) || sampling::requested(step).is_some() {
        step.leave_server();
    }
    step.leave_agent();
    step.count_part();
    if let Some(permission_id) = open {
        let (outcome, by, at) = (PermissionOutcome::Cancelled, "stop".to_owned(), step.stamp.at);
        let (always, reason, option_id) = (None, None, None);
        step.push(ChatEvent::PermissionResolved { permission_id, outcome, by, always, reason, option_id, at });
    }
    step.keep_partial();
    text
}

/// Ends the turn: calls without an answer get one, the model is told, and the next turn that waits begins.
pub(crate) fn end(step: &mut Step<'_>, stop_id: Option<StopId>, reason: &str, partial_response: String) {
    const NOT_RUN: &str = "not run: the turn was stopped";
    const GIVEN_UP: &str = "given up: it may have taken effect or not";
    let Some(turn) = step.turn() else { return };
    let turn_id = turn.id;
    // A call whose server asks somebody has begun there.
    let front = turn.calls.front().filter(|call| turn.tried.is_some_and(|tried| tried.call_id == call.call_id));
    let is_at_server = front.zip(step.config()).is_some_and(|(call, config)| agent::is_served(config, &call.tool));
    // A call that has begun is only answered; the others are told of, too.
    let begun = turn.calls.front().map(|call| call.call_id).zip(match &turn.phase {
        _ if is_at_server => Some(GIVEN_UP),
        Phase::Question { .. } => Some(NOT_RUN),
        // No worker was lost in the turn: its earlier attempts found no machine, or were asked about.
        Phase::Place { attempt: 2.., .. } if turn.attempt == 1 => Some(NOT_RUN),
        Phase::Tool { .. } | Phase::Handed { .. } | Phase::Place { attempt: 2.., .. } | Phase::Plan { .. } => {
            Some(GIVEN_UP)
        }
        Phase::Begun
        | Phase::Model { .. }
        | Phase::Agent { .. }
        | Phase::Place { .. }
        | Phase::Slots { .. }
        | Phase::Backoff { .. }
        | Phase::Steer { .. }
        | Phase::Rollback { .. }
        | Phase::Team
        | Phase::Permission { .. } => None,
    });
    while let Some(call) = step.next_unanswered() {
        match begun {
            Some((begun, why)) if begun == call.call_id => step.observe(&call, why.into(), Status::Partial),
            _ => step.refuse(&call, NOT_RUN, Status::Partial),
        }
    }
    step.read_words();
    let content = match reason {
        USER_CANCELLED => format!("[System: Response was interrupted by user ({USER_CANCELLED})]"),
        other => format!("[System: Response was interrupted ({other})]"),
    };
    let message = Message::System { id: MessageId(step.id()), at: step.stamp.at, content };
    if !step.turn().is_some_and(|turn| turn.is_internal()) {
        step.push(ChatEvent::MessageAdded { message });
    }
    let (reason, at) = (reason.to_owned(), step.stamp.at);
    // The log of an earlier version may have more of it than fits into an entry.
    let partial_response = match beginning(&partial_response, MAX_ANSWER).len() {
        whole if whole == partial_response.len() => partial_response,
        cut => partial_response[..cut].to_owned(),
    };
    step.push(ChatEvent::Stopped { turn_id, stop_id, reason, partial_response, at });
    step.begin_queued();
}

/// The coding agent of a thread has ended the turn before its end, as some do after a no.
pub(crate) fn ended_by_agent(step: &mut Step<'_>) {
    let partial_response = step.turn().map(|turn| turn.last_text.clone()).unwrap_or_default();
    end(step, None, "agent_cancelled", partial_response);
}

/// A person resumes a paused chat; with `drop`, the turn that was running is given up.
pub(crate) fn unpark(step: &mut Step<'_>, drop: bool) {
    let why = step.state().paused.clone();
    let is_dropped = drop && step.turn().is_some_and(|turn| !turn.phase.is_suspended());
    let at = step.stamp.at;
    step.push(ChatEvent::Unpaused { at });
    if is_dropped {
        drop_turn(step, why.as_deref().unwrap_or("it failed again and again"));
    } else {
        step.renew_request();
    }
}

/// The error of a turn that failed again and again.
fn given_up(why: &str) -> Error {
    Error::new(Code::Paused, format!("the turn was given up: {why}"))
        .hint("the log of the server says what failed; once that is mended, send it again, or retry the task")
}

/// Ends a turn that failed again and again.
fn drop_turn(step: &mut Step<'_>, why: &str) {
    const DROPPED: &str = "dropped";
    let partial_response = leave_off(step);
    step.push(ChatEvent::Failed { error: given_up(why) });
    end(step, None, DROPPED, partial_response);
}
