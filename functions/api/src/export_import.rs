//! Workspaces as archives: out with their history, and in as new ones.

use crate::{
    Context,
    access::{Access, Read},
    error::{Answer, ApiError, internal},
    extract::{Pieces, Query, UnscopedCaller},
    ids::Ids,
    long_answers::long_answer_after,
    transfer_pace::taken_in_time,
    transfer_slots::{NoSlot, TransferSlot, TransferSlots},
    workspaces::{InWorkspace, may_found, welcome_founder},
};
use axum::{
    body::Body,
    extract::State,
    response::{IntoResponse, Response},
};
use domain::{Code, Error, FilePath, Timestamp, UserId, WorkspaceId};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use http::{HeaderValue, StatusCode, header};
use serde::{Deserialize, Serialize};
use std::{convert::Infallible, sync::Arc};
use tokio::sync::oneshot;
use utoipa::{IntoParams, ToSchema};
use workspace::{Format, Imported, Source, WorkspaceInfo};

/// How many exports and imports run at once. Each has up to two contents in memory, and reads or writes all of a workspace.
const AT_ONCE: usize = 4;
static RUNNING: TransferSlots = TransferSlots::new(AT_ONCE);

/// How many paths that were left out an answer names.
const MOST_LEFT_OUT: usize = 100;

fn slot(of: UserId) -> Result<TransferSlot, Error> {
    RUNNING.take(of).map_err(|NoSlot { all, own }| {
        Error::new(Code::RateLimited, format!("{all} exports and imports are running already, {own} of them yours"))
            .hint("try again in a moment")
    })
}

/// A form of an export or import.
#[derive(Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Form {
    /// A tar archive of BuildScale.
    #[default]
    Tar,
    /// A stream for `git fast-import`, with one commit for each version of each file, or one that `git fast-export` writes.
    Git,
}

/// The form of an export.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExportQuery {
    /// `tar`, which is the default, or `git`.
    #[serde(default)]
    #[param(inline)]
    format: Form,
}

/// The name and the form of an import.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct ImportAs {
    /// The name of the workspace, for people; that of the archive when none is given.
    #[param(min_length = 1, max_length = 200)]
    name: Option<String>,
    /// `tar` for an archive, which is the default, or `git` for the output of `git fast-export`.
    #[serde(default)]
    #[param(inline)]
    format: Form,
    /// The folder that gets the files of a repository; the root when none is given. An archive has the places of its files itself.
    #[param(value_type = Option<String>)]
    folder: Option<FilePath>,
}

impl ImportAs {
    fn source(&self) -> Result<Source, Error> {
        match (self.format, &self.folder) {
            (Form::Tar, None) => Ok(Source::Archive),
            (Form::Tar, Some(_)) => Err(Error::invalid("folder", "an archive has the places of its files itself")
                .hint("leave folder out, or import from Git with format=git")),
            (Form::Git, folder) => Ok(Source::Git { folder: folder.clone().unwrap_or_else(FilePath::root) }),
        }
    }
}

/// A workspace that was imported.
#[derive(Serialize, ToSchema)]
pub(crate) struct ImportedWorkspace {
    /// Its id.
    #[schema(value_type = Uuid)]
    workspace_id: WorkspaceId,
    /// Its name.
    name: String,
    /// Its creator.
    #[schema(value_type = Uuid)]
    owner: UserId,
    /// The time of the creation.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// How many files it has. Zero when the same request made it before.
    files: u64,
    /// How many versions they have.
    versions: u64,
    /// The first 100 paths of the repository that no workspace can have: symbolic links, submodules, and files below a folder called `.git`. Of an
    /// archive, the first 100 files, folders and versions that it lacks, because they were damaged when it was made.
    left_out: Vec<String>,
}

