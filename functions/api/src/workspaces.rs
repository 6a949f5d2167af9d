//! Workspaces.

use crate::{
    Context, StreamContext,
    access::{Access, Administer, Own, Read, scoped},
    error::Answer,
    extract::{Json, Query, UnscopedCaller, page_length},
    ids::Ids,
    membership_watch, schema,
};
use axum::{extract::State, response::IntoResponse};
use domain::{Code, CommandId, Error, Principal, TaskPhase, Timestamp, WorkspaceId};
use engine::TaskFilter;
use futures::future::{join_all, try_join_all};
use http::{StatusCode, header};
use identity::{Action, Caller, Member, Role};
use serde::Deserialize;
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};
use workspace::{Profile, WorkspacePage};

/// How many workspaces are looked through for the oldest one that a credential reaches: the first ones by id, as in one page of the list.
const LOOKED_THROUGH: usize = 200;

/// The workspace of a path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct InWorkspace {
    /// The workspace.
    #[param(value_type = Uuid)]
    pub workspace_id: WorkspaceId,
}

/// A page of a list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Paging {
    /// At most this many; 1 to 200.
    #[param(default = 50, minimum = 1, maximum = 200)]
    pub limit: Option<usize>,
    /// The `next_cursor` of the page before.
    pub cursor: Option<String>,
}

impl Paging {
    /// How many a page has.
    pub(crate) fn limit(&self) -> Result<usize, Error> {
        page_length(self.limit, 50, 200)
    }
}

/// The name of a workspace.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WorkspaceName {
    /// Its name, for people: 1 to 200 characters.
    #[schema(example = "Research", min_length = 1, max_length = 200)]
    name: String,
}

/// Refuses a credential that may make no workspace: one without the scope, or for certain workspaces.
pub(crate) fn may_found(caller: &Caller) -> Result<(), Error> {
    scoped(caller, Action::Own)?;
    match &caller.workspaces {
        Some(_) => Err(Error::new(Code::Forbidden, "this API key is for certain workspaces").hint("sign in")),
        None => Ok(()),
    }
}

/// Makes a workspace with its folders, a persona and a skill to begin with.
#[utoipa::path(post, path = "/api/v1/workspaces", tag = "workspaces", request_body = WorkspaceName,
    responses((status = 201, description = "It was made.", body = schema::Workspace)))]
pub(crate) async fn create_workspace(
    State(context): State<Arc<Context>>,
    UnscopedCaller(caller): UnscopedCaller,
    ids: Ids,
    Json(new): Json<WorkspaceName>,
) -> Answer<impl IntoResponse> {
    may_found(&caller)?;
    let id = WorkspaceId(ids.id("workspace"));
    let founding = context.base.members().founding(id, &caller)?;
    let made = context.base.workspaces.create_with(id, &new.name, &caller.principal(), founding).await?;
    welcome_founder(&context, id, &caller).await?;
    let place = format!("/api/v1/workspaces/{}", made.workspace_id);
    Ok((StatusCode::CREATED, [(header::LOCATION, place)], axum::Json(made)))
}

/// The workspaces that one is a member of; for the machine's own person all of them. Pages go by ids. In a page the oldest comes first, for people with
/// accounts the one of the longest membership.
#[utoipa::path(get, path = "/api/v1/workspaces", tag = "workspaces", params(Paging),
    responses((status = 200, description = "A page of them.", body = schema::WorkspacePage)))]
