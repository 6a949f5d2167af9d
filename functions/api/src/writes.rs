//! The common parts of file writes: the author, the precondition, and the answer.

mod by_path;

pub(crate) use by_path::{IfThere, write_at};

use crate::{error::Answer, ids::Ids};
use axum::response::{IntoResponse, Response};
use domain::{CallId, Code, Error, FileId, Principal};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use identity::{Action, Caller};
use workspace::{Change, Expect, FileContent, Info, Workspace, Writer};

/// How often a read or a write follows a file that is moved meanwhile.
pub(crate) const ATTEMPTS: usize = 16;

impl Ids {
    /// The author of a write: under an idempotency key as one call, so that it is applied once under any retry.
    pub(crate) fn writer(&self, by: Principal) -> Writer {
        match self {
            Self::Key(..) => Writer::in_call(by, CallId(self.id("call"))),
            Self::Fresh(_) => Writer::new(by),
        }
    }
}

/// The author of a version as their credential lets them act: what a key without the scope `run` writes starts no flow.
pub(crate) fn author(caller: &Caller, writer: Writer) -> Writer {
    Writer { may_run: caller.scopes.has(Action::Run), ..writer }
}

/// The precondition of `If-Match` (RFC 9110, 13.1.1).
pub(crate) enum IfMatch {
    /// Nothing, or `*`: that there is a file, which its identity in the path asks for already.
    Anything,
    /// One of these versions.
    Versions(Vec<NamedVersion>),
}

/// The version that a tag names. A tag of the file at a path names the file, too, since another one with the same version may come to that path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NamedVersion {
    v: u64,
    file: Option<FileId>,
}

impl NamedVersion {
    /// None for a foreign tag.
    fn of(tag: &str) -> Option<Self> {
        let (v, file) = match tag.split_once('-') {
            Some((v, file)) => (v, Some(file.parse().ok()?)),
            None => (tag, None),
        };
        Some(Self { v: v.parse().ok()?, file })
    }

    /// Whether it can be a version of this file.
    fn is_of(self, file: FileId) -> bool {
        self.file.is_none_or(|named| named == file)
    }
}

impl IfMatch {
    /// The precondition in the headers. A foreign tag is no error: it matches nothing.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Self, Error> {
        Ok(match demanded(headers)? {
            None => Self::Anything,
            Some(tags) => Self::Versions(tags.into_iter().filter_map(NamedVersion::of).collect()),
        })
    }

    /// Whether it names this version of this file.
    pub(crate) fn names(&self, file: FileId, v: u64) -> bool {
        match self {
            Self::Anything => true,
            Self::Versions(versions) => versions.iter().any(|named| named.v == v && named.is_of(file)),
        }
    }

    /// Refuses a file whose current version is none of these.
    pub(crate) fn check(&self, info: &Info) -> Result<(), Error> {
        if self.names(info.file_id, info.v) {
            return Ok(());
        }
        let is_foreign = matches!(self, Self::Versions(versions) if versions.is_empty());
        let error = match is_foreign {
            true => Error::new(Code::StaleVersion, "If-Match names no version that this file can have").hint(
                "send the ETag as it was given, such as \"3\"; a weak one (W/\"3\") never matches (RFC 9110, 13.1.1)",
            ),
            false => Error::new(Code::StaleVersion, format!("{} is now version {}", info.path, info.v))
                .hint("look at it again, then send its ETag as If-Match"),
        };
        Err(error.detail("current_v", info.v))
    }
}

/// The tags of `If-Match`; none without it, and for `*`. The comparison is a strong one: a weak tag matches nothing, not even itself, and is left out. A header
/// without a tag is an error: its sender has lost the tag, and would write over the change of another.
fn demanded(headers: &HeaderMap) -> Result<Option<Vec<&str>>, Error> {
    let mut all = Vec::new();
    for value in headers.get_all(header::IF_MATCH) {
        let text = value.to_str().unwrap_or_default().trim();
        if text == "*" {
            return Ok(None);
        }
        all.extend(entity_tags(text).ok_or_else(malformed)?);
    }
    match all.is_empty() {
        true if headers.contains_key(header::IF_MATCH) => Err(malformed()),
        true => Ok(None),
        false => Ok(Some(all.iter().filter_map(Tag::strong).collect())),
    }
}

