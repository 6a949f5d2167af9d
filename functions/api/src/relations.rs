//! Tags, links and networks of files.

use crate::{
    Context,
    access::{Access, Read, Write},
    error::Answer,
    extract::{Json, Query, page_length},
    files::InFile,
    ids::Ids,
    schema,
    workspaces::{InWorkspace, Paging},
};
use axum::{extract::State, response::IntoResponse};
use domain::{Error, FileId, WorkspaceId};
use serde::Deserialize;
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};
use workspace::{MAX_NETWORK_DEPTH, MAX_NETWORK_NODES, Mark};

/// Tags to add.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewTags {
    /// The tags, of 1 to 64 characters each: letters, digits, `-`, `_`, `.` and `:`. They are kept in lower case.
    #[schema(min_items = 1, max_items = 64, example = json!(["status:open"]))]
    tags: Vec<String>,
}

/// A tag to remove.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct OldTag {
    /// The tag.
    #[param(min_length = 1, max_length = 64)]
    tag: String,
}

/// A link to make.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewLink {
    /// The file or folder to which it leads.
    #[schema(value_type = Uuid)]
    to: FileId,
    /// Its kind: `implements`, `answers`, `derived_from`, or a word of your own of a-z, 0-9 and _.
    #[schema(min_length = 1, max_length = 32, pattern = "^[a-z][a-z0-9_]*$", example = "implements")]
    kind: String,
}

/// A link to remove.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct OldLink {
    /// The file or folder to which it leads.
    #[param(value_type = Uuid)]
    to: FileId,
    /// Its kind.
    #[param(min_length = 1, max_length = 32)]
    kind: String,
}

/// The tag of a path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct WithTag {
    /// The workspace.
    #[param(value_type = Uuid)]
    workspace_id: WorkspaceId,
    /// The tag.
    #[param(min_length = 1, max_length = 64)]
    tag: String,
}

/// The size of a network.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Around {
    /// How many links a file may be away; 1 to 5.
    #[param(default = 1, minimum = 1, maximum = 5)]
    depth: Option<usize>,
    /// At most this many files; 1 to 500.
    #[param(default = 100, minimum = 1, maximum = 500)]
    limit: Option<usize>,
}

/// Gives a file or folder tags. Those that it has already are fine.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/files/{file_id}/tags", tag = "links", params(InFile),
    request_body = NewTags, responses((status = 200, description = "It has them.", body = schema::FileTags)))]
pub(crate) async fn add_tags(
    State(context): State<Arc<Context>>,
    Access { at, by, files, .. }: Access<Write, InFile>,
    ids: Ids,
    Json(new): Json<NewTags>,
) -> Answer<impl IntoResponse> {
    let workspace = context.base.workspaces.open(at.workspace_id, files).await?;
    let marked = workspace.mark(at.file_id, Mark::Tag(new.tags), &ids.writer(by)).await;
    // One of several is refused.
    let of_tags = |error: domain::Error| match error.details.get("field").and_then(serde_json::Value::as_str) {
        Some("tag") => error.detail("field", "tags"),
        _ => error,
    };
    Ok(axum::Json(marked.map_err(of_tags)?))
}

/// Takes a tag off a file or folder. One that it has not is fine.
#[utoipa::path(delete, path = "/api/v1/workspaces/{workspace_id}/files/{file_id}/tags", tag = "links",
    params(InFile, OldTag), responses((status = 200, description = "It has it no more.", body = schema::FileTags)))]
pub(crate) async fn remove_tag(
    State(context): State<Arc<Context>>,
    Access { at, by, files, .. }: Access<Write, InFile>,
    Query(old): Query<OldTag>,
) -> Answer<impl IntoResponse> {
    let workspace = context.base.workspaces.open(at.workspace_id, files).await?;
    Ok(axum::Json(workspace.mark(at.file_id, Mark::Untag(vec![old.tag]), &by.into()).await?))
}

/// The tags of a file, the links from it and the links to it, also those in texts.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/files/{file_id}/links", tag = "links", params(InFile),
    responses((status = 200, description = "Its tags and links.", body = schema::Relations)))]
