//! Contents as bytes: with ranges, and never as a page of this origin.

use crate::{
    Context,
    access::{Access, Read, Write},
    error::{Answer, ApiError},
    extract::{Query, Raw},
    files::{AtFile, InFile, new_path},
    schema,
    transfer_pace::taken_in_time,
    workspaces::InWorkspace,
    writes::{ATTEMPTS, Address, IfMatch, IfThere, author, moves_on, write, write_at},
};
use axum::{
    body::Body,
    extract::State,
    response::{IntoResponse, Response},
};
use domain::{
    Code, Conversion, ConversionStatus, Error, FileId, FilePath,
    text::{counted, percent_encoded},
};
use futures::{StreamExt, TryStreamExt, stream};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Deserialize;
use std::{ops::Range, sync::Arc};
use utoipa::{IntoParams, ToSchema};
use workspace::{Content, FileContent, Info, MAX_FILE, Workspace};

/// Types by the end of the name; all else is bytes. Only those that browsers run no script of are shown in place.
const TYPES: [(&str, &str); 22] = [
    ("css", "text/css; charset=utf-8"),
    ("csv", "text/csv; charset=utf-8"),
    ("gif", "image/gif"),
    ("htm", "text/html; charset=utf-8"),
    ("html", "text/html; charset=utf-8"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("js", "text/javascript; charset=utf-8"),
    ("json", "application/json"),
    ("md", "text/markdown; charset=utf-8"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("rs", "text/plain; charset=utf-8"),
    ("svg", "image/svg+xml"),
    ("toml", "text/plain; charset=utf-8"),
    ("txt", "text/plain; charset=utf-8"),
    ("wasm", "application/wasm"),
    ("webp", "image/webp"),
    ("yaml", "text/plain; charset=utf-8"),
    ("yml", "text/plain; charset=utf-8"),
];
const ACTIVE: [&str; 5] = ["text/html", "image/svg+xml", "text/javascript", "application/pdf", "application/wasm"];

/// A form of a content.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Form {
    /// As it was written.
    #[default]
    Raw,
    /// Of a document, the Markdown that it was converted to.
    Markdown,
}

/// The form of the content.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct InForm {
    /// The form: as it was written, which is the default, or the Markdown of a document.
    #[serde(default, rename = "as")]
    #[param(inline)]
    form: Form,
}

/// A path, and the form of the content.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct AtPathInForm {
    /// The path.
    #[param(value_type = String, min_length = 1, max_length = 4096, example = "/projects/summary.md")]
    path: FilePath,
    /// The form: as it was written, which is the default, or the Markdown of a document.
    #[serde(default, rename = "as")]
    #[param(inline)]
    form: Form,
}

/// The content of a file, or a range of it.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/files/{file_id}/content", tag = "files",
    params(InFile, InForm, ("Range" = Option<String>, Header, description = "One range of bytes, such as `bytes=0-1023`."),
        ("If-Match" = Option<String>, Header, description = "ETags of which one must be current."),
        ("If-None-Match" = Option<String>, Header, description = "ETags that the client has.")),
    responses(
        (status = 200, description = "The content, of the type that the name's ending says.", body = serde_json::Value, content_type = "*/*"),
        (status = 206, description = "The range, of the same type.", body = serde_json::Value, content_type = "*/*"),
        (status = 304, description = "The client has it.")))]
pub(crate) async fn get_content(
    State(context): State<Arc<Context>>,
    Access { at, files, .. }: Access<Read, InFile>,
    Query(InForm { form }): Query<InForm>,
    headers: HeaderMap,
) -> Answer<Response> {
    let workspace = context.base.workspaces.open(at.workspace_id, files).await?;
    show(&workspace, Asked::Id(at.file_id), form, &headers).await
}

/// The content of the file at a path, or a range of it.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/files/by-path/content", tag = "files",
    params(InWorkspace, AtPathInForm, ("Range" = Option<String>, Header, description = "One range of bytes, such as `bytes=0-1023`."),
        ("If-Match" = Option<String>, Header, description = "ETags of which one must be current."),
        ("If-None-Match" = Option<String>, Header, description = "ETags that the client has.")),
    responses(
        (status = 200, description = "The content, of the type that the name's ending says.", body = serde_json::Value, content_type = "*/*"),
        (status = 206, description = "The range, of the same type.", body = serde_json::Value, content_type = "*/*"),
        (status = 304, description = "The client has it.")))]
