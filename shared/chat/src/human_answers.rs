//! The answers of people to the requests of a turn (`ask`), or the end of the wait for them: the turn goes on.

use crate::{agent, ask, coding, decide::Decision, phase::Phase, requests::LeaderRights, sampling, step::Step};
use domain::{ChatEvent, PermissionId, PermissionRule, QuestionId, Status, ToolCall, event::PermissionOutcome};
use serde_json::{Map, Value};

/// A person answers questions. Answers to a question that is not open change nothing. `by` is their principal, with their rights: an answer leads the
/// turn as a message does. If they may not approve, the rest of the turn loses the rights that the approval of a plan and granted rules give. If they
/// may run no flows, it starts none.
pub(crate) fn answer(
    step: &mut Step<'_>,
    question_id: QuestionId,
    answers: &Map<String, Value>,
    (by, rights): (&str, LeaderRights),
) {
    let questions = step.turn().and_then(|turn| match &turn.phase {
        Phase::Question { question_id: asked, questions, .. } if *asked == question_id => Some(questions),
        _ => None,
    });
    let Some(questions) = questions else { return };
    match tools::check_answers(questions, answers) {
        Err(error) => step.push(ChatEvent::Failed { error }),
        Ok(()) => {
            step.led_on(by, rights);
            match elicits(step) {
                Some(call) => step.reply(call, answers.get("reply").cloned().unwrap_or_default()),
                None => go_on(step, &Value::Object(answers.clone()).to_string(), Status::Success),
            }
        }
    }
}

/// A person decides on a permission. A decision whose parts do not fit, and one that comes late or second, changes nothing.
pub(crate) fn decide(step: &mut Step<'_>, decision: Decision, by: &str) {
    let Some(offered) = open(step, decision.permission_id).map(|offered| offered.cloned()) else {
        return refused(step, decision.permission_id, decision.outcome, by.to_owned());
    };
    if let Err(error) = decision.check().and_then(|()| decision.check_offered(offered.is_some())) {
        return step.push(ChatEvent::Failed { error });
    }
    if let Err(error) = decision.check_room(&step.state().permissions, offered.as_ref()) {
        return step.push(ChatEvent::Failed { error });
    }
    let (asks, sampled) = (step.agent_asks(), sampling::requested(step));
    let option_id = match decision.option(asks.as_ref().map(|asks| asks.options.as_slice())) {
        Ok(option_id) => option_id,
        Err(error) => return step.push(ChatEvent::Failed { error }),
    };
    let always = offered.and_then(|offered| decision.granted(offered));
    let Decision { permission_id, outcome, always: _, reason, option_id: _, scope: _, digest: _ } = decision;
    let mut declined = match &reason {
        Some(reason) => format!("not permitted: a person declined: {reason}"),
        None => "not permitted: a person declined".to_owned(),
    };
    if let Some((rule, denied)) = always.as_ref().and_then(|rule| Some((rule, rule.denies()?))) {
        declined.push_str(&format!("; from now on a rule denies {denied} (rule {})", rule.id()));
    }
    if reason.is_some() {
        step.spoken_to(by);
    }
    let is_as_shown = step.next_unanswered().is_some_and(|call| is_as_shown(step, &call));
    let (by, at) = (by.to_owned(), step.stamp.at);
    let (decided_by, chosen) = (by.clone(), option_id.clone());
    step.push(ChatEvent::PermissionResolved { permission_id, outcome, by, always, reason, option_id, at });
    if let Some(asks) = asks {
        return step.answer_agent(asks.request, chosen, decided_by);
    }
    if let Some(request) = sampled {
        return sampling::decided(step, (outcome == PermissionOutcome::Approved).then_some(request));
    }
    match (outcome, step.next_unanswered()) {
        (PermissionOutcome::Approved, Some(_)) if !is_as_shown => {
            go_on(step, "not permitted: this is not the call that a person was shown", Status::Partial);
        }
        (PermissionOutcome::Approved, Some(call)) if step.is_plan(&call) => step.run_plan(&call),
        (PermissionOutcome::Approved, Some(call)) => {
            let tried = step.turn().and_then(|turn| turn.tried).filter(|tried| tried.call_id == call.call_id);
            step.call_tool(call, tried.map_or(1, |tried| tried.attempt + 1));
        }
        _ => go_on(step, &declined, Status::Partial),
    }
}

