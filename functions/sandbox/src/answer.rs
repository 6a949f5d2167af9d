//! Answers and errors as HTTP.

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use domain::{Code, Error};
use http::{HeaderValue, StatusCode, header};
use sandbox::wire::{self, Failed};

/// An error on its way out.
#[derive(Debug)]
pub(crate) struct ErrorResponse(pub Error);

pub(crate) type Answer<T> = Result<T, ErrorResponse>;

impl From<Error> for ErrorResponse {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl From<ports::Error> for ErrorResponse {
    fn from(error: ports::Error) -> Self {
        if error.kind() != ports::ErrorKind::Reject {
            tracing::error!(error = %error.with_causes(), "a request failed");
        }
        Self(wire::as_domain_error(&error))
    }
}

impl IntoResponse for ErrorResponse {
    fn into_response(self) -> Response {
        let status = match self.0.code {
            Code::Unauthorized => StatusCode::UNAUTHORIZED,
            Code::NotFound => StatusCode::NOT_FOUND,
            Code::InvalidArgument => StatusCode::BAD_REQUEST,
            Code::PayloadTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Code::Unprocessable => StatusCode::UNPROCESSABLE_ENTITY,
            Code::Conflict => StatusCode::CONFLICT,
            Code::Timeout => StatusCode::GATEWAY_TIMEOUT,
            Code::UpstreamUnavailable | Code::NotBegun => StatusCode::SERVICE_UNAVAILABLE,
            Code::StorageFull => StatusCode::INSUFFICIENT_STORAGE,
            Code::OutcomeUnknown => StatusCode::BAD_GATEWAY,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let mut response = (status, Json(Failed { error: self.0 })).into_response();
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// For a path that leads nowhere.
pub(crate) async fn no_route() -> ErrorResponse {
    Error::new(Code::NotFound, "there is no such route here").into()
}

/// For a path that leads somewhere, by another method.
pub(crate) async fn no_method() -> ErrorResponse {
    Error::new(Code::InvalidArgument, "this route does not take that method").into()
}
