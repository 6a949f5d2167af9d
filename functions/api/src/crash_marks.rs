//! The mark of a request, for the case that the process dies of it (`ports::crash`): where it goes, and a digest of what makes it the
//! same request. Neither says anything of its content: the id is half of a SHA-256, and of the path ids alone are told.

use crate::metrics::Route;
use axum::extract::Request;
use bytes::Bytes;
use domain::Error;
use http::header;
use ports::crash::{self, Id, Work};
use std::sync::Arc;
use uuid::Uuid;

/// How much of a body makes it the same one; the rest only counts. Nothing longer is parsed.
const HEAD: usize = crate::MAX_JSON;

/// The work of a request; none where nothing is marked, and none for operators' requests, which are outside of `/api/`.
///
/// The caller's credential is part of its id, so one caller's requests cannot have another caller's refused.
pub(crate) fn of(route: &Route, request: &Request) -> Option<Result<Arc<Work>, Error>> {
    let crashes = crash::installed()?;
    if !request.uri().path().starts_with("/api/") {
        return None;
    }
    let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
    let credential = request.headers().get(header::AUTHORIZATION).map_or(&b""[..], |value| value.as_bytes());
    let id = Id::of(&[b"request", route.method.as_bytes(), target.as_bytes(), credential]);
    let place = format!("{} {}", route.method, redacted_path(route.path(), request.uri().path()));
    Some(crashes.work(place, id).map_err(Error::from))
}

/// A body has come: from here on the request is the same only with the same body.
pub(crate) async fn takes_in(body: &Bytes) -> Result<(), Error> {
    let Some(work) = crash::current() else { return Ok(()) };
    let head = body.get(..HEAD).unwrap_or(body);
    Ok(work.takes_in(&Id::of(&[&(body.len() as u64).to_le_bytes(), head]).to_string().into_bytes()).await?)
}

/// A path as the log may have it: ids as they are, and of anything else its name.
fn redacted_path(route: &str, path: &str) -> String {
    let mut told = String::with_capacity(path.len());
    for (name, value) in route.split('/').zip(path.split('/')).skip(1) {
        let is_id = name.starts_with('{') && Uuid::try_parse(value).is_ok();
        told.push('/');
        told.push_str(if is_id { value } else { name });
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_tells_ids_and_nothing_else_that_was_sent() {
        let id = "019bf537-f228-7cd3-aa1c-3da8af302e12";
        for (route, path, place) in [
            ("/api/v1/workspaces", "/api/v1/workspaces".to_owned(), "/api/v1/workspaces".to_owned()),
            (
                "/api/v1/workspaces/{workspace_id}/flows/{flow}/check",
                format!("/api/v1/workspaces/{id}/flows/secret/check"),
                format!("/api/v1/workspaces/{id}/flows/{{flow}}/check"),
            ),
            (
                "/api/v1/workspaces/{workspace_id}",
                "/api/v1/workspaces/x".to_owned(),
                "/api/v1/workspaces/{workspace_id}".to_owned(),
            ),
            ("unmatched", "/api/secret".to_owned(), String::new()),
        ] {
            assert_eq!(redacted_path(route, &path), place);
        }
    }
}
