//! The parts of HTTP's content negotiation and conditional requests that static files need (RFC 9110 §12.5, §13.1.2).

use http::{HeaderMap, HeaderName, header};

/// Whether a list of preferences names `wanted` and does not refuse it (`q=0`). A wildcard does not count: a program that takes anything gets
/// the plain form.
pub(crate) fn accepts(headers: &HeaderMap, list: HeaderName, wanted: &str) -> bool {
    let values = headers.get_all(list).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|one| {
        let mut parts = one.split(';').map(str::trim);
        let named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(wanted));
        named && !parts.any(|part| matches!(part, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
    })
}

/// Whether the client has the version with this tag.
pub(crate) fn is_known(headers: &HeaderMap, etag: &str) -> bool {
    let values = headers.get_all(header::IF_NONE_MATCH).into_iter().filter_map(|value| value.to_str().ok());
    values
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .any(|tag| tag == "*" || tag.trim_start_matches("W/") == etag)
}
