//! Answers that Lambda gives back whole, as a JSON text of 6 MB at most in which the body is a string.

use crate::refusal;
use axum::{body::HttpBody as _, extract::Request, middleware::Next, response::Response};
use http::{HeaderValue, Method, header};

/// The longest body, which goes as Base64.
const LARGEST: u64 = 4 * 1024 * 1024;
/// The longest body that goes as text: each of its quotes and backslashes takes two characters.
const LARGEST_TEXT: u64 = 2 * 1024 * 1024;

/// Contents are bytes, of every type. `lambda_http` would read those of a text type as UTF-8 and replace invalid bytes; it leaves bodies
/// with a content encoding alone, even `identity`. Our JSON is always text, and goes as bytes where it is long. A body that does not fit is refused.
pub async fn within_limits(request: Request, next: Next) -> Response {
    let has_body = *request.method() != Method::HEAD;
    let mut response = next.run(request).await;
    // A stream has its length in the header alone.
    let told = response.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let length = response.body().size_hint().lower().max(told.unwrap_or(0));
    if has_body && length > LARGEST {
        return refusal::too_long(&response);
    }
    let headers = response.headers_mut();
    if headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind != "application/json" || length > LARGEST_TEXT) {
        headers.entry(header::CONTENT_ENCODING).or_insert(HeaderValue::from_static("identity"));
    }
    response
}
