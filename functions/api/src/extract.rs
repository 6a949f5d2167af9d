//! Extractors of handlers. The same as axum's own, but a refusal names the field, the nearest known name, and a remedy, in the one
//! envelope.

mod deserialization_error;
mod labels;
mod objects;
mod query;

pub(crate) use labels::{ByLabel, Labelled};
pub(crate) use query::{Query, demand_described};

use deserialization_error::{deserialization_error, unknown_field};
use objects::ObjectsOnly;

use crate::{
    MAX_JSON, crash_marks,
    error::{ApiError, excerpt},
    spoken_words, transfer_pace,
};
use axum::{
    body::{Body, BodyDataStream, HttpBody as _},
    extract::{FromRequest, FromRequestParts, Request, path::ErrorKind, rejection::PathRejection},
};
use bytes::{Bytes, BytesMut};
use domain::{Code, Error, TraceContext, text::counted};
use futures::StreamExt;
use http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts};
use identity::{Caller, CredentialKind};
use serde::{
    Deserialize, Deserializer,
    de::{self, DeserializeOwned},
};
use tokio::time::{Instant, timeout_at};
use utoipa::IntoParams;
use workspace::MAX_FILE;

/// The header with the workspace, where the path has none.
pub(crate) const WORKSPACE: &str = "x-workspace-id";

/// The caller, for routes outside any workspace; [`crate::access::Access`] is for the rest.
pub(crate) struct UnscopedCaller(pub Caller);

impl<S: Sync> FromRequestParts<S> for UnscopedCaller {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        caller(parts).map(Self)
    }
}

/// That the caller is the operator of this server: the machine's one person.
pub(crate) struct Operator;

impl<S: Sync> FromRequestParts<S> for Operator {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        match caller(parts)?.means {
            CredentialKind::Machine => Ok(Self),
            CredentialKind::Token | CredentialKind::Key(_) | CredentialKind::Ticket(_) => {
                let error = Error::new(Code::Forbidden, "only the operator of this server may do this");
                Err(error
                    .hint("use the token of server.auth_token; /metrics takes that of auth.metrics_token, too")
                    .into())
            }
        }
    }
}

/// The caller; put there by [`crate::auth`].
pub(crate) fn caller(parts: &Parts) -> Result<Caller, ApiError> {
    // No caller means that the route is open to all, and then it must not act for anybody.
    parts.extensions.get::<Caller>().cloned().ok_or_else(crate::error::internal)
}

/// Parameters of paths that lead into no workspace. Those of a workspace come with [`crate::access::Access`] and in no other way.
pub(crate) trait Open {}

/// The parameters of the path, by name.
pub(crate) struct Path<T>(pub T);

impl<S: Send + Sync, T: Open + DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        parameters(parts, state).await.map(Self)
    }
}

/// The parameters of any path.
pub(crate) async fn parameters<T: DeserializeOwned + Send>(
    parts: &mut Parts,
    state: &(impl Send + Sync),
) -> Result<T, ApiError> {
    match axum::extract::Path::<T>::from_request_parts(parts, state).await {
        Ok(axum::extract::Path(value)) => Ok(value),
        Err(PathRejection::FailedToDeserializePathParams(rejection)) => Err(match rejection.into_kind() {
            ErrorKind::ParseErrorAtKey { key, value, .. } => unfit(&key, &value).into(),
            ErrorKind::DeserializeError { key, value, .. } => unfit(&key, &value).into(),
            other => Error::invalid("path", other.to_string()).into(),
        }),
        Err(_) => Err(crate::error::internal()),
    }
}

/// The refusal of a parameter of the path: all of them are ids, but for the version.
fn unfit(key: &str, value: &str) -> Error {
    let error = Error::invalid(key, format!("{:?} is not a valid {key}", excerpt(value)));
    error.hint(match key {
        "v" => "versions are counted from 1",
        "flow" | "node" | "name" => "it is a name, as it stands in a list",
        _ => "ids are UUIDs like 019bf537-f228-7cd3-aa1c-3da8af302e12",
    })
}

