//! How refusals look.

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// The envelope of every refusal.
#[derive(Serialize, ToSchema)]
pub struct ErrorEnvelope {
    /// The failure.
    pub error: RequestError,
}

/// Why a request was refused.
#[derive(Serialize, ToSchema)]
pub struct RequestError {
    /// The kind of error, for programs. Codes are stable; messages are not.
    pub code: ErrorCode,
    /// The explanation, for people.
    pub message: String,
    /// The advice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The request, for the log: also in the header `X-Request-Id`.
    pub request_id: String,
    /// Further facts: the field at fault, the version found.
    #[schema(value_type = Object)]
    pub details: Map<String, Value>,
    /// Below `/openai/` alone: the kind of error, as that API has it.
    #[schema(example = "invalid_request_error")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#type: Option<String>,
    /// Below `/openai/` alone: the field at fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub param: Option<String>,
}

/// The codes.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[expect(missing_docs, reason = "described by domain::Code")]
pub enum ErrorCode {
    InvalidArgument,
    Unauthorized,
    Forbidden,
    NotFound,
    Conflict,
    IdempotencyMismatch,
    StaleVersion,
    PayloadTooLarge,
    Unprocessable,
    RateLimited,
    LimitReached,
    Cancelled,
    Internal,
    UpstreamUnavailable,
    UpstreamRefused,
    Timeout,
    ContentDamaged,
    ContentMissing,
    StorageFull,
    Paused,
    NotBegun,
    OutcomeUnknown,
    Quarantined,
}

/// An error inside of an answer.
#[derive(Serialize, ToSchema)]
pub struct InnerError {
    /// The kind of error.
    pub code: ErrorCode,
    /// The explanation.
    pub message: String,
    /// The advice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Further facts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub details: Option<Map<String, Value>>,
}
