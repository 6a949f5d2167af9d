//! Access control: a caller needs the task's token, and reaches only the workspace that the task is for.

use crate::{answer::ErrorResponse, machine::Machine};
use axum::{
    extract::{OriginalUri, Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use domain::{Code, Error, Sha256};
use http::header;

/// Lets a request through, and counts it as a use.
pub(crate) async fn guard(State(machine): State<Machine>, request: Request, next: Next) -> Response {
    let authorization = request.headers().get(header::AUTHORIZATION);
    let token = authorization.and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
    if !token.is_some_and(|token| is_same(Sha256::of(token), machine.options().token)) {
        return ErrorResponse::from(Error::new(Code::Unauthorized, "this takes the token of the task")).into_response();
    }
    // The routes inside see the rest of the path only.
    let whole = request.extensions().get::<OriginalUri>().map_or(request.uri(), |OriginalUri(whole)| whole);
    let workspace = whole.path().split('/').nth(2).unwrap_or_default();
    if workspace != machine.options().workspace.to_string() {
        return ErrorResponse::from(Error::new(Code::NotFound, "this is the sandbox of another workspace"))
            .into_response();
    }
    let _used = machine.idle().used();
    next.run(request).await
}

/// Compares all of both, in the same time wherever the first difference is.
fn is_same(one: Sha256, other: Sha256) -> bool {
    let differences = one.as_bytes().iter().zip(other.as_bytes()).fold(0, |found, (one, other)| found | (one ^ other));
    std::hint::black_box(differences) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_the_same_when_every_byte_is() {
        assert!(is_same(Sha256::of(b"a"), Sha256::of(b"a")));
        assert!(!is_same(Sha256::of(b"a"), Sha256::of(b"b")));
    }
}