/// The header of [`Traced`], for the document.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "it describes a header")]
pub(crate) struct TraceParent {
    /// The trace that the caller is in (W3C Trace Context): work that the request begins is a part of it, and model providers and webhooks
    /// are told it.
    #[param(example = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")]
    traceparent: Option<String>,
}

/// The place of the request in a distributed trace (W3C Trace Context). A malformed header is ignored, as the recommendation says.
pub(crate) struct Traced(pub Option<TraceContext>);

impl<S: Sync> FromRequestParts<S> for Traced {
    type Rejection = std::convert::Infallible;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let header = parts.headers.get("traceparent").and_then(|value| value.to_str().ok());
        Ok(Self(header.and_then(|text| text.trim().parse().ok())))
    }
}

/// A number of an event or a version: less than 2⁶³, so that it fits the 64-bit integer of documents and most languages.
pub(crate) fn number<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    in_range(u64::deserialize(from)?)
}

/// The same where it may be left out, or null.
pub(crate) fn some_number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    Option::<u64>::deserialize(from)?.map(in_range).transpose()
}

fn in_range<E: de::Error>(number: u64) -> Result<u64, E> {
    if i64::try_from(number).is_ok() { Ok(number) } else { Err(E::custom("the number is 2^63 or more")) }
}

/// A value that may be left out or null: its default then.
pub(crate) fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(from: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// How long a page is: as asked for, else `usual`. More than `most` is refused: a page that is shorter than what was asked for
/// looks like the last one.
pub(crate) fn page_length(asked: Option<usize>, usual: usize, most: usize) -> Result<usize, Error> {
    match asked {
        None => Ok(usual),
        Some(limit) if (1..=most).contains(&limit) => Ok(limit),
        Some(limit) => Err(Error::invalid("limit", format!("a limit of {limit} is not possible here"))
            .hint(format!("the limit is 1 to {most}; next_cursor leads to more"))
            .detail("maximum", most)),
    }
}

/// A JSON body. An empty one counts as `{}`, for commands whose fields are all optional.
pub(crate) struct Json<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = ApiError;
    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        parse(&json_body::<S, MAX_JSON>(request, state).await?)
    }
}

/// The body of a command without fields. A field is refused, since its sender may have meant it to change what is done.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoFields {}

/// The JSON body of a request that may bring files along in its own bytes. It has few values: text is read at its own size, and each value takes
/// many times the bytes that it is written with.
pub(crate) struct JsonWithFiles<T>(pub T);

/// The longest of them, in bytes: as much as a function on AWS takes.
const MAX_TALK: usize = 6 * 1024 * 1024;
/// The most values of one.
const MOST_VALUES: usize = 100_000;

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for JsonWithFiles<T> {
    type Rejection = ApiError;
    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        parse(&json_body::<S, MAX_TALK>(request, state).await?).map(|Json(talk)| Self(talk))
    }
}

/// The same for a list of objects.
pub(crate) struct ListWithFiles<T>(pub Vec<T>);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for ListWithFiles<T> {
    type Rejection = ApiError;
    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        deserialize(&json_body::<S, MAX_TALK>(request, state).await?, "send a JSON list of objects in UTF-8").map(Self)
    }
}

/// Whether a JSON text has more values than a conversation needs, by its separators outside of texts.
fn has_many_values(body: &[u8]) -> bool {
    let (mut values, mut is_text, mut is_escaped) = (0, false, false);
    for byte in body {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            b',' | b'[' | b'{' if !is_text => values += 1,
            _ => {}
        }
    }
    values > MOST_VALUES
}

/// The media type of a header, without its parameters.
fn essence(kind: Option<&HeaderValue>) -> &str {
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim()
}

fn is_json(essence: &str) -> bool {
    essence.eq_ignore_ascii_case("application/json") || essence.ends_with("+json")
}

