//! The HTTP client of a connection: it puts the token of the account into each request, renews it once where the server refuses it, and remembers the
//! sign-in that the server asks for.

use super::{
    accounts::{AccountDependencies, Holder, Token},
    metadata::Challenge,
};
use crate::{Egress, bounded_reader::Flow, bounds::MAX_MESSAGE, exact_numbers, http_calls};
use futures::{StreamExt, stream::BoxStream};
use parking_lot::Mutex;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::{
    model::{ClientJsonRpcMessage, ClientRequest},
    transport::streamable_http_client::{
        SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse, StreamableHttpResponseLimits,
    },
};
use sse_stream::Sse;
use std::{
    collections::HashMap,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

type Headers = HashMap<HeaderName, HeaderValue>;
type Failed = StreamableHttpError<reqwest::Error>;

/// Why a request was not sent: the account cannot be read now, or its issuer cannot be asked. Without a token the server would ask for another sign-in.
#[derive(Debug)]
pub(crate) struct UnusableAccount(String);

impl UnusableAccount {
    /// For this reason.
    pub fn of(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

impl std::fmt::Display for UnusableAccount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the account of the workspace cannot be used now: {}", self.0)
    }
}

impl std::error::Error for UnusableAccount {}

/// The account of a connection.
struct ConnectionAccount {
    parts: AccountDependencies,
    egress: Arc<dyn Egress>,
    holder: Holder,
    /// The token that was good the last time, once it was looked for. Another sign-in makes another connection.
    token: tokio::sync::Mutex<Option<Option<Token>>>,
}

/// The client of a connection. Cheap to clone; clones share the account.
#[derive(Clone)]
pub(crate) struct AuthorizedClient {
    http: reqwest::Client,
    account: Option<Arc<ConnectionAccount>>,
    challenge: Arc<Mutex<Option<Challenge>>>,
    /// Whether the lists of the connection are to be asked for again.
    are_stale: [Arc<AtomicBool>; 2],
    /// The bytes of events that came over all its streams.
    flow: Arc<Mutex<Flow>>,
}

impl AuthorizedClient {
    /// Over this client, with the account of the holder where accounts are kept. Each handshake marks the lists: the library makes another one by itself where
    /// the session is gone, and a server that was started again may have other tools and files.
    pub fn new(
        http: reqwest::Client,
        account: Option<(AccountDependencies, Arc<dyn Egress>, Holder)>,
        are_stale: [Arc<AtomicBool>; 2],
    ) -> Self {
        let account = account.map(|(parts, egress, holder)| {
            Arc::new(ConnectionAccount { parts, egress, holder, token: tokio::sync::Mutex::default() })
        });
        Self { http, account, challenge: Arc::default(), are_stale, flow: Arc::default() }
    }

    /// The sign-in that the server has asked for last, if it has.
    pub fn challenge(&self) -> Option<Challenge> {
        self.challenge.lock().clone()
    }

    fn note(&self, header: &str, lacks_scope: bool) {
        let challenge = Challenge { lacks_scope, ..Challenge::parse(header) };
        *self.challenge.lock() = Some(challenge);
    }

    /// The token for the next request, other than the one that was `refused`; none without an account.
    async fn token(&self, refused: Option<&str>) -> Result<Option<String>, Failed> {
        let Some(account) = &self.account else { return Ok(None) };
        // One at a time: the others find the token that the first has renewed.
        let mut known = account.token.lock().await;
        let now = account.parts.clock.now();
        let is_other = |token: &Token| Some(token.secret.expose()) != refused;
        let is_usable =
            |token: &Option<Token>| token.as_ref().is_none_or(|token| is_other(token) && token.is_good(now));
        if !known.as_ref().is_some_and(is_usable) {
            match account.parts.token(&account.egress, &account.holder, refused).await {
                Ok(found) => *known = Some(found),
                Err(error) => {
                    tracing::warn!(server = account.holder.server, %error, "the account at an MCP server cannot be used");
                    // The one before may still be taken. Without one it is looked for again with the next request.
                    let Some(before) = known.take().flatten().filter(is_other) else {
                        return Err(Failed::Io(io::Error::other(UnusableAccount::of(error.message))));
                    };
                    *known = Some(Some(before));
                }
            }
        }
        Ok(known.iter().flatten().next().map(|token| token.secret.expose().to_owned()))
    }

    /// The token of another try, where the server has refused the one that was used and there is another one.
    async fn renewed(&self, is_refused: bool, used: Option<&str>) -> Result<Option<String>, Failed> {
        match used.filter(|_| is_refused) {
            Some(used) => self.token(Some(used)).await,
            None => Ok(None),
        }
    }

    /// The answer to a request with the token of the account. Where the server refuses the token and the account has another one, the request is sent once
    /// more with that.
    async fn authorized<T, F>(&self, send: impl Fn(Option<String>) -> F) -> Result<T, Failed>
    where
        F: Future<Output = Result<T, Failed>>,
    {
        let used = self.token(None).await?;
        let answer = send(used.clone()).await;
        // A stream cannot be lent over a wait.
        let is_refused = matches!(answer, Err(StreamableHttpError::AuthRequired(_)));
        match self.renewed(is_refused, used.as_deref()).await? {
            Some(token) => self.noted(send(Some(token)).await),
            None => self.noted(answer),
        }
    }

    /// Events of a server, until too much comes over all streams together.
    fn bounded(&self, events: BoxStream<'static, Result<Sse, SseError>>) -> BoxStream<'static, Result<Sse, SseError>> {
        let flow = self.flow.clone();
        let bounded = events.map(move |event| {
            let event = event?;
            let texts = [&event.event, &event.data, &event.id].into_iter().flatten();
            let bytes = 1 + texts.map(String::len).sum::<usize>();
            flow.lock().takes(bytes).map_err(|error| SseError::Body(error.into()))?;
            Ok(event)
        });
        bounded.boxed()
    }

    /// Sends a message with this token.
    async fn post(
        &self,
        uri: &Arc<str>,
        message: &ClientJsonRpcMessage,
        session: Option<&Arc<str>>,
        token: Option<String>,
        headers: &Headers,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let answer = if http_calls::is_call(message) {
            let session = session.map(|session| &**session);
            http_calls::call(&self.http, uri, message, session, token.as_deref(), headers, limits).await?
        } else {
            let (uri, message, session) = (uri.clone(), message.clone(), session.cloned());
            self.http.post_message_with_response_limits(uri, message, session, token, headers.clone(), limits).await?
        };
        Ok(match answer {
            StreamableHttpPostResponse::Sse(events, session) => {
                StreamableHttpPostResponse::Sse(self.bounded(events), session)
            }
            other => other,
        })
    }

    /// The answer to this message, of which a handshake marks the lists.
    fn marked<T>(&self, message: &ClientJsonRpcMessage, answer: Result<T, Failed>) -> Result<T, Failed> {
        if answer.is_ok() && is_handshake(message) {
            self.are_stale.iter().for_each(|is_stale| is_stale.store(true, Ordering::Release));
        }
        answer
    }

    /// The answer, of which the sign-in that it asks for is remembered.
    fn noted<T>(&self, answer: Result<T, Failed>) -> Result<T, Failed> {
        match &answer {
            Err(StreamableHttpError::AuthRequired(error)) => self.note(&error.www_authenticate_header, false),
            Err(StreamableHttpError::InsufficientScope(error)) => self.note(&error.www_authenticate_header, true),
            // It does without.
            Ok(_) => *self.challenge.lock() = None,
            Err(_) => {}
        }
        answer
    }
}

/// Whether a message begins a session.
fn is_handshake(message: &ClientJsonRpcMessage) -> bool {
    let ClientJsonRpcMessage::Request(request) = message else { return false };
    matches!(request.request, ClientRequest::InitializeRequest(_))
}

impl StreamableHttpClient for AuthorizedClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let limits = StreamableHttpResponseLimits::default();
        self.post_message_with_response_limits(uri, message, session, token, headers, limits).await
    }

    async fn post_message_with_response_limits(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _: Option<String>,
        headers: Headers,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let send = |token| self.post(&uri, &message, session.as_ref(), token, &headers, limits);
        self.marked(&message, self.authorized(send).await)
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        _: Option<String>,
        headers: Headers,
    ) -> Result<(), Failed> {
        let token = self.token(None).await?;
        self.http.delete_session(uri, session, token, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failed> {
        self.get_stream_with_max_sse_event_size(uri, session, last_event, token, headers, MAX_MESSAGE).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        _: Option<String>,
        headers: Headers,
        most: usize,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failed> {
        let send = |token: Option<String>| {
            let (uri, session, last_event) = (uri.clone(), session.clone(), last_event.clone());
            self.http.get_stream_with_max_sse_event_size(uri, session, last_event, token, headers.clone(), most)
        };
        self.authorized(send).await.map(|events| exact_numbers::events(self.bounded(events)))
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use futures::stream;

    #[tokio::test]
    async fn events_without_an_end_end_all_streams_of_their_connection() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let client = AuthorizedClient::new(http, None, [Arc::default(), Arc::default()]);
        let event = Sse { data: Some("x".repeat(1 << 20)), ..Sse::default() };
        let endless = || {
            client.bounded(
                stream::repeat_with({
                    let event = event.clone();
                    move || Ok(event.clone())
                })
                .boxed(),
            )
        };
        let came = endless().take_while(|event| std::future::ready(event.is_ok())).take(1_000).count().await;
        assert_eq!(came, 31, "32 MiB are too many");
        assert!(
            endless().next().await.unwrap().is_err(),
            "another stream, which is opened at once, is bounded with it"
        );
    }
}
