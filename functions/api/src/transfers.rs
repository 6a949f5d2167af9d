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
    transfer_slots::{NoSlot, TransferSlots},
    workspaces::InWorkspace,
    writes::{demand_tag, is_known},
};
use axum::{
    body::Body,
    extract::{FromRequestParts, State},
    response::{IntoResponse, Response},
};
use domain::{Code, Error, Sha256, WorkspaceId, text::counted};
use http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts};
use identity::{Caller, TRANSFER_LIFE, TransferRight};
use ports::{LARGEST, Part, Presigned, Progress, ResumableUpload};
use serde::Deserialize;
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};
use workspace::{FileContent, MAX_FILE, TransferRoute};

/// How many contents come in at once, each with a few MiB of memory.
const AT_ONCE: usize = 32;
static COMING_IN: TransferSlots = TransferSlots::new(AT_ONCE);

/// A content to bring.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewUpload {
    /// Its SHA-256, in hexadecimal digits.
    #[schema(value_type = String, pattern = "^[0-9a-fA-F]{64}$")]
    sha256: Sha256,
    /// Its length in bytes.
    #[schema(maximum = 5_000_000_000_u64)]
    size: u64,
    /// The SHA-256 of each part of 16 MiB (16,777,216 bytes) in their order, the last one shorter: then the content comes part by part, and a broken upload
    /// goes on where it ended.
    #[schema(value_type = Option<Vec<String>>, max_items = 299)]
    parts: Option<Vec<Sha256>>,
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
/// its `sha256` instead of its content. Without a `request` and `parts` the content is short: send it with the file, or by `PUT …/content`.
///
/// With `parts` the address is that of the next part that is missing. Send that part, and ask again, until none is missing.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/uploads", tag = "files", params(InWorkspace),
    request_body = NewUpload, responses((status = 201, description = "The address is good from now on.", body = schema::Transfer)))]
pub(crate) async fn create_upload(
    State(context): State<Arc<Context>>,
    Access { at, caller, files, .. }: Access<Write, InWorkspace>,
    Json(wanted): Json<NewUpload>,
) -> Answer<impl IntoResponse> {
    let workspace = context.base.workspaces.open(at.workspace_id, files).await?;
    let NewUpload { sha256, size, parts } = wanted;
    let door = Door { context: &context, caller: &caller, workspace: at.workspace_id };
    let progress = match parts {
        Some(parts) => workspace.resume(&announced(sha256, size, parts)?, TRANSFER_LIFE).await?,
        None => None,
    };
    let told = match progress {
        Some(progress) => door.in_parts(sha256, size, progress)?,
        None => {
            let way = workspace.address_for(sha256, size, TRANSFER_LIFE).await?;
            door.transfer(door.request(way, Some(sha256), TransferRight::Write { length: size })?, None)
        }
    };
    Ok((StatusCode::CREATED, [NO_STORE], axum::Json(told)))
}

fn announced(sha256: Sha256, size: u64, parts: Vec<Sha256>) -> Result<ResumableUpload, Error> {
    if size > LARGEST {
        let message = format!("the upload has {size} bytes; the limit is {LARGEST}");
        return Err(Error::new(Code::PayloadTooLarge, message).hint("split it into several files"));
    }
    let hint = "give the SHA-256 of each 16 MiB of the content, in their order";
    ResumableUpload::new(sha256, size, parts).map_err(|error| Error::invalid("parts", error.to_string()).hint(hint))
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
    let door = Door { context: &context, caller: &caller, workspace: at.workspace_id };
    let request = door.request(way, content.map(|(sha256, _)| sha256), TransferRight::Read)?;
    Ok(([NO_STORE], axum::Json(door.transfer(request, None))))
}

/// The place where addresses are given out.
struct Door<'a> {
    context: &'a Context,
    caller: &'a Caller,
    workspace: WorkspaceId,
}

impl Door<'_> {
    fn transfer(
        &self,
        request: Option<schema::TransferRequest>,
        parts: Option<schema::UploadProgress>,
    ) -> schema::Transfer {
        let until = self.context.base.clock.now() + TRANSFER_LIFE;
        schema::Transfer { request, parts, expires_at: until.to_string() }
    }

    fn request(
        &self,
        way: TransferRoute,
        content: Option<Sha256>,
        right: TransferRight,
    ) -> Result<Option<schema::TransferRequest>, Error> {
        match (way, content) {
            (TransferRoute::Past(request), _) => Ok(Some(past(request))),
            (TransferRoute::Through, Some(sha256)) => self.through(sha256, right).map(Some),
            (TransferRoute::Inside | TransferRoute::Through, _) => Ok(None),
        }
    }

    /// An address of this server, under a ticket for that content.
    fn through(&self, sha256: Sha256, right: TransferRight) -> Result<schema::TransferRequest, Error> {
        let Self { context, caller, workspace } = self;
        let until = context.base.clock.now() + TRANSFER_LIFE;
        let ticket = context.base.auth.ticket_office().issue_transfer(caller.user, *workspace, sha256, right, until)?;
        Ok(schema::TransferRequest {
            method: if right == TransferRight::Read { "GET" } else { "PUT" }.into(),
            url: format!("/api/v1/workspaces/{workspace}/contents/{sha256}?ticket={ticket}"),
            headers: Default::default(),
        })
    }

    fn in_parts(&self, sha256: Sha256, size: u64, progress: Progress) -> Result<schema::Transfer, Error> {
        let (received, next, request) = match progress {
            Progress::Whole => (size, None, None),
            Progress::Missing { received, part, request: Some(request) } => (received, Some(part), Some(past(request))),
            Progress::Missing { received, part, request: None } => {
                (received, Some(part), Some(self.through(sha256, TransferRight::WritePart(part))?))
            }
        };
        let next = next.map(|part| schema::UploadPart { from: part.from, size: part.length });
        Ok(self.transfer(request, Some(schema::UploadProgress { received, next })))
    }
}