/// The longest body of its type that a route takes, in bytes. Most routes take less.
pub(crate) fn longest(headers: &HeaderMap) -> usize {
    if is_json(essence(headers.get(header::CONTENT_TYPE))) { MAX_TALK } else { MAX_FILE }
}

/// The body of a request that says that it is JSON; `{}` for an empty one. Words to agents and tasks are without known secrets.
async fn json_body<S: Send + Sync, const LIMIT: usize>(request: Request, state: &S) -> Result<Bytes, ApiError> {
    let kind = request.headers().get(header::CONTENT_TYPE).cloned();
    let redactor = spoken_words::redactor_of(&request);
    let Raw(body) = Raw::<LIMIT>::from_request(request, state).await?;
    if body.is_empty() {
        return Ok(Bytes::from_static(b"{}"));
    }
    // Asking for the type keeps plain forms of other web pages out: a browser asks first before it sends this one.
    let essence = essence(kind.as_ref());
    if !is_json(essence) {
        let kind = if essence.is_empty() { "of no type" } else { essence };
        let error = Error::invalid("content-type", format!("the body is {kind}, not JSON"));
        let hint = "send the header Content-Type: application/json";
        return Err(ApiError::from(error.hint(hint)).with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE));
    }
    // Before anything makes values of it.
    if body.len() > MAX_JSON && has_many_values(&body) {
        let error = Error::invalid("body", format!("the body has more than {MOST_VALUES} values"));
        return Err(error.hint("send the newest messages alone, or write long data into a file").into());
    }
    if let Ok(text) = std::str::from_utf8(&body) {
        domain::unique_keys::check(text)?;
    }
    let Some(clean) = redactor.body(&body) else { return Ok(body) };
    // Its numbers were written anew with it.
    if let Ok(text) = std::str::from_utf8(&body) {
        domain::exact_numbers::check("body", text)?;
    }
    Ok(clean.into())
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<Json<T>, ApiError> {
    const HINT: &str = "send one JSON object in UTF-8";
    if body.iter().find(|byte| !byte.is_ascii_whitespace()).is_some_and(|first| b"[\"0123456789-ntf".contains(first)) {
        return Err(Error::invalid("body", "the body is not a JSON object").hint(HINT).into());
    }
    deserialize(body, HINT).map(Json)
}

fn deserialize<T: DeserializeOwned>(body: &[u8], hint: &str) -> Result<T, ApiError> {
    if let Ok(text) = std::str::from_utf8(body) {
        domain::exact_numbers::check("body", text)?;
    }
    let mut json = serde_json::Deserializer::from_slice(body);
    let cause = match serde_path_to_error::deserialize(ObjectsOnly(&mut json)) {
        Ok(value) => match json.end() {
            Ok(()) => return Ok(value),
            Err(error) => error.to_string(),
        },
        Err(error) if error.inner().is_data() || is_no_variant(error.inner(), body) => {
            return Err(deserialization_error(&error.to_string(), "body").into());
        }
        Err(error) => error.to_string(),
    };
    Err(Error::invalid("body", format!("the body is not JSON: {cause}")).hint(hint).into())
}

/// Whether a body is JSON, and has a value that can be no name of a variant. serde_json takes that for a fault of the syntax.
fn is_no_variant(error: &serde_json::Error, body: &[u8]) -> bool {
    error.to_string().starts_with(deserialization_error::NO_VARIANT)
        && serde_json::from_slice::<de::IgnoredAny>(body).is_ok()
}

/// A body as it is, of at most `LIMIT` bytes. Of one that says itself that it is longer nothing is kept.
pub(crate) struct Raw<const LIMIT: usize>(pub Bytes);

impl<S: Send + Sync, const LIMIT: usize> FromRequest<S> for Raw<LIMIT> {
    type Rejection = ApiError;
    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        let body = read(&parts.headers, body, LIMIT).await?;
        crash_marks::takes_in(&body).await?;
        Ok(Self(body))
    }
}