pub(crate) async fn list_workspaces(
    State(context): State<Arc<Context>>,
    UnscopedCaller(caller): UnscopedCaller,
    Query(paging): Query<Paging>,
) -> Answer<impl IntoResponse> {
    scoped(&caller, Action::Read)?;
    if caller.user == Principal::local().user() {
        let mut page = context.base.workspaces.list(paging.limit()?, paging.cursor).await?;
        page.workspaces.retain(|workspace| caller.reaches(workspace.workspace_id));
        // An id that follows from an idempotency key tells no time.
        page.workspaces.sort_unstable_by_key(|workspace| (workspace.created_at, workspace.workspace_id));
        return Ok(axum::Json(page));
    }
    let mut of = context.base.members().of(caller.user, paging.limit()?, paging.cursor).await?;
    of.memberships.sort_unstable_by_key(|membership| (membership.since, membership.workspace));
    let reached = of.memberships.iter().filter(|membership| caller.reaches(membership.workspace));
    let mut workspaces = Vec::new();
    for found in join_all(reached.map(|membership| context.base.workspaces.get(membership.workspace))).await {
        match found {
            Ok(workspace) => workspaces.push(workspace),
            // It was deleted, or its maker never got to make it.
            Err(error) if error.code == Code::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(axum::Json(WorkspacePage { workspaces, next_cursor: of.next_cursor }))
}

/// One workspace.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}", tag = "workspaces", params(InWorkspace),
    responses((status = 200, description = "The workspace.", body = schema::Workspace)))]
pub(crate) async fn get_workspace(
    State(context): State<Arc<Context>>,
    Access { at, .. }: Access<Read, InWorkspace>,
) -> Answer<impl IntoResponse> {
    Ok(axum::Json(context.base.workspaces.get(at.workspace_id).await?))
}

/// Gives a workspace another name.
#[utoipa::path(patch, path = "/api/v1/workspaces/{workspace_id}", tag = "workspaces", params(InWorkspace),
    request_body = WorkspaceName, responses((status = 200, description = "It has the name.", body = schema::Workspace)))]
pub(crate) async fn rename_workspace(
    State(context): State<Arc<Context>>,
    Access { at, .. }: Access<Administer, InWorkspace>,
    Json(new): Json<WorkspaceName>,
) -> Answer<impl IntoResponse> {
    Ok(axum::Json(context.base.workspaces.rename(at.workspace_id, &new.name).await?))
}

/// Removes a workspace with all its files and versions, for good.
#[utoipa::path(delete, path = "/api/v1/workspaces/{workspace_id}", tag = "workspaces", params(InWorkspace),
    responses((status = 204, description = "It is gone.")))]
