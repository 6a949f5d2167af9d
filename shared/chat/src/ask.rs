//! Requests of a turn to people: permission for a call, and the questions of `ask_user`. The turn is suspended
//! meanwhile, and costs nothing; a missing answer counts as a no when the time is up.

use crate::{
    account::Account,
    machine::ChatMachine,
    phase::Phase,
    state::{ChatState, Turn},
    turn::Step,
};
use actor::Decision;
use domain::{
    ChatCommand, ChatEvent, Error, PermissionId, QuestionId, Stamp, Status, ToolCall, event::PermissionOutcome,
};
use serde_json::{Map, Value};
use std::time::Duration;

/// Asks for permission for `call`.
pub(crate) fn permission(step: &mut Step<'_>, call: &ToolCall, category: String, reason: String, timeout: Duration) {
    let permission_id = PermissionId(step.id());
    let (at, expires_at) = (step.stamp.at, step.stamp.at + timeout);
    let (call_id, tool, args) = (call.call_id, call.tool.clone(), call.args.clone());
    step.push(ChatEvent::PermissionRequired { permission_id, call_id, category, tool, args, reason, at, expires_at });
    step.later(expires_at, &ChatCommand::Expire { permission_id: Some(permission_id), question_id: None });
}

/// Asks the questions of `call`.
pub(crate) fn question(step: &mut Step<'_>, call: &ToolCall) -> Result<(), Error> {
    let questions = tools::parse_questions(&call.args)?;
    let question_id = QuestionId(step.id());
    let (at, expires_at) = (step.stamp.at, step.stamp.at + step.machine.question_timeout);
    step.started(call, 1);
    step.push(ChatEvent::Asked { question_id, call_id: call.call_id, questions, at, expires_at });
    step.later(expires_at, &ChatCommand::Expire { permission_id: None, question_id: Some(question_id) });
    Ok(())
}

/// A person answers questions. Answers to a question that is not open change nothing. `led_by` is their principal if they may
/// not approve: an answer leads the turn as a message does, so the rest of it has not the rights that the approval of a plan gives.
pub(crate) fn answer(
    machine: &ChatMachine,
    state: &ChatState,
    question_id: QuestionId,
    answers: &Map<String, Value>,
    led_by: Option<String>,
    stamp: &Stamp,
) -> Decision<ChatMachine> {
    let Some((turn, questions)) = state.turn.as_ref().and_then(|turn| match &turn.phase {
        Phase::Question { question_id: asked, questions, .. } if *asked == question_id => Some((turn, questions)),
        Phase::Begun
        | Phase::Slots { .. }
        | Phase::Backoff { .. }
        | Phase::Model { .. }
        | Phase::Place { .. }
        | Phase::Tool { .. }
        | Phase::Permission { .. }
        | Phase::Question { .. } => None,
    }) else {
        return Decision::default();
    };
    let mut step = Step::new(machine, state, stamp);
    match tools::check_answers(questions, answers) {
        Err(error) => step.push(ChatEvent::Failed { error }),
        Ok(()) => {
            if let Some(by) = led_by.filter(|_| step.is_approved()) {
                step.approval = None;
                step.push(ChatEvent::RightsNarrowed { by });
            }
            go_on(&mut step, turn, &Value::Object(answers.clone()).to_string(), Status::Success);
        }
    }
    step.decision
}

/// A person decides on a permission.
pub(crate) fn decide(
    machine: &ChatMachine,
    state: &ChatState,
    permission_id: PermissionId,
    outcome: PermissionOutcome,
    by: &str,
    stamp: &Stamp,
) -> Decision<ChatMachine> {
    let Some(turn) = waiting_for(state, permission_id) else { return Decision::default() };
    let mut step = Step::new(machine, state, stamp);
    step.push(ChatEvent::PermissionResolved { permission_id, outcome, by: by.to_owned(), at: stamp.at });
    match (outcome, turn.calls.front()) {
        (PermissionOutcome::Approved, Some(call)) => step.call_tool(call.clone(), 1),
        _ => go_on(&mut step, turn, "not permitted: a person declined", Status::Partial),
    }
    step.decision
}

/// Ends a wait whose time is up without an answer.
pub(crate) fn expire(
    machine: &ChatMachine,
    state: &ChatState,
    permission_id: Option<PermissionId>,
    question_id: Option<QuestionId>,
    stamp: &Stamp,
) -> Decision<ChatMachine> {
    let mut step = Step::new(machine, state, stamp);
    if let Some(permission_id) = permission_id
        && let Some(turn) = waiting_for(state, permission_id)
    {
        let (outcome, by) = (PermissionOutcome::Cancelled, "timeout".to_owned());
        step.push(ChatEvent::PermissionResolved { permission_id, outcome, by, at: stamp.at });
        go_on(&mut step, turn, "not permitted: no answer came in time", Status::Partial);
    }
    if let Some(turn) = &state.turn
        && matches!(&turn.phase, Phase::Question { question_id: asked, .. } if Some(*asked) == question_id)
    {
        go_on(&mut step, turn, "no answer came in time", Status::Partial);
    }
    step.decision
}

fn waiting_for(state: &ChatState, permission_id: PermissionId) -> Option<&Turn> {
    state
        .turn
        .as_ref()
        .filter(|turn| matches!(&turn.phase, Phase::Permission { permission_id: asked, .. } if *asked == permission_id))
}

/// Answers the call that waited and goes on with the next one.
fn go_on(step: &mut Step<'_>, turn: &Turn, output: &str, status: Status) {
    let Some(call) = turn.calls.front() else { return };
    step.observe(call, output.to_owned(), status);
    let mut account = Account::of(turn);
    account.waited(turn, step.stamp.at);
    step.next_call(&account, turn.calls.iter().skip(1).cloned());
}
