//! Files: listed, made, found, given new content, moved, removed. Contents as bytes are in [`crate::contents`].

use crate::{
    Context,
    access::{Access, Read, Write},
    error::Answer,
    extract::{Json, Query, page_length},
    ids::Ids,
    schema,
    workspaces::InWorkspace,
    writes::{Address, Changed, FileAnswer, IfThere, author, expect_current, write, write_at},
};
use axum::{extract::State, response::IntoResponse};
use base64::Engine;
use bytes::Bytes;
use domain::{ChatId, Code, Error, FileId, FilePath, Sha256, WorkspaceId};
use http::{HeaderMap, StatusCode, header};
use serde::Deserialize;
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};
use workspace::{Expect, FileContent, FileKind, Info, Workspace, Writer};

/// The file of a path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct InFile {
    /// The workspace.
    #[param(value_type = Uuid)]
    pub workspace_id: WorkspaceId,
    /// The file or folder.
    #[param(value_type = Uuid)]
    pub file_id: FileId,
}

/// A folder, and a page of it.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct InFolder {
    /// The folder.
    #[param(value_type = Option<String>, default = "/", min_length = 1, max_length = 4096, example = "/projects")]
    path: Option<FilePath>,
    /// At most this many; 1 to 1,000.
    #[param(default = 200, minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// The `next_cursor` of the page before.
    cursor: Option<String>,
    /// Whether files that are derived from documents are listed, too.
    #[param(default = false)]
    hidden: Option<bool>,
    /// Only files and folders with this tag: of each page, so it may have fewer entries than `limit`.
    #[param(min_length = 1, max_length = 64)]
    tag: Option<String>,
}

/// A path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct AtPath {
    /// The path.
    #[param(value_type = String, min_length = 1, max_length = 4096, example = "/projects/summary.md")]
    pub path: FilePath,
}

/// The path of a file that is written.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct AtFile {
    /// The path of the file; one that ends with `/` is refused.
    #[param(min_length = 1, max_length = 4096, example = "/projects/summary.md")]
    pub path: String,
}

/// The path of a file or folder that a request makes.
///
/// # Errors
/// `INVALID_ARGUMENT` for a text that is no path, or that of a folder in the place of a file.
pub(crate) fn new_path(text: &str, is_folder: bool) -> Result<FilePath, Error> {
    Ok(if is_folder { FilePath::parse(text)? } else { FilePath::parse_file(text)? })
}

/// The encoding of a content in JSON.
#[derive(Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Encoding {
    /// As it is; the content is UTF-8.
    #[default]
    Text,
    /// Base64 with padding (RFC 4648 §4).
    Base64,
}

/// A file or folder to make.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NewFileKind {
    /// A file.
    #[default]
    File,
    /// A folder.
    Folder,
}

/// A file or a folder to make; folders above it are made, too.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewFile {
    /// The path of the new file or folder; that of a file does not end with `/`.
    #[schema(min_length = 1, max_length = 4096, example = "/projects/notes.md")]
    path: String,
    /// The kind: file or folder.
    #[serde(default)]
    kind: NewFileKind,
    /// The content of a file; empty when none.
    content: Option<String>,
    /// Instead of the content its SHA-256, when it was uploaded (`POST …/uploads`).
    #[schema(value_type = Option<String>, pattern = "^[0-9a-fA-F]{64}$")]
    sha256: Option<Sha256>,
    /// The encoding of the content.
    #[serde(default)]
    encoding: Encoding,
}

/// A new content.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewContent {
    /// The content.
    content: Option<String>,
    /// Instead of the content its SHA-256, when it was uploaded (`POST …/uploads`).
    #[schema(value_type = Option<String>, pattern = "^[0-9a-fA-F]{64}$")]
    sha256: Option<Sha256>,
    /// The encoding.
    #[serde(default)]
    encoding: Encoding,
}

/// A move.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Move {
    /// The new path; that of a file does not end with `/`.
    #[schema(min_length = 1, max_length = 4096, example = "/projects/archive/notes.md")]
    path: String,
}

impl Encoding {
    fn decode(self, content: String) -> Result<Bytes, Error> {
        match self {
            Self::Text => Ok(content.into()),
            Self::Base64 => match base64::engine::general_purpose::STANDARD.decode(content) {
                Ok(bytes) => Ok(bytes.into()),
                Err(error) => Err(Error::invalid("content", format!("the content is not Base64: {error}"))
                    .hint("use the standard alphabet with padding, or encoding text")),
            },
        }
    }
}

