//! Requests of JSON, by the segments of the resource's path below `/api/v1`.

mod events;
mod raw;
mod repeat;

pub use events::{Connection, Event, Reset};
pub use raw::Answer;
pub(crate) use repeat::pause;

use crate::{Error, Refusal, address};
use bytes::Bytes;
use repeat::Repeat;
use reqwest::{Method, RequestBuilder, Response, Url};
use serde_json::Value;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::sync::watch;
use uuid::Uuid;

/// How long an answer may take that is no stream.
pub(crate) const ANSWER: Duration = Duration::from_secs(60);
/// The hub writes to a stream at least every 15 s; one that is silent for longer is dead.
const SILENCE: Duration = Duration::from_secs(45);
/// How long a request is repeated, unless [`Client::patient`] says otherwise.
const PATIENCE: Duration = Duration::from_secs(10);
/// The items of a page at most.
const PAGE: usize = 200;

/// A hub, as its clients see it. Clones share connections.
#[derive(Clone)]
pub struct Client {
    pub(crate) http: reqwest::Client,
    /// Without a limit of time: for contents that are sent for longer than an answer may be waited for, and for the raw layer.
    pub(crate) untimed: reqwest::Client,
    pub(crate) base: watch::Receiver<Url>,
    token: Option<Arc<str>>,
    pub(crate) patience: Duration,
    /// Whether the hub has answered before.
    met: Arc<AtomicBool>,
}

/// The body of a request.
#[derive(Clone, Debug)]
pub enum Body {
    /// Nothing.
    None,
    /// JSON.
    Json(Value),
    /// A content as it is.
    Bytes(Bytes),
}

impl Client {
    /// For the hub at this URL (`http://` when it names no scheme) and, where the hub wants one, with this token or API key. Nothing is
    /// sent yet.
    ///
    /// # Errors
    /// [`Error::Unusable`] when the URL or the token cannot be one.
    pub fn new(url: &str, token: Option<&str>) -> Result<Self, Error> {
        let (_, base) = watch::channel(address::parse_url(url)?);
        Self::moving(base, token)
    }

