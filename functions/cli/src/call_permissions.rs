//! The people who permitted the calls that a program carries out on the machine of its person: in a folder ([`crate::folder`]) and in an editor ([`crate::acp`]).

use crate::{client::Client, failure::CliError, value::text};
use domain::PermissionRule;
use serde_json::Value;
use std::collections::HashMap;

/// The permissions of a chat, as its events tell of them.
#[derive(Debug, Default)]
pub(crate) struct Permitted {
    /// The call that an open permission is about.
    asked: HashMap<String, String>,
    /// The author of the yes to a call.
    by: HashMap<String, String>,
    /// The author of a rule, by its id.
    always: HashMap<String, String>,
}

impl Permitted {
    /// Takes an event in. Those of chats and those of threads have one meaning and two spellings.
    pub(crate) fn note(&mut self, name: &str, data: &Value) {
        let field = |names: [&str; 2]| names.map(|name| text(data, name)).concat();
        let permission = field(["permission_id", "permissionId"]);
        match name {
            "permission_required" => drop(self.asked.insert(permission, field(["call_id", "requestId"]))),
            "permission_resolved" => {
                let call = self.asked.remove(&permission).filter(|_| text(data, "outcome") == "approved");
                let by = || text(data, "by").to_owned();
                let rule = serde_json::from_value::<PermissionRule>(data["always"].clone()).ok();
                self.always.extend(rule.filter(|_| call.is_some()).map(|rule| (rule.id(), by())));
                self.by.extend(call.map(|call| (call, by())));
            }
            "permissions_forgotten" => match data["rule_id"].as_str() {
                Some(rule) => drop(self.always.remove(rule)),
                None => self.always.clear(),
            },
            // Its calls are over.
            "done" | "stopped" | "turn_completed" => {
                self.asked.clear();
                self.by.clear();
            }
            _ => {}
        }
    }

    /// The author of the yes to a call of a function, by its name for the model: to this one, once, or to all of them.
    pub(crate) fn take(&mut self, call: &str, function: &str) -> Option<String> {
        let rule = PermissionRule::Tool { tool: function.to_owned() };
        self.by.remove(call).or_else(|| self.always.get(&rule.id()).cloned())
    }
}

/// Refuses a call that `acts`, which changes something or runs a command, unless the person of this program has permitted it (`by`), or is alone in the
/// workspace: each member may write in the chat, and permit what it asks for, and none of them acts on the machine of another one.
///
/// # Errors
/// The reason, for the agent.
pub(crate) async fn here(acts: bool, (client, workspace): (&Client, &str), by: Option<String>) -> Result<(), String> {
    if !acts {
        return Ok(());
    }
    let members = ["workspaces", workspace, "members"];
    let told = |failure: CliError| format!("it cannot be told who may act on this machine: {failure}");
    // The one person of a machine is on no list.
    if client.list(&members, "members", &[], 2).await.map_err(told)?.len() < 2 {
        return Ok(());
    }
    let me = client.get(&[&members[..], &["me"]].concat(), &[]).await.map_err(told)?;
    match is_theirs(by.as_deref(), text(&me, "user_id")) {
        true => Ok(()),
        false => Err("the person of this machine has not permitted it: in a workspace with other people a change or a command here needs their own yes, given \
                      while this program runs; tell them so, and that they may take the rules of this chat back to be asked"
            .into()),
    }
}

/// Whether an author, as events name it, is this person.
fn is_theirs(by: Option<&str>, person: &str) -> bool {
    !person.is_empty() && by.and_then(|by| by.strip_prefix("user:")) == Some(person)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_call_is_permitted_by_the_person_who_said_yes_to_it() {
        let mut permitted = Permitted::default();
        for (permission, call) in [("p1", "c1"), ("p2", "c2"), ("p3", "c3")] {
            permitted.note("permission_required", &json!({ "permission_id": permission, "call_id": call }));
        }
        permitted.note("permission_required", &json!({ "permissionId": "p4", "requestId": "c4" }));
        let mut answer = |data: Value| permitted.note("permission_resolved", &data);
        answer(json!({ "permission_id": "p1", "outcome": "approved", "by": "user:ann" }));
        answer(json!({ "permission_id": "p2", "outcome": "declined", "by": "user:ann" }));
        answer(json!({ "permission_id": "p3", "outcome": "approved", "by": "user:bob" }));
        answer(json!({ "permissionId": "p4", "outcome": "approved", "by": "user:ann" }));
        answer(json!({ "permission_id": "none", "outcome": "approved", "by": "user:ann" }));
        let rule = |by: &str| json!({ "kind": "tool", "tool": format!("client__{by}") });
        for by in ["ann", "bob"] {
            permitted.note("permission_required", &json!({ "permission_id": by, "call_id": by }));
            let data =
                json!({ "permission_id": by, "outcome": "approved", "by": format!("user:{by}"), "always": rule(by) });
            permitted.note("permission_resolved", &data);
        }
        let mut is_anns = |call: &str, tool: &str| is_theirs(permitted.take(call, tool).as_deref(), "ann");
        let of_calls = ["c1", "c2", "c3", "c4", "none"].map(|call| is_anns(call, "client__x"));
        assert_eq!(of_calls, [true, false, false, true, false]);
        assert!(!is_anns("c1", "client__x"), "a yes is for one call");
        assert!(is_anns("later", "client__ann") && !is_anns("later", "client__bob"), "a rule is for its tool");
        for ends in ["done", "stopped", "turn_completed"] {
            permitted.note("permission_required", &json!({ "permission_id": "p5", "call_id": "c5" }));
            permitted.note(
                "permission_resolved",
                &json!({ "permission_id": "p5", "outcome": "approved", "by": "user:ann" }),
            );
            permitted.note(ends, &json!({}));
            assert_eq!(permitted.take("c5", "client__x"), None, "{ends}: a yes ends with its turn");
        }
        assert!(permitted.take("next", "client__ann").is_some(), "and a rule does not");
        let rule_id = PermissionRule::Tool { tool: "client__ann".into() }.id();
        permitted.note("permissions_forgotten", &json!({ "by": "user:ann", "rule_id": rule_id }));
        assert!(permitted.take("next", "client__ann").is_none() && permitted.take("next", "client__bob").is_some());
        permitted.note("permissions_forgotten", &json!({ "by": "user:ann" }));
        assert_eq!(permitted.take("next", "client__bob"), None);
        assert!(!is_theirs(None, "ann") && !is_theirs(Some("system"), "ann") && !is_theirs(Some("user:"), ""));
    }
}