/// Lists a folder, by name.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/files", tag = "files", params(InWorkspace, InFolder),
    responses((status = 200, description = "A page of it.", body = schema::FilePage)))]
pub(crate) async fn list_files(
    State(context): State<Arc<Context>>,
    Access { at, files, .. }: Access<Read, InWorkspace>,
    Query(folder): Query<InFolder>,
) -> Answer<impl IntoResponse> {
    let workspace = context.base.workspaces.open(at.workspace_id, files).await?;
    let path = folder.path.unwrap_or_else(FilePath::root);
    let limit = page_length(folder.limit, 200, 1000)?;
    let mut listing = workspace.ls(&path, limit, folder.cursor).await?;
    if !folder.hidden.unwrap_or(false) {
        listing.entries.retain(|entry| entry.document().is_none());
    }
    if let Some(tag) = folder.tag {
        let tagged = workspace.ids_tagged(&tag).await?;
        listing.entries.retain(|entry| tagged.contains(&entry.file_id));
    }
    Ok(axum::Json(listing))
}

/// Makes a file or a folder. `CONFLICT` when a file is there already; a folder may be.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/files", tag = "files", params(InWorkspace),
    request_body = NewFile, responses((status = 201, description = "It is there.", body = schema::Change)))]
pub(crate) async fn create_file(
    State(context): State<Arc<Context>>,
    Access { at, by, files, caller, .. }: Access<Write, InWorkspace>,
    ids: Ids,
    Json(new): Json<NewFile>,
) -> Answer<impl IntoResponse> {
    let path = new_path(&new.path, new.kind == NewFileKind::Folder)?;
    let workspace = context.base.workspaces.open(at.workspace_id, files).await?;
    let writer = author(&caller, ids.writer(by));
    let change = match (new.kind, new.content, new.sha256) {
        (NewFileKind::Folder, None, None) => workspace.mkdir(&path, &writer).await?,
        (NewFileKind::Folder, ..) => {
            return Err(Error::invalid("content", "a folder has no content")
                .hint("leave content and sha256 out, or make a file")
                .into());
        }
        (NewFileKind::File, None, None) => workspace.write(&path, Bytes::new(), Expect::Absent, &writer).await?,
        (NewFileKind::File, content, sha256) => {
            let content = given(&workspace, content, new.encoding, sha256).await?;
            workspace.write_given(&path, content, Expect::Absent, &writer).await?
        }
    };
    let place = format!("/api/v1/workspaces/{}/files/{}", at.workspace_id, change.file_id);
    Ok(([(header::LOCATION, place)], Changed(StatusCode::CREATED, change)))
}

/// The file or folder at a path.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/files/by-path", tag = "files", params(InWorkspace, AtPath),
    responses((status = 200, description = "The file or folder.", body = schema::FileInfo)))]
pub(crate) async fn get_file_by_path(
    State(context): State<Arc<Context>>,
    Access { at, files, .. }: Access<Read, InWorkspace>,
    Query(AtPath { path }): Query<AtPath>,
) -> Answer<impl IntoResponse> {
    let workspace = context.base.workspaces.open(at.workspace_id, files).await?;
    Ok(FileAnswer(Address::Path, workspace.stat(&path).await?))
}

/// Writes the file at a path, in one request and one version: makes it, and the folders above it, where nothing is, else gives it
/// its next version; the same content makes no version. `STALE_VERSION` when `If-None-Match: *` is sent and something is there, and
/// when `If-Match` does not match the current version.
#[utoipa::path(put, path = "/api/v1/workspaces/{workspace_id}/files/by-path", tag = "files",
    params(InWorkspace, AtFile, IfThere), request_body = NewContent,
    responses((status = 200, description = "It is written.", body = schema::Change),
        (status = 201, description = "It was made.", body = schema::Change)))]
pub(crate) async fn put_file_by_path(
    State(context): State<Arc<Context>>,
    Access { at, by, files, caller, .. }: Access<Write, InWorkspace>,
    Query(AtFile { path }): Query<AtFile>,
    headers: HeaderMap,
    Json(new): Json<NewContent>,
) -> Answer<impl IntoResponse> {
    let path = new_path(&path, false)?;
    let workspace = context.base.workspaces.open(at.workspace_id, files).await?;
    let content = given(&workspace, new.content, new.encoding, new.sha256).await?;
    write_at(&workspace, &path, content, &headers, &author(&caller, by.into())).await
}

/// A file or folder by its identity, wherever it is now.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/files/{file_id}", tag = "files", params(InFile),
    responses((status = 200, description = "The file or folder.", body = schema::FileInfo)))]
