//! A sandbox on another machine, over HTTP ([`crate::wire`]).
//!
//! It runs programs of others, so one that was taken over may answer anything: each answer has a bound, and is refused above it.

mod agents;
mod lines;
mod pipes;

use crate::{
    http::{self, CONNECT},
    wire::{self, Failed, Health, Marked, Missing, Search},
};
use agents::{RemoteAgents, SeenTurn};
use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use domain::{CallId, ChatId, Sha256, WorkspaceId};
use parking_lot::Mutex;
use pipes::RemotePipes;
use ports::{Agents, Error, Exec, Execution, Manifest, Mirrored, Pipes, Reservation, Reserve, Result, Sandbox};
use reqwest::{
    Method, RequestBuilder, Response, StatusCode,
    header::{self, HeaderValue},
};
use serde::de::DeserializeOwned;
use std::{collections::HashMap, sync::Arc, time::Duration};

/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(30);
/// How long a mirror may take: it reads contents from S3 meanwhile, and goes on after its caller has left.
const APPLY: Duration = Duration::from_secs(300);
/// How many bytes of contents are sent at once.
const SENT_AT_ONCE: usize = wire::MAX_BODY / 4;

/// The longest error, in bytes: a few sentences, with the names that a caller gave.
const LONGEST_ERROR: usize = 1 << 20;
/// The pause after an answer with nothing in it. A sandbox waits for news before it gives such an answer; this process would ask one that does
/// not wait again and again.
const EMPTY: Duration = Duration::from_millis(200);

/// A sandbox that is reached by its address and a token.
#[derive(Clone)]
pub struct Remote(Arc<Client>);

struct Client {
    http: reqwest::Client,
    /// `http://{address}/workspaces/{id}`
    url: String,
    health: String,
    token: HeaderValue,
    /// The updates that each thread's turn has had here.
    seen: Mutex<HashMap<ChatId, SeenTurn>>,
}

impl Remote {
    /// At `base_url`, such as `http://10.0.1.7:8080`, for a workspace. Sends no request.
    ///
    /// # Errors
    /// `Invalid` for a token that cannot be sent.
    pub fn new(base_url: impl AsRef<str>, token: impl AsRef<str>, workspace: WorkspaceId) -> Result<Self> {
        let invalid =
            |error: &dyn std::fmt::Display| Error::Invalid(format!("a sandbox cannot be reached so: {error}"));
        let http = http::client().build().map_err(|error| invalid(&error))?;
        let mut token = HeaderValue::try_from(format!("Bearer {}", token.as_ref())).map_err(|error| invalid(&error))?;
        token.set_sensitive(true);
        let base = base_url.as_ref().trim_end_matches('/');
        let (url, health) = (format!("{base}/workspaces/{workspace}"), format!("{base}/health"));
        Ok(Self(Arc::new(Client { http, url, health, token, seen: Mutex::default() })))
    }

    /// How it is. This counts as no use of it.
    ///
    /// # Errors
    /// `Unavailable` when it does not answer.
    pub async fn health(&self) -> Result<Health> {
        let response = self.0.http.get(&self.0.health).timeout(CONNECT * 2).send().await.map_err(away)?;
        read(answered(response).await?).await
    }
}

/// It did not answer. The address is in no message: readers have no use for it.
fn away(error: reqwest::Error) -> Error {
    Error::unavailable("the sandbox", error.without_url())
}

async fn answered(response: Response) -> Result<Response> {
    judged(response).await?.map_err(wire::heard)
}

/// An answer, or the error of the sandbox.
async fn judged(response: Response) -> Result<std::result::Result<Response, domain::Error>> {
    if response.status().is_success() {
        return Ok(Ok(response));
    }
    let status = response.status();
    let body = body_of(response, LONGEST_ERROR).await?;
    match serde_json::from_slice::<Failed>(&body) {
        Ok(failed) => Ok(Err(failed.taken_in())),
        Err(_) => Err(Error::unavailable("the sandbox", format!("it answered {status}"))),
    }
}

async fn read<T: DeserializeOwned>(response: Response) -> Result<T> {
    parse_body(&body_of(response, wire::MAX_BODY).await?)
}

fn parse_body<T: DeserializeOwned>(body: &[u8]) -> Result<T> {
    serde_json::from_slice(body).map_err(|error| Error::unavailable("the sandbox", error))
}