pub(crate) async fn get_content_by_path(
    State(context): State<Arc<Context>>,
    Access { at, files, .. }: Access<Read, InWorkspace>,
    Query(AtPathInForm { path, form }): Query<AtPathInForm>,
    headers: HeaderMap,
) -> Answer<Response> {
    let workspace = context.base.workspaces.open(at.workspace_id, files).await?;
    show(&workspace, Asked::Path(&path), form, &headers).await
}

/// The file whose content a client asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Asked<'a> {
    /// The one with this identity, wherever it is.
    Id(FileId),
    /// The one at this path.
    Path(&'a FilePath),
}

impl Asked<'_> {
    fn address(self) -> Address {
        match self {
            Self::Id(_) => Address::Id,
            Self::Path(_) => Address::Path,
        }
    }

    async fn info(self, workspace: &Workspace) -> Result<Info, Error> {
        match self {
            Self::Id(file) => workspace.by_id(file).await,
            Self::Path(path) => workspace.stat(path).await,
        }
    }

    async fn read(self, workspace: &Workspace) -> Result<(Info, FileContent), Error> {
        for _ in 0..ATTEMPTS {
            let path = match self {
                Self::Id(file) => workspace.path_of(file).await?,
                Self::Path(path) => path.clone(),
            };
            let (info, content) = match workspace.read(&path, None).await {
                Ok(Content { info, bytes }) => (info, FileContent::Bytes(bytes)),
                Err(error) if error.code == Code::PayloadTooLarge => {
                    let info = workspace.stat(&path).await?;
                    // A shorter one has replaced it since.
                    let Some(sha256) = info.sha256.filter(|_| info.size > MAX_FILE as u64) else { continue };
                    let content = FileContent::Large { sha256, size: info.size };
                    (info, content)
                }
                Err(error) => return Err(error),
            };
            // Another file may have come to the path of this one before it was read.
            match self {
                Self::Id(file) if file != info.file_id => {}
                Self::Id(_) | Self::Path(_) => return Ok((info, content)),
            }
        }
        Err(moves_on())
    }
}

/// The content of a file as an answer, unless the client has it.
pub(crate) async fn show(workspace: &Workspace, asked: Asked<'_>, form: Form, headers: &HeaderMap) -> Answer<Response> {
    let (name, info, content, address) = match form {
        Form::Raw => {
            let (info, content) = asked.read(workspace).await?;
            (info.name.clone(), info, content, asked.address())
        }
        Form::Markdown => {
            let (name, Content { info, bytes }) = markdown(workspace, asked).await?;
            // Another file may have become the Markdown of the document since the client read it.
            (name, info, FileContent::Bytes(bytes), Address::Path)
        }
    };
    let tag = address.etag(info.file_id, info.v);
    // A part of another version would not fit the bytes that the client has.
    IfMatch::of(headers)?.check(&info)?;
    if address.is_known(headers, info.file_id, info.v) {
        return Ok(unchanged(tag));
    }
    respond(workspace, &name, content, tag, headers).await
}

/// The Markdown of a document, and its name. A file that is Markdown or other text already is its own.
async fn markdown(workspace: &Workspace, asked: Asked<'_>) -> Result<(String, Content), Error> {
    let info = asked.info(workspace).await?;
    if let Some(content) = workspace.markdown_of(&info).await? {
        return Ok((content.info.name.clone(), content));
    }
    let is_text = |conversion: &Conversion| conversion.reason.as_deref() == Some("text");
    if info.conversion.as_ref().is_none_or(is_text) {
        let content = workspace.read(&info.path, None).await?;
        return Ok((info.name, content));
    }
    Err(unconverted(&info.path, info.conversion.as_ref()))
}

