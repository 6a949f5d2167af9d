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
    /// Whether it grants the rule that the request offers.
    pub always: bool,
}

/// The answers for calls of our own tools.
pub const OFFERED: [Offered; 3] = [
    Offered { id: "allow_once", outcome: PermissionOutcome::Approved, always: false },
    Offered { id: "allow_always", outcome: PermissionOutcome::Approved, always: true },
    Offered { id: "reject_once", outcome: PermissionOutcome::Declined, always: false },
];

/// The answer with this id, if there is one.
pub fn chosen(option: &str) -> Option<Offered> {
    OFFERED.into_iter().find(|offered| offered.id == option)
}

/// The options of a request: those of the coding agent that asks, else those of our own tools.
pub(crate) fn options(rule: Option<&PermissionRule>, agent: Option<&AgentAsk>) -> Value {
    if let Some(asked) = agent {
        let option = |option: &AgentOption| json!({ "optionId": option.id, "name": option.name, "kind": option.kind });
        return asked.options.iter().map(option).collect();
    }
    let of_rule = rule.map(|rule| {
        json!({
            "optionId": "allow_always", "name": format!("Always allow {rule} in this thread"), "kind": "allow_always",
        })
    });
    let once = json!({ "optionId": "allow_once", "name": "Allow once", "kind": "allow_once" });
    let reject = json!({ "optionId": "reject_once", "name": "Reject", "kind": "reject_once" });
    [Some(once), of_rule, Some(reject)].into_iter().flatten().collect()
}