    /// The same for a hub whose address may change, as its owner tells; streams that reconnect and requests that are repeated go to the
    /// new one. Changes stay with the scheme, and on this machine or off it.
    ///
    /// # Errors
    /// [`Error::Unusable`] when the token cannot be one.
    pub fn moving(base: watch::Receiver<Url>, token: Option<&str>) -> Result<Self, Error> {
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            // Lost to another thread that does the same: then there is one.
            drop(rustls::crypto::ring::default_provider().install_default());
        }
        let url = base.borrow().clone();
        let build = |silence: Option<Duration>| {
            let mut http = reqwest::Client::builder()
                .user_agent(concat!("buildscale/", env!("CARGO_PKG_VERSION")))
                .connect_timeout(Duration::from_secs(5))
                // Before the server ends an idle connection (30 s), so that no request goes into one that is being closed.
                .pool_idle_timeout(Duration::from_secs(20))
                .redirect(reqwest::redirect::Policy::none());
            if let Some(silence) = silence {
                http = http.read_timeout(silence);
            }
            if address::is_here(&url) {
                http = http.no_proxy(); // a proxy would look for the hub on its own machine
            }
            if url.scheme() == "http" {
                http = http.tls_certs_only([]); // saves reading the system's certificates, which a container may not have
            }
            http.build()
                .map_err(|error| Error::Unusable(format!("HTTPS cannot be used: {}", crate::error::causes(&error))))
        };
        let (http, untimed) = (build(Some(SILENCE))?, build(None)?);
        let client = Self { http, untimed, base, token: None, patience: PATIENCE, met: Arc::default() };
        client.with_token(token)
    }

    /// The same hub for another person; without a token, for an anonymous caller.
    ///
    /// # Errors
    /// [`Error::Unusable`] when the token cannot be one.
    pub fn with_token(&self, token: Option<&str>) -> Result<Self, Error> {
        let token = token.map(str::trim).filter(|token| !token.is_empty());
        if token.is_some_and(|token| !token.bytes().all(|byte| byte.is_ascii_graphic())) {
            return Err(Error::Unusable("the token has characters that no token has".into()));
        }
        Ok(Self { token: token.map(Into::into), ..self.clone() })
    }

    /// The same with another patience: how long a request is repeated at most, 10 s when nothing is said. A read and a [`Client::post`]
    /// are repeated when the connection fails, when a proxy says that the hub is away, and when the hub sends `Retry-After`; a
    /// [`Client::change`] only when the hub refuses it by a rate limit. A longer `Retry-After` than the time that is left, and a hub
    /// that never answered, end it at once.
    #[must_use]
    pub fn patient(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// The token, as it was given.
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// The URL of the hub now.
    pub fn url(&self) -> Url {
        self.base.borrow().clone()
    }

    /// Reads a resource.
    ///
    /// # Errors
    /// When it is refused, or no hub answers.
    pub async fn get(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Value, Error> {
        let attempt = || self.whole_of(self.resource(Method::GET, path, query));
        self.json(self.repeat(Repeat::Safe, attempt).await?)
    }

    /// Whether the hub can work, as `GET /ready` tells it: `degraded` names the parts that need its operator.
    ///
    /// # Errors
    /// When it cannot work, with the parts that do not answer, or when no hub answers.
    pub async fn ready(&self) -> Result<Value, Error> {
        let attempt = || self.whole_of(self.request(Method::GET, "/ready"));
        self.json(self.repeat(Repeat::Safe, attempt).await?)
    }

    /// Commands, under an idempotency key of its own: it is done once, however often it is sent.
    ///
    /// # Errors
    /// When it is refused, or no hub answers. Without an answer the command may have taken effect all the same.
    pub async fn post(&self, path: &[&str], body: &Value) -> Result<Value, Error> {
        self.post_as(&Uuid::now_v7().to_string(), path, body).await
    }

    /// Commands under this idempotency key. A program that keeps the key can send the command again after a crash; for a day the same
    /// key and body give the first answer again.
    ///
    /// # Errors
    /// When it is refused, or no hub answers. `IDEMPOTENCY_MISMATCH` means that the key was used with another request.
    pub async fn post_as(&self, key: &str, path: &[&str], body: &Value) -> Result<Value, Error> {
        let attempt =
            || self.whole_of(self.resource(Method::POST, path, &[]).header("idempotency-key", key).json(body));
        self.json(self.repeat(Repeat::Safe, attempt).await?)
    }

    /// Commands as [`Client::post`] does, and waits for each answer as long as this.
    pub(crate) async fn post_within(&self, path: &[&str], body: &Value, within: Duration) -> Result<Value, Error> {
        let key = Uuid::now_v7().to_string();
        let attempt = || async {
            let url = address::of_resource(&self.base.borrow(), path, &[]);
            let request = self.signed(self.untimed.post(url)).header("idempotency-key", &key).json(body);
            self.success_of(self.answer(request.timeout(within)).await?)
        };
        self.json(self.repeat(Repeat::Safe, attempt).await?)
    }

    /// Commands once, without an idempotency key, and waits for the answer as long as this.
    ///
    /// # Errors
    /// When it is refused, or no hub answers in time. Without an answer the command may have taken effect all the same.
    pub async fn post_once(&self, path: &[&str], body: &Value, patience: Duration) -> Result<Value, Error> {
        let url = address::of_resource(&self.base.borrow(), path, &[]);
        let request = self.signed(self.untimed.post(url)).json(body);
        self.json(self.success_of(self.answer(request.timeout(patience)).await?)?)
    }

    /// Changes the resource at `path`, if it is still in `version`.
    ///
    /// # Errors
    /// When it is refused, or no hub answers. Without an answer the change may have taken effect all the same.
    pub async fn change(
        &self,
        method: Method,
        path: &[&str],
        body: Body,
        version: Option<u64>,
    ) -> Result<Value, Error> {
        self.change_if(|| self.resource(method.clone(), path, &[]), &body, version).await
    }

    /// Removes what `query` names of the resource at `path`, such as a tag of a file.
    ///
    /// # Errors
    /// When it is refused, or no hub answers. Without an answer it may have been removed all the same.
    pub async fn remove(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Value, Error> {
        self.change_if(|| self.resource(Method::DELETE, path, query), &Body::None, None).await
    }

    /// Writes the file at the path `at` of a workspace, in one request and one version, if it is still in `version`; 0 stands for no file.
    /// `path` is that of the resource: `files/by-path` for JSON, and `files/by-path/content` for a content as it is.
    ///
    /// # Errors
    /// When it is refused, or no hub answers. Without an answer the file may have been written all the same.
    pub async fn put_at(&self, path: &[&str], at: &str, body: Body, version: Option<u64>) -> Result<Value, Error> {
        self.change_if(|| self.resource(Method::PUT, path, &[("path", at)]), &body, version).await
    }

    async fn change_if(
        &self,
        request: impl Fn() -> RequestBuilder,
        body: &Body,
        version: Option<u64>,
    ) -> Result<Value, Error> {
        let attempt = || {
            let request = match version {
                None => request(),
                Some(0) => request().header("if-none-match", "*"),
                Some(version) => request().header("if-match", format!("\"{version}\"")),
            };
            self.whole_of(match body {
                Body::None => request,
                Body::Json(value) => request.json(value),
                Body::Bytes(bytes) => request.header("content-type", "application/octet-stream").body(bytes.clone()),
            })
        };
        self.json(self.repeat(Repeat::Unbegun, attempt).await?)
    }

    /// The list named `key` at `path`, from as many pages as it takes to have `most`.
    ///
    /// # Errors
    /// When it is refused, or no hub answers.
    pub async fn list(
        &self,
        path: &[&str],
        key: &str,
        query: &[(&str, &str)],
        most: usize,
    ) -> Result<Vec<Value>, Error> {
        let (mut items, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let limit = (most - items.len()).clamp(1, PAGE).to_string();
            let mut query = query.to_vec();
            query.push(("limit", &limit));
            if let Some(cursor) = &cursor {
                query.push(("cursor", cursor));
            }
            let mut page = self.get(path, &query).await?;
            if let Some(Value::Array(more)) = page.get_mut(key).map(Value::take) {
                items.extend(more);
            }
            cursor = page.get("next_cursor").and_then(Value::as_str).map(str::to_owned);
            if cursor.is_none() || items.len() >= most {
                items.truncate(most);
                return Ok(items);
            }
        }
    }

    /// Begins to read a resource as bytes; [`Client::broken`] says what an error of the rest means.
    ///
    /// # Errors
    /// When it is refused, or no hub answers.
    pub async fn open(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Response, Error> {
        let attempt = || async { self.accepted(self.send(self.resource(Method::GET, path, query)).await?).await };
        self.repeat(Repeat::Safe, attempt).await
    }

    /// Reads a resource as bytes.
    ///
    /// # Errors
    /// When it is refused, no hub answers, or the answer breaks off.
    pub async fn bytes(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Bytes, Error> {
        let response = self.open(path, query).await?;
        response.bytes().await.map_err(|error| self.broken(&error))
    }

    /// A request for a resource.
    pub(crate) fn resource(&self, method: Method, path: &[&str], query: &[(&str, &str)]) -> RequestBuilder {
        let url = address::of_resource(&self.base.borrow(), path, query);
        self.signed(self.http.request(method, url))
    }

    pub(crate) fn signed(&self, request: RequestBuilder) -> RequestBuilder {
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// The whole answer, when it is a success.
    async fn whole_of(&self, request: RequestBuilder) -> Result<Answer, Error> {
        self.success_of(self.answer(request.timeout(ANSWER)).await?)
    }

    pub(crate) fn success_of(&self, answer: Answer) -> Result<Answer, Error> {
        if answer.status.is_success() { Ok(answer) } else { Err(self.error_of(&answer)) }
    }

    pub(crate) fn json(&self, answer: Answer) -> Result<Value, Error> {
        if answer.bytes.is_empty() {
            return Ok(Value::Null);
        }
        let status = Some(answer.status.as_u16());
        let whole = serde_json::from_slice::<Value>(&answer.bytes);
        let whole = whole.map_err(|_| self.foreign("its answer is not JSON".into(), status))?;
        // A refusal that comes after a long answer has begun has the status of a success.
        let late = whole.as_object().filter(|whole| whole.len() == 1).and_then(|whole| whole.get("error"));
        match late.cloned().map(serde_json::from_value::<Refusal>) {
            Some(Ok(refusal)) => Err(Error::Refused(Box::new(refusal))),
            Some(Err(_)) | None => Ok(whole),
        }
    }

    pub(crate) fn meet(&self) {
        self.met.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_met(&self) -> bool {
        self.met.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_that_cannot_be_one_is_refused_without_showing_it() {
        let odd = Client::new("localhost:1", Some("a\nb"));
        assert!(matches!(odd, Err(Error::Unusable(message)) if !message.contains("a\nb")));
        let blank = Client::new("localhost:1", Some("  ")).map(|client| client.token().map(str::to_owned));
        assert!(matches!(blank, Ok(None)), "{blank:?}");
    }
}
