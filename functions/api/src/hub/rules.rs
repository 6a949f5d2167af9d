//! The rules of a thread, by which calls are allowed or denied without a question (spec 004 §5). Each was granted along with an answer, and is revoked by itself.

use super::{
    InThread,
    caller::Hub,
    schema::{RevokedRule, Rule, Rules},
};
use crate::{
    Context,
    access::{Approve, Read},
    error::Answer,
    extract::Path,
};
use axum::extract::State;
use domain::{ChatId, Code, PermissionRule};
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;

/// A rule of a thread.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct OfRule {
    /// The thread.
    #[param(value_type = uuid::Uuid)]
    thread_id: ChatId,
    /// The `ruleId` of the list.
    rule_id: String,
}

impl crate::extract::Open for OfRule {}

/// Lists the rules of a thread, the oldest first.
#[utoipa::path(get, path = "/v1/threads/{thread_id}/rules", tag = "hub", params(InThread),
    responses((status = 200, description = "All of them.", body = Rules)))]
pub(crate) async fn list_rules(
    State(context): State<Arc<Context>>,
    Hub { within, .. }: Hub<Read>,
    Path(InThread { thread_id }): Path<InThread>,
) -> Answer<axum::Json<Rules>> {
    context.threads().reader().get(within.workspace, thread_id).await?;
    let granted = match context.chats.get(within.workspace, thread_id).await {
        Ok(view) => view.permissions,
        // Its first turn makes the chat.
        Err(error) if error.code == Code::NotFound => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    let shown =
        |rule: PermissionRule| Rule { rule_id: rule.id(), effect: rule.effect(), words: rule.to_string(), rule };
    Ok(axum::Json(Rules { thread_id: thread_id.0, rules: granted.into_iter().map(shown).collect() }))
}

/// Revokes one rule: calls that it covers are asked about again. A turn that runs keeps it until it ends or waits for a person.
#[utoipa::path(delete, path = "/v1/threads/{thread_id}/rules/{rule_id}", tag = "hub", params(OfRule),
    responses((status = 200, description = "It is accepted.", body = RevokedRule)))]
pub(crate) async fn revoke_rule(
    State(context): State<Arc<Context>>,
    Hub { within, .. }: Hub<Approve>,
    Path(OfRule { thread_id, rule_id }): Path<OfRule>,
) -> Answer<axum::Json<RevokedRule>> {
    context.threads().reader().get(within.workspace, thread_id).await?;
    context.chats.forget_permissions(within.workspace, thread_id, Some(rule_id.clone()), &within.by).await?;
    Ok(axum::Json(RevokedRule { thread_id: thread_id.0, rule_id, status: "revoked" }))
}
