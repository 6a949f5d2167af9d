//! The hub of a command's connection: [`::client::Client`], with the token of a login and failures as commands tell them.

use crate::{
    args::Connection,
    failure::{CliError, Exit},
    login::Login,
};
pub(crate) use ::client::Body;
use ::client::{Address, UploadPart, Watch};
use reqwest::{Method, Response};
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, sleep};

/// How long a command waits for something that the hub has accepted and does by itself.
const DONE_WITHIN: Duration = Duration::from_secs(5);
/// How long it waits between two looks.
const LOOKED_EVERY: Duration = Duration::from_millis(100);

/// Looks again and again, with `every` between two looks, until a look finds something. None when `patience` is over before.
pub(crate) async fn until<T>(
    patience: Duration,
    every: Duration,
    look: impl AsyncFn() -> Result<Option<T>, CliError>,
) -> Result<Option<T>, CliError> {
    let give_up = Instant::now() + patience;
    loop {
        let found = look().await?;
        if found.is_some() || Instant::now() >= give_up {
            return Ok(found);
        }
        sleep(every).await;
    }
}

/// A hub, as commands see it.
#[derive(Clone)]
pub(crate) struct Client {
    hub: ::client::Client,
    /// None where a token is given: an option or a variable goes before a login.
    login: Option<Arc<Login>>,
}

impl Client {
    /// For the hub at the connection's URL. Nothing is sent yet.
    pub(crate) fn new(connection: &Connection) -> Result<Self, CliError> {
        let hub = ::client::Client::new(&connection.url, connection.token.as_deref())?;
        let login = if hub.token().is_some() { None } else { Login::at(&hub.url()).map(Arc::new) };
        Ok(Self { hub, login })
    }

    /// The hub, with the token for a request that is sent now: that of a login changes.
    async fn hub(&self) -> Result<::client::Client, CliError> {
        let Some(login) = &self.login else { return Ok(self.hub.clone()) };
        let token = login.token().await?;
        Ok(self.hub.with_token(token.as_ref().map(ports::Secret::expose))?)
    }

