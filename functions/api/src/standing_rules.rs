//! Rules of a whole workspace, and of a person in it: calls that are allowed or denied in all chats.

use crate::{
    Context,
    access::{Access, Approve, Read},
    error::Answer,
    extract::Query,
    schema,
    workspaces::InWorkspace,
};
use axum::{extract::State, response::IntoResponse};
use chat::StandingRule;
use domain::Timestamp;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

/// The rules of a workspace, and those of the caller in it.
#[derive(Serialize, ToSchema)]
pub(crate) struct StandingRules {
    /// In no certain order.
    permissions: Vec<StandingRuleView>,
}

/// A rule by which calls are allowed or denied in more than one chat.
#[derive(Serialize, ToSchema)]
#[schema(as = StandingRule)]
pub(crate) struct StandingRuleView {
    /// Its id.
    #[schema(example = "9f86d081884c7d65")]
    rule_id: String,
    /// How far it goes: `workspace` or `person`.
    #[schema(value_type = schema::RuleScope)]
    scope: chat::RuleScope,
    /// `allow` or `deny`. Both count for calls that are asked about; of two rules that cover one the one that denies wins.
    effect: &'static str,
    /// The rule in words.
    words: String,
    /// The rule.
    #[schema(value_type = schema::PermissionRule)]
    rule: domain::PermissionRule,
    /// The folder of the machine that its paths are in, where a coding agent asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<String>,
    /// The person who granted it.
    by: Uuid,
    /// When it was granted.
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
}

/// One rule of a workspace.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ThisRule {
    /// The rule.
    rule_id: String,
}

impl StandingRuleView {
    fn of(StandingRule { rule_id, scope, rule, cwd, by, at }: StandingRule) -> Self {
        Self { rule_id, scope, effect: rule.effect(), words: rule.to_string(), rule, cwd, by: by.0, at }
    }
}

/// Lists the rules that were granted for all chats of the workspace, and the caller's own.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/permissions", tag = "chats", params(InWorkspace),
    responses((status = 200, description = "All of them.", body = StandingRules)))]
pub(crate) async fn list_standing_rules(
    State(context): State<Arc<Context>>,
    Access { at, by, .. }: Access<Read, InWorkspace>,
) -> Answer<impl IntoResponse> {
    let rules = context.chats.standing_rules(at.workspace_id, by.user()).await?;
    Ok(axum::Json(StandingRules { permissions: rules.into_iter().map(StandingRuleView::of).collect() }))
}

/// Revokes a rule of the workspace, or of the caller: calls that it covers are asked about again, at once and in every chat.
#[utoipa::path(delete, path = "/api/v1/workspaces/{workspace_id}/permissions", tag = "chats",
    params(InWorkspace, ThisRule), responses((status = 204, description = "It is revoked.")))]
pub(crate) async fn revoke_standing_rule(
    State(context): State<Arc<Context>>,
    Access { at, by, .. }: Access<Approve, InWorkspace>,
    Query(ThisRule { rule_id }): Query<ThisRule>,
) -> Answer<impl IntoResponse> {
    context.chats.revoke_standing(at.workspace_id, &rule_id, by.user()).await?;
    Ok(StatusCode::NO_CONTENT)
}
