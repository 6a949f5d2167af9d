//! The HTTP client of a connection: it puts the token of the account into each request, renews it once where the server refuses it, and remembers the
//! sign-in that the server asks for.

use super::{
    accounts::{AccountDependencies, Holder, Token},
    metadata::Challenge,
};
use crate::{Egress, bounds::MAX_MESSAGE, exact_numbers, http_calls};
use futures::stream::BoxStream;
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
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

type Headers = HashMap<HeaderName, HeaderValue>;
type Failed = StreamableHttpError<reqwest::Error>;

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
        Self { http, account, challenge: Arc::default(), are_stale }
    }

    /// The sign-in that the server has asked for last, if it has.
    pub fn challenge(&self) -> Option<Challenge> {
        self.challenge.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, header: &str, lacks_scope: bool) {
        let challenge = Challenge { lacks_scope, ..Challenge::parse(header) };
        *self.challenge.lock().unwrap_or_else(PoisonError::into_inner) = Some(challenge);
    }

    /// The token for the next request, other than the one that was `refused`. An account that cannot be read is none: the server says what it needs.
    async fn token(&self, refused: Option<&str>) -> Option<String> {
        let account = self.account.as_ref()?;
        // One at a time: the others find the token that the first has renewed.
        let mut known = account.token.lock().await;
        let now = account.parts.clock.now();
        let is_other = |token: &Token| Some(token.secret.expose()) != refused;
        let is_usable =
            |token: &Option<Token>| token.as_ref().is_none_or(|token| is_other(token) && token.is_good(now));
        if !known.as_ref().is_some_and(is_usable) {
            let found = match account.parts.token(&*account.egress, &account.holder, refused).await {
                Ok(found) => found,
                Err(error) => {
                    tracing::warn!(server = account.holder.server, %error, "the account at an MCP server cannot be used");
                    known.take().flatten().filter(is_other)
                }
            };
            *known = Some(found);
        }
        known.as_ref()?.as_ref().map(|token| token.secret.expose().to_owned())
    }

    /// The token of another try, where the server has refused the one that was used and there is another one.
    async fn renewed(&self, is_refused: bool, used: Option<&str>) -> Option<String> {
        match used.filter(|_| is_refused) {
            Some(used) => self.token(Some(used)).await,
            None => None,
        }
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
        if http_calls::is_call(message) {
            let session = session.map(|session| &**session);
            return http_calls::call(&self.http, uri, message, session, token.as_deref(), headers, limits).await;
        }
        let (uri, message, session) = (uri.clone(), message.clone(), session.cloned());
        self.http.post_message_with_response_limits(uri, message, session, token, headers.clone(), limits).await
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
            Ok(_) => *self.challenge.lock().unwrap_or_else(PoisonError::into_inner) = None,
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
        let used = self.token(None).await;
        let answer = send(used.clone()).await;
        // A stream cannot be lent over a wait.
        let is_refused = matches!(answer, Err(StreamableHttpError::AuthRequired(_)));
        match self.renewed(is_refused, used.as_deref()).await {
            Some(token) => self.marked(&message, self.noted(send(Some(token)).await)),
            None => self.marked(&message, self.noted(answer)),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        _: Option<String>,
        headers: Headers,
    ) -> Result<(), Failed> {
        let token = self.token(None).await;
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
        let used = self.token(None).await;
        let answer = send(used.clone()).await;
        // A stream cannot be lent over a wait.
        let is_refused = matches!(answer, Err(StreamableHttpError::AuthRequired(_)));
        match self.renewed(is_refused, used.as_deref()).await {
            Some(token) => self.noted(send(Some(token)).await),
            None => self.noted(answer),
        }
        .map(exact_numbers::events)
    }
}
