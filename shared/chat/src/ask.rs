//! Requests of a turn to people: permission for a call, and the questions of `ask_user`. The turn is suspended
//! meanwhile, and costs nothing; a missing answer counts as a no when the time is up. `human_answers` takes the answers in.

use crate::step::Step;
use domain::{
    CallId, ChatCommand, ChatEvent, Error, PermissionId, PermissionRule, QuestionId, ToolCall, event::Question,
};
use serde_json::Value;
use std::time::Duration;

/// Asks for permission for `call`, and offers the rule that a yes can grant along with it.
pub(crate) fn permission(
    step: &mut Step<'_>,
    call: &ToolCall,
    category: String,
    reason: String,
    always: Option<PermissionRule>,
    timeout: Duration,
) {
    let permission_id = PermissionId(step.id());
    let (at, expires_at) = (step.stamp.at, step.stamp.at + timeout);
    let (call_id, tool, args) = (call.call_id, call.tool.clone(), call.args.clone());
    step.push(ChatEvent::PermissionRequired {
        permission_id,
        call_id,
        category,
        tool,
        args,
        reason,
        always,
        agent: None,
        at,
        expires_at,
    });
    step.later(expires_at, &ChatCommand::Expire { permission_id: Some(permission_id), question_id: None });
}

/// Whether a request for permission shows this call: with its id, its tool and its arguments. The id alone binds a call already, as the message of the
/// model that has the call does not change; this compares what is carried out with what a person has read.
pub(crate) fn shows(asked: &ChatEvent, call: &ToolCall) -> bool {
    match asked {
        ChatEvent::PermissionRequired { call_id, tool, args, .. } => {
            (*call_id, tool, args) == (call.call_id, &call.tool, &call.args)
        }
        _ => false,
    }
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

/// Asks the question of a server whose tool runs. The call waits at the server; where nobody can answer, the question is cancelled.
pub(crate) fn elicited(step: &mut Step<'_>, call_id: CallId, question: Question) {
    let Some(call) = step.next_unanswered().filter(|call| call.call_id == call_id) else { return };
    let is_stopping = step.turn().is_some_and(|turn| turn.stopping.is_some());
    if step.is_unattended() || is_stopping {
        return step.reply(call, Value::Null);
    }
    let question_id = QuestionId(step.id());
    let (at, expires_at) = (step.stamp.at, step.stamp.at + step.machine.question_timeout);
    step.push(ChatEvent::Asked { question_id, call_id, questions: vec![question], at, expires_at });
    step.later(expires_at, &ChatCommand::Expire { permission_id: None, question_id: Some(question_id) });
}