/// A body that arrives piece by piece. One that is slower than a transfer may be ([`transfer_pace`]) is given up.
pub(crate) struct Pieces {
    frames: BodyDataStream,
    begun: Instant,
    taken: u64,
}

impl Pieces {
    pub(crate) fn of(body: Body) -> Self {
        Self { frames: body.into_data_stream(), begun: Instant::now(), taken: 0 }
    }

    /// The next piece; none at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        let until = self.begun + transfer_pace::time_for(self.taken);
        let next = timeout_at(until, self.frames.next()).await.map_err(|_| {
            Error::invalid("body", format!("the body came too slowly: {} of it came", counted(self.taken, "byte")))
                .hint("send it again over a faster connection, or in parts")
        })?;
        let piece = next.transpose().map_err(|_| Error::invalid("body", "the body broke off").hint("send it again"))?;
        self.taken += piece.as_ref().map_or(0, |piece| piece.len() as u64);
        Ok(piece)
    }

    /// Whether all of them are known to have come.
    pub(crate) fn are_over(&self) -> bool {
        self.frames.is_end_stream()
    }
}

/// How much of a body that is too large is read on, in bytes.
const FORGOTTEN: u64 = 16 * 1024 * 1024;

/// Reads the rest of a body that is refused, and keeps nothing of it. Many clients read no answer while they send: a connection that is closed
/// meanwhile breaks, and the refusal is lost.
async fn forget(mut pieces: Pieces) {
    let until = pieces.taken + FORGOTTEN;
    while pieces.taken < until && matches!(pieces.next().await, Ok(Some(_))) {}
}

/// Reads a body of at most `limit` bytes. Of one that says itself that it is longer nothing is kept.
pub(crate) async fn read(headers: &HeaderMap, body: Body, limit: usize) -> Result<Bytes, Error> {
    let (mut pieces, mut whole) = (Pieces::of(body), BytesMut::new());
    let says = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if let Some(length) = says.filter(|length: &u64| *length > limit as u64) {
        // One that waits for leave to send (RFC 9110, 10.1.1) hears the refusal in its place.
        if length <= FORGOTTEN && !headers.contains_key(header::EXPECT) {
            forget(pieces).await;
        }
        return Err(too_large(limit));
    }
    while let Some(piece) = pieces.next().await? {
        if piece.len() > limit - whole.len() {
            // The rest may take minutes.
            drop((piece, whole));
            forget(pieces).await;
            return Err(too_large(limit));
        }
        whole.extend_from_slice(&piece);
    }
    Ok(whole.freeze())
}

fn too_large(limit: usize) -> Error {
    const MIB: usize = 1024 * 1024;
    let message = format!("the body is too large: at most {} MiB fit here", limit / MIB);
    let error = Error::new(Code::PayloadTooLarge, message).detail("limit", limit);
    if limit < MAX_FILE {
        let most = MAX_FILE / MIB;
        error.hint(format!("send long contents as they are, by PUT …/files/:fid/content: up to {most} MiB"))
    } else {
        error.hint("send a longer content to the address that POST …/uploads gives")
    }
}