/// Refuses a content that never changes where `If-Match` has another tag than its own.
pub(crate) fn demand_tag(headers: &HeaderMap, own: &str) -> Result<(), Error> {
    if demanded(headers)?.is_none_or(|tags| tags.contains(&own)) {
        return Ok(());
    }
    Err(Error::new(Code::StaleVersion, "If-Match names another content than the one at this address")
        .hint("read this one from its beginning, without If-Match"))
}

fn malformed() -> Error {
    Error::invalid("if-match", "If-Match is no list of ETags").hint("send the ETag as it was given, such as \"3\"")
}

/// An entity tag (RFC 9110, 8.8.3).
#[derive(Debug, PartialEq, Eq)]
struct Tag<'a> {
    weak: bool,
    opaque: &'a str,
}

impl<'a> Tag<'a> {
    fn strong(&self) -> Option<&'a str> {
        (!self.weak).then_some(self.opaque)
    }
}

/// A list of entity tags; none when it is no such list. A bare version counts as a tag, too.
fn entity_tags(text: &str) -> Option<Vec<Tag<'_>>> {
    let mut tags = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (weak, tag) = rest.strip_prefix("W/").map_or((false, rest), |tag| (true, tag));
        let (opaque, after) = match tag.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => {
                let (bare, _) = tag.split_once(',').unwrap_or((tag, ""));
                let bare = bare.trim_end();
                let is_version = !weak && !bare.is_empty() && bare.bytes().all(|byte| byte.is_ascii_digit());
                is_version.then(|| tag.split_at(bare.len()))?
            }
        };
        tags.push(Tag { weak, opaque });
        let after = after.trim_start();
        rest = match after.strip_prefix(',') {
            Some(further) => further.trim_start(),
            None if after.is_empty() => after,
            None => return None,
        };
    }
    Some(tags)
}

/// Whether the client has the content of such a tag already, by `If-None-Match` (RFC 9110, 13.1.2): a weak comparison, of a list or `*`.
pub(crate) fn is_known(headers: &HeaderMap, is_this: impl Fn(&str) -> bool) -> bool {
    headers.get_all(header::IF_NONE_MATCH).iter().any(|value| {
        let text = value.to_str().unwrap_or_default().trim();
        text == "*" || entity_tags(text).is_some_and(|tags| tags.iter().any(|tag| is_this(tag.opaque)))
    })
}

/// The address by which a client asks for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// The identity of the file: the version alone tells its states apart.
    Id,
    /// A path, where another file may be by now.
    Path,
}

impl Address {
    /// The ETag of a version of a file; folders and chat files have none.
    pub(crate) fn etag(self, file: FileId, v: u64) -> Option<HeaderValue> {
        let tag = match self {
            Self::Id => format!("\"{v}\""),
            Self::Path => format!("\"{v}-{file}\""),
        };
        (v > 0).then(|| HeaderValue::try_from(tag).ok()).flatten()
    }

    /// Whether the client has this version already.
    pub(crate) fn is_known(self, headers: &HeaderMap, file: FileId, v: u64) -> bool {
        let is_this =
            |named: NamedVersion| named.v == v && named.is_of(file) && (self == Self::Id || named.file.is_some());
        v > 0 && is_known(headers, |tag| NamedVersion::of(tag).is_some_and(is_this))
    }

    /// The same answer with this ETag.
    pub(crate) fn tag(self, mut response: Response, file: FileId, v: u64) -> Response {
        if let Some(tag) = self.etag(file, v) {
            response.headers_mut().insert(header::ETAG, tag);
        }
        response
    }
}

/// The precondition of a change that makes no version: another file may be at the path by now. Refuses a file that `If-Match` does not match.
pub(crate) fn expect_current(info: &Info, headers: &HeaderMap) -> Result<Expect, Error> {
    let asked = IfMatch::of(headers)?;
    asked.check(info)?;
    Ok(match asked {
        IfMatch::Anything => Expect::File(info.file_id),
        IfMatch::Versions(_) => Expect::Exactly(info.file_id, info.v),
    })
}

