//! The workspace's sandbox, for people: how it is, warm it up, let it go. Agents and tasks do the same by themselves.

use crate::{
    Context,
    access::{Access, Read, Run, Write},
    error::{Answer, ApiError},
    rate_limits::Paced,
    schema,
    workspaces::InWorkspace,
};
use axum::extract::State;
use domain::{Code, Error, WorkspaceId};
use http::StatusCode;
use ports::{SandboxState, SandboxView, Sandboxes};
use std::sync::Arc;

/// The state of the workspace's sandbox. Starts nothing.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/sandbox", tag = "sandbox", params(InWorkspace),
    responses((status = 200, description = "How it is.", body = schema::Sandbox)))]
pub(crate) async fn get_sandbox(
    State(context): State<Arc<Context>>,
    Access { at, .. }: Access<Read, InWorkspace>,
) -> Answer<axum::Json<schema::Sandbox>> {
    let view = match of(&context, at.workspace_id).await? {
        Some(sandboxes) => sandboxes.look(at.workspace_id).await.map_err(unanswered)?,
        None => none_here(SandboxState::Cold),
    };
    Ok(axum::Json(view.into()))
}

/// Warms the sandbox up. Answers at once; one that is there, or starts, is fine, and one that failed is asked for anew.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/sandbox", tag = "sandbox", params(InWorkspace),
    responses((status = 202, description = "How it is now.", body = schema::Sandbox)))]
pub(crate) async fn warm_sandbox(
    State(context): State<Arc<Context>>,
    Access { at, .. }: Access<Run, InWorkspace>,
    _: Paced,
) -> Answer<(StatusCode, axum::Json<schema::Sandbox>)> {
    let view = match of(&context, at.workspace_id).await? {
        Some(sandboxes) => sandboxes.warm(at.workspace_id).await.map_err(unanswered)?,
        None => none_here(SandboxState::Failed),
    };
    Ok((StatusCode::ACCEPTED, axum::Json(view.into())))
}

/// Ends the sandbox, with all that runs in it; none is fine. Nothing durable is in one.
#[utoipa::path(delete, path = "/api/v1/workspaces/{workspace_id}/sandbox", tag = "sandbox", params(InWorkspace),
    responses((status = 204, description = "The sandbox is gone.")))]
pub(crate) async fn release_sandbox(
    State(context): State<Arc<Context>>,
    Access { at, .. }: Access<Write, InWorkspace>,
) -> Answer<StatusCode> {
    if let Some(sandboxes) = of(&context, at.workspace_id).await? {
        sandboxes.release(at.workspace_id).await.map_err(unanswered)?;
    }
    Ok(StatusCode::NO_CONTENT)
}

/// The sandboxes, if any are configured, of a workspace that exists.
async fn of(context: &Context, workspace: WorkspaceId) -> Result<Option<Arc<dyn Sandboxes>>, ApiError> {
    context.base.workspaces.get(workspace).await?;
    Ok(context.base.workspaces.sandboxes())
}

fn none_here(state: SandboxState) -> SandboxView {
    SandboxView { state, since: None, reason: Some("no sandbox is configured here".into()) }
}

fn unanswered(error: ports::Error) -> ApiError {
    tracing::warn!(error = %error.with_causes(), "the sandboxes did not answer");
    Error::new(Code::UpstreamUnavailable, "the sandboxes do not answer").hint("try again").into()
}
