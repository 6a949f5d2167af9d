//! Contents that are too long to come through this process: their addresses in the archive. Where it has none, as on a hub, a content
//! comes through `PUT …/content` and goes through `GET …/content`.

use crate::{
    Context,
    access::{Access, Read, Write},
    error::Answer,
    extract::Json,
    files::InFile,
    keys::NO_STORE,
    schema,
    workspaces::InWorkspace,
};
use axum::{extract::State, response::IntoResponse};
use domain::Sha256;
use http::StatusCode;
use ports::Presigned;
use serde::Deserialize;
use std::{sync::Arc, time::Duration};
use utoipa::ToSchema;

/// How long an address is good: long enough for 32 MiB over a slow line.
const VALID_FOR: Duration = Duration::from_secs(15 * 60);

/// A content to bring.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToUpload {
    /// Its SHA-256, in hexadecimal digits.
    #[schema(value_type = String)]
    sha256: Sha256,
    /// Its length in bytes.
    size: u64,
}

/// An address to which a content is sent, as it is, up to 32 MiB; anything else is refused there. Then make a file, or a version, with
/// its `sha256` instead of its content. Without a `request`, send it by `PUT …/content`.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/uploads", tag = "files", params(InWorkspace),
    request_body = ToUpload, responses((status = 201, description = "The address is good from now on.", body = schema::Transfer)))]
pub(crate) async fn create_upload(
    State(context): State<Arc<Context>>,
    Access { at, .. }: Access<Write, InWorkspace>,
    Json(wanted): Json<ToUpload>,
) -> Answer<impl IntoResponse> {
    let workspace = context.workspaces.open(at.workspace_id).await?;
    let address = workspace.address_for(wanted.sha256, wanted.size, VALID_FOR).await?;
    Ok((StatusCode::CREATED, [NO_STORE], axum::Json(told(&context, address))))
}

/// An address from which the content is read, as it is. Without a `request`, read it by `GET …/content`.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/files/{file_id}/address", tag = "files", params(InFile),
    responses((status = 200, description = "The address is good from now on.", body = schema::Transfer)))]
pub(crate) async fn get_address(
    State(context): State<Arc<Context>>,
    Access { at, .. }: Access<Read, InFile>,
) -> Answer<impl IntoResponse> {
    let workspace = context.workspaces.open(at.workspace_id).await?;
    let address = workspace.address_of(&workspace.path_of(at.file_id).await?, VALID_FOR).await?;
    Ok(([NO_STORE], axum::Json(told(&context, address))))
}

fn told(context: &Context, address: Option<Presigned>) -> schema::Transfer {
    schema::Transfer {
        request: address.map(|Presigned { method, url, headers }| schema::TransferRequest {
            method,
            url,
            headers: headers.into_iter().collect(),
        }),
        expires_at: (context.clock.now() + VALID_FOR).to_string(),
    }
}