/// Gives the file with this identity a new content, wherever it is. Without `If-Match` the last writer wins.
pub(crate) async fn write(
    workspace: &Workspace,
    file_id: FileId,
    content: FileContent,
    headers: &HeaderMap,
    writer: &Writer,
) -> Answer<Changed> {
    let asked = IfMatch::of(headers)?;
    for _ in 0..ATTEMPTS {
        let info = workspace.by_id(file_id).await?;
        let expect = match &asked {
            IfMatch::Anything => Expect::File(file_id),
            // Another file may be at the path by now, whose version numbers mean something else.
            IfMatch::Versions(versions) => {
                let of_it: Vec<u64> =
                    versions.iter().filter(|named| named.is_of(file_id)).map(|named| named.v).collect();
                match of_it.first() {
                    Some(first) => Expect::Exactly(file_id, if of_it.contains(&info.v) { info.v } else { *first }),
                    None => return Err(asked.check(&info).err().unwrap_or_else(malformed).into()),
                }
            }
        };
        match workspace.write_given(&info.path, content.clone(), expect, writer).await {
            // It was moved between the look and the write.
            Err(error) if error.code == Code::StaleVersion && matches!(expect, Expect::File(_)) => {}
            result => return Ok(Changed(StatusCode::OK, result?)),
        }
    }
    Err(moves_on().into())
}

/// The refusal of a request that did not catch up with its file.
pub(crate) fn moves_on() -> Error {
    Error::new(Code::Conflict, "the file is moved again and again").hint("try again")
}

/// A change as an answer, with the ETag of the current state.
pub(crate) struct Changed(pub StatusCode, pub Change);

impl IntoResponse for Changed {
    fn into_response(self) -> Response {
        let (file, v) = (self.1.file_id, self.1.v);
        Address::Id.tag((self.0, axum::Json(self.1)).into_response(), file, v)
    }
}

/// A file or folder as an answer to a request for it by such an address.
pub(crate) struct FileAnswer(pub Address, pub Info);

impl IntoResponse for FileAnswer {
    fn into_response(self) -> Response {
        let (file, v) = (self.1.file_id, self.1.v);
        self.0.tag(axum::Json(self.1).into_response(), file, v)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_of_a_path_names_the_file_and_a_version_alone_does_not() {
        let (file, other) = (FileId(uuid::Uuid::from_u128(1)), FileId(uuid::Uuid::from_u128(2)));
        let known = |address: Address, tag: &str| {
            let value = HeaderValue::try_from(tag).unwrap_or_else(|_| HeaderValue::from_static(""));
            address.is_known(&HeaderMap::from_iter([(header::IF_NONE_MATCH, value)]), file, 3)
        };
        let (own, foreign) = (format!("\"3-{file}\""), format!("\"3-{other}\""));
        assert_eq!(Address::Path.etag(file, 3), HeaderValue::try_from(own.as_str()).ok());
        assert_eq!(Address::Path.etag(file, 0), None);
        for (tag, by_id, by_path) in [
            (own.as_str(), true, true),
            ("*", true, true),
            ("\"3\"", true, false),
            (foreign.as_str(), false, false),
            ("\"4\"", false, false),
            ("\"3-x\"", false, false),
        ] {
            assert_eq!((known(Address::Id, tag), known(Address::Path, tag)), (by_id, by_path), "{tag}");
        }
    }

    #[test]
    fn lists_of_entity_tags() {
        let check = |text: &str, expected: Option<&[(bool, &str)]>| {
            let tags = entity_tags(text);
            let tags = tags.as_ref().map(|tags| tags.iter().map(|tag| (tag.weak, tag.opaque)).collect::<Vec<_>>());
            assert_eq!(tags.as_deref(), expected, "{text}");
        };
        check("\"1\"", Some(&[(false, "1")]));
        check("W/\"1\"", Some(&[(true, "1")]));
        check("\"a,b\" , W/\"\",\"3\"", Some(&[(false, "a,b"), (true, ""), (false, "3")]));
        check("3", Some(&[(false, "3")]));
        check("3, 4", Some(&[(false, "3"), (false, "4")]));
        for wrong in ["W/x", "W/1", "w/\"1\"", "\"1", "\"1\" \"2\"", "x", "-1", "1\""] {
            check(wrong, None);
        }
    }
}
