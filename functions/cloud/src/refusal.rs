//! Refusals that are made in front of the API, in its envelope.

use axum::response::{IntoResponse, Response};
use domain::Code;
use http::{HeaderValue, StatusCode};
use serde_json::json;

/// The header that names a request.
const REQUEST_ID: &str = "x-request-id";

/// The refusal of requests that come by a function's own address.
pub(crate) fn not_the_address() -> Response {
    let message = "this is not the public address of the deployment";
    refused(StatusCode::FORBIDDEN, Code::Forbidden, message, "use the output PublicUrl of the stack", None)
}

/// In place of an answer that Lambda would not give back.
pub(crate) fn too_long(answer: &Response) -> Response {
    let message = "the answer is longer than the 4 MiB that fit here";
    let hint = "read a content from where GET …/files/:fid/address says, or in ranges of at most 4 MiB";
    let request = answer.headers().get(REQUEST_ID).cloned();
    refused(StatusCode::PAYLOAD_TOO_LARGE, Code::PayloadTooLarge, message, hint, request)
}

fn refused(status: StatusCode, code: Code, message: &str, hint: &str, request: Option<HeaderValue>) -> Response {
    let mut error = json!({ "code": code, "message": message, "details": {}, "hint": hint });
    if let Some(id) = request.as_ref().and_then(|id| id.to_str().ok()) {
        error["request_id"] = json!(id);
    }
    let mut response = (status, axum::Json(json!({ "error": error }))).into_response();
    if let Some(id) = request {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}
