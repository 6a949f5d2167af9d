//! Members of a workspace, and their roles.

use crate::{
    Context,
    access::{Access, Administer, Read, demand},
    error::Answer,
    extract::{Json, Query},
    membership_watch, schema,
    workspaces::{InWorkspace, Paging, welcome},
};
use axum::{extract::State, response::IntoResponse};
use domain::{ChatEvent, ChatId, ChatStatus, Code, CommandId, Error, Principal, TaskPhase, UserId, WorkspaceId};
use engine::TaskFilter;
use http::StatusCode;
use identity::{ActingMember, Action, Role, Subject};
use serde::Deserialize;
use std::{ops::ControlFlow, sync::Arc};
use utoipa::{IntoParams, ToSchema};

/// How many pages of chats, and of tasks, are looked through for the work of somebody who leaves.
const PAGES: usize = 50;

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

/// The end of a membership.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Leaving {
    /// Whether all that is in their home `/users/<id>` is removed for good, with all versions, and what was removed from it before. The home of one who is no
    /// member any more can be erased in this way, too.
    #[serde(default)]
    #[param(default = false)]
    erase_home: bool,
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
            domain::check_shown("subject", &name)?;
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

/// Ends a membership: somebody's, as an admin, or one's own. The turns of their chats are stopped, the rules for their chats are revoked, and their tasks are paused; their home stays, unless `erase_home` says otherwise. `CONFLICT` for the last owner.
#[utoipa::path(delete, path = "/api/v1/workspaces/{workspace_id}/members/{user_id}", tag = "members", params(AtMember, Leaving),
    responses((status = 204, description = "It has ended.")))]
pub(crate) async fn remove_member(
    State(context): State<Arc<Context>>,
    Access { at, by, caller, role, .. }: Access<Read, AtMember>,
    Query(leaving): Query<Leaving>,
) -> Answer<impl IntoResponse> {
    let leaves = at.user_id == caller.user && caller.is_in_person();
    if !leaves {
        demand(&caller, role, Action::Administer)?;
    }
    let removed = context.base.members().remove(at.workspace_id, at.user_id, ActingMember::of(&caller, role)).await;
    // Ends the person's streams and agents in other processes. A member who is not found is no exception: an earlier request may have broken off at this point.
    if removed.as_ref().err().is_none_or(|error| error.code == Code::NotFound) {
        membership_watch::tell_end(&*context.base.bus, at.workspace_id, at.user_id).await;
        context.webhooks.unpush_all(at.workspace_id, at.user_id).await?;
        suspend_work_of(&context, at.workspace_id, at.user_id, &by).await?;
        // The machine's own person is no member, and their home is nobody else's to erase.
        if leaving.erase_home
            && at.user_id != Principal::local().user()
            && context.base.workspaces.erase_home(at.workspace_id, at.user_id, &by).await?
        {
            return Ok(StatusCode::NO_CONTENT);
        }
    }
    removed?;
    Ok(StatusCode::NO_CONTENT)
}

/// Stops the turns of a person's chats and sessions in a workspace, pauses their tasks, with all below them, and revokes the rules for their chats: agents act in the
/// name of this person, who may do nothing there any more. Others can resume the tasks. Of more than [`PAGES`] pages the chats that were active last and the newest tasks are looked at.
async fn suspend_work_of(context: &Context, workspace: WorkspaceId, user: UserId, by: &Principal) -> Result<(), Error> {
    // The machine's own person has every right without a membership.
    if user == Principal::local().user() {
        return Ok(());
    }
    context.chats.revoke_standing_of(workspace, user).await?;
    let command = || CommandId(context.base.clock.id());
    let mut failed = Ok(());
    // One that cannot be read keeps none of the others back. Somebody else may have deleted one, or it has ended.
    let mut note = |done: Result<(), Error>| match done {
        Err(error) if !matches!(error.code, Code::NotFound | Code::Conflict) && failed.is_ok() => failed = Err(error),
        Ok(()) | Err(_) => {}
    };
    let mut cursor = None;
    for _ in 0..PAGES {
        let page = context.chats.list(workspace, 100, cursor).await?;
        for chat in page.chats.iter().filter(|chat| chat.status != ChatStatus::Idle) {
            note(match person_of(context, workspace, chat.chat_id).await {
                Ok(Some(person)) if person == user => context.chats.stop(workspace, chat.chat_id, command(), by).await,
                found => found.map(drop),
            });
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    let mut cursor = None;
    for _ in 0..PAGES {
        let page = context.tasks.list(workspace, &TaskFilter::default(), 200, cursor).await?;
        for task in page.tasks.iter().filter(|task| !matches!(task.phase, TaskPhase::Finished | TaskPhase::Paused)) {
            note(match context.base.tasks.person(workspace, task.task_id).await {
                Ok(Some(person)) if person == user => {
                    context.tasks.pause(workspace, task.task_id, &[], command(), by).await
                }
                found => found.map(drop),
            });
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    failed
}

/// The person for whom the agent of a chat works; none before its log begins.
async fn person_of(context: &Context, workspace: WorkspaceId, chat: ChatId) -> Result<Option<UserId>, Error> {
    let mut person = None;
    let take_in = |_, _, event: &ChatEvent| match event {
        ChatEvent::Created { config } => {
            person = Some(config.user);
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    };
    context.threads().reader().log_until(workspace, chat, 1, take_in).await?;
    Ok(person)
}
