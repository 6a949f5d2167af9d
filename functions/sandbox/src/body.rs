//! Bodies of requests, and how long they may take.

use crate::answer::{Answer, ErrorResponse};
use axum::{
    body::Bytes,
    extract::{FromRequest, Request},
};
use domain::{Code, Error};
use http::StatusCode;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// How long a request may take, but for commands and manifests.
const PATIENCE: Duration = Duration::from_secs(50);

pub(crate) async fn patiently<T>(work: impl Future<Output = T>) -> Answer<T> {
    let late = |_| ErrorResponse(Error::new(Code::Timeout, "this takes too long"));
    tokio::time::timeout(PATIENCE, work).await.map_err(late)
}

pub(crate) fn malformed(what: impl std::fmt::Display) -> ErrorResponse {
    Error::new(Code::InvalidArgument, what.to_string()).into()
}

/// A body, whole.
pub(crate) struct Raw(pub Bytes);

impl<S: Send + Sync> FromRequest<S> for Raw {
    type Rejection = ErrorResponse;
    async fn from_request(request: Request, state: &S) -> Answer<Self> {
        let refused = |rejection: axum::extract::rejection::BytesRejection| {
            let is_large = rejection.status() == StatusCode::PAYLOAD_TOO_LARGE;
            let code = if is_large { Code::PayloadTooLarge } else { Code::InvalidArgument };
            ErrorResponse(Error::new(code, rejection.body_text()))
        };
        patiently(Bytes::from_request(request, state)).await?.map(Self).map_err(refused)
    }
}

/// A body as JSON.
pub(crate) struct Body<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = ErrorResponse;
    async fn from_request(request: Request, state: &S) -> Answer<Self> {
        let Raw(body) = Raw::from_request(request, state).await?;
        serde_json::from_slice(&body).map(Self).map_err(malformed)
    }
}
