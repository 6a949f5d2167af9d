//! The answers of a model that plans a campaign and of those that carry it out: claim a step, write its file, end it, until none is free. One of
//! them dies with a claim in its hand.

use domain::{Message, StopReason, Usage};
use futures::{StreamExt as _, stream};
use ports::{Delta, ModelError, ModelRequest, ModelStream};
use serde_json::{Value, json};

/// The answer in a team; none for requests of others.
pub(super) fn answer(request: &ModelRequest) -> Option<Result<Delta, ModelError>> {
    let is_member = request
        .messages
        .iter()
        .any(|message| matches!(&**message, Message::User { content, .. } if content.contains("You work on the plan")));
    let last = request.messages.last().map(AsRef::as_ref);
    if is_member {
        return Some(works(request, last));
    }
    match last {
        Some(Message::User { content, .. }) if content.contains("campaign") => {
            // Two steps side by side, then one that needs both.
            let plan = json!({ "title": "Campaign", "steps": ["one", "two", "both"], "depends_on": [{ "step": 3, "on": [1, 2] }] });
            Some(Ok(call("plan_write", &plan)))
        }
        _ => None,
    }
}

fn works(request: &ModelRequest, last: Option<&Message>) -> Result<Delta, ModelError> {
    let role = request.system.split_whitespace().nth(1).unwrap_or_default().to_lowercase();
    Ok(match last {
        Some(Message::User { .. }) => call("plan_update_step", &json!({ "status": "in_progress" })),
        Some(Message::Tool { tool, output, success: true, .. }) if tool == "plan_update_step" => {
            let number = output.split_whitespace().nth(1).unwrap_or_default();
            match output.contains("is in_progress") {
                true if role == "researcher" && number == "2" => {
                    return Err(ModelError::Rejected("so says the test".into()));
                }
                true => call("write", &json!({ "path": format!("/content/{number}-{role}.md"), "content": number })),
                false => call("plan_update_step", &json!({ "status": "in_progress" })),
            }
        }
        Some(Message::Tool { tool, success: true, .. }) if tool == "write" => {
            call("plan_update_step", &json!({ "status": "done" }))
        }
        _ => Delta::Text("Nothing is left for me.".into()),
    })
}

pub(super) fn call(tool: &str, args: &Value) -> Delta {
    Delta::Call { tool: tool.into(), args: args.to_string() }
}

pub(super) fn stream(delta: Result<Delta, ModelError>) -> Result<ModelStream, ModelError> {
    let usage = Usage { input_tokens: 70, output_tokens: 7, cached_tokens: 0, cost_usd: 0.25 };
    let end = Delta::End { reason: StopReason::EndTurn, usage, provider: Value::Null, model: None };
    Ok(stream::iter([Ok(delta?), Ok(end)]).boxed())
}
