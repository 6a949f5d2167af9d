//! The hub's door for clients of agents, `/v1`: threads, turns, permissions.

use crate::{client::Client, failure::CliError, locate};
use ::client::{Source, Watch};
use reqwest::{Method, Url};
use serde_json::Value;

/// The name of this client, which the door asks for.
const NAME: &str = "buildscale";

/// The door, in one workspace.
pub(crate) struct Door {
    pub(crate) client: Client,
    pub(crate) workspace: String,
}

impl Door {
    /// In the workspace that is wanted, else in the first one. Where there is none at all, one is made.
    pub(crate) async fn open(client: Client, wanted: Option<&str>) -> Result<Self, CliError> {
        let workspace = locate::workspace_or_new(&client, wanted).await?;
        Ok(Self { client, workspace })
    }

    /// Makes a request once: the JSON of its answer.
    pub(crate) async fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, CliError> {
        self.client.ask(method, path, &self.headers(), body).await
    }

    fn headers(&self) -> [(&str, &str); 2] {
        [("x-client-id", NAME), ("x-workspace-id", self.workspace.as_str())]
    }

    /// Reads.
    pub(crate) async fn get(&self, path: &str) -> Result<Value, CliError> {
        self.ask(Method::GET, path, None).await
    }

    /// Commands.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Value, CliError> {
        self.ask(Method::POST, path, Some(body)).await
    }

    /// Commands by a form: its `Content-Type`, and its bytes.
    pub(crate) async fn post_form(&self, path: &str, (kind, body): (String, Vec<u8>)) -> Result<Value, CliError> {
        self.client.send(path, &self.headers(), (&kind, body)).await
    }

    /// Watches the events at a path from the first one on, across broken connections: also across one that breaks before the first event.
    pub(crate) fn watch(&self, path: &str) -> Watch {
        let query = [("clientId", NAME), ("workspaceId", self.workspace.as_str())];
        self.client.watch(Source::Path(with_query(path, &query))).after(0)
    }
}

/// A path with a query, escaped.
pub(crate) fn with_query(path: &str, query: &[(&str, &str)]) -> String {
    // The host is left out again.
    match Url::parse_with_params(&format!("http://hub{path}"), query) {
        Ok(url) => format!("{}?{}", url.path(), url.query().unwrap_or_default()),
        Err(_) => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_a_query_are_escaped() {
        assert_eq!(with_query("/v1/threads", &[("cursor", "a&b=c d")]), "/v1/threads?cursor=a%26b%3Dc+d");
    }
}
