//! The Lambda behind the HTTP API, whose answers come whole; and the Lambda for the protocols of clients, whose answers stream.

use axum::{
    body::HttpBody as _,
    extract::Request,
    middleware::{Next, from_fn},
    response::Response,
};
use http::{HeaderValue, Method, header};
use lambda_runtime::Error;

/// Lambda gives back 6 MB of JSON, and in it the body as Base64.
const LARGEST: u64 = 4 * 1024 * 1024;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let account = buildscale_cloud::assemble::Account::from_env()?;
    let router = account.answering()?;
    match account.answers_stream() {
        true => lambda_http::run_with_streaming_response(router).await,
        false => lambda_http::run(router.layer(from_fn(as_bytes))).await,
    }
}

/// Contents are bytes, of every type. `lambda_http` would read those of a text type as UTF-8 and replace invalid bytes; it leaves bodies
/// with a content encoding alone, even `identity`. Our JSON is always text.
async fn as_bytes(request: Request, next: Next) -> Response {
    let has_body = *request.method() != Method::HEAD;
    let mut response = next.run(request).await;
    // A stream has its length in the header alone.
    let told = response.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if has_body && response.body().size_hint().lower().max(told.unwrap_or(0)) > LARGEST {
        return buildscale_cloud::refusal::too_long(&response);
    }
    let headers = response.headers_mut();
    if headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind != "application/json") {
        headers.entry(header::CONTENT_ENCODING).or_insert(HeaderValue::from_static("identity"));
    }
    response
}
