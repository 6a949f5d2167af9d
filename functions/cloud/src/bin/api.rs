//! The Lambda behind the HTTP API.

use axum::{body::HttpBody as _, middleware::map_response, response::Response};
use http::{HeaderValue, header};
use lambda_runtime::Error;

/// Lambda gives back 6 MB of JSON, and in it the body as Base64.
const LARGEST: u64 = 4 * 1024 * 1024;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let router = cloud::assemble::Account::from_env()?.answering()?;
    lambda_http::run(router.layer(map_response(as_bytes))).await
}

/// Contents are bytes, whatever their type says. Of a text type, `lambda_http` would read them as UTF-8 and replace what is none; what
/// has an encoding, be it none, it leaves alone. Our JSON is always text.
async fn as_bytes(mut response: Response) -> Response {
    if response.body().size_hint().lower() > LARGEST {
        return cloud::refusal::too_long(&response);
    }
    let headers = response.headers_mut();
    if headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind != "application/json") {
        headers.entry(header::CONTENT_ENCODING).or_insert(HeaderValue::from_static("identity"));
    }
    response
}
