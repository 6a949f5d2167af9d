//! The hub's HTTP API, as far as every command needs it: addresses, credentials, errors, pages, and patience.

use crate::{
    args::Connection,
    failure::{Failure, Refusal},
    login::Credential,
    value,
};
use ports::{Clock, SystemClock};
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url};
use serde_json::Value;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;

/// How long an answer may take that is no stream.
const ANSWER: Duration = Duration::from_secs(60);
/// The hub writes to a stream at least every 15 s; one that is silent for longer is dead.
const SILENCE: Duration = Duration::from_secs(45);
/// How long a command is tried again when a hub that was there is gone: it may be restarting.
const PATIENCE: Duration = Duration::from_secs(10);

/// A hub, as its clients see it.
#[derive(Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    /// For requests that are sent, or answered, for longer than others may take.
    sending: reqwest::Client,
    base: Url,
    credential: Credential,
    /// Whether the hub has answered before.
    met: Arc<AtomicBool>,
}

impl Client {
    /// For the hub at the connection's URL. Nothing is sent yet.
    pub(crate) fn new(connection: &Connection) -> Result<Self, Failure> {
        let base = base_url(&connection.url)?;
        let credential = Credential::of(connection, &base)?;
        let build = |patience: Option<Duration>| {
            let mut http = reqwest::Client::builder()
                .user_agent(concat!("buildscale/", env!("CARGO_PKG_VERSION")))
                .connect_timeout(Duration::from_secs(5))
                .redirect(reqwest::redirect::Policy::none());
            if let Some(patience) = patience {
                http = http.read_timeout(patience);
            }
            if matches!(base.host_str(), Some("localhost" | "127.0.0.1" | "[::1]")) {
                http = http.no_proxy(); // a proxy would look for the hub on its own machine
            }
            if base.scheme() == "http" {
                http = http.tls_certs_only([]); // saves reading the system's certificates, which a container may not have
            }
            http.build().map_err(|error| foreign(&base, causes(&error)))
        };
        let (http, sending) = (build(Some(SILENCE))?, build(None)?);
        Ok(Self { http, sending, base, credential, met: Arc::default() })
    }