/// Keeps in mind that a decision came late or second.
pub(crate) fn refused(step: &mut Step<'_>, permission_id: PermissionId, outcome: PermissionOutcome, by: String) {
    let is_there = step.config().is_some() && !step.state().deleted;
    if is_there {
        step.push(ChatEvent::DecisionRefused { permission_id, outcome, by, at: step.stamp.at });
    }
}

/// Whether the open request shows this very call: nothing else is carried out under a yes.
fn is_as_shown(step: &Step<'_>, call: &ToolCall) -> bool {
    match step.turn().map(|turn| &turn.phase) {
        Some(Phase::Permission { asked, .. }) => ask::shows(asked, call),
        _ => false,
    }
}

/// A person takes back the rules of the chat.
pub(crate) fn forget(step: &mut Step<'_>, rule_id: Option<String>, by: String) {
    let granted = &step.state().permissions;
    let meant = rule_id.map(|id| granted.iter().find(|rule| rule.id() == id).cloned());
    let rule = match meant {
        None if granted.is_empty() => return,
        None => None,
        Some(None) => return,
        Some(Some(rule)) => Some(rule),
    };
    step.push(ChatEvent::PermissionsForgotten { rule, by, at: step.stamp.at });
}

/// Ends a wait whose time is up without an answer.
pub(crate) fn expire(step: &mut Step<'_>, permission_id: Option<PermissionId>, question_id: Option<QuestionId>) {
    if let Some(permission_id) = permission_id.filter(|permission_id| open(step, *permission_id).is_some()) {
        let (outcome, by, at) = (PermissionOutcome::Cancelled, "timeout".to_owned(), step.stamp.at);
        let (asks, sampled) = (step.agent_asks(), sampling::requested(step));
        let option_id = asks.as_ref().and_then(|asks| coding::no(&asks.options));
        let (always, reason, chosen, decided_by) = (None, None, option_id.clone(), by.clone());
        step.push(ChatEvent::PermissionResolved { permission_id, outcome, by, always, reason, option_id, at });
        if let Some(asks) = asks {
            return step.answer_agent(asks.request, chosen, decided_by);
        }
        if sampled.is_some() {
            return sampling::decided(step, None);
        }
        go_on(step, "not permitted: no answer came in time", Status::Partial);
    } else if let Some(turn) = step.turn()
        && matches!(&turn.phase, Phase::Question { question_id: asked, .. } if Some(*asked) == question_id)
    {
        match elicits(step) {
            Some(call) => step.reply(call, Value::Null),
            None => go_on(step, "no answer came in time", Status::Partial),
        }
    }
}

/// The call whose server has asked, if the open question is a server's.
fn elicits(step: &Step<'_>) -> Option<ToolCall> {
    let config = step.config()?;
    step.next_unanswered().filter(|call| agent::is_served(config, &call.tool))
}

/// The rule that the permission offers, if the turn waits for this permission.
fn open<'a>(step: &'a Step<'_>, permission_id: PermissionId) -> Option<Option<&'a PermissionRule>> {
    match &step.turn()?.phase {
        Phase::Permission { permission_id: open, asked, .. } if *open == permission_id => match &**asked {
            ChatEvent::PermissionRequired { always, .. } => Some(always.as_ref()),
            _ => Some(None),
        },
        _ => None,
    }
}

/// Answers the call that waited and goes on with the next one.
fn go_on(step: &mut Step<'_>, output: &str, status: Status) {
    let Some(call) = step.next_unanswered() else { return };
    step.observe(&call, output.to_owned(), status);
    step.next_call();
}