/// All files that you see in a workspace, with their versions, authors and times, as a stream. The trash and the logs of chats are not in it. An answer
/// that breaks off is not complete: no import takes it. A tar archive of a workspace with damaged data has all that is whole: `missing` in its last entry,
/// `end.json`, counts the rows that name the rest. A stream for Git breaks off at damaged data.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/export", tag = "workspaces", params(InWorkspace, ExportQuery),
    responses((status = 200, description = "The archive.", body = serde_json::Value, content_type = "*/*")))]
pub(crate) async fn export_workspace(
    State(context): State<Arc<Context>>,
    Access { at, caller, files, .. }: Access<Read, InWorkspace>,
    Query(wanted): Query<ExportQuery>,
) -> Answer<Response> {
    let running = slot(caller.user)?;
    let info = context.base.workspaces.get(at.workspace_id).await?;
    let workspace = context.base.workspaces.open(at.workspace_id, files).await?;
    let (format, kind, ending) = match wanted.format {
        Form::Tar => (Format::Tar, "application/x-tar", "tar"),
        Form::Git => (Format::Git, "application/octet-stream", "git"),
    };
    let mut pieces = Box::pin(workspace.export(info, format));
    // An export that fails where it begins is refused; further on all that can be done is to break off.
    let first = pieces.try_next().await?;
    let pieces = taken_in_time(stream::iter(first.map(Ok)).chain(pieces)).map(move |piece| {
        let _running = &running;
        piece.inspect_err(|error| tracing::warn!(%error, "an export broke off"))
    });
    let mut response = Body::from_stream(pieces).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let place = format!("attachment; filename=\"{}.{ending}\"", at.workspace_id);
    if let Ok(place) = HeaderValue::try_from(place) {
        headers.insert(header::CONTENT_DISPOSITION, place);
    }
    Ok(response)
}

/// Makes a workspace from an archive, or from a history that `git fast-export` wrote, which is the body as it is. It has the files with their versions,
/// authors and times; their ids are new. The authors are those that the body names. With an `Idempotency-Key` a body has at most 32 MiB.
/// An answer that is not there 15 seconds after the body begins with spaces, one every 15 seconds. A refusal that comes after them has the status 201,
/// and the body of any other refusal.
#[utoipa::path(post, path = "/api/v1/imports", tag = "workspaces", params(ImportAs),
    request_body(content = serde_json::Value, content_type = "application/x-tar"),
    responses((status = 201, description = "It was made.", body = ImportedWorkspace)))]
pub(crate) async fn import_workspace(
    State(context): State<Arc<Context>>,
    UnscopedCaller(caller): UnscopedCaller,
    ids: Ids,
    Query(wanted): Query<ImportAs>,
    body: Body,
) -> Answer<impl IntoResponse> {
    may_found(&caller)?;
    let source = wanted.source()?;
    let running = slot(caller.user)?;
    let id = WorkspaceId(ids.id("workspace"));
    let (comes, body_over) = oneshot::channel::<Infallible>();
    let pieces = stream::try_unfold((Pieces::of(body), Some(comes)), |(mut pieces, comes)| async move {
        let piece = pieces.next().await?;
        let comes = comes.filter(|_| !pieces.are_over());
        Ok(piece.map(|piece| (piece, (pieces, comes))))
    });
    let founding = context.base.members().founding(id, &caller)?;
    let whole = async move {
        let _running = running;
        let (name, principal, pieces) = (wanted.name.as_deref(), caller.principal(), Box::pin(pieces));
        let imported = context.base.workspaces.import_with(id, name, &principal, source, pieces, founding).await?;
        welcome_founder(&context, id, &caller).await?;
        let Imported { workspace, files, versions, mut left_out } = imported;
        left_out.truncate(MOST_LEFT_OUT);
        let WorkspaceInfo { workspace_id, name, owner, created_at } = workspace;
        let made = ImportedWorkspace { workspace_id, name, owner, created_at, files, versions, left_out };
        serde_json::to_value(made).map_err(|_| internal())
    };
    let made = long_answer_after(body_over, whole, ApiError::envelope).await?;
    Ok((StatusCode::CREATED, [(header::LOCATION, format!("/api/v1/workspaces/{id}"))], made))
}
