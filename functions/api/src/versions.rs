//! The versions of a file: each immutable, each to be read and to be made current again.

use crate::{
    Context,
    access::{Access, Read, Write},
    contents,
    error::Answer,
    extract::Query,
    files::InFile,
    ids::Ids,
    schema,
    workspaces::Paging,
    writes::{Address, Changed, IfMatch, author},
};
use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use domain::{Code, Error, FileId, WorkspaceId};
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;
use workspace::{Expect, FileContent};

/// The version of a path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct AtVersion {
    /// The workspace.
    #[param(value_type = Uuid)]
    workspace_id: WorkspaceId,
    /// The file.
    #[param(value_type = Uuid)]
    file_id: FileId,
    /// The version, from 1.
    #[param(minimum = 1)]
    v: u64,
}

/// The versions to compare.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Compared {
    /// The older one.
    #[serde(deserialize_with = "crate::extract::number")]
    #[param(minimum = 1, maximum = 9_223_372_036_854_775_807_i64)]
    from: u64,
    /// The newer one.
    #[serde(deserialize_with = "crate::extract::number")]
    #[param(minimum = 1, maximum = 9_223_372_036_854_775_807_i64)]
    to: u64,
}

/// The versions of a file, newest first; also of one in the trash.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/files/{file_id}/versions", tag = "versions",
    params(InFile, Paging), responses((status = 200, description = "A page of them.", body = schema::VersionPage)))]
pub(crate) async fn list_versions(
    State(context): State<Arc<Context>>,
    Access { at, files, .. }: Access<Read, InFile>,
    Query(paging): Query<Paging>,
) -> Answer<impl IntoResponse> {
    let workspace = context.base.workspaces.open(at.workspace_id, files).await?;
    let first = paging.cursor.is_none();
    let page = workspace.versions(at.file_id, paging.limit()?, paging.cursor).await?;
    if first && page.versions.is_empty() {
        // A folder or a chat's file has none; something that does not exist is an error.
        workspace.by_id(at.file_id).await?;
    }
    Ok(axum::Json(page))
}

/// One version.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/files/{file_id}/versions/{v}", tag = "versions",
    params(AtVersion), responses((status = 200, description = "The version.", body = schema::Version)))]
pub(crate) async fn get_version(
    State(context): State<Arc<Context>>,
    Access { at, files, .. }: Access<Read, AtVersion>,
) -> Answer<impl IntoResponse> {
    let workspace = context.base.workspaces.open(at.workspace_id, files).await?;
    let version = workspace.version_info(at.file_id, at.v).await?;
    if version.size <= workspace::MAX_FILE as u64 {
        // One that cannot be read is not shown as if it could.
        workspace.version(at.file_id, at.v).await?;
    }
    Ok(axum::Json(version))
}

/// The content of one version, or a range of it.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/files/{file_id}/versions/{v}/content", tag = "versions",
    params(AtVersion, ("Range" = Option<String>, Header, description = "One range of bytes."),
        ("If-Match" = Option<String>, Header, description = "ETags of which one must be that of the version."),
        ("If-None-Match" = Option<String>, Header, description = "ETags that the client has.")),
    responses(
        (status = 200, description = "The content, of the type that the name's ending says.", body = serde_json::Value, content_type = "*/*"),
        (status = 206, description = "The range, of the same type.", body = serde_json::Value, content_type = "*/*"),
        (status = 304, description = "The client has it.")))]
pub(crate) async fn get_version_content(
    State(context): State<Arc<Context>>,
    Access { at, files, .. }: Access<Read, AtVersion>,
    headers: HeaderMap,
) -> Answer<Response> {
    let workspace = context.base.workspaces.open(at.workspace_id, files).await?;
    let version = workspace.version_info(at.file_id, at.v).await?;
    let tag = Address::Id.etag(at.file_id, version.v);
    if !IfMatch::of(&headers)?.names(at.file_id, version.v) {
        let error = Error::new(Code::StaleVersion, format!("If-Match names another version than {}", version.v));
        return Err(error.hint("read this one from its beginning, without If-Match").into());
    }
    if Address::Id.is_known(&headers, at.file_id, version.v) {
        return Ok(contents::unchanged(tag));
    }
    let content = if version.size > workspace::MAX_FILE as u64 {
        FileContent::Large { sha256: version.sha256, size: version.size }
    } else {
        FileContent::Bytes(workspace.version(at.file_id, at.v).await?.1)
    };
    let path = workspace.path_of(at.file_id).await.ok();
    let name = path.as_ref().map_or("content", |path| path.name());
    contents::respond(&workspace, name, content, tag, &headers).await
}

/// Makes the content of an old version the newest version.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/files/{file_id}/versions/{v}/restore", tag = "versions",
    params(AtVersion, ("If-Match" = Option<String>, Header, description = "The ETag that must be current.")),
    responses((status = 200, description = "It is current.", body = schema::Change)))]
pub(crate) async fn restore_version(
    State(context): State<Arc<Context>>,
    Access { at, by, files, caller, .. }: Access<Write, AtVersion>,
    ids: Ids,
    headers: HeaderMap,
) -> Answer<impl IntoResponse> {
    let workspace = context.base.workspaces.open(at.workspace_id, files).await?;
    let expect = match IfMatch::of(&headers)? {
        IfMatch::Anything => Expect::File(at.file_id),
        asked @ IfMatch::Versions(_) => {
            let info = workspace.by_id(at.file_id).await?;
            asked.check(&info)?;
            Expect::Exactly(at.file_id, info.v)
        }
    };
    let writer = author(&caller, ids.writer(by));
    Ok(Changed(StatusCode::OK, workspace.restore_version(at.file_id, at.v, expect, &writer).await?))
}

/// The differences between two versions.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/files/{file_id}/diff", tag = "versions",
    params(InFile, Compared), responses((status = 200, description = "The difference.", body = schema::Diff)))]
pub(crate) async fn diff_versions(
    State(context): State<Arc<Context>>,
    Access { at, files, .. }: Access<Read, InFile>,
    Query(Compared { from, to }): Query<Compared>,
) -> Answer<impl IntoResponse> {
    if from == 0 || to == 0 {
        let field = if from == 0 { "from" } else { "to" };
        return Err(Error::invalid(field, "versions count from 1")
            .hint("GET …/files/:file_id/versions lists them")
            .into());
    }
    let workspace = context.base.workspaces.open(at.workspace_id, files).await?;
    let diff = workspace.diff(at.file_id, from, to).await?;
    Ok(axum::Json(schema::Diff { from, to, diff }))
}