    /// Reads `path` below `/api/v1`.
    pub(crate) async fn get(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Value, Failure> {
        let request = self.request(Method::GET, path, query).timeout(ANSWER);
        self.json(self.send(request).await?).await
    }

    /// Commands. The idempotency key lets it be sent again when the hub goes away before it has answered: it is done once.
    pub(crate) async fn post(&self, path: &[&str], body: &Value) -> Result<Value, Failure> {
        let key = SystemClock.id().to_string();
        let give_up = Instant::now() + PATIENCE;
        let mut pause = Duration::from_millis(100);
        loop {
            let request =
                self.request(Method::POST, path, &[]).header("idempotency-key", &key).json(body).timeout(ANSWER);
            let answer = match self.send(request).await {
                Ok(response) => self.json(response).await,
                Err(failure) => Err(failure),
            };
            match answer {
                Err(Failure::Unreachable { .. })
                    if self.met.load(Ordering::Relaxed) && Instant::now() + pause < give_up =>
                {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(Duration::from_secs(1));
                }
                answer => return answer,
            }
        }
    }

    /// The same for a command that is sent once, and whose answer may take as long as this.
    pub(crate) async fn post_once(&self, path: &[&str], body: &Value, patience: Duration) -> Result<Value, Failure> {
        let request = self.request(Method::POST, path, &[]).json(body).build().map_err(|error| self.broken(&error))?;
        let request = RequestBuilder::from_parts(self.sending.clone(), request).timeout(patience);
        self.json(self.send(request).await?).await
    }

    /// Changes the resource at `path`, if it is still in `version`.
    pub(crate) async fn change(
        &self,
        method: Method,
        path: &[&str],
        body: Body,
        version: Option<u64>,
    ) -> Result<Value, Failure> {
        let mut request = self.request(method, path, &[]).timeout(ANSWER);
        if let Some(version) = version {
            request = request.header("if-match", format!("\"{version}\""));
        }
        self.json(self.send(body.of(request)).await?).await
    }

    /// Writes the file at `at` in a workspace, in one request and one version, if it is still in `version`; 0 is for no file.
    pub(crate) async fn put_at(
        &self,
        path: &[&str],
        at: &str,
        body: Body,
        version: Option<u64>,
    ) -> Result<Value, Failure> {
        let request = self.request(Method::PUT, path, &[("path", at)]).timeout(ANSWER);
        let request = match version {
            None => request,
            Some(0) => request.header("if-none-match", "*"),
            Some(version) => request.header("if-match", format!("\"{version}\"")),
        };
        self.json(self.send(body.of(request)).await?).await
    }

    /// Begins to read `path` as bytes.
    pub(crate) async fn open(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Response, Failure> {
        self.send(self.request(Method::GET, path, query)).await
    }

    /// Reads `path` as bytes.
    pub(crate) async fn bytes(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Vec<u8>, Failure> {
        let response = self.open(path, query).await?;
        Ok(response.bytes().await.map_err(|error| self.broken(&error))?.to_vec())
    }

    /// Sends a request that the server has given, to wherever it says and without the token. A content that is there already is as good.
    /// `content` is its body, with its length in bytes.
    pub(crate) async fn transfer(
        &self,
        request: &Value,
        content: Option<(reqwest::Body, u64)>,
    ) -> Result<Response, Failure> {
        let method = value::text(request, "method").parse::<Method>();
        // A path is one on the server itself.
        let url = self.base.join(value::text(request, "url"));
        let (Ok(method), Ok(url)) = (method, url) else {
            return Err(foreign(&self.base, "its address of a content is none".into()));
        };
        let mut sent = match content {
            Some((body, length)) => self.sending.request(method, url).header("content-length", length).body(body),
            None => self.http.request(method, url),
        };
        for (name, value) in request.get("headers").and_then(Value::as_object).into_iter().flatten() {
            // The length is there already, as a client sends it.
            if !name.eq_ignore_ascii_case("content-length") {
                sent = sent.header(name, value.as_str().unwrap_or_default());
            }
        }
        let response = sent.send().await.map_err(|error| self.broken(&error))?;
        match response.status().as_u16() {
            200..300 | 412 => Ok(response),
            status => Err(self
                .refusal(response)
                .await
                .unwrap_or_else(|| foreign(&self.base, format!("where its contents are says {status}")))),
        }
    }

    /// Begins to read the events at `path`, after the one with this number; none when no event will come after it.
    pub(crate) async fn events(&self, path: &[&str], after: Option<u64>) -> Result<Option<Response>, Failure> {
        let mut request = self.request(Method::GET, path, &[]).header("accept", "text/event-stream");
        if let Some(after) = after {
            request = request.header("last-event-id", after);
        }
        let response = self.send(request).await?;
        if response.status() == StatusCode::NO_CONTENT {
            return Ok(None);
        }
        let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind.starts_with("text/event-stream") {
            Ok(Some(response))
        } else {
            Err(foreign(&self.base, format!("its events are {kind:?}")))
        }
    }

    /// The list named `key` at `path`, from as many pages as it takes to have `most`.
    pub(crate) async fn list(
        &self,
        path: &[&str],
        key: &str,
        query: &[(&str, &str)],
        most: usize,
    ) -> Result<Vec<Value>, Failure> {
        let (mut items, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let limit = (most - items.len()).clamp(1, 200).to_string();
            let mut query = query.to_vec();
            query.push(("limit", &limit));
            if let Some(cursor) = &cursor {
                query.push(("cursor", cursor));
            }
            let page = self.get(path, &query).await?;
            items.extend_from_slice(value::list(&page, key));
            cursor = page.get("next_cursor").and_then(Value::as_str).map(str::to_owned);
            if cursor.is_none() || items.len() >= most {
                items.truncate(most);
                return Ok(items);
            }
        }
    }

    /// The failure that an error of a response that is being read means.
    pub(crate) fn broken(&self, error: &reqwest::Error) -> Failure {
        Failure::Unreachable { url: self.shown_url(), reason: causes(error) }
    }

    fn request(&self, method: Method, path: &[&str], query: &[(&str, &str)]) -> RequestBuilder {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(["api", "v1"]).extend(path);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        self.http.request(method, url)
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, Failure> {
        let request = match self.credential.token().await? {
            Some(token) => request.bearer_auth(token.expose()),
            None => request,
        };
        let response = request.send().await.map_err(|error| self.broken(&error))?;
        self.met.store(true, Ordering::Relaxed);
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let refusal = self.refusal(response).await;
        Err(refusal.unwrap_or_else(|| foreign(&self.base, format!("it answers {status}"))))
    }

    /// The refusal of the hub; none when another server answered.
    async fn refusal(&self, response: Response) -> Option<Failure> {
        let status = response.status().as_u16();
        let text = match response.text().await {
            Ok(text) => text,
            Err(error) => return Some(self.broken(&error)),
        };
        let inside = serde_json::from_str::<Value>(&text).ok()?.get_mut("error").map(Value::take)?;
        let refusal = serde_json::from_value::<Refusal>(inside).ok()?;
        Some(Failure::Refused(Box::new(Refusal { status, ..refusal })))
    }

    async fn json(&self, response: Response) -> Result<Value, Failure> {
        let text = response.text().await.map_err(|error| self.broken(&error))?;
        if text.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_str(&text).map_err(|_| foreign(&self.base, "its answer is not JSON".into()))
    }

    /// The address to listen on, where the hub's is one of this machine and plain HTTP.
    pub(crate) fn local_address(&self) -> Option<String> {
        let is_here = matches!(self.base.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
        let plain = is_here && self.base.scheme() == "http" && self.base.path() == "/";
        plain.then(|| format!("{}:{}", self.base.host_str().unwrap_or_default(), self.base.port().unwrap_or(80)))
    }

    fn shown_url(&self) -> String {
        self.base.as_str().trim_end_matches('/').to_owned()
    }
}

/// The body of a request.
pub(crate) enum Body {
    /// Nothing.
    None,
    /// JSON.
    Json(Value),
    /// A content as it is.
    Bytes(Vec<u8>),
}

impl Body {
    fn of(self, request: RequestBuilder) -> RequestBuilder {
        match self {
            Self::None => request,
            Self::Json(value) => request.json(&value),
            Self::Bytes(bytes) => request.header("content-type", "application/octet-stream").body(bytes),
        }
    }
}

/// The URL that `text` means; `http` when it names no scheme, as in `localhost:8686`.
pub(crate) fn base_url(text: &str) -> Result<Url, Failure> {
    let text = text.trim();
    let full = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    match Url::parse(&full) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Ok(url),
        Ok(_) => Err(Failure::Usage(format!("{text:?} is not the URL of a hub: it begins with http:// or https://"))),
        Err(error) => Err(Failure::Usage(format!("{text:?} is not the URL of a hub: {error}"))),
    }
}

fn foreign(base: &Url, reason: String) -> Failure {
    Failure::Foreign { url: base.as_str().trim_end_matches('/').to_owned(), reason }
}

/// The innermost cause of an error of the HTTP library, whose own words name the URL once more.
pub(crate) fn causes(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "no answer in time".into();
    }
    let mut inner: &dyn std::error::Error = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let check = |text: &str, expected: Option<&str>| {
            let url = base_url(text).ok();
            assert_eq!(url.as_ref().map(Url::as_str), expected, "{text}");
        };
        check("http://127.0.0.1:8686", Some("http://127.0.0.1:8686/"));
        check(" localhost:8686 ", Some("http://localhost:8686/"));
        check("https://example.org/hub/", Some("https://example.org/hub/"));
        check("ftp://example.org", None);
        check("file:///etc/passwd", None);
        check("", None);
    }

    #[test]
    fn typed_names_stay_one_segment_of_the_path() -> Result<(), Failure> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let connection = Connection { url: "localhost:1/hub/".into(), token: Some("t".into()), json: false };
        let client = Client::new(&connection)?;
        let request = client.request(Method::GET, &["workspaces", "../x?y"], &[("path", "/a b&c")]).build();
        let url = request.map(|request| request.url().to_string()).unwrap_or_default();
        assert_eq!(url, "http://localhost:1/hub/api/v1/workspaces/..%2Fx%3Fy?path=%2Fa+b%26c");
        let odd = Connection { url: "localhost:1".into(), token: Some("a\nb".into()), json: false };
        assert!(matches!(Client::new(&odd), Err(Failure::Usage(message)) if !message.contains("a\nb")));
        Ok(())
    }
}
