//! Contents that are too long to come with a request: their addresses. An archive that gives out addresses of its own serves them past this server;
//! else the addresses lead to [`upload`] and [`download`], under a ticket to that one content.

use crate::{
    Context,
    access::{Access, Read, Write},
    auth, contents,
    error::Answer,
    extract::{Json, Pieces},
    files::InFile,
    keys::NO_STORE,
    schema,
    workspaces::InWorkspace,
};
use axum::{
    body::Body,
    extract::{FromRequestParts, State},
    response::{IntoResponse, Response},
};
use domain::{Code, Error, Sha256, WorkspaceId};
use http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts};
use identity::{Caller, TRANSFER_LIFE};
use ports::Presigned;
use serde::Deserialize;
use std::sync::Arc;
use tokio::sync::Semaphore;
use utoipa::{IntoParams, ToSchema};
use workspace::{Given, MAX_FILE, Way};

/// How many contents come in at once, each with a few MiB of memory.
const AT_ONCE: usize = 32;
static COMING_IN: Semaphore = Semaphore::const_new(AT_ONCE);

/// A content to bring.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToUpload {
    /// Its SHA-256, in hexadecimal digits.
    #[schema(value_type = String, pattern = "^[0-9a-fA-F]{64}$")]
    sha256: Sha256,
    /// Its length in bytes.
    #[schema(maximum = 5_000_000_000_u64)]
    size: u64,
}

/// A content of a path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct InContents {
    /// The workspace.
    #[param(value_type = Uuid)]
    workspace_id: WorkspaceId,
    /// The SHA-256 of the content, in hexadecimal digits.
    #[param(value_type = String, pattern = "^[0-9a-fA-F]{64}$")]
    sha256: Sha256,
}

/// An address to which a content is sent, as it is, up to 5 GB; anything else is refused there. Then make a file, or a version, with
/// its `sha256` instead of its content. Without a `request` the content is short: send it with the file, or by `PUT …/content`.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/uploads", tag = "files", params(InWorkspace),
    request_body = ToUpload, responses((status = 201, description = "The address is good from now on.", body = schema::Transfer)))]
pub(crate) async fn create_upload(
    State(context): State<Arc<Context>>,
    Access { at, caller, files, .. }: Access<Write, InWorkspace>,
    Json(wanted): Json<ToUpload>,
) -> Answer<impl IntoResponse> {
    let workspace = context.base.workspaces.open(at.workspace_id, files).await?;
    let ToUpload { sha256, size } = wanted;
    let way = workspace.address_for(sha256, size, TRANSFER_LIFE).await?;
    let told = told(&context, &caller, at.workspace_id, way, Some((sha256, size)), true)?;
    Ok((StatusCode::CREATED, [NO_STORE], axum::Json(told)))
}

/// An address from which the content is read, as it is, whole or in ranges. Without a `request` the content is short: read it by
/// `GET …/content`.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/files/{file_id}/address", tag = "files", params(InFile),
    responses((status = 200, description = "The address is good from now on.", body = schema::Transfer)))]
pub(crate) async fn get_address(
    State(context): State<Arc<Context>>,
    Access { at, caller, files, .. }: Access<Read, InFile>,
) -> Answer<impl IntoResponse> {
    let workspace = context.base.workspaces.open(at.workspace_id, files).await?;
    let (way, content) = workspace.address_of(&workspace.path_of(at.file_id).await?, TRANSFER_LIFE).await?;
    Ok(([NO_STORE], axum::Json(told(&context, &caller, at.workspace_id, way, content, false)?)))
}

fn told(
    context: &Context,
    caller: &Caller,
    workspace: WorkspaceId,
    way: Way,
    content: Option<(Sha256, u64)>,
    writes: bool,
) -> Result<schema::Transfer, Error> {
    let until = context.base.clock.now() + TRANSFER_LIFE;
    let request = match (way, content) {
        (Way::Past(Presigned { method, url, headers }), _) => {
            Some(schema::TransferRequest { method, url, headers: headers.into_iter().collect() })
        }
        (Way::Through, Some((sha256, size))) => {
            let bytes = writes.then_some(size);
            let ticket =
                context.base.auth.ticket_office().issue_transfer(caller.user, workspace, sha256, bytes, until)?;
            Some(schema::TransferRequest {
                method: if writes { "PUT" } else { "GET" }.into(),
                url: format!("/api/v1/workspaces/{workspace}/contents/{sha256}?ticket={ticket}"),
                headers: Default::default(),
            })
        }
        (Way::Inside | Way::Through, _) => None,
    };
    Ok(schema::Transfer { request, expires_at: until.to_string() })
}

