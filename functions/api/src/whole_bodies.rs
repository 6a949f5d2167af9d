//! Bodies come whole and as they are. One that is a part of a content, or encoded, would be taken for the content itself.

use crate::error::{Answer, ApiError, excerpt};
use axum::{extract::Request, middleware::Next, response::Response};
use domain::Error;
use http::{HeaderMap, HeaderValue, StatusCode, header};

/// The middleware.
pub(crate) async fn demand(request: Request, next: Next) -> Answer<Response> {
    // The body of a read has no meaning (RFC 9110, 9.3.1).
    if !request.method().is_safe() {
        check(request.headers())?;
    }
    Ok(next.run(request).await)
}

fn check(headers: &HeaderMap) -> Result<(), ApiError> {
    // RFC 9110, 14.5: a server that does not know partial PUT refuses it.
    if headers.contains_key(header::CONTENT_RANGE) {
        let error = Error::invalid("content-range", "a body is a whole content, and this one is a part");
        return Err(error.hint("send all of it; POST …/uploads takes a content in parts").into());
    }
    let Some(encoding) = headers.get_all(header::CONTENT_ENCODING).iter().find(|value| encodes(value)) else {
        return Ok(());
    };
    let named = excerpt(&String::from_utf8_lossy(encoding.as_bytes()));
    let error = Error::invalid("content-encoding", format!("the body is encoded as {named:?}"));
    let hint = "send it as it is, without Content-Encoding; a compressed file needs no such header";
    Err(ApiError::from(error.hint(hint)).with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE))
}

/// Whether a list of encodings names one that changes the bytes.
fn encodes(listed: &HeaderValue) -> bool {
    let mut each = listed.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    each.any(|one| !one.is_empty() && !one.eq_ignore_ascii_case(b"identity"))
}