/// The body of an answer, of at most `most` bytes.
async fn body_of(mut response: Response, most: usize) -> Result<Bytes> {
    let too_long = || Error::Damaged(format!("a sandbox answered with more than {} MiB", most >> 20));
    if response.content_length().is_some_and(|length| length > most as u64) {
        return Err(too_long());
    }
    let mut body = BytesMut::new();
    while let Some(piece) = response.chunk().await.map_err(away)? {
        if body.len() + piece.len() > most {
            return Err(too_long());
        }
        body.extend_from_slice(&piece);
    }
    Ok(body.freeze())
}

impl Client {
    fn request(&self, method: Method, path: &str, patience: Option<Duration>) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.url));
        let request = request.header(header::AUTHORIZATION, self.token.clone());
        match patience {
            Some(patience) => request.timeout(patience),
            None => request,
        }
    }

    async fn get(&self, path: &str) -> Result<Response> {
        self.request(Method::GET, path, Some(ANSWER)).send().await.map_err(away)
    }

    async fn post(&self, path: &str, patience: Duration, body: impl Into<reqwest::Body>) -> Result<Response> {
        let request = self.request(Method::POST, path, Some(patience)).header(header::CONTENT_TYPE, "application/json");
        answered(request.body(body).send().await.map_err(away)?).await
    }

    /// Sends a call as JSON, with a content behind it.
    async fn post_packed(
        &self,
        path: &str,
        patience: Duration,
        call: &impl serde::Serialize,
        content: Option<Bytes>,
    ) -> Result<Response> {
        let parts: Vec<Bytes> = [Some(Bytes::from(json(call)?)), content].into_iter().flatten().collect();
        let request = self.request(Method::POST, path, Some(patience)).body(wire::packed(&parts));
        answered(request.send().await.map_err(away)?).await
    }
}

fn json(value: &impl serde::Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|error| Error::Invalid(error.to_string()))
}

#[async_trait]
impl Sandbox for Remote {
    fn mirror(&self) -> Option<&dyn Mirrored> {
        Some(self)
    }

    fn agents(&self) -> Option<Arc<dyn Agents>> {
        Some(Arc::new(RemoteAgents(self.0.clone())))
    }

    fn pipes(&self) -> Option<Arc<dyn Pipes>> {
        Some(Arc::new(RemotePipes(self.0.clone())))
    }

    async fn reserve(&self, mut asked: Reserve) -> Result<Reservation> {
        asked.wait = asked.wait.min(wire::LONGEST_WAIT);
        let patience = asked.wait + ANSWER;
        read(self.0.post("/places", patience, json(&asked)?).await?).await
    }

    async fn exec(&self, command: Exec) -> Result<Execution> {
        lines::open(self.0.clone(), command).await
    }

    async fn kill(&self, call: CallId) -> Result<()> {
        self.0.post(&format!("/exec/{call}/kill"), ANSWER, "").await.map(drop)
    }
}

#[async_trait]
impl Mirrored for Remote {
    async fn mark(&self) -> Result<Option<String>> {
        let marked: Marked = read(answered(self.0.get("/manifest").await?).await?).await?;
        Ok(marked.mark)
    }

    async fn apply(&self, manifest: Manifest) -> Result<Vec<Sha256>> {
        let missing: Missing = read(self.0.post("/manifest", APPLY, json(&manifest)?).await?).await?;
        Ok(missing.missing)
    }

    async fn provide(&self, contents: Vec<Bytes>) -> Result<()> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        for content in contents {
            if bytes + content.len() > SENT_AT_ONCE && !batch.is_empty() {
                self.0.post("/contents", ANSWER, wire::packed(&std::mem::take(&mut batch))).await?;
                bytes = 0;
            }
            bytes += content.len();
            batch.push(content);
        }
        if !batch.is_empty() {
            self.0.post("/contents", ANSWER, wire::packed(&batch)).await?;
        }
        Ok(())
    }

    async fn content(&self, digest: Sha256) -> Result<Option<Bytes>> {
        let response = self.0.get(&format!("/contents/{digest}")).await?;
        if response.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        let content = body_of(answered(response).await?, wire::MAX_BODY).await?;
        if Sha256::of(&content) != digest {
            return Err(Error::Damaged(format!("a sandbox gave another content than {digest}")));
        }
        Ok(Some(content))
    }

    async fn search(&self, tool: &str, args: &str) -> Result<String> {
        let search = Search { tool: tool.into(), args: args.into() };
        let found = body_of(self.0.post("/search", ANSWER * 2, json(&search)?).await?, wire::MAX_BODY).await?;
        String::from_utf8(found.into()).map_err(|error| Error::unavailable("the sandbox", error))
    }
}
