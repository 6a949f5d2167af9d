//! Cross-origin requests (the CORS protocol of the Fetch standard): which pages of other origins may call, and which headers they can
//! read.

use crate::{ai_sdk, idempotency, observe::REQUEST_ID};
use http::{HeaderName, Method, header};
use std::time::Duration;
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};

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

/// How long a browser remembers what is allowed.
const REMEMBERED: Duration = Duration::from_secs(600);

/// The layer for these origins. Nothing at all when no origin is allowed: browsers then keep other pages out by themselves. A page that may call sends the
/// headers that it likes: stock clients have headers of their own (`x-stainless-…` of OpenAI), and no header is of more use to a page than to a program.
pub(crate) fn layer(origins: &[String]) -> Option<CorsLayer> {
    if origins.is_empty() {
        return None;
    }
    let allowed = origins.iter().filter_map(|origin| origin.parse().ok());
    let methods = [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
    let cors = CorsLayer::new().allow_origin(AllowOrigin::list(allowed)).allow_methods(methods);
    Some(cors.allow_headers(AllowHeaders::mirror_request()).expose_headers(EXPOSED).max_age(REMEMBERED))
}
