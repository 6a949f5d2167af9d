//! The caller of a route of the hub, and the workspace that they work in.

use crate::{
    Context, StreamContext,
    access::{RequiredAction, as_policies_know, demand, scoped},
    auth,
    error::{Answer, ApiError, excerpt},
    extract::{self, WORKSPACE},
    planner,
    workspaces::{first_there, oldest_first},
};
use axum::extract::FromRequestParts;
use domain::{Code, CommandId, Error, Principal, WorkspaceId};
use http::request::Parts;
use identity::{Action, Caller, Role};
use std::{marker::PhantomData, sync::Arc};

/// The header with the name of the client.
pub(crate) const CLIENT: &str = "x-client-id";
/// The value of a header that is no text: no name and no id.
const UNREADABLE: &str = "\u{1}";
/// The longest name of a client, in bytes.
const MAX_CLIENT: usize = 128;

/// A state of the routes, as far as the caller needs it.
pub(crate) trait Stage: Send + Sync {
    fn stage(&self) -> &StreamContext;
}

impl Stage for Arc<Context> {
    fn stage(&self) -> &StreamContext {
        &self.base
    }
}

impl Stage for Arc<StreamContext> {
    fn stage(&self) -> &StreamContext {
        self
    }
}

/// Leave to do `N` in the workspace of the request, without a name of the client: for addresses that a page shows by itself.
pub(crate) struct Within<N> {
    pub workspace: WorkspaceId,
    /// Whether the workspace is still to be made.
    is_new: bool,
    pub by: Principal,
    pub caller: Caller,
    pub role: Role,
    pub files: workspace::Access,
    needs: PhantomData<N>,
}

/// The same for a client that has given its name.
pub(crate) struct Hub<N> {
    pub client: String,
    pub within: Within<N>,
}

impl<N: RequiredAction, S: Stage> FromRequestParts<S> for Within<N> {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let (caller, stage) = (extract::caller(parts)?, state.stage());
        scoped(&caller, N::ACTION)?;
        let (workspace, role, is_new) = place(stage, &caller, given(parts, WORKSPACE, "workspaceId")).await?;
        auth::found(workspace);
        demand(&caller, role, N::ACTION)?;
        let by = caller.principal();
        let files = workspace::Access::of(&by, Some(as_policies_know(role)));
        Ok(Self { workspace, is_new, by, caller, role, files, needs: PhantomData })
    }
}

impl<N: RequiredAction, S: Stage> FromRequestParts<S> for Hub<N> {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let within = Within::from_request_parts(parts, state).await?;
        Ok(Self { client: client(parts)?, within })
    }
}

/// A header, else a parameter of the query: `EventSource` cannot send headers.
fn given<'a>(parts: &'a Parts, header: &str, parameter: &str) -> Option<&'a str> {
    let sent = parts.headers.get(header).map(|value| value.to_str().unwrap_or(UNREADABLE).trim());
    sent.filter(|text| !text.is_empty()).or_else(|| asked(parts, parameter))
}

/// A parameter of the query.
fn asked<'a>(parts: &'a Parts, parameter: &str) -> Option<&'a str> {
    let pairs = parts.uri.query()?.split('&').filter_map(|pair| pair.split_once('='));
    pairs.into_iter().find(|(name, _)| *name == parameter).map(|(_, value)| value)
}

/// The caller's role on a route whose path names no workspace: in the workspace that the handler will find. None on the routes of the installation, which
/// are in no workspace.
pub(crate) async fn caller_role(stage: &StreamContext, caller: &Caller, parts: &Parts) -> Answer<Option<Role>> {
    let path = parts.uri.path();
    if path.starts_with("/api/v1/") {
        return Ok(None);
    }
    if path.starts_with("/api/agent/") {
        let named = asked(parts, "workspace_id").and_then(|id| id.parse().ok());
        return Ok(Some(planner::workspace_and_role(stage, caller, named).await?.1));
    }
    let (_, role, _) = place(stage, caller, given(parts, WORKSPACE, "workspaceId")).await?;
    Ok(Some(role))
}

fn client(parts: &Parts) -> Result<String, Error> {
    let name = given(parts, CLIENT, "clientId").unwrap_or_default();
    if name.is_empty() {
        return Err(Error::invalid(CLIENT, "the header X-Client-ID is missing")
            .hint("send a name for your client, such as web-1"));
    }
    if name.len() > MAX_CLIENT || !name.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') {
        let message = format!("the name of a client has 1 to {MAX_CLIENT} printable ASCII characters");
        return Err(Error::invalid(CLIENT, message).hint("a UUID does well"));
    }
    Ok(name.to_owned())
}

/// The workspace of a request, the caller's role in it, and whether it is still to be made.
async fn place(stage: &StreamContext, caller: &Caller, named: Option<&str>) -> Answer<(WorkspaceId, Role, bool)> {
    if let Some(named) = named {
        let invalid = || {
            Error::invalid(WORKSPACE, format!("{:?} is no id of a workspace", excerpt(named)))
                .hint("GET /api/v1/workspaces lists them")
        };
        let workspace: WorkspaceId = named.parse().map_err(|_| invalid())?;
        let role = auth::role(stage, caller, workspace).await?;
        // The very words for one that does not exist.
        let role = role.ok_or_else(|| Error::not_found("workspace", workspace))?;
        // The machine's own person has a role in every workspace, also in one that is not there.
        stage.workspaces.get(workspace).await?;
        return Ok((workspace, role, false));
    }
    // One that is made with the first thread. Its id follows from the person, so that two requests make the same one; and it stays theirs.
    let own = WorkspaceId(CommandId::from_key("the first workspace", &caller.user.to_string()).0);
    // It comes before all others, and is read by its id: other people can add this person to any number of workspaces, and a list has only the first
    // ones by id.
    let is_there = match stage.workspaces.get(own).await {
        Ok(_) => true,
        Err(error) if error.code == Code::NotFound => false,
        Err(error) => return Err(error.into()),
    };
    // Its maker may be no member any more, and their credential may be for other workspaces.
    if is_there && let Some(role) = auth::role(stage, caller, own).await? {
        return Ok((own, role, false));
    }
    match first_there(stage, oldest_first(stage, caller).await?).await? {
        Some((workspace, role)) => Ok((workspace, role, false)),
        None if is_there => Err(none_yet().into()),
        None => Ok((own, Role::Owner, true)),
    }
}

fn none_yet() -> Error {
    Error::new(Code::NotFound, "there is no workspace yet").hint("make one with POST /api/v1/workspaces")
}

impl<N> Within<N> {
    /// Makes the workspace, if the caller has none yet.
    pub(crate) async fn settle(&self, context: &Context) -> Answer<()> {
        if !self.is_new {
            return Ok(());
        }
        if scoped(&self.caller, Action::Own).is_err() || self.caller.workspaces.is_some() {
            return Err(none_yet().into());
        }
        let founding = context.base.members().founding(self.workspace, &self.caller)?;
        context.base.workspaces.create_with(self.workspace, "default", &self.by, founding).await?;
        Ok(())
    }
}