fn past(Presigned { method, url, headers }: Presigned) -> schema::TransferRequest {
    schema::TransferRequest { method, url, headers: headers.into_iter().collect() }
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

/// Takes a content, or the part of it, at the address that `POST …/uploads` gave, and no other than was announced there. The body is its bytes as they are.
#[utoipa::path(put, path = "/api/v1/workspaces/{workspace_id}/contents/{sha256}", tag = "files",
    params(InContents, ("ticket" = String, Query, description = "It comes with the address.")),
    request_body(content = serde_json::Value, content_type = "application/octet-stream"),
    responses((status = 204, description = "It is durable.")))]
pub(crate) async fn upload(
    State(context): State<Arc<Context>>,
    Access { at, caller, files, .. }: Access<Write, InContents>,
    Ticket(ticket): Ticket,
    headers: HeaderMap,
    body: Body,
) -> Answer<StatusCode> {
    let now = context.base.clock.now();
    let leave = context.base.auth.ticket_office().verify_transfer(&ticket, at.workspace_id, at.sha256, now)?;
    let length = match leave.right {
        TransferRight::Read => return Err(other_way().into()),
        TransferRight::Write { length } | TransferRight::WritePart(Part { length, .. }) => length,
    };
    let says = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if let Some(says) = says.filter(|says| *says != length) {
        let says = counted(says, "byte");
        let message = format!("the content has {says}, not the {length} that were announced");
        return Err(Error::invalid("content-length", message).hint("ask for an address with its length").into());
    }
    let _one = COMING_IN.take(caller.user).map_err(|NoSlot { all, own }| {
        Error::new(Code::RateLimited, format!("{all} contents are coming in already, {own} of them yours"))
            .hint("try again in a moment")
    })?;
    let workspace = context.base.workspaces.open(at.workspace_id, files).await?;
    let mut pieces = Pieces::of(body);
    if let TransferRight::WritePart(part) = leave.right {
        let mut incoming = workspace.receive_part(at.sha256, part).await?;
        while let Some(piece) = pieces.next().await? {
            incoming.write(piece).await?;
        }
        incoming.finish().await?;
    } else {
        let mut upload = workspace.receive(at.sha256, length).await?;
        while let Some(piece) = pieces.next().await? {
            upload.write(piece).await?;
        }
        upload.finish().await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Gives a content, at the address that `GET …/files/:fid/address` gave. It never changes, so its ETag is its SHA-256.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/contents/{sha256}", tag = "files",
    params(InContents, ("ticket" = String, Query, description = "It comes with the address."),
        ("Range" = Option<String>, Header, description = "One range of bytes, such as `bytes=0-1023`."),
        ("If-Match" = Option<String>, Header, description = "ETags of which one must be that of the content."),
        ("If-None-Match" = Option<String>, Header, description = "ETags that the client has.")),
    responses(
        (status = 200, description = "The content.", body = serde_json::Value, content_type = "*/*"),
        (status = 206, description = "The range.", body = serde_json::Value, content_type = "*/*"),
        (status = 304, description = "The client has it.")))]
pub(crate) async fn download(
    State(context): State<Arc<Context>>,
    Access { at, files, .. }: Access<Read, InContents>,
    Ticket(ticket): Ticket,
    headers: HeaderMap,
) -> Answer<Response> {
    let now = context.base.clock.now();
    let leave = context.base.auth.ticket_office().verify_transfer(&ticket, at.workspace_id, at.sha256, now)?;
    if leave.right != TransferRight::Read {
        return Err(other_way().into());
    }
    let workspace = context.base.workspaces.open(at.workspace_id, files).await?;
    let size = workspace.length_of(at.sha256).await?;
    let name = at.sha256.to_string();
    let tag = HeaderValue::try_from(format!("\"{name}\"")).ok();
    demand_tag(&headers, &name)?;
    if is_known(&headers, |tag| tag == name) {
        return Ok(contents::unchanged(tag));
    }
    let content = match size > MAX_FILE as u64 {
        true => FileContent::Large { sha256: at.sha256, size },
        false => workspace.uploaded(at.sha256).await?,
    };
    contents::respond(&workspace, &name, content, tag, &headers).await
}

/// The refusal of a ticket to write that is used to read, or the other way round.
fn other_way() -> Error {
    Error::new(Code::Unauthorized, "the address is for another method").hint("send the request as it was given")
}