/// The refusal to show Markdown that is not there.
fn unconverted(path: &FilePath, conversion: Option<&Conversion>) -> Error {
    let Some(conversion) = conversion.filter(|conversion| conversion.status != ConversionStatus::Done) else {
        return Error::not_found("Markdown of", path).hint("somebody removed it: write the document again");
    };
    let status = serde_json::to_value(conversion.status).unwrap_or_default();
    let message = conversion.message.clone().unwrap_or_else(|| "it is being converted".into());
    let error = Error::new(Code::Unprocessable, format!("{path} has no Markdown: {message}")).detail("status", status);
    match &conversion.reason {
        Some(reason) => error.detail("reason", reason.as_str()).hint("read its content as it is, with as=raw"),
        None => error.hint("ask again in a moment; the events of the workspace tell when it is done"),
    }
}

/// Gives a file a new content, as its next version. The body is the content as it is, up to 32 MiB; a longer one
/// goes to an address (`POST …/uploads`).
#[utoipa::path(put, path = "/api/v1/workspaces/{workspace_id}/files/{file_id}/content", tag = "files",
    params(InFile, ("If-Match" = Option<String>, Header, description = "ETags of which one must be current; without it the last writer wins.")),
    request_body(content = serde_json::Value, content_type = "application/octet-stream"),
    responses((status = 200, description = "It is written.", body = schema::Change)))]
pub(crate) async fn put_content(
    State(context): State<Arc<Context>>,
    Access { at, by, files, caller, .. }: Access<Write, InFile>,
    headers: HeaderMap,
    Raw(content): Raw<MAX_FILE>,
) -> Answer<impl IntoResponse> {
    let workspace = context.base.workspaces.open(at.workspace_id, files).await?;
    write(&workspace, at.file_id, FileContent::Bytes(content), &headers, &author(&caller, by.into())).await
}

/// Writes the file at a path, in one request and one version: makes it, and the folders above it, where nothing is, else gives it
/// its next version. The body is the content as it is, up to 32 MiB; a longer one goes to an address (`POST …/uploads`).
#[utoipa::path(put, path = "/api/v1/workspaces/{workspace_id}/files/by-path/content", tag = "files",
    params(InWorkspace, AtFile, IfThere),
    request_body(content = serde_json::Value, content_type = "application/octet-stream"),
    responses((status = 200, description = "It is written.", body = schema::Change),
        (status = 201, description = "It was made.", body = schema::Change)))]
pub(crate) async fn put_content_by_path(
    State(context): State<Arc<Context>>,
    Access { at, by, files, caller, .. }: Access<Write, InWorkspace>,
    Query(AtFile { path }): Query<AtFile>,
    headers: HeaderMap,
    Raw(content): Raw<MAX_FILE>,
) -> Answer<impl IntoResponse> {
    let path = new_path(&path, false)?;
    let workspace = context.base.workspaces.open(at.workspace_id, files).await?;
    write_at(&workspace, &path, FileContent::Bytes(content), &headers, &author(&caller, by.into())).await
}

/// A content as an answer: a large one is read as it is sent, and never held.
pub(crate) async fn respond(
    workspace: &Workspace,
    name: &str,
    content: FileContent,
    tag: Option<HeaderValue>,
    request: &HeaderMap,
) -> Answer<Response> {
    let length = match &content {
        FileContent::Bytes(bytes) => bytes.len() as u64,
        FileContent::Large { size, .. } => *size,
    };
    // A range of another version would not fit the bytes that the client has.
    let fits = request.get(header::IF_RANGE).is_none_or(|has| Some(has) == tag.as_ref());
    let range = request.get(header::RANGE).and_then(|range| range.to_str().ok()).filter(|_| fits);
    let (status, shown) = match range.map(|range| wanted(range, length)) {
        None | Some(WantedRange::All) => (StatusCode::OK, 0..length),
        Some(WantedRange::Part(range)) => (StatusCode::PARTIAL_CONTENT, range),
        Some(WantedRange::Nothing) => {
            let bytes = counted(length, "byte");
            let error = Error::new(Code::InvalidArgument, format!("the content has {bytes}, none in that range"));
            let error = error.detail("field", "range").detail("size", length);
            let mut response = ApiError::from(error).with_status(StatusCode::RANGE_NOT_SATISFIABLE).into_response();
            if let Ok(size) = HeaderValue::try_from(format!("bytes */{length}")) {
                response.headers_mut().insert(header::CONTENT_RANGE, size);
            }
            return Ok(response);
        }
    };
    let body = match content {
        FileContent::Bytes(bytes) => {
            let place = |at: u64| usize::try_from(at).unwrap_or(0);
            Body::from(bytes.slice(place(shown.start)..place(shown.end)))
        }
        FileContent::Large { sha256, size } => {
            let mut pieces = Box::pin(workspace.pieces(sha256, size, shown.clone()));
            // A content that is damaged where it begins is refused; further on all that can be done is to break off.
            let first = pieces.try_next().await?;
            Body::from_stream(taken_in_time(stream::iter(first.map(Ok)).chain(pieces)))
        }
    };
    let mut response = (status, tagged(tag), body).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(shown.end - shown.start));
    let kind = type_of(name);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    let place = if ACTIVE.iter().any(|active| kind.starts_with(active)) { "attachment" } else { "inline" };
    let place = format!("{place}; filename*=UTF-8''{}", percent_encoded(name));
    if let Ok(place) = HeaderValue::try_from(place) {
        headers.insert(header::CONTENT_DISPOSITION, place);
    }
    if status == StatusCode::PARTIAL_CONTENT
        && let Ok(range) = HeaderValue::try_from(format!("bytes {}-{}/{length}", shown.start, shown.end - 1))
    {
        headers.insert(header::CONTENT_RANGE, range);
    }
    Ok(response)
}

