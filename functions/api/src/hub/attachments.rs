//! The body of a turn, and the files that it brings along. An attachment is a file of the workspace like any other.

use super::{caller::Within, schema::NewTurn};
use crate::{
    Context,
    access::Read,
    contents::{Asked, Form, show, type_of},
    error::{Answer, ApiError},
    extract::{Json, Open, Path, Raw},
    ids::Ids,
    spoken_words,
};
use axum::{
    extract::{FromRequest, Request, State},
    response::Response,
};
use bytes::Bytes;
use domain::{ChatId, Error, FileId, FilePath};
use http::{HeaderMap, header};
use protocols::{
    hub::Turn,
    multipart::{self, Part},
};
use serde::Deserialize;
use serde_json::json;
use std::{collections::BTreeMap, sync::Arc};
use utoipa::IntoParams;
use workspace::{Expect, Info, MAX_FILE, Workspace, Writer};

/// The most attachments of a turn.
const MOST: usize = 20;

/// The body of a turn.
pub(super) struct Given {
    pub input: String,
    pub stream: bool,
    pub attachments: Vec<Attachment>,
}

/// A file that came along.
pub(crate) struct Attachment {
    name: String,
    content: Bytes,
}

impl Attachment {
    /// One of this name, as a client gives it: what leads elsewhere is left out of the name.
    pub(crate) fn new(name: &str, content: Bytes) -> Self {
        Self { name: file_name(name), content }
    }
}

/// The body of a turn: JSON, or the parts of a form. Its words are without known secrets.
pub(super) async fn input_of<S: Send + Sync>(state: &S, request: Request) -> Result<Given, ApiError> {
    let kind =
        request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default().to_owned();
    if !kind.to_ascii_lowercase().starts_with("multipart/form-data") {
        let Json(NewTurn { input, stream }) = Json::from_request(request, state).await?;
        return Ok(Given { input, stream, attachments: Vec::new() });
    }
    let redactor = spoken_words::redactor_of(&request);
    let Raw(body) = Raw::<MAX_FILE>::from_request(request, state).await?;
    let mut given = Given { input: String::new(), stream: false, attachments: Vec::new() };
    for Part { name, file, content } in multipart::parts(&kind, &body)? {
        match (name.as_str(), file) {
            ("input", _) => given.input = redactor.text(&words("input", content)?).into_owned(),
            ("stream", _) => given.stream = words("stream", content)?.trim() == "true",
            ("attachments" | "attachments[]", file) => {
                given.attachments.push(Attachment::new(&file.unwrap_or_default(), body.slice_ref(content)));
            }
            _ => {}
        }
    }
    if given.attachments.len() > MOST {
        let message = format!("there are {} attachments", given.attachments.len());
        return Err(Error::invalid("attachments", message).hint(format!("a turn takes {MOST} at most")).into());
    }
    // Files say enough by themselves.
    if given.input.trim().is_empty() && !given.attachments.is_empty() {
        let names: Vec<&str> = given.attachments.iter().map(|attached| attached.name.as_str()).collect();
        given.input = format!("Attached: {}", names.join(", "));
    }
    Ok(given)
}

fn words(field: &str, content: &[u8]) -> Result<String, Error> {
    let text = std::str::from_utf8(content).map_err(|_| Error::invalid(field, format!("{field} is not UTF-8")))?;
    domain::exact_numbers::check(field, text)?;
    Ok(text.to_owned())
}

/// The last name of a file's path, as a browser of any system sends it, of characters that every path takes.
fn file_name(given: &str) -> String {
    let last = given.rsplit(['/', '\\']).next().unwrap_or_default();
    let kept: String = last.chars().filter(|c| c.is_alphanumeric() || " ._-()".contains(*c)).take(100).collect();
    let kept = kept.trim().trim_start_matches('.');
    if kept.is_empty() { "file".into() } else { kept.to_owned() }
}

/// Writes the attachments into the workspace, under the chat and the request.
pub(crate) async fn attach(
    workspace: &Workspace,
    writer: &Writer,
    chat: ChatId,
    ids: &Ids,
    attachments: Vec<Attachment>,
) -> Result<Vec<FileId>, Error> {
    let request = ids.id("attachments");
    let mut files = Vec::new();
    for (place, Attachment { name, content }) in attachments.into_iter().enumerate() {
        let path = FilePath::parse(&format!("/data/attachments/{chat}/{request}-{place}/{name}"));
        let path = path.map_err(|error| Error::invalid("attachments", error.to_string()))?;
        files.push(workspace.write(&path, content, Expect::Any, writer).await?.file_id);
    }
    Ok(files)
}

