//! Removed files, until they are restored or purged.

use crate::{
    Context,
    access::{Access, Administer, Read, Write},
    error::Answer,
    extract::{Json, NoFields, Query},
    files::InFile,
    ids::Ids,
    schema,
    workspaces::{InWorkspace, Paging},
    writes::{Changed, author},
};
use axum::{extract::State, response::IntoResponse};
use http::StatusCode;
use std::sync::Arc;

/// Lists the trash.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/files/trash", tag = "trash", params(InWorkspace, Paging),
    responses((status = 200, description = "A page of it.", body = schema::TrashPage)))]
pub(crate) async fn list_trash(
    State(context): State<Arc<Context>>,
    Access { at, files, .. }: Access<Read, InWorkspace>,
    Query(paging): Query<Paging>,
) -> Answer<impl IntoResponse> {
    let workspace = context.base.workspaces.open(at.workspace_id, files).await?;
    Ok(axum::Json(workspace.trash(paging.limit()?, paging.cursor).await?))
}

/// Brings something back from the trash to where it was.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/files/{file_id}/restore", tag = "trash", params(InFile),
    responses((status = 200, description = "It is back.", body = schema::Change)))]
pub(crate) async fn restore_file(
    State(context): State<Arc<Context>>,
    Access { at, by, files, caller, .. }: Access<Write, InFile>,
    ids: Ids,
    Json(NoFields {}): Json<NoFields>,
) -> Answer<impl IntoResponse> {
    let workspace = context.base.workspaces.open(at.workspace_id, files).await?;
    let writer = author(&caller, ids.writer(by));
    Ok(Changed(StatusCode::OK, workspace.restore(at.file_id, &writer).await?))
}

/// Removes something in the trash for good, with all its versions.
#[utoipa::path(delete, path = "/api/v1/workspaces/{workspace_id}/files/{file_id}/purge", tag = "trash", params(InFile),
    responses((status = 200, description = "It is gone.", body = schema::Change)))]
pub(crate) async fn purge_file(
    State(context): State<Arc<Context>>,
    Access { at, by, files, .. }: Access<Administer, InFile>,
) -> Answer<impl IntoResponse> {
    let workspace = context.base.workspaces.open(at.workspace_id, files).await?;
    Ok(Changed(StatusCode::OK, workspace.purge(at.file_id, &by.into()).await?))
}