/// The ticket of a request.
pub(crate) struct Ticket(String);

impl<S: Sync> FromRequestParts<S> for Ticket {
    type Rejection = crate::error::ApiError;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let ticket = auth::ticket(parts).ok_or_else(|| {
            Error::invalid("ticket", "a content goes by the whole address that it was given")
                .hint("ask for one by POST …/uploads or GET …/files/:fid/address")
        })?;
        Ok(Self(ticket.to_owned()))
    }
}

/// Takes a content, at the address that `POST …/uploads` gave, and no other than was announced there. The body is the content as it is.
#[utoipa::path(put, path = "/api/v1/workspaces/{workspace_id}/contents/{sha256}", tag = "files",
    params(InContents, ("ticket" = String, Query, description = "It comes with the address.")),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 204, description = "It is durable.")))]
pub(crate) async fn upload(
    State(context): State<Arc<Context>>,
    Access { at, files, .. }: Access<Write, InContents>,
    Ticket(ticket): Ticket,
    headers: HeaderMap,
    body: Body,
) -> Answer<StatusCode> {
    let now = context.base.clock.now();
    let leave = context.base.auth.ticket_office().verify_transfer(&ticket, at.workspace_id, at.sha256, now)?;
    let Some(length) = leave.writes else { return Err(other_way().into()) };
    let says = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if let Some(says) = says.filter(|says| *says != length) {
        let message = format!("the content has {says} bytes, not the {length} that were announced");
        return Err(Error::invalid("content-length", message).hint("ask for an address with its length").into());
    }
    let _one = COMING_IN.try_acquire().map_err(|_| {
        Error::new(Code::RateLimited, format!("{AT_ONCE} contents are coming in already")).hint("try again in a moment")
    })?;
    let workspace = context.base.workspaces.open(at.workspace_id, files).await?;
    let mut upload = workspace.receive(at.sha256, length).await?;
    let mut pieces = Pieces::of(body);
    while let Some(piece) = pieces.next().await? {
        upload.write(piece).await?;
    }
    upload.finish().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Gives a content, at the address that `GET …/files/:fid/address` gave. It never changes, so its ETag is its SHA-256.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/contents/{sha256}", tag = "files",
    params(InContents, ("ticket" = String, Query, description = "It comes with the address."),
        ("Range" = Option<String>, Header, description = "One range of bytes, such as `bytes=0-1023`.")),
    responses(
        (status = 200, description = "The content.", body = Vec<u8>, content_type = "*/*"),
        (status = 206, description = "The range.", body = Vec<u8>, content_type = "*/*")))]
pub(crate) async fn download(
    State(context): State<Arc<Context>>,
    Access { at, files, .. }: Access<Read, InContents>,
    Ticket(ticket): Ticket,
    headers: HeaderMap,
) -> Answer<Response> {
    let now = context.base.clock.now();
    let leave = context.base.auth.ticket_office().verify_transfer(&ticket, at.workspace_id, at.sha256, now)?;
    if leave.writes.is_some() {
        return Err(other_way().into());
    }
    let workspace = context.base.workspaces.open(at.workspace_id, files).await?;
    let content = match workspace.length_of(at.sha256).await? {
        size if size > MAX_FILE as u64 => Given::Large { sha256: at.sha256, size },
        _ => workspace.uploaded(at.sha256).await?,
    };
    let tag = HeaderValue::try_from(format!("\"{}\"", at.sha256)).ok();
    contents::respond(&workspace, &at.sha256.to_string(), content, tag, &headers).await
}

/// The refusal of a ticket to write that is used to read, or the other way round.
fn other_way() -> Error {
    Error::new(Code::Unauthorized, "the address is for another method").hint("send the request as it was given")
}
