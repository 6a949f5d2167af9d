//! One's own API keys. They are made, listed and taken back in person: a key that could make keys could outlive being revoked.

use crate::{
    Context,
    access::in_person,
    error::Answer,
    extract::{Json, Open, Path, Query, UnscopedCaller},
    membership_watch, schema,
    workspaces::Paging,
};
use axum::{extract::State, response::IntoResponse};
use domain::{Error, Timestamp, WorkspaceId};
use http::{HeaderValue, StatusCode, header};
use identity::{NewKey, Scopes};
use serde::Deserialize;
use std::{collections::BTreeSet, sync::Arc};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

/// The key of a path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct OfKey {
    /// The key.
    key_id: Uuid,
}

impl Open for OfKey {}

/// A key to make.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewApiKey {
    /// Its purpose: 1 to 100 characters.
    #[schema(min_length = 1, max_length = 100, example = "nightly report")]
    name: String,
    /// Its rights; they hold where yours do.
    #[schema(value_type = Vec<schema::Action>, min_items = 1)]
    scopes: Scopes,
    /// The workspaces that it is for; all of yours when left out.
    #[schema(value_type = Option<Vec<Uuid>>, min_items = 1, max_items = 100)]
    workspaces: Option<BTreeSet<WorkspaceId>>,
    /// From when on it is void; never when left out.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
}

/// Answers that hold a secret: nothing on the way keeps them, our idempotency records included.
pub(crate) const NO_STORE: (header::HeaderName, HeaderValue) =
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store"));

/// Your API keys, oldest first, the revoked and expired ones too, for 30 days. One that was made just now may be missing for a moment.
#[utoipa::path(get, path = "/api/v1/keys", tag = "keys", params(Paging),
    responses((status = 200, description = "A page of them.", body = schema::ApiKeyPage)))]
pub(crate) async fn list_keys(
    State(context): State<Arc<Context>>,
    UnscopedCaller(caller): UnscopedCaller,
    Query(paging): Query<Paging>,
) -> Answer<impl IntoResponse> {
    in_person(&caller)?;
    Ok(axum::Json(context.base.api_keys().list(caller.user, paging.limit()?, paging.cursor).await?))
}

/// Makes an API key. Its text is in this answer and nowhere else: an `Idempotency-Key` does not bring it back, and the same
/// request again makes another key.
#[utoipa::path(post, path = "/api/v1/keys", tag = "keys", request_body = NewApiKey,
    responses((status = 201, description = "It was made.", body = schema::CreatedApiKey)))]
pub(crate) async fn create_key(
    State(context): State<Arc<Context>>,
    UnscopedCaller(caller): UnscopedCaller,
    Json(new): Json<NewApiKey>,
) -> Answer<impl IntoResponse> {
    in_person(&caller)?;
    // A list with somebody else's workspace in it is a mistake that should not wait until the key is used.
    for workspace in new.workspaces.iter().flatten() {
        if context.base.members().role(&caller, *workspace).await?.is_none() {
            return Err(Error::not_found("workspace", workspace).into());
        }
    }
    let NewApiKey { name, scopes, workspaces, expires_at } = new;
    let (made, text) =
        context.base.api_keys().create(caller.user, NewKey { name, scopes, workspaces, expires_at }).await?;
    let body = serde_json::json!({ "key": text, "api_key": made });
    Ok((StatusCode::CREATED, [NO_STORE], axum::Json(body)))
}

/// Takes an API key back, for good. The event streams that it opened end. Again is harmless.
#[utoipa::path(delete, path = "/api/v1/keys/{key_id}", tag = "keys", params(OfKey),
    responses((status = 200, description = "It is void.", body = schema::ApiKey)))]
pub(crate) async fn revoke_key(
    State(context): State<Arc<Context>>,
    UnscopedCaller(caller): UnscopedCaller,
    Path(of): Path<OfKey>,
) -> Answer<impl IntoResponse> {
    in_person(&caller)?;
    let revoked = context.base.api_keys().revoke(caller.user, of.key_id).await?;
    membership_watch::tell_revoked(&*context.base.bus, of.key_id).await;
    Ok(axum::Json(revoked))
}
