//! Permissions: the answers that a client may choose from, and the meaning of each.

use domain::{AgentAsk, AgentOption, PermissionRule, event::PermissionOutcome};
use serde_json::{Value, json};

/// An answer that is offered for a call of our own tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offered {
    /// Its id and its kind, which are the same.
    pub id: &'static str,
    /// The decision that it is.
    pub outcome: PermissionOutcome,
    /// Whether it grants the rule that the request offers: with a no the one that denies its calls.
    pub always: bool,
}

/// The answers for calls of our own tools.
pub const OFFERED: [Offered; 4] = [
    Offered { id: "allow_once", outcome: PermissionOutcome::Approved, always: false },
    Offered { id: "allow_always", outcome: PermissionOutcome::Approved, always: true },
    Offered { id: "reject_once", outcome: PermissionOutcome::Declined, always: false },
    Offered { id: "reject_always", outcome: PermissionOutcome::Declined, always: true },
];

/// The answer with this id, if there is one.
pub fn chosen(option: &str) -> Option<Offered> {
    OFFERED.into_iter().find(|offered| offered.id == option)
}

/// The options of a request: those of the coding agent that asks, with ours for the kinds that it has none of; else ours.
pub(crate) fn options(rule: Option<&PermissionRule>, agent: Option<&AgentAsk>) -> Value {
    let name = |one: &Offered| match (one.outcome == PermissionOutcome::Approved, one.always) {
        (true, false) => Some("Allow once".to_owned()),
        (true, true) => Some(format!("Always allow {} in this thread", rule?)),
        (false, false) => Some("Reject".to_owned()),
        (false, true) => Some(format!("Never allow {} in this thread", rule?)),
    };
    let ours = OFFERED.iter().filter(|one| agent.is_none() || one.always);
    let ours = ours.filter_map(|one| Some(json!({ "optionId": one.id, "name": name(one)?, "kind": one.id })));
    if let Some(asked) = agent {
        let is_known = |id: &Value| asked.options.iter().any(|one| id == one.kind.as_str() || id == one.id.as_str());
        let is_new = |ours: &Value| !is_known(&ours["optionId"]);
        let shown = |option: &AgentOption| json!({ "optionId": option.id, "name": option.name, "kind": option.kind });
        return asked.options.iter().map(shown).chain(ours.filter(is_new)).collect();
    }
    ours.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::Sha256;

    fn ids(options: &Value) -> Vec<&str> {
        options.as_array().into_iter().flatten().filter_map(|one| one["optionId"].as_str()).collect()
    }

    #[test]
    fn a_request_with_a_rule_has_four_answers_and_one_without_has_two() {
        let rule = PermissionRule::Tool { tool: "mcp__mail__send".into() };
        let offered = options(Some(&rule), None);
        assert_eq!(ids(&offered), ["allow_once", "allow_always", "reject_once", "reject_always"]);
        assert_eq!(offered[3]["name"], "Never allow the tool mcp__mail__send with any arguments in this thread");
        assert_eq!(ids(&options(None, None)), ["allow_once", "reject_once"]);
        let one = |id: &str, kind: &str| AgentOption { id: id.into(), name: id.into(), kind: kind.into() };
        let of_agent = vec![one("yes", "allow_once"), one("ever", "allow_always"), one("no", "reject_once")];
        let asked = AgentAsk { request: "r".into(), options: of_agent, digest: Sha256::of(b"") };
        assert_eq!(ids(&options(Some(&rule), Some(&asked))), ["yes", "ever", "no", "reject_always"]);
        assert_eq!(ids(&options(None, Some(&asked))), ["yes", "ever", "no"]);
    }
}
