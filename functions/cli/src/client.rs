//! The hub of a command's connection: [`::client::Client`], with failures as commands tell them.

use crate::{args::Connection, failure::Failure};
pub(crate) use ::client::Body;
use ::client::{Address, Watch};
use reqwest::{Method, Response};
use serde_json::Value;

/// A hub, as commands see it.
#[derive(Clone)]
pub(crate) struct Client(::client::Client);

impl Client {
    /// For the hub at the connection's URL. Nothing is sent yet.
    pub(crate) fn new(connection: &Connection) -> Result<Self, Failure> {
        Ok(Self(::client::Client::new(&connection.url, connection.token.as_deref())?))
    }

    /// Reads `path` below `/api/v1`.
    pub(crate) async fn get(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Value, Failure> {
        Ok(self.0.get(path, query).await?)
    }

    /// Commands: it is done once, however often it is sent.
    pub(crate) async fn post(&self, path: &[&str], body: &Value) -> Result<Value, Failure> {
        Ok(self.0.post(path, body).await?)
    }

    /// Changes the resource at `path`, if it is still in `version`.
    pub(crate) async fn change(
        &self,
        method: Method,
        path: &[&str],
        body: Body,
        version: Option<u64>,
    ) -> Result<Value, Failure> {
        Ok(self.0.change(method, path, body, version).await?)
    }

    /// Begins to read `path` as bytes.
    pub(crate) async fn open(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Response, Failure> {
        Ok(self.0.open(path, query).await?)
    }

    /// Reads `path` as bytes.
    pub(crate) async fn bytes(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Vec<u8>, Failure> {
        Ok(self.0.bytes(path, query).await?.to_vec())
    }

    /// The list named `key` at `path`, from as many pages as it takes to have `most`.
    pub(crate) async fn list(
        &self,
        path: &[&str],
        key: &str,
        query: &[(&str, &str)],
        most: usize,
    ) -> Result<Vec<Value>, Failure> {
        Ok(self.0.list(path, key, query, most).await?)
    }

    /// An address for a content; none when it is short.
    pub(crate) async fn address_for(
        &self,
        workspace: &str,
        sha256: &str,
        size: u64,
    ) -> Result<Option<Address>, Failure> {
        Ok(self.0.address_for(workspace, sha256, size).await?)
    }

    /// Sends a content of this length to its address.
    pub(crate) async fn upload(&self, to: &Address, content: reqwest::Body, length: u64) -> Result<(), Failure> {
        Ok(self.0.upload(to, content, length).await?)
    }

    /// Begins to read a long content: from its address, or through the hub where it has none.
    pub(crate) async fn download(&self, workspace: &str, file_id: &str) -> Result<Response, Failure> {
        Ok(self.0.download(workspace, file_id).await?)
    }

    /// Watches events.
    pub(crate) fn watch(&self, source: ::client::Source) -> Watch {
        self.0.watch(source)
    }

    /// The failure that an error of a response that is being read means.
    pub(crate) fn broken(&self, error: &reqwest::Error) -> Failure {
        self.0.broken(error).into()
    }

    /// The address to listen on, where the hub's is one of this machine and plain HTTP.
    pub(crate) fn local_address(&self) -> Option<String> {
        let url = self.0.url();
        let host = url.host_str().filter(|host| matches!(*host, "localhost" | "127.0.0.1" | "[::1]"))?;
        let plain = url.scheme() == "http" && url.path() == "/";
        plain.then(|| format!("{host}:{}", url.port().unwrap_or(80)))
    }
}