pub(crate) async fn get_file(
    State(context): State<Arc<Context>>,
    Access { at, files, .. }: Access<Read, InFile>,
) -> Answer<impl IntoResponse> {
    let workspace = context.base.workspaces.open(at.workspace_id, files).await?;
    Ok(FileAnswer(Address::Id, workspace.by_id(at.file_id).await?))
}

/// Gives a file a new content, as its next version; the same content makes no version.
#[utoipa::path(put, path = "/api/v1/workspaces/{workspace_id}/files/{file_id}", tag = "files",
    params(InFile, ("If-Match" = Option<String>, Header, description = "The ETag that must be current.")),
    request_body = NewContent, responses((status = 200, description = "It is written.", body = schema::Change)))]
pub(crate) async fn put_file(
    State(context): State<Arc<Context>>,
    Access { at, by, files, caller, .. }: Access<Write, InFile>,
    headers: HeaderMap,
    Json(new): Json<NewContent>,
) -> Answer<impl IntoResponse> {
    let workspace = context.base.workspaces.open(at.workspace_id, files).await?;
    let content = given(&workspace, new.content, new.encoding, new.sha256).await?;
    write(&workspace, at.file_id, content, &headers, &author(&caller, by.into())).await
}

/// The content of a request: inline, or uploaded before.
async fn given(
    workspace: &Workspace,
    content: Option<String>,
    encoding: Encoding,
    sha256: Option<Sha256>,
) -> Result<FileContent, Error> {
    match (content, sha256) {
        (Some(content), None) => encoding.decode(content).map(FileContent::Bytes),
        (None, Some(digest)) => workspace.uploaded(digest).await,
        (None, None) => Err(Error::invalid("content", "missing field `content`")
            .hint("give the content, or sha256 of one that was uploaded")),
        (Some(_), Some(_)) => {
            Err(Error::invalid("sha256", "there are a content and a sha256")
                .hint("give either the content or its sha256"))
        }
    }
}

/// Moves a file or folder to another path; identity and versions stay.
#[utoipa::path(patch, path = "/api/v1/workspaces/{workspace_id}/files/{file_id}", tag = "files",
    params(InFile, ("If-Match" = Option<String>, Header, description = "The ETag that must be current.")),
    request_body = Move, responses((status = 200, description = "It is there.", body = schema::Change)))]
pub(crate) async fn move_file(
    State(context): State<Arc<Context>>,
    Access { at, by, files, caller, .. }: Access<Write, InFile>,
    headers: HeaderMap,
    Json(to): Json<Move>,
) -> Answer<impl IntoResponse> {
    let workspace = context.base.workspaces.open(at.workspace_id, files).await?;
    let info = workspace.by_id(at.file_id).await?;
    let path = new_path(&to.path, info.kind == FileKind::Folder)?;
    let expect = expect_current(&info, &headers)?;
    let may_take_projections = nothing_keeps(&context, &at, &info).await?;
    let writer = Writer { may_take_projections, ..author(&caller, by.into()) };
    Ok(Changed(StatusCode::OK, workspace.mv_expecting(&info.path, &path, expect, &writer).await?))
}

/// Puts a file, or a folder with all in it, into the trash.
#[utoipa::path(delete, path = "/api/v1/workspaces/{workspace_id}/files/{file_id}", tag = "files",
    params(InFile, ("If-Match" = Option<String>, Header, description = "The ETag that must be current.")),
    responses((status = 200, description = "It is in the trash.", body = schema::Change)))]
pub(crate) async fn delete_file(
    State(context): State<Arc<Context>>,
    Access { at, by, files, caller, .. }: Access<Write, InFile>,
    headers: HeaderMap,
) -> Answer<impl IntoResponse> {
    let workspace = context.base.workspaces.open(at.workspace_id, files).await?;
    let info = workspace.by_id(at.file_id).await?;
    let expect = expect_current(&info, &headers)?;
    let may_take_projections = nothing_keeps(&context, &at, &info).await?;
    let writer = Writer { may_take_projections, ..author(&caller, by.into()) };
    Ok(Changed(StatusCode::OK, workspace.rm_expecting(&info.path, expect, &writer).await?))
}

/// Whether this is the file of a chat that is deleted, restored from the trash: its chat keeps it no more.
async fn nothing_keeps(context: &Context, at: &InFile, info: &Info) -> Result<bool, Error> {
    if info.kind != FileKind::Projection {
        return Ok(false);
    }
    // The file of a chat has the chat's id.
    match context.chats.get(at.workspace_id, ChatId(info.file_id.0)).await {
        Ok(_) => Ok(false),
        Err(error) if error.code == Code::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}
