//! One public address. CloudFront stands in front of all functions that answer HTTP and names itself in a header; a request that
//! comes by a function's own address is refused before anything is read for it.
//!
//! The header is no credential: it opens nothing, and the caller is authenticated afterwards all the same.

use crate::refusal::not_the_address;
use axum::{
    Router,
    extract::Request,
    middleware::{Next, from_fn},
};
use domain::Sha256;
use http::HeaderName;

/// The header that CloudFront sets, over any value that a client sends by this name (`infra/edge.yaml`).
const NAMES_ITSELF: HeaderName = HeaderName::from_static("x-buildscale-origin");

/// Lets only those requests through that carry `token`; all of them without one.
pub(crate) fn behind(router: Router, token: Option<&str>) -> Router {
    let Some(token) = token.map(str::trim).filter(|token| !token.is_empty()) else { return router };
    // Digests, so that the time of the comparison says nothing about the token.
    let expected = Sha256::of(token.as_bytes());
    router.layer(from_fn(move |mut request: Request, next: Next| async move {
        let named = request.headers_mut().remove(NAMES_ITSELF);
        match named.is_some_and(|named| Sha256::of(named.as_bytes()) == expected) {
            true => next.run(request).await,
            false => not_the_address(),
        }
    }))
}
