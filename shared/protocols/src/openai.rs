//! The API of OpenAI (door `/openai/v1`): chat completions and responses. Personas are its models.
//!
//! A response, and a completion, is one [part](crate::Part) of a turn. A question of the agent is a call of the function `ask_user`. A request
//! for permission is an `mcp_approval_request` of a response, and a call of the function `permission` of a completion. Tools that the agent
//! calls itself are `mcp_call` items of a response.

mod completion;
mod format;
mod ids;
mod kept_items;
mod other_fields;
mod request;
mod response;
mod settings;

pub use completion::Completion;
pub use ids::{AskedId, ItemId, ResponseId};
pub use request::{Input, Request, completion, response};
pub use response::{Response, StartingAfter};

use crate::PartEnd;
use domain::{Error, StopReason};
use serde_json::{Value, json};

/// The function that stands for a request for permission in completions.
const PERMISSION: &str = "permission";

/// A list of models, which are the personas with these names.
pub fn models(personas: impl Iterator<Item = String>) -> Value {
    let data: Vec<Value> = personas.map(|name| model(&name)).collect();
    json!({ "object": "list", "data": data })
}

/// A model.
pub fn model(persona: &str) -> Value {
    json!({ "id": persona, "object": "model", "created": 0, "owned_by": "buildscale" })
}

/// The fields that an error has in this API beside its message, its code and those of the one envelope: `type` and `param`.
pub fn error_fields(status: u16, error: &Error) -> [(&'static str, Value); 2] {
    let kind = match status {
        401 => "authentication_error",
        403 => "permission_error",
        429 => "rate_limit_error",
        400..500 => "invalid_request_error",
        _ => "server_error",
    };
    let param = error.details.get("field").cloned().unwrap_or(Value::Null);
    [("type", json!(kind)), ("param", param)]
}

/// The reason of an incomplete response; none where it is complete or failed.
fn incomplete(reason: StopReason) -> Option<&'static str> {
    match reason {
        StopReason::EndTurn | StopReason::Error => None,
        StopReason::MaxOutputTokens => Some("max_output_tokens"),
        StopReason::Refusal => Some("content_filter"),
        StopReason::StepLimit => Some("step_limit"),
        StopReason::TokenLimit => Some("token_limit"),
        StopReason::TimeLimit => Some("time_limit"),
        StopReason::CostLimit => Some("cost_limit"),
        StopReason::ContextLimit => Some("context_limit"),
    }
}

/// The error of a part, inside of a response or a stream, with its advice; none where the part ended well or was stopped. The AI SDK reads no response whose
/// error has no `type`.
fn failure(end: &PartEnd) -> Option<Value> {
    let (code, message) = match end {
        PartEnd::Done(StopReason::Error, None) => (json!("server_error"), "the turn failed".to_owned()),
        PartEnd::Done(StopReason::Error, Some(Error { code, message, hint, .. })) => match hint {
            Some(hint) => (json!(code), format!("{message} ({hint})")),
            None => (json!(code), message.clone()),
        },
        PartEnd::Paused(reason) => (json!("PAUSED"), reason.clone()),
        PartEnd::Deleted => (json!("CANCELLED"), "the chat was deleted".to_owned()),
        PartEnd::Done(..) | PartEnd::Waits | PartEnd::Stopped(_) => return None,
    };
    Some(json!({ "code": code, "message": message, "type": "server_error", "param": null }))
}