/// The innermost words of an error: those of serde.
fn cause(error: &dyn std::error::Error) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ports::{KnownSecrets, Secret};
    use serde_json::{Value, json};
    use std::{
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
        time::Duration,
    };

    #[test]
    fn values_are_counted_outside_of_texts() {
        let many = format!("[{}0]", "0,".repeat(MOST_VALUES));
        assert!(has_many_values(many.as_bytes()));
        let text = format!(r#"{{"a": "{}\", [{{"}}"#, ",[{".repeat(MOST_VALUES));
        assert!(!has_many_values(text.as_bytes()), "a text is one value, with whatever is in it");
    }

    #[tokio::test]
    async fn s10_11_words_lose_known_secrets_in_pieces_and_beside_files() {
        let known = KnownSecrets::default();
        known.learn(&[Secret::new("planted-secret")]);
        let request = |path: &str, body: Body| {
            let request = http::Request::builder().method("POST").uri(path).extension(known.clone());
            request.header(header::CONTENT_TYPE, "application/json").body(body).expect("a request")
        };
        let pieces = || {
            let pieces = [r#"{"words": "it is planted-"#, r#"secret", "n": 12345678901234567}"#];
            Body::from_stream(futures::stream::iter(pieces.map(Ok::<_, std::io::Error>)))
        };
        let said = Json::<Value>::from_request(request("/v1/threads/x/turns", pieces()), &()).await;
        let expected = json!({ "words": "it is [redacted]", "n": 12_345_678_901_234_567_u64 });
        assert_eq!(said.ok().map(|Json(body)| body), Some(expected));
        let written = Json::<Value>::from_request(request("/langgraph/store/items", pieces()), &()).await;
        assert!(written.is_ok_and(|Json(body)| body["words"] == "it is planted-secret"), "a content stays as it is");

        let long = json!({ "file": "QUJD".repeat(MAX_JSON / 3), "words": "planted-secret" }).to_string();
        let said = JsonWithFiles::<Value>::from_request(request("/a2a", Body::from(long)), &()).await;
        assert!(said.is_ok_and(|JsonWithFiles(body)| body["words"] == "[redacted]"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_hardly_comes_is_given_up_and_a_slow_one_is_read() {
        let every = |pause: u64, piece: usize, pieces: usize| {
            let stream = futures::stream::iter(0..pieces).then(move |_| async move {
                tokio::time::sleep(Duration::from_secs(pause)).await;
                Ok::<_, std::io::Error>(Bytes::from(vec![b'x'; piece]))
            });
            Body::from_stream(stream)
        };
        let none = HeaderMap::new();
        let slow = read(&none, every(20, 1, 100), 1000).await;
        assert!(slow.is_err_and(|error| error.message.contains(": 1 byte of it came")));
        let whole = read(&none, every(2, 64 * 1024, 100), MAX_FILE).await;
        assert_eq!(whole.map(|body| body.len()).ok(), Some(100 * 64 * 1024));
        let long = read(&none, every(0, 600, 2), 1000).await;
        assert!(long.is_err_and(|error| error.code == Code::PayloadTooLarge));
    }

    #[tokio::test]
    async fn a_body_that_is_too_large_is_read_on_unless_its_sender_waits_or_it_is_far_too_large() {
        const MIB: usize = 1024 * 1024;
        let taken = async |announced: Option<usize>, pieces: usize, waits: bool| {
            let count = Arc::new(AtomicUsize::new(0));
            let counter = count.clone();
            let stream = futures::stream::iter(0..pieces).map(move |_| {
                counter.fetch_add(1, Ordering::SeqCst);
                Ok::<_, std::io::Error>(Bytes::from(vec![b'x'; MIB]))
            });
            let mut request = http::Request::builder().method("POST").uri("/");
            if let Some(length) = announced {
                request = request.header(header::CONTENT_LENGTH, length);
            }
            if waits {
                request = request.header(header::EXPECT, "100-continue");
            }
            let request = request.body(Body::from_stream(stream)).expect("a request");
            let refused = Raw::<MAX_JSON>::from_request(request, &()).await.err().map(|refused| refused.error.code);
            (refused, count.load(Ordering::SeqCst))
        };
        let too_large = Some(Code::PayloadTooLarge);
        assert_eq!(taken(Some(3 * MIB), 3, false).await, (too_large, 3));
        assert_eq!(taken(None, 3, false).await, (too_large, 3));
        assert_eq!(taken(Some(3 * MIB), 3, true).await, (too_large, 0));
        assert_eq!(taken(Some(100 * MIB), 100, false).await, (too_large, 0));
        assert_eq!(taken(None, 100, false).await, (too_large, 18), "it stops after a while");
        assert_eq!(taken(Some(MIB), 1, false).await, (None, 1));
    }
}