    /// Reads `path` below `/api/v1`.
    pub(crate) async fn get(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Value, CliError> {
        Ok(self.hub().await?.get(path, query).await?)
    }

    /// Reads `path` until it fits, for as long as a command waits for something that the hub has accepted; where there is no such resource,
    /// `fits` gets none. False when it did not come to that in time.
    pub(crate) async fn becomes(&self, path: &[&str], fits: impl Fn(Option<&Value>) -> bool) -> Result<bool, CliError> {
        let look = async || {
            let found = match self.get(path, &[]).await {
                Ok(found) => Some(found),
                Err(failure) if matches!(failure.exit(), Exit::NotFound) => None,
                Err(failure) => return Err(failure),
            };
            Ok(fits(found.as_ref()).then_some(()))
        };
        Ok(until(DONE_WITHIN, LOOKED_EVERY, look).await?.is_some())
    }

    /// Whether the hub can work, and which parts need its operator.
    pub(crate) async fn ready(&self) -> Result<Value, CliError> {
        Ok(self.hub().await?.ready().await?)
    }

    /// Commands: it is done once, however often it is sent.
    pub(crate) async fn post(&self, path: &[&str], body: &Value) -> Result<Value, CliError> {
        Ok(self.hub().await?.post(path, body).await?)
    }

    /// The same for a command that is sent once, and whose answer may take as long as this.
    pub(crate) async fn post_once(&self, path: &[&str], body: &Value, patience: Duration) -> Result<Value, CliError> {
        Ok(self.hub().await?.post_once(path, body, patience).await?)
    }

    /// Makes a request of any path of the hub once, with these headers.
    pub(crate) async fn ask(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Result<Value, CliError> {
        let hub = self.hub().await?;
        let request =
            headers.iter().fold(hub.request(method, path), |request, (name, value)| request.header(*name, *value));
        Ok(hub.ask(if let Some(body) = body { request.json(body) } else { request }).await?)
    }

    /// Sends a body of this type to any path of the hub once, with these headers.
    pub(crate) async fn send(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        (kind, body): (&str, Vec<u8>),
    ) -> Result<Value, CliError> {
        let hub = self.hub().await?;
        let request = hub.request(Method::POST, path).header("content-type", kind).body(body);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        Ok(hub.ask(request).await?)
    }

    /// Changes the resource at `path`, if it is still in `version`.
    pub(crate) async fn change(
        &self,
        method: Method,
        path: &[&str],
        body: Body,
        version: Option<u64>,
    ) -> Result<Value, CliError> {
        Ok(self.hub().await?.change(method, path, body, version).await?)
    }

    /// Removes what `query` names of the resource at `path`.
    pub(crate) async fn remove(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Value, CliError> {
        Ok(self.hub().await?.remove(path, query).await?)
    }

    /// Writes the file at `at` in a workspace, in one request and one version, if it is still in `version`; 0 is for no file.
    pub(crate) async fn put_at(
        &self,
        path: &[&str],
        at: &str,
        body: Body,
        version: Option<u64>,
    ) -> Result<Value, CliError> {
        Ok(self.hub().await?.put_at(path, at, body, version).await?)
    }

    /// Begins to read `path` as bytes.
    pub(crate) async fn open(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Response, CliError> {
        Ok(self.hub().await?.open(path, query).await?)
    }

    /// Reads `path` as bytes.
    pub(crate) async fn bytes(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Vec<u8>, CliError> {
        Ok(self.hub().await?.bytes(path, query).await?.to_vec())
    }

    /// The list named `key` at `path`, from as many pages as it takes to have `most`.
    pub(crate) async fn list(
        &self,
        path: &[&str],
        key: &str,
        query: &[(&str, &str)],
        most: usize,
    ) -> Result<Vec<Value>, CliError> {
        Ok(self.hub().await?.list(path, key, query, most).await?)
    }

    /// The first `most` of such a list, and whether there are more.
    pub(crate) async fn first(
        &self,
        path: &[&str],
        key: &str,
        query: &[(&str, &str)],
        most: usize,
    ) -> Result<(Vec<Value>, bool), CliError> {
        let mut found = self.list(path, key, query, most.saturating_add(1)).await?;
        let has_more = found.len() > most;
        found.truncate(most);
        Ok((found, has_more))
    }

    /// An address for a content; none when it is short.
    pub(crate) async fn address_for(
        &self,
        workspace: &str,
        sha256: &str,
        size: u64,
    ) -> Result<Option<Address>, CliError> {
        Ok(self.hub().await?.address_for(workspace, sha256, size).await?)
    }

    /// Sends a content of this length to its address.
    pub(crate) async fn upload(&self, to: &Address, content: reqwest::Body, length: u64) -> Result<(), CliError> {
        Ok(self.hub().await?.upload(to, content, length).await?)
    }

    /// Sends a content part by part, from where an earlier attempt ended. False where the hub takes it whole.
    pub(crate) async fn upload_in_parts<F: Future<Output = Result<reqwest::Body, CliError>>>(
        &self,
        workspace: &str,
        content: (&str, u64),
        parts: &[String],
        bytes: impl Fn(u64, UploadPart) -> F,
    ) -> Result<bool, CliError> {
        self.hub().await?.upload_in_parts(workspace, content, parts, bytes).await
    }

    /// Makes a workspace from an archive, or a history of Git, of this length.
    pub(crate) async fn import(
        &self,
        query: &[(&str, &str)],
        archive: reqwest::Body,
        length: u64,
    ) -> Result<Value, CliError> {
        Ok(self.hub().await?.import(query, archive, length).await?)
    }

    /// Begins to read a long content: from its address, or through the hub where it has none.
    pub(crate) async fn download(&self, workspace: &str, file_id: &str) -> Result<Response, CliError> {
        Ok(self.hub().await?.download(workspace, file_id).await?)
    }

    /// Watches events; each connection has the token of its moment.
    pub(crate) fn watch(&self, source: ::client::Source) -> Watch {
        let watch = self.hub.watch(source);
        match &self.login {
            Some(login) => watch.with_tokens(login.clone()),
            None => watch,
        }
    }

    /// The failure that an error of a response that is being read means.
    pub(crate) fn broken(&self, error: &reqwest::Error) -> CliError {
        self.hub.broken(error).into()
    }

    /// The address to listen on, where the hub's is one of this machine and plain HTTP.
    pub(crate) fn local_address(&self) -> Option<String> {
        let url = self.hub.url();
        let host = url.host_str().filter(|host| matches!(*host, "localhost" | "127.0.0.1" | "[::1]"))?;
        let plain = url.scheme() == "http" && url.path() == "/";
        plain.then(|| format!("{host}:{}", url.port().unwrap_or(80)))
    }
}