pub(crate) async fn get_links(
    State(context): State<Arc<Context>>,
    Access { at, files, .. }: Access<Read, InFile>,
) -> Answer<impl IntoResponse> {
    let workspace = context.base.workspaces.open(at.workspace_id, files).await?;
    Ok(axum::Json(workspace.relations(at.file_id).await?))
}

/// Links a file or folder to another one. A link that is there already is fine.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/files/{file_id}/links", tag = "links", params(InFile),
    request_body = NewLink, responses((status = 200, description = "It is linked.", body = schema::FileTags)))]
pub(crate) async fn add_link(
    State(context): State<Arc<Context>>,
    Access { at, by, files, .. }: Access<Write, InFile>,
    ids: Ids,
    Json(new): Json<NewLink>,
) -> Answer<impl IntoResponse> {
    let workspace = context.base.workspaces.open(at.workspace_id, files).await?;
    Ok(axum::Json(workspace.mark(at.file_id, Mark::Link(new.to, new.kind), &ids.writer(by)).await?))
}

/// Removes an explicit link. One that is not there is fine. A link in a text goes with the next version that has it not.
#[utoipa::path(delete, path = "/api/v1/workspaces/{workspace_id}/files/{file_id}/links", tag = "links",
    params(InFile, OldLink), responses((status = 200, description = "It is gone.", body = schema::FileTags)))]
pub(crate) async fn remove_link(
    State(context): State<Arc<Context>>,
    Access { at, by, files, .. }: Access<Write, InFile>,
    Query(old): Query<OldLink>,
) -> Answer<impl IntoResponse> {
    let workspace = context.base.workspaces.open(at.workspace_id, files).await?;
    Ok(axum::Json(workspace.mark(at.file_id, Mark::Unlink(old.to, old.kind), &by.into()).await?))
}

/// The files that links lead to and from, up to some steps away.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/files/{file_id}/network", tag = "links",
    params(InFile, Around), responses((status = 200, description = "The files and links.", body = schema::Network)))]
pub(crate) async fn get_network(
    State(context): State<Arc<Context>>,
    Access { at, files, .. }: Access<Read, InFile>,
    Query(around): Query<Around>,
) -> Answer<impl IntoResponse> {
    let depth = around.depth.unwrap_or(1);
    if !(1..=MAX_NETWORK_DEPTH).contains(&depth) {
        let message = format!("the depth is {depth}; it can be 1 to {MAX_NETWORK_DEPTH}");
        return Err(Error::invalid("depth", message).hint("ask for the network of a file further out").into());
    }
    let limit = page_length(around.limit, 100, MAX_NETWORK_NODES)?;
    let workspace = context.base.workspaces.open(at.workspace_id, files).await?;
    Ok(axum::Json(workspace.network(at.file_id, depth, limit).await?))
}

/// The tags of the workspace, with the number of files that have each.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/files/tags", tag = "links", params(InWorkspace),
    responses((status = 200, description = "The tags.", body = schema::TagCounts)))]
pub(crate) async fn list_tags(
    State(context): State<Arc<Context>>,
    Access { at, files, .. }: Access<Read, InWorkspace>,
) -> Answer<impl IntoResponse> {
    let workspace = context.base.workspaces.open(at.workspace_id, files).await?;
    Ok(axum::Json(workspace.tags().await?))
}

/// The files and folders that have a tag.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/files/tags/{tag}", tag = "links", params(WithTag, Paging),
    responses((status = 200, description = "A page of them.", body = schema::TaggedPage)))]
pub(crate) async fn list_tagged(
    State(context): State<Arc<Context>>,
    Access { at, files, .. }: Access<Read, WithTag>,
    Query(paging): Query<Paging>,
) -> Answer<impl IntoResponse> {
    let workspace = context.base.workspaces.open(at.workspace_id, files).await?;
    Ok(axum::Json(workspace.tagged(&at.tag, paging.limit()?, paging.cursor).await?))
}