/// Completes the links of turns to the files that came with them, so that a page shows them: each has its `attachmentId`, its media type and its size. The link
/// to a file that is gone, or that the caller may not read, has none of them.
pub(super) async fn complete_links(workspace: &Workspace, turns: &mut [Turn]) {
    // One file comes with many turns, and to look for one that is gone lists its folder.
    let mut known: BTreeMap<FilePath, Option<Info>> = BTreeMap::new();
    for turn in turns {
        let links: Vec<_> = {
            let mut events = turn.events.iter_mut().flatten();
            let Some(event) = events.find(|event| event["type"] == "user_prompt") else { continue };
            let parts = event["data"]["prompt"].as_array_mut().into_iter().flatten();
            parts.filter(|part| part["type"] == "resource_link").zip(&turn.files).collect()
        };
        for (link, path) in links {
            let found = match known.get(path) {
                Some(found) => found.clone(),
                None => {
                    let found = workspace.stat(path).await.ok();
                    known.insert(path.clone(), found.clone());
                    found
                }
            };
            let Some(info) = found else { continue };
            let kind = type_of(&info.name);
            link["attachmentId"] = json!(info.file_id);
            link["mimeType"] = json!(kind.split_once(';').map_or(kind, |(kind, _)| kind));
            link["size"] = json!(info.size);
        }
    }
}

/// The attachment of a path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct OfAttachment {
    /// The file.
    #[param(value_type = uuid::Uuid)]
    file_id: FileId,
}

impl Open for OfAttachment {}

/// An attachment of a turn, or a range of it. A page can show it by its address: `X-Client-ID` is not needed.
#[utoipa::path(get, path = "/attachments/{file_id}", tag = "hub",
    params(OfAttachment, ("Range" = Option<String>, Header, description = "One range of bytes, such as `bytes=0-1023`."),
        ("If-Match" = Option<String>, Header, description = "ETags of which one must be current."),
        ("If-None-Match" = Option<String>, Header, description = "ETags that the client has.")),
    responses(
        (status = 200, description = "The content, of the type that the name's ending says.", body = serde_json::Value, content_type = "*/*"),
        (status = 206, description = "The range, of the same type.", body = serde_json::Value, content_type = "*/*"),
        (status = 304, description = "The client has it.")))]
pub(crate) async fn get_attachment(
    State(context): State<Arc<Context>>,
    within: Within<Read>,
    Path(OfAttachment { file_id }): Path<OfAttachment>,
    headers: HeaderMap,
) -> Answer<Response> {
    let workspace = context.base.workspaces.open(within.workspace, within.files).await?;
    show(&workspace, Asked::Id(file_id), Form::Raw, &headers).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;
    use ports::{KnownSecrets, Secret};

    #[tokio::test]
    async fn s10_11_the_words_of_a_form_lose_known_secrets_and_its_files_do_not() {
        let known = KnownSecrets::default();
        known.learn(&[Secret::new("planted-secret")]);
        let part =
            |name: &str, content: &str| format!("--x\r\nContent-Disposition: form-data; {name}\r\n\r\n{content}\r\n");
        let input = part("name=\"input\"", "look at planted-secret");
        let file = part("name=\"attachments\"; filename=\"a.txt\"", "planted-secret");
        let request = http::Request::builder().method("POST").uri("/v1/threads/x/turns").extension(known);
        let request = request.header(header::CONTENT_TYPE, "multipart/form-data; boundary=x");
        let request = request.body(Body::from(format!("{input}{file}--x--\r\n"))).expect("a request");
        let given = input_of(&(), request).await.map_err(|_| "the form is refused").expect("a form");
        assert_eq!(given.input, "look at [redacted]");
        assert_eq!(given.attachments.first().map(|file| &file.content[..]), Some(&b"planted-secret"[..]));
    }

    #[test]
    fn the_name_of_a_file_leads_nowhere_else() {
        let check = |given: &str, expected: &str| assert_eq!(file_name(given), expected, "{given}");
        check("photo.png", "photo.png");
        check("C:\\Users\\me\\photo 1.png", "photo 1.png");
        check("../../etc/passwd", "passwd");
        check("..", "file");
        check(".profile", "profile");
        check("a\0b\nc*.txt", "abc.txt");
        check("", "file");
    }
}