/// The answer to a client that has the content already.
pub(crate) fn unchanged(tag: Option<HeaderValue>) -> Response {
    (StatusCode::NOT_MODIFIED, tagged(tag)).into_response()
}

fn tagged(tag: Option<HeaderValue>) -> HeaderMap {
    tag.map(|tag| (header::ETAG, tag)).into_iter().collect()
}

#[derive(Debug, PartialEq, Eq)]
enum WantedRange {
    All,
    /// Not empty, and within the content.
    Part(Range<u64>),
    Nothing,
}

/// One range of bytes (RFC 9110 §14.1.2). Any other value, several ranges among them, counts as no range at all, as the RFC allows.
fn wanted(header: &str, length: u64) -> WantedRange {
    let Some((first, last)) = header.strip_prefix("bytes=").and_then(|range| range.split_once('-')) else {
        return WantedRange::All;
    };
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let range = match (first.trim().is_empty(), last.trim().is_empty(), number(first), number(last)) {
        (true, false, None, Some(suffix)) => length.saturating_sub(suffix)..length,
        (false, true, Some(first), None) => first..length,
        (false, false, Some(first), Some(last)) if first <= last => first..last.saturating_add(1).min(length),
        _ => return WantedRange::All,
    };
    if range.start < range.end { WantedRange::Part(range) } else { WantedRange::Nothing }
}

/// The media type that the ending of a name says.
pub(crate) fn type_of(name: &str) -> &'static str {
    let end = name.rsplit_once('.').map(|(_, end)| end.to_ascii_lowercase()).unwrap_or_default();
    TYPES.iter().find(|(known, _)| *known == end).map_or("application/octet-stream", |(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        let check = |header: &str, expected: WantedRange| assert_eq!(wanted(header, 10), expected, "{header}");
        check("bytes=0-3", WantedRange::Part(0..4));
        check("bytes=4-", WantedRange::Part(4..10));
        check("bytes=-3", WantedRange::Part(7..10));
        check("bytes=-99", WantedRange::Part(0..10));
        check("bytes=9-99", WantedRange::Part(9..10));
        check("bytes=0-18446744073709551615", WantedRange::Part(0..10));
        check("bytes=10-", WantedRange::Nothing);
        check("bytes=-0", WantedRange::Nothing);
        for none in ["bytes=3-1", "bytes=0-1,3-4", "bytes=-", "bytes=a-b", "lines=0-1", ""] {
            check(none, WantedRange::All);
        }
        assert_eq!(wanted("bytes=0-", 0), WantedRange::Nothing);
    }

    #[test]
    fn the_end_of_a_name_tells_its_type() {
        assert_eq!(type_of("A.HTML"), "text/html; charset=utf-8");
        assert_eq!(type_of("Makefile"), "application/octet-stream");
    }
}
