//! `Idempotency-Key`: the same POST twice takes effect once, and is answered the same, for 24 hours.
//!
//! Before the command there is a record of the key with the request's digest, after it one with the answer. The ids that a
//! command makes are derived from the key, so a crash in between is harmless: the request, sent again, makes the same
//! things under the same ids. A refusal frees the key, and so does an answer with a secret in it (`Cache-Control: no-store`). Without the
//! header nothing is written at all.

use crate::{
    StreamContext,
    access::CallerRole,
    error::{Answer, ApiError},
    extract, hub,
    ids::Ids,
    long_answers::LateRefusal,
};
use axum::{
    body::{Body, HttpBody as _},
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use domain::{Code, Error};
use futures::{StreamExt as _, stream};
use http::{HeaderValue, Method, StatusCode, header, request::Parts, response};
use identity::{CredentialKind, Role};
use ports::{Expect, Key, Write};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::{future::Future, sync::Arc, time::Duration};
use uuid::Uuid;

pub(crate) const KEY: &str = "idempotency-key";
/// Marks an answer that was given before.
pub(crate) const REPLAYED: &str = "idempotency-replayed";
/// How long an answer is kept.
const KEPT: Duration = Duration::from_secs(24 * 3600);
/// Longer answers are not kept; the command then runs again, under the same ids.
const MAX_ANSWER: usize = 256 * 1024;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    /// The digest of method, path, query, body and the workspace that a header names.
    request: String,
    /// None while the command is on its way, and when it never arrived.
    answer: Option<KeptAnswer>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptAnswer {
    status: u16,
    location: Option<String>,
    etag: Option<String>,
    body: String,
    /// The caller's role in the workspace; none on the routes of the installation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    role: Option<Role>,
}

/// The middleware.
pub(crate) async fn once(State(context): State<Arc<StreamContext>>, request: Request, next: Next) -> Answer<Response> {
    let key = match request.headers().get(KEY) {
        Some(value) if request.method() == Method::POST => key_of(value)?,
        _ => return Ok(next.run(request).await),
    };
    let (mut parts, body) = request.into_parts();
    let body = extract::read(&parts.headers, body, extract::longest(&parts.headers)).await?;
    let digest = digest(&parts, &body);
    let caller = extract::caller(&parts)?;
    // An API key has records of its own: it may lack rights for an answer that its person got.
    let who = match caller.means {
        CredentialKind::Key(key) => format!("{}/{key}", caller.user),
        CredentialKind::Machine | CredentialKind::Token | CredentialKind::Ticket(_) => caller.user.to_string(),
    };
    let workspace = parts.uri.path().strip_prefix("/api/v1/workspaces/").and_then(|rest| rest.split('/').next());
    let scope = format!("idempotency/{}/{who}", workspace.filter(|id| id.parse::<Uuid>().is_ok()).unwrap_or("-"));
    let place = Key::new(&scope, &key);

    let role = match parts.extensions.get() {
        Some(CallerRole(role)) => Some(*role),
        None => hub::caller_role(&context, &caller, &parts).await?,
    };
    if let Some(answer) = begin(&context, &place, &digest, role).await? {
        return Ok(answer);
    }
    parts.extensions.insert(Ids::Key(scope, key));
    let response = next.run(Request::from_parts(parts, Body::from(body))).await;
    if response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == "text/event-stream") {
        // A stream is not kept: the same request again has the same ids, does nothing more, and streams from the beginning.
        context.table.commit(vec![Write::delete(place, Expect::Any)]).await?;
        return Ok(response);
    }
    if response.body().size_hint().exact().is_none() {
        return Ok(in_pieces(response, move |head, body| async move {
            if keep(&context, place, digest, role, (&head, &body)).await.is_err() {
                tracing::warn!("an answer in pieces could not be written down for its idempotency key");
            }
        }));
    }
    let (head, body) = response.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.map_err(|_| crate::error::internal())?;
    keep(&context, place, digest, role, (&head, &body)).await?;
    Ok(Response::from_parts(head, Body::from(body)))
}

fn key_of(value: &HeaderValue) -> Result<String, Error> {
    let key = value.to_str().unwrap_or_default().trim();
    if (1..=255).contains(&key.len()) {
        return Ok(key.to_owned());
    }
    Err(Error::invalid(KEY, "an idempotency key has 1 to 255 printable ASCII characters").hint("a UUID does well"))
}

