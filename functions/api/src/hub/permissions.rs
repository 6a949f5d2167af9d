//! Answers to permissions (spec 004 §5). An answer is to the request that was shown, and to no other: it names the request's id.

use super::{
    OfPermission,
    caller::Hub,
    schema::{Decided, Decision},
};
use crate::{
    Context,
    access::Approve,
    error::Answer,
    extract::{Json, Path},
    idempotency::Ids,
};
use axum::extract::State;
use domain::{Code, CommandId, Error, event::PermissionOutcome};
use doors::hub::{OFFERED, chosen};
use serde_json::Value;
use std::sync::Arc;

/// Answers a permission: with an outcome, or with one of the options of the request, which wins. 404 when nobody asked for it, 409 when it
/// is decided.
#[utoipa::path(post, path = "/v1/permissions/{permission_id}", tag = "hub", params(OfPermission), request_body = Decision,
    responses((status = 200, description = "It is recorded.", body = Decided)))]
pub(crate) async fn answer_permission(
    State(context): State<Arc<Context>>,
    Hub { within, .. }: Hub<Approve>,
    Path(OfPermission { permission_id }): Path<OfPermission>,
    ids: Ids,
    Json(Decision { outcome, option_id, scope }): Json<Decision>,
) -> Answer<axum::Json<Decided>> {
    let (chat, open) = context.threads().reader().permission(within.workspace, permission_id).await?;
    let Some(asked) = open else {
        return Err(Error::new(Code::Conflict, format!("the permission {permission_id} is decided"))
            .detail("permissionId", permission_id.to_string())
            .hint("it was answered, withdrawn, or timed out; the thread's history tells which")
            .into());
    };
    let (outcome, always) = meaning(outcome, option_id.as_deref(), asked.get("options").and_then(Value::as_array))?;
    // An agent reads its own option: one of several yeses is not another.
    let option_id = option_id.filter(|_| asked.get("options").is_some());
    let decision = chat::Decision { always, scope, option_id, ..chat::Decision::new(permission_id, outcome) };
    context.chats.decide(within.workspace, chat, CommandId(ids.id("command")), decision, &within.by).await?;
    Ok(axum::Json(Decided { permission_id: permission_id.0, status: "recorded", outcome }))
}

/// The decision, and whether it grants the rule that was offered. `options` are those of a coding agent that asks.
fn meaning(
    outcome: Option<PermissionOutcome>,
    option: Option<&str>,
    options: Option<&Vec<Value>>,
) -> Result<(PermissionOutcome, bool), Error> {
    let of_agent = |id: &str| options?.iter().find(|one| one["option_id"] == id)?["kind"].as_str();
    match (option, outcome) {
        (Some(option), _) if of_agent(option).is_some_and(|kind| kind.starts_with("allow")) => {
            Ok((PermissionOutcome::Approved, false))
        }
        (Some(option), _) if of_agent(option).is_some() => Ok((PermissionOutcome::Declined, false)),
        (Some(option), _) => {
            let offered = chosen(option).ok_or_else(|| {
                let shown: String = option.chars().take(64).collect();
                let known = OFFERED.map(|offered| offered.id).join(", ");
                Error::invalid("optionId", format!("the request offers no option {shown:?}"))
                    .hint(format!("one of: {known}"))
            })?;
            Ok((offered.outcome, offered.always))
        }
        // A person who withdraws says no.
        (None, Some(PermissionOutcome::Cancelled)) => Ok((PermissionOutcome::Declined, false)),
        (None, Some(outcome)) => Ok((outcome, false)),
        (None, None) => Err(Error::invalid("outcome", "there is neither an outcome nor an optionId")
            .hint("send {\"outcome\": \"approved\"}, {\"outcome\": \"declined\"} or an optionId of the request")),
    }
}