pub(crate) async fn delete_workspace(
    State(context): State<Arc<Context>>,
    Access { at, by, .. }: Access<Own, InWorkspace>,
) -> Answer<impl IntoResponse> {
    // Running turns and tasks would go on, and cost, without it.
    let mut cursor = None;
    loop {
        let page = context.chats.list(at.workspace_id, 100, cursor).await?;
        for chat in page.chats {
            unless_gone(context.chats.delete(at.workspace_id, chat.chat_id, &by).await)?;
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    loop {
        let page = context.tasks.list(at.workspace_id, &TaskFilter::default(), 200, cursor).await?;
        for task in page.tasks.iter().filter(|task| task.phase != TaskPhase::Finished) {
            let command = CommandId(context.base.clock.id());
            unless_gone(context.tasks.stop(at.workspace_id, task.task_id, command, &by).await)?;
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    forget_grants(&context, at.workspace_id, &by).await?;
    context.threads().forget_all(at.workspace_id).await?;
    context.base.workspaces.delete(at.workspace_id).await?;
    membership_watch::tell_end(&*context.base.bus, at.workspace_id, at.workspace_id).await;
    Ok(StatusCode::NO_CONTENT)
}

/// A list comes from an index, which may still have what has gone.
fn unless_gone<T>(done: Result<T, Error>) -> Result<(), Error> {
    match done {
        Err(error) if error.code != Code::NotFound => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Takes back all that acts in a workspace by itself, or for it: schedules, webhooks, rules, and accounts at MCP servers. A workspace that is made later may
/// have the same id, as the one of a person's own, or of an idempotency key.
async fn forget_grants(context: &Context, workspace: WorkspaceId, by: &Principal) -> Result<(), Error> {
    let mut cursor = None;
    loop {
        let page = context.schedules.list(workspace, 200, cursor).await?;
        for schedule in page.schedules {
            let command = CommandId(context.base.clock.id());
            unless_gone(context.schedules.delete(workspace, schedule.schedule_id, command, by).await)?;
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    context.webhooks.delete_all(workspace).await?;
    context.chats.revoke_all_standing(workspace).await?;
    match &context.accounts {
        Some(accounts) => accounts.forget(workspace).await,
        None => Ok(()),
    }
}

/// Makes the home of a member.
pub(crate) async fn welcome(context: &Context, workspace: WorkspaceId, member: &Member) -> Result<(), Error> {
    let role = member.role.to_string();
    let profile = Profile { user: member.user_id, name: member.subject.as_deref(), role: &role };
    context.base.workspaces.welcome(workspace, &profile).await
}

/// Makes the home of the maker of a workspace. The machine's own person is no member, and has a home without a profile.
///
/// # Errors
/// `CONFLICT` when they made it before and are no member any more; else those of the stores.
pub(crate) async fn welcome_founder(context: &Context, workspace: WorkspaceId, founder: &Caller) -> Result<(), Error> {
    if founder.user == Principal::local().user() {
        return Ok(());
    }
    let member = context.base.members().get(workspace, founder.user).await.map_err(|error| match error.code {
        Code::NotFound => Error::new(Code::Conflict, "this id is taken").hint("use another Idempotency-Key"),
        _ => error,
    });
    welcome(context, workspace, &member?).await
}

/// The workspaces that a credential reaches, with the roles in them: of the machine's own person the oldest first, of others the one of the longest
/// membership. The table lists them by id, and one that was made under an idempotency key has an id that tells no time. Of more than
/// [`LOOKED_THROUGH`] workspaces the first ones by id are compared; a credential for certain workspaces names those to compare.
///
/// # Errors
/// Those of the lists.
pub(crate) async fn oldest_first(stage: &StreamContext, caller: &Caller) -> Result<Vec<(WorkspaceId, Role)>, Error> {
    let mut found: Vec<(Timestamp, WorkspaceId, Role)> = if let Some(listed) = &caller.workspaces {
        let found = try_join_all(listed.iter().map(|workspace| reached(stage, caller, *workspace))).await?;
        found.into_iter().flatten().collect()
    } else if caller.user == Principal::local().user() {
        let page = stage.workspaces.list(LOOKED_THROUGH, None).await?;
        page.workspaces.into_iter().map(|found| (found.created_at, found.workspace_id, Role::Owner)).collect()
    } else {
        let page = stage.members().of(caller.user, LOOKED_THROUGH, None).await?;
        page.memberships.into_iter().map(|found| (found.since, found.workspace, found.role)).collect()
    };
    found.sort_unstable_by_key(|(since, workspace, _)| (*since, *workspace));
    Ok(found.into_iter().map(|(_, workspace, role)| (workspace, role)).collect())
}

/// The first of these workspaces that is there, and the role in it. A membership may be of none: earlier versions made it before the workspace, and removed it after the workspace.
///
/// # Errors
/// Those of a workspace that cannot be read.
pub(crate) async fn first_there(
    stage: &StreamContext,
    reached: Vec<(WorkspaceId, Role)>,
) -> Result<Option<(WorkspaceId, Role)>, Error> {
    for (workspace, role) in reached {
        match stage.workspaces.get(workspace).await {
            Ok(_) => return Ok(Some((workspace, role))),
            Err(error) if error.code == Code::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Since when the caller has a workspace, and their role in it; none where it is not there, and where they are no member.
async fn reached(
    stage: &StreamContext,
    caller: &Caller,
    workspace: WorkspaceId,
) -> Result<Option<(Timestamp, WorkspaceId, Role)>, Error> {
    let found = match caller.user == Principal::local().user() {
        true => stage.workspaces.get(workspace).await.map(|found| (found.created_at, workspace, Role::Owner)),
        false => {
            let member = stage.members().get(workspace, caller.user).await;
            member.map(|member| (member.added_at, workspace, member.role))
        }
    };
    match found {
        Ok(found) => Ok(Some(found)),
        // A record that cannot be read keeps no other workspace from being found, as in the list.
        Err(error) => match error.code {
            Code::NotFound | Code::Internal | Code::ContentMissing | Code::ContentDamaged => Ok(None),
            _ => Err(error),
        },
    }
}