fn digest(parts: &Parts, body: &Bytes) -> String {
    let query = parts.uri.query().unwrap_or_default().as_bytes();
    let workspace = parts.headers.get(extract::WORKSPACE).map_or(&b""[..], HeaderValue::as_bytes);
    let beside = [(&b"query"[..], query), (extract::WORKSPACE.as_bytes(), workspace)];
    let beside = beside.into_iter().filter(|(_, value)| !value.is_empty()).flat_map(|(name, value)| [name, value]);
    let mut hash = Sha256::new();
    for part in [parts.method.as_str().as_bytes(), parts.uri.path().as_bytes(), body].into_iter().chain(beside) {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    format!("{:x}", hash.finalize())
}

/// The answer given before; else a record that the request is on its way. An answer is given to the role that it was made for and to those
/// above it: for a lower one the request is made again, and its handler decides by that role's rights.
async fn begin(context: &StreamContext, place: &Key, digest: &str, role: Option<Role>) -> Answer<Option<Response>> {
    let record = Record { request: digest.to_owned(), answer: None };
    for _ in 0..2 {
        if let Some(item) = context.table.get(place).await? {
            let found: Record = serde_json::from_str(&item.body).map_err(damaged)?;
            if found.request != digest {
                return Err(Error::new(
                    Code::IdempotencyMismatch,
                    "this idempotency key was used with another request",
                )
                .hint("send the same request again, or use a new key")
                .detail("field", KEY)
                .into());
            }
            return Ok(found.answer.filter(|kept| kept.role <= role).map(replay));
        }
        match context.table.commit(vec![put(context, place, &record, Expect::Absent)?]).await {
            Ok(()) => return Ok(None),
            // A concurrent request has the same key: compare the two.
            Err(ports::Error::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Error::new(Code::Conflict, "the same request is on its way").hint("try again").into())
}

/// An answer that goes on as it comes, since a proxy takes a long silence for a fault, and that is kept at its end.
fn in_pieces<K>(response: Response, keep: impl FnOnce(response::Parts, Vec<u8>) -> K + Send + 'static) -> Response
where
    K: Future<Output = ()> + Send + 'static,
{
    let (head, body) = response.into_parts();
    let begin = (body.into_data_stream(), Vec::<u8>::new(), head.clone(), keep);
    let all = stream::unfold(Some(begin), |state| async move {
        let (mut pieces, mut whole, head, keep) = state?;
        match pieces.next().await {
            Some(Ok(piece)) => {
                // Beyond that it is not kept.
                if whole.len() <= MAX_ANSWER {
                    whole.extend_from_slice(&piece);
                }
                Some((Ok(piece), Some((pieces, whole, head, keep))))
            }
            // Of one that breaks off, the same request makes another.
            Some(Err(error)) => Some((Err(error), None)),
            None => {
                keep(head, whole).await;
                None
            }
        }
    });
    Response::from_parts(head, Body::from_stream(all))
}

/// Keeps an answer that says that something was done; a refusal frees the key instead.
async fn keep(
    context: &StreamContext,
    place: Key,
    digest: String,
    role: Option<Role>,
    (head, body): (&response::Parts, &[u8]),
) -> Answer<()> {
    let text = |name| head.headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).map(String::from);
    let write = match std::str::from_utf8(body) {
        Ok(words) if may_be_kept(head) && body.len() <= MAX_ANSWER => {
            let (location, etag) = (text(header::LOCATION), text(header::ETAG));
            let kept = KeptAnswer { status: head.status.as_u16(), location, etag, body: words.to_owned(), role };
            put(context, &place, &Record { request: digest, answer: Some(kept) }, Expect::Any)?
        }
        _ => Write::delete(place, Expect::Any),
    };
    // The command is done; without the record, the same request again does nothing more, as its ids are the same.
    if let Err(error) = context.table.commit(vec![write]).await {
        tracing::warn!(
            error = %error.with_causes(),
            "an answer could not be kept under its idempotency key"
        );
    }
    Ok(())
}

/// Whether an answer that has ended says that something was done, and has no secret in it.
fn may_be_kept(head: &response::Parts) -> bool {
    let is_secret = head.headers.get(header::CACHE_CONTROL).is_some_and(|control| control == "no-store");
    let is_refusal = head.extensions.get().is_some_and(LateRefusal::has_come);
    head.status.is_success() && !is_secret && !is_refusal
}

fn put(context: &StreamContext, place: &Key, record: &Record, expect: Expect) -> Answer<Write> {
    let body = serde_json::to_string(record).map_err(damaged)?;
    Ok(Write::put(place.clone(), body, expect).expiring(context.clock.now() + KEPT))
}

fn replay(kept: KeptAnswer) -> Response {
    let status = StatusCode::from_u16(kept.status).unwrap_or(StatusCode::OK);
    let mut response = (status, kept.body).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(REPLAYED, HeaderValue::from_static("true"));
    for (name, value) in [(header::LOCATION, kept.location), (header::ETAG, kept.etag)] {
        if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
            headers.insert(name, value);
        }
    }
    response
}

fn damaged(error: serde_json::Error) -> ApiError {
    ports::Error::Damaged(error.to_string()).into()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::long_answers::long_answer;
    use parking_lot::Mutex;
    use std::{convert::Infallible, io};
    use tokio::{sync::mpsc, time::sleep};

    #[tokio::test]
    async fn an_answer_in_pieces_goes_on_as_it_comes_and_is_kept_at_its_end() {
        let (pieces, mut read) = mpsc::unbounded_channel::<&'static str>();
        let body = stream::poll_fn(move |context| read.poll_recv(context)).map(Ok::<_, Infallible>);
        let kept = Arc::new(Mutex::new(None));
        let keeps = kept.clone();
        let keep = move |_, whole| async move {
            *keeps.lock() = Some(whole);
        };
        let mut answer = in_pieces(Response::new(Body::from_stream(body)), keep).into_body().into_data_stream();
        for piece in [" ", "{}"] {
            pieces.send(piece).unwrap();
            assert_eq!(answer.next().await.unwrap().unwrap(), piece.as_bytes());
            assert_eq!(*kept.lock(), None);
        }
        drop(pieces);
        assert!(answer.next().await.is_none());
        assert_eq!(kept.lock().as_deref(), Some(&b" {}"[..]));
    }

    /// How many bytes arrive of an answer in these pieces, and how many of them come to be kept.
    async fn arrive(pieces: Vec<io::Result<Bytes>>) -> (usize, Option<usize>) {
        let kept = Arc::new(Mutex::new(None));
        let keeps = kept.clone();
        let keep = move |_, whole: Vec<u8>| async move {
            *keeps.lock() = Some(whole.len());
        };
        let answer = in_pieces(Response::new(Body::from_stream(stream::iter(pieces))), keep);
        let arrived: Vec<_> = answer.into_body().into_data_stream().collect().await;
        let kept = *kept.lock();
        (arrived.iter().flatten().map(Bytes::len).sum(), kept)
    }

    #[tokio::test]
    async fn an_answer_that_breaks_off_is_not_kept_and_a_long_one_does_not_fill_the_memory() {
        let broken = vec![Ok(Bytes::from_static(b"{")), Err(io::Error::other("it broke off"))];
        assert_eq!(arrive(broken).await, (1, None));
        let pieces = (0..9).map(|_| Ok(Bytes::from(vec![b' '; MAX_ANSWER]))).collect();
        assert_eq!(arrive(pieces).await, (9 * MAX_ANSWER, Some(2 * MAX_ANSWER)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_after_the_answer_has_begun_is_not_kept() {
        let whole = async {
            sleep(Duration::from_secs(20)).await;
            Err(Error::new(Code::Conflict, "it has ended").into())
        };
        let answer = long_answer(whole, ApiError::envelope).await.unwrap();
        let (head, body) = answer.into_parts();
        assert!(head.status.is_success());
        axum::body::to_bytes(body, MAX_ANSWER).await.unwrap();
        assert!(!may_be_kept(&head));
    }

    #[test]
    fn answers_that_were_kept_are_read_for_ever() {
        let kept = KeptAnswer {
            status: 202,
            location: Some("/api/v1/workspaces/1/chats/2".into()),
            etag: Some("\"4\"".into()),
            body: "{}".into(),
            role: None,
        };
        let of_a_role =
            KeptAnswer { status: 200, location: None, etag: None, body: "{}".into(), role: Some(Role::Editor) };
        let answers = [None, Some(kept), Some(of_a_role)];
        let records: Vec<Record> =
            answers.into_iter().map(|answer| Record { request: "digest".into(), answer }).collect();
        testkit::golden::check(env!("CARGO_MANIFEST_DIR"), "idempotency", &records);
    }
}
