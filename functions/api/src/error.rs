//! From a domain error to HTTP: the status, and the envelope that every error comes in.

use crate::absent_routes::instead;
use axum::response::{IntoResponse, Response};
use domain::{Code, Error};
use http::{HeaderValue, Method, StatusCode, Uri, header};
use serde_json::{Value, json};

/// A refusal on its way out. As a response it has a status and no body: [`crate::observe`] writes the envelope, because it
/// knows the request's id, and adds `WWW-Authenticate`.
#[derive(Clone, Debug)]
pub struct ApiError {
    /// The error that the client reads.
    pub error: Error,
    /// The status, where HTTP has a better one than the code's own (404, 405, 416).
    pub status: StatusCode,
}

/// The result of a handler.
pub(crate) type Answer<T> = Result<T, ApiError>;

/// The first 64 characters of a text that the caller has sent, for the message of an error.
pub(crate) fn excerpt(word: &str) -> String {
    word.chars().take(64).collect()
}

/// The status of a code (spec 004 §10).
pub fn status_of(code: Code) -> StatusCode {
    match code {
        Code::InvalidArgument => StatusCode::BAD_REQUEST,
        Code::Unauthorized => StatusCode::UNAUTHORIZED,
        Code::Forbidden => StatusCode::FORBIDDEN,
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::Conflict | Code::IdempotencyMismatch | Code::Paused => StatusCode::CONFLICT,
        Code::StaleVersion => StatusCode::PRECONDITION_FAILED,
        Code::PayloadTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Code::Unprocessable | Code::LimitReached | Code::Quarantined => StatusCode::UNPROCESSABLE_ENTITY,
        Code::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        Code::Cancelled => StatusCode::from_u16(499).unwrap_or(StatusCode::BAD_REQUEST),
        Code::Internal | Code::ContentDamaged | Code::ContentMissing => StatusCode::INTERNAL_SERVER_ERROR,
        Code::StorageFull => StatusCode::INSUFFICIENT_STORAGE,
        Code::UpstreamUnavailable | Code::NotBegun => StatusCode::SERVICE_UNAVAILABLE,
        Code::OutcomeUnknown | Code::UpstreamRefused => StatusCode::BAD_GATEWAY,
        Code::Timeout => StatusCode::GATEWAY_TIMEOUT,
    }
}

impl ApiError {
    /// The same refusal under another status.
    pub(crate) fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// The envelope.
    pub(crate) fn envelope(&self, request_id: &str) -> Value {
        let Error { code, message, hint, details } = &self.error;
        let mut inside = json!({ "code": code, "message": message, "request_id": request_id, "details": details });
        if let (Some(hint), Some(inside)) = (hint, inside.as_object_mut()) {
            inside.insert("hint".into(), json!(hint));
        }
        json!({ "error": inside })
    }

    /// The envelope of the API of OpenAI: ours with the fields that its clients look for, and the advice in the message, which is all that they show.
    pub(crate) fn openai_envelope(&self, request_id: &str) -> Value {
        let mut envelope = self.envelope(request_id);
        for (name, value) in protocols::openai::error_fields(self.status.as_u16(), &self.error) {
            envelope["error"][name] = value;
        }
        if let Some(hint) = &self.error.hint {
            envelope["error"]["message"] = json!(format!("{} ({hint})", self.error.message));
        }
        envelope
    }
}

/// The refusal of an event that its chat has not reached names the field of the request.
pub(crate) fn about_event(error: Error, field: &str) -> Error {
    if error.details.contains_key("last_seq") { error.detail("field", field) } else { error }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        let status = status_of(error.code);
        Self { error, status }
    }
}

/// A port's error: the client learns whether to try again, the log learns why.
impl From<ports::Error> for ApiError {
    fn from(error: ports::Error) -> Self {
        let told = match error.kind() {
            ports::ErrorKind::Retry if error.is_full() => Error::storage_full(),
            ports::ErrorKind::Retry => {
                Error::new(Code::UpstreamUnavailable, "a store did not answer").hint("try again")
            }
            ports::ErrorKind::Reject => Error::new(Code::InvalidArgument, error.to_string()),
            ports::ErrorKind::Bug => {
                error.lost().unwrap_or_else(|| Error::new(Code::Internal, "stored data is damaged"))
            }
        };
        if told.code != Code::InvalidArgument {
            tracing::error!(error = %error.with_causes(), "a request failed at a store");
        }
        told.into()
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        if matches!(self.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            let seconds = self.error.details.get("retry_after_s").and_then(Value::as_u64).unwrap_or(1);
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response.extensions_mut().insert(self);
        response
    }
}

/// For a path that leads nowhere.
pub(crate) async fn no_route(method: Method, uri: Uri) -> ApiError {
    let hint = instead(&method, uri.path()).unwrap_or("GET /openapi.json lists every route");
    Error::not_found("route", format!("{method} {}", uri.path())).hint(hint).into()
}

/// For a path that leads somewhere, by another method; axum adds `Allow`.
pub(crate) async fn no_method(method: Method, uri: Uri) -> ApiError {
    let error = Error::new(Code::InvalidArgument, format!("{} does not take {method}", uri.path()))
        .hint(instead(&method, uri.path()).unwrap_or("the Allow header lists the methods it takes"))
        .detail("field", "method");
    ApiError::from(error).with_status(StatusCode::METHOD_NOT_ALLOWED)
}

/// The error that a client reads of an internal fault.
pub(crate) fn internal() -> ApiError {
    Error::new(Code::Internal, "something went wrong on our side")
        .hint("try again; if it happens again, report the request_id")
        .into()
}
