//! One public address. CloudFront stands in front of all functions that answer HTTP, and names itself and the host that the client
//! asked for in headers; a request that comes by a function's own address is refused before anything is read for it.
//!
//! The first header is no credential: it opens nothing, and the caller is authenticated afterwards all the same. The second one is
//! believed only together with it.

use crate::refusal::not_the_address;
use axum::{
    Router,
    extract::Request,
    middleware::{Next, from_fn},
};
use domain::Sha256;
use http::{HeaderName, HeaderValue, header};

/// The header that CloudFront sets, over any value that a client sends by this name (`infra/edge.yaml`).
const NAMES_ITSELF: HeaderName = HeaderName::from_static("x-buildscale-origin");
/// The header in which a function of CloudFront keeps the client's `Host`, since the origin is asked by its own name. Metadata about the
/// login (RFC 9728) names the address that the client used.
const NAMES_HOST: HeaderName = HeaderName::from_static("x-buildscale-host");
/// The header with the scheme of the client's request.
const SCHEME: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Lets only those requests through that carry `token`; all of them without one.
pub fn behind(router: Router, token: Option<&str>) -> Router {
    let Some(token) = token.map(str::trim).filter(|token| !token.is_empty()) else { return router };
    // Digests, so that the time of the comparison says nothing about the token.
    let expected = Sha256::of(token.as_bytes());
    router.layer(from_fn(move |mut request: Request, next: Next| async move {
        let headers = request.headers_mut();
        let (named, host) = (headers.remove(NAMES_ITSELF), headers.remove(NAMES_HOST));
        if named.is_none_or(|named| Sha256::of(named.as_bytes()) != expected) {
            return not_the_address();
        }
        if let Some(host) = host {
            headers.insert(header::HOST, host);
            // CloudFront takes no other requests, and asks some origins over HTTP.
            headers.insert(SCHEME, HeaderValue::from_static("https"));
        }
        next.run(request).await
    }))
}
