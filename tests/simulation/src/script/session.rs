//! The answers of a model that plans in a session of the planner chat, and of the executors of its plan: two look at a side each, and one joins what
//! they found. In one plan the second executor fails, and with it the step that needs it.

use super::team::call;
use domain::Message;
use ports::{Delta, ModelError, ModelRequest};
use serde_json::json;

const ANALYSIS: &str = r#"{"strategy": "complex", "reasoning": "it has two sides", "estimated_operations": 3}"#;

/// The answer in a session; none for requests of others.
pub(super) fn answer(request: &ModelRequest) -> Option<Result<Delta, ModelError>> {
    if request.system.starts_with("You are the analyst of a planner chat") {
        return Some(Ok(Delta::Text(ANALYSIS.into())));
    }
    let is_executor = request.system.starts_with("You are an executor");
    match request.messages.last().map(AsRef::as_ref) {
        Some(Message::User { content, .. }) if is_executor => Some(match content {
            words if words.starts_with("look") => Ok(call("ls", &json!({ "path": "/" }))),
            words if words.starts_with("fail") => Err(ModelError::Rejected("so says the test".into())),
            _ => Ok(Delta::Text("They are one.".into())),
        }),
        Some(Message::User { content, .. }) if content.starts_with("study") => {
            let second = if content.ends_with("in vain") { "fail at the other side" } else { "look at the other side" };
            let step = |step: u32, description: &str, depends_on: &[u32]| json!({ "step": step, "description": description, "tools": ["ls"], "depends_on": depends_on });
            let steps = [step(1, "look at one side", &[]), step(2, second, &[]), step(3, "join them", &[1, 2])];
            Some(Ok(call("run_plan", &json!({ "steps": steps }))))
        }
        Some(Message::Tool { .. }) if is_executor => Some(Ok(Delta::Text("It is there.".into()))),
        Some(Message::Tool { tool, .. }) if tool == "run_plan" => {
            Some(Ok(Delta::Text("That is what there is.".into())))
        }
        _ => None,
    }
}
