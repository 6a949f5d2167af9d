//! Questions that the workspace's own policies ask. Policies are files, and the machine reads none: so such a question is known once the call is run,
//! as the refusal of the workspace. Nothing has happened then. A person is asked as for any permission, and the call is run again after a yes.

use crate::{
    allow, ask,
    gate::{GateDecision, GateRequest},
    state::Turn,
    step::Step,
};
use domain::{CallId, PermissionRule, ToolCall};

impl Step<'_> {
    /// The rule of the chat that denies this call, if there is one. No person is asked about such a call.
    pub fn denied_by(&self, call: &ToolCall) -> Option<PermissionRule> {
        let permissions = &self.state().permissions[..];
        if permissions.is_empty() {
            return None;
        }
        let (config, effects) = (self.config()?, self.effects(call)?.ok()?);
        allow::denying(&GateRequest { permissions, ..self.request(config, call, &effects) })
    }

    /// Why a call does not run that would run unasked, if a standing rule denies it. A call that is asked about is answered by the rule itself, also
    /// where its request offers none.
    pub fn denied_in_all_chats(&self, call: &ToolCall) -> Option<String> {
        let turn = self.turn().filter(|turn| !turn.denied.is_empty())?;
        // Rules are for tools by the names that chats know: another name in a flow is no way around them.
        let (call, effects) = self.behind(call)?;
        let rules = allow::all(&self.request(self.config()?, &call, &effects), &turn.denied_files);
        let denied = rules.into_iter().find_map(|rule| Some((self.standing_denial(&rule)?, rule)));
        let (rule_id, rule) = denied?;
        Some(format!(
            "not permitted: a person has denied {rule} in all chats from now on (rule {rule_id}), and is not asked again"
        ))
    }

    /// Whether a person has allowed this very call, or a rule that a person has granted covers it.
    pub fn is_allowed(&self, call: &ToolCall) -> bool {
        if self.turn().is_some_and(|turn| turn.allowed == Some(call.call_id)) {
            return true;
        }
        let (Some(config), Some(Ok(effects))) = (self.config(), self.effects(call)) else { return false };
        allow::is_covered(&self.request(config, call, &effects))
    }

    /// The question to a person about a call that a policy of the workspace asks about; none where the gate has none to ask.
    fn question_about(&self, call: &ToolCall, reason: &str) -> Option<GateDecision> {
        let (config, effects) = (self.config()?, self.effects(call)?.ok()?);
        Some(self.machine.gate.ask(&self.request(config, call, &effects), reason))
    }
}

/// Asks a person where the outcome of a call is a question of the workspace's policies. False where it is none.
pub(crate) fn asks(step: &mut Step<'_>, call_id: CallId, outcome: &tools::CallOutcome) -> bool {
    let asked = step.turn().filter(|_| !step.is_unattended()).and_then(|turn| asked_about(turn, call_id, outcome));
    let question = asked.and_then(|(call, reason)| Some((step.question_about(&call, &reason)?, call)));
    let Some((GateDecision::Ask { category, reason, always, timeout }, call)) = question else { return false };
    ask::permission(step, &call, category, reason, always, timeout);
    step.lend_place(call_id);
    true
}

/// The call that a policy of the workspace wants a person to be asked about, with the reason, unless a person has allowed it already.
fn asked_about(turn: &Turn, call_id: CallId, outcome: &tools::CallOutcome) -> Option<(ToolCall, String)> {
    let is_open = turn.stopping.is_none() && turn.allowed != Some(call_id);
    let reason = outcome.error.as_ref().and_then(workspace::asks).filter(|_| is_open)?;
    let call = turn.calls.iter().find(|call| call.call_id == call_id)?;
    Some((call.clone(), reason.to_owned()))
}
