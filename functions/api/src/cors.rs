//! Cross-origin requests (the CORS protocol of the Fetch standard): which pages of other origins may call, and which headers they can
//! send and read.

use crate::{a2a, ai_sdk, extract, idempotency, mcp, observe::REQUEST_ID};
use http::{HeaderName, Method, header};
use std::time::Duration;
use tower_http::cors::{AllowOrigin, CorsLayer};

/// The headers of answers that clients read, beside those that every page can read anyway (Fetch, "CORS-safelisted response-header
/// name"). A test holds all answers to this list.
pub const EXPOSED: [HeaderName; 12] = [
    header::ACCEPT_RANGES,
    header::ALLOW,
    header::CONTENT_DISPOSITION,
    header::CONTENT_LOCATION,
    header::CONTENT_RANGE,
    header::ETAG,
    header::LOCATION,
    header::RETRY_AFTER,
    header::WWW_AUTHENTICATE,
    HeaderName::from_static(idempotency::REPLAYED),
    HeaderName::from_static(REQUEST_ID),
    ai_sdk::STREAM,
];

/// The headers of requests that pages may send.
const ACCEPTED: [HeaderName; 15] = [
    header::AUTHORIZATION,
    header::CONTENT_TYPE,
    header::IF_MATCH,
    header::IF_NONE_MATCH,
    header::IF_RANGE,
    header::RANGE,
    a2a::VERSION,
    mcp::VERSION,
    HeaderName::from_static(idempotency::KEY),
    HeaderName::from_static("last-event-id"),
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("x-client-id"),
    HeaderName::from_static(extract::WORKSPACE),
    HeaderName::from_static(REQUEST_ID),
];

/// How long a browser remembers what is allowed.
const REMEMBERED: Duration = Duration::from_secs(600);

/// The layer for these origins. Nothing at all when no origin is allowed: browsers then keep other pages out by themselves.
pub(crate) fn layer(origins: &[String]) -> Option<CorsLayer> {
    if origins.is_empty() {
        return None;
    }
    let allowed = origins.iter().filter_map(|origin| origin.parse().ok());
    let methods = [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
    let cors = CorsLayer::new().allow_origin(AllowOrigin::list(allowed)).allow_methods(methods);
    Some(cors.allow_headers(ACCEPTED).expose_headers(EXPOSED).max_age(REMEMBERED))
}
