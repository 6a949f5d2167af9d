//! Writing the file at a path, whether it is there or not, under the conditions of HTTP.

use super::{ATTEMPTS, Address, Changed, IfMatch};
use crate::error::Answer;
use axum::response::{IntoResponse, Response};
use domain::{Code, Error, FilePath};
use http::{HeaderMap, StatusCode, header};
use serde::Deserialize;
use utoipa::IntoParams;
use workspace::{Expect, FileContent, Info, Workspace, Writer};

/// The conditions of a write by path. Without one the last writer wins.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "it describes headers that the handlers read themselves")]
pub(crate) struct IfThere {
    /// `*`: only if nothing is there, so that no file is overwritten.
    #[serde(rename = "If-None-Match")]
    #[param(pattern = r"^\*$")]
    if_none_match: Option<String>,
    /// ETags of which one must be current; `*` for any file that is there.
    #[serde(rename = "If-Match")]
    if_match: Option<String>,
}

/// The precondition of a request on the path.
enum PathCondition {
    /// Anything, or nothing.
    Whatever,
    Nothing,
    /// A file that satisfies this.
    File(IfMatch),
}

impl PathCondition {
    fn of(headers: &HeaderMap) -> Result<Self, Error> {
        let has_match = headers.contains_key(header::IF_MATCH);
        match headers.get(header::IF_NONE_MATCH) {
            None if has_match => IfMatch::of(headers).map(Self::File),
            None => Ok(Self::Whatever),
            Some(_) if has_match => {
                Err(Error::invalid("if-none-match", "If-Match and If-None-Match exclude each other")
                    .hint("send If-None-Match: * to make a file, If-Match to change one"))
            }
            Some(value) if value.to_str().is_ok_and(|text| text.trim() == "*") => Ok(Self::Nothing),
            Some(_) => Err(Error::invalid("if-none-match", "If-None-Match of a write is *")
                .hint("send If-None-Match: *, or the ETag that must be current as If-Match")),
        }
    }

    /// The precondition of the write, derived from the current entry at the path.
    fn expect(&self, path: &FilePath, found: Option<&Info>) -> Result<Expect, Error> {
        match (self, found) {
            (Self::Whatever | Self::Nothing, None) => Ok(Expect::Absent),
            (Self::Nothing, Some(info)) => Err(exists(path, info)),
            (Self::File(_), None) => Err(Error::new(Code::StaleVersion, format!("there is no {path} to be changed"))
                .hint("leave If-Match out to make it")),
            (Self::File(IfMatch::Anything) | Self::Whatever, Some(info)) => Ok(Expect::File(info.file_id)),
            (Self::File(asked), Some(info)) => asked.check(info).map(|()| Expect::Exactly(info.file_id, info.v)),
        }
    }
}

fn exists(path: &FilePath, info: &Info) -> Error {
    let error = Error::new(Code::StaleVersion, format!("{path} exists already"))
        .hint("leave If-None-Match out to write its next version")
        .detail("current_v", info.v);
    match info.sha256 {
        Some(digest) => error.detail("current_hash", digest.to_string()),
        None => error,
    }
}

/// Writes the file at a path: 201 when it was made, 200 when it has a next version, or has this content already.
pub(crate) async fn write_at(
    workspace: &Workspace,
    path: &FilePath,
    content: FileContent,
    headers: &HeaderMap,
    writer: &Writer,
) -> Answer<Response> {
    let wanted = PathCondition::of(headers)?;
    for _ in 0..ATTEMPTS {
        let found = match workspace.stat(path).await {
            Ok(info) => Some(info),
            Err(error) if error.code == Code::NotFound => None,
            Err(error) => return Err(error.into()),
        };
        let expect = wanted.expect(path, found.as_ref())?;
        match workspace.write_given(path, content.clone(), expect, writer).await {
            // Somebody made, moved or removed it between the look and the write: the condition is asked anew.
            Err(error) if is_lost_race(&error, expect) => {}
            result => return Ok(answer(workspace, expect, result?)),
        }
    }
    Err(Error::new(Code::Conflict, "others change the same path again and again").hint("try again").into())
}

fn is_lost_race(error: &Error, expect: Expect) -> bool {
    match expect {
        // A file where a folder of the path would be is a conflict, too, and says no version.
        Expect::Absent => error.code == Code::Conflict && error.details.contains_key("current_v"),
        Expect::File(_) => error.code == Code::StaleVersion,
        Expect::Any | Expect::Exactly(..) | Expect::Version(_) | Expect::Hash(_) => false,
    }
}

fn answer(workspace: &Workspace, expect: Expect, change: workspace::Change) -> Response {
    let (file, v) = (change.file_id, change.v);
    let response = if expect == Expect::Absent {
        let place = format!("/api/v1/workspaces/{}/files/{file}", workspace.id());
        ([(header::LOCATION, place)], Changed(StatusCode::CREATED, change)).into_response()
    } else {
        Changed(StatusCode::OK, change).into_response()
    };
    Address::Path.tag(response, file, v)
}
