//! What the writing of files has in common: who writes, on what condition, and how a change is answered.

use crate::{error::Answer, idempotency::Ids};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use domain::{CallId, Code, Error, FileId, Principal};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use workspace::{Change, Expect, Info, Workspace, Writer};

/// How often a write without `If-Match` is tried anew when others were faster.
const ATTEMPTS: usize = 8;

impl Ids {
    /// Who writes: under an idempotency key as one call, so that it is applied once whatever happens.
    pub(crate) fn writer(&self, by: Principal) -> Writer {
        match self {
            Self::Key(..) => Writer::in_call(by, CallId(self.id("call"))),
            Self::Fresh(_) => Writer::new(by),
        }
    }
}

/// The version that `If-Match` names; none when there is no such header, or `*`.
pub(crate) fn if_match(headers: &HeaderMap) -> Result<Option<u64>, Error> {
    let Some(value) = headers.get(header::IF_MATCH) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default().trim();
    if text == "*" {
        return Ok(None);
    }
    let version = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(text);
    let version = version.parse().map_err(|_| {
        Error::invalid("if-match", "If-Match names no version").hint("send the ETag as it was given, such as \"3\"")
    })?;
    Ok(Some(version))
}

/// The ETag of a version; folders and chat files have none.
pub(crate) fn etag(v: u64) -> Option<HeaderValue> {
    (v > 0).then(|| HeaderValue::try_from(format!("\"{v}\"")).ok()).flatten()
}

/// Refuses what `If-Match` does not match, for changes that make no version.
pub(crate) async fn expect_current(workspace: &Workspace, info: &Info, headers: &HeaderMap) -> Result<(), Error> {
    match if_match(headers)? {
        Some(v) if v != info.v => {
            let message = format!("{} in {} is now version {}", info.path, workspace.id(), info.v);
            let error = Error::new(Code::StaleVersion, message).detail("current_v", info.v);
            Err(error.hint("look at it again, then send its ETag as If-Match"))
        }
        _ => Ok(()),
    }
}

/// Gives the file with this identity a new content, wherever it is.
pub(crate) async fn write(
    workspace: &Workspace,
    file_id: FileId,
    content: Bytes,
    headers: &HeaderMap,
    writer: &Writer,
) -> Answer<Changed> {
    let named = if_match(headers)?;
    for _ in 0..ATTEMPTS {
        let info = workspace.by_id(file_id).await?;
        // Also without If-Match the write is bound to a version, so that it never lands in another file at the same path.
        let expect = Expect::Version(named.unwrap_or(info.v));
        match workspace.write(&info.path, content.clone(), expect, writer).await {
            Err(error) if error.code == Code::StaleVersion && named.is_none() => {}
            result => return Ok(Changed(StatusCode::OK, result?)),
        }
    }
    let error = Error::new(Code::Conflict, "others change the same file again and again");
    Err(error.hint("try again, or send If-Match").into())
}

/// A change as an answer, with the ETag of what there is now.
pub(crate) struct Changed(pub StatusCode, pub Change);

impl IntoResponse for Changed {
    fn into_response(self) -> Response {
        let tag = etag(self.1.v);
        let mut response = (self.0, axum::Json(self.1)).into_response();
        if let Some(tag) = tag {
            response.headers_mut().insert(header::ETAG, tag);
        }
        response
    }
}

/// A file or folder as an answer.
pub(crate) struct Shown(pub Info);

impl IntoResponse for Shown {
    fn into_response(self) -> Response {
        let tag = etag(self.0.v);
        let mut response = axum::Json(self.0).into_response();
        if let Some(tag) = tag {
            response.headers_mut().insert(header::ETAG, tag);
        }
        response
    }
}
