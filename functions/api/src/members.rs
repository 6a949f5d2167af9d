//! Members of a workspace, and their roles.

use crate::{
    Context,
    access::{Access, Administer, Read, demand},
    error::Answer,
    extract::{Json, Query},
    schema,
    workspaces::{InWorkspace, Paging, welcome},
};
use axum::{extract::State, response::IntoResponse};
use domain::{Error, UserId, WorkspaceId};
use http::StatusCode;
use identity::{ActingMember, Action, Role, Subject};
use serde::Deserialize;
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// The member of a path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct AtMember {
    /// The workspace.
    #[param(value_type = Uuid)]
    workspace_id: WorkspaceId,
    /// The person.
    #[param(value_type = Uuid)]
    user_id: UserId,
}

/// Somebody to make a member: by `user_id` or by `subject`.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewMember {
    /// Their id.
    #[schema(value_type = Option<Uuid>)]
    user_id: Option<UserId>,
    /// Their name at the issuer of tokens: the `sub` of theirs.
    #[schema(min_length = 1, max_length = 255, example = "ann@example.org")]
    subject: Option<String>,
    /// The role to give.
    #[schema(value_type = schema::Role)]
    role: Role,
}

/// Another role.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewRole {
    /// The new role.
    #[schema(value_type = schema::Role)]
    role: Role,
}

/// The members of a workspace, by id. The machine's own person is an owner everywhere, and on no list.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/members", tag = "members", params(InWorkspace, Paging),
    responses((status = 200, description = "A page of them.", body = schema::MemberPage)))]
pub(crate) async fn list_members(
    State(context): State<Arc<Context>>,
    Access { at, .. }: Access<Read, InWorkspace>,
    Query(paging): Query<Paging>,
) -> Answer<impl IntoResponse> {
    context.base.workspaces.get(at.workspace_id).await?;
    Ok(axum::Json(context.base.members().list(at.workspace_id, paging.limit()?, paging.cursor).await?))
}

/// Makes somebody a member, with a home `/users/<id>` and a profile in it. `FORBIDDEN` for a role above one's own, `CONFLICT` when they are a member in another role.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/members", tag = "members", params(InWorkspace),
    request_body = NewMember, responses((status = 201, description = "They are one.", body = schema::Member)))]
pub(crate) async fn add_member(
    State(context): State<Arc<Context>>,
    Access { at, caller, role, .. }: Access<Administer, InWorkspace>,
    Json(new): Json<NewMember>,
) -> Answer<impl IntoResponse> {
    context.base.workspaces.get(at.workspace_id).await?;
    let (user, subject) = match (new.user_id, new.subject) {
        (Some(user), None) => (user, None),
        (None, Some(name)) => {
            let Some(issuer) = context.base.auth.issuer() else {
                return Err(Error::invalid("subject", "this server takes no tokens of an issuer")
                    .hint("give a user_id")
                    .into());
            };
            let known = Subject::of(issuer, &name).filter(|_| (1..=255).contains(&name.len()));
            let known = known.ok_or_else(|| Error::invalid("subject", "no user can have this name"))?;
            (known.user, Some(known.name))
        }
        _ => return Err(Error::invalid("user_id", "give either a user_id or a subject").into()),
    };
    let by = ActingMember::of(&caller, role);
    let member = context.base.members().add(at.workspace_id, user, subject, new.role, by).await?;
    // After the membership, so that a refusal makes no home; a repetition makes up for a crash in between.
    welcome(&context, at.workspace_id, &member).await?;
    Ok((StatusCode::CREATED, axum::Json(member)))
}

/// The caller's own role in this workspace, and the rights of this credential there.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/members/me", tag = "members", params(InWorkspace),
    responses((status = 200, description = "That.", body = schema::Me)))]
pub(crate) async fn get_me(
    State(context): State<Arc<Context>>,
    Access { at, caller, role, .. }: Access<Read, InWorkspace>,
) -> Answer<axum::Json<schema::Me>> {
    context.base.workspaces.get(at.workspace_id).await?;
    let may = Action::ALL.into_iter().filter(|action| demand(&caller, role, *action).is_ok());
    Ok(axum::Json(schema::Me { user_id: caller.user.0, role: role.into(), may: may.map(Into::into).collect() }))
}

/// Gives a member another role. `CONFLICT` for the last owner.
#[utoipa::path(patch, path = "/api/v1/workspaces/{workspace_id}/members/{user_id}", tag = "members", params(AtMember),
    request_body = NewRole, responses((status = 200, description = "They have it.", body = schema::Member)))]
pub(crate) async fn change_member(
    State(context): State<Arc<Context>>,
    Access { at, caller, role, .. }: Access<Administer, AtMember>,
    Json(new): Json<NewRole>,
) -> Answer<impl IntoResponse> {
    let by = ActingMember::of(&caller, role);
    Ok(axum::Json(context.base.members().set_role(at.workspace_id, at.user_id, new.role, by).await?))
}

/// Ends a membership: somebody's, as an admin, or one's own. Their home stays. `CONFLICT` for the last owner.
#[utoipa::path(delete, path = "/api/v1/workspaces/{workspace_id}/members/{user_id}", tag = "members", params(AtMember),
    responses((status = 204, description = "It has ended.")))]
pub(crate) async fn remove_member(
    State(context): State<Arc<Context>>,
    Access { at, caller, role, .. }: Access<Read, AtMember>,
) -> Answer<impl IntoResponse> {
    let leaves = at.user_id == caller.user && caller.is_in_person();
    if !leaves {
        demand(&caller, role, Action::Administer)?;
    }
    context.base.members().remove(at.workspace_id, at.user_id, ActingMember::of(&caller, role)).await?;
    Ok(StatusCode::NO_CONTENT)
}
