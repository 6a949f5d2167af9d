//! A client of `/v1`, the routes for clients of agents, in one workspace: threads, turns, permissions.

use crate::{client::Client, failure::CliError, locate};
use ::client::{Source, Watch};
use reqwest::{Method, Url};
use serde_json::Value;

/// The name of this client, which these routes ask for.
const NAME: &str = "buildscale";

/// A client of one workspace.
pub(crate) struct WorkspaceClient {
    pub(crate) client: Client,
    pub(crate) workspace: String,
}

impl WorkspaceClient {
    /// In the workspace that is wanted, else in the first one.
    pub(crate) async fn open(client: Client, wanted: Option<&str>) -> Result<Self, CliError> {
        let workspace = locate::workspace(&client, wanted).await?;
        Ok(Self { client, workspace })
    }

    /// The same for commands that begin something: where there is no workspace at all, one is made.
    pub(crate) async fn open_or_new(client: Client, wanted: Option<&str>) -> Result<Self, CliError> {
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
    use crate::args::Connection;
    use std::{
        io::{self, BufRead, BufReader, Write},
        net::{SocketAddr, TcpListener},
        thread::{self, JoinHandle},
    };

    /// A server that answers each request with the next of `bodies` and closes the connection: the heads of the requests.
    fn answering(bodies: [&'static str; 2]) -> io::Result<(SocketAddr, JoinHandle<io::Result<Vec<String>>>)> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let answers = thread::spawn(move || {
            let mut heads = Vec::new();
            for body in bodies {
                let (mut stream, _) = listener.accept()?;
                let (mut lines, mut head) = (BufReader::new(stream.try_clone()?), String::new());
                // The empty line ends it.
                while lines.read_line(&mut head)? > 2 {}
                write!(
                    stream,
                    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{body}"
                )?;
                heads.push(head);
            }
            Ok(heads)
        });
        Ok((address, answers))
    }

    /// An answer may begin before its events are watched, and the connection may break before the first one comes.
    #[tokio::test]
    async fn events_are_read_from_the_beginning_also_when_the_stream_breaks_before_it()
    -> Result<(), Box<dyn std::error::Error>> {
        let bodies = ["retry: 1\n: nothing yet\n\n", "id: 3\nevent: turn_started\ndata: {}\n\n"];
        let (address, heads) = answering(bodies)?;
        let connection = Connection { url: format!("http://{address}"), token: Some("t".into()), json: false };
        let door = WorkspaceClient { client: Client::new(&connection)?, workspace: "w".into() };
        let mut events = door.watch("/v1/turns/t/events").start();
        let first = events.next_event().await?.ok_or("no event")?;
        assert_eq!((first.id, first.name.as_str()), (3, "turn_started"));
        let heads = heads.join().map_err(|_| "the server panicked")??;
        for head in &heads {
            assert!(head.to_lowercase().contains("\r\nlast-event-id: 0\r\n"), "{head}");
        }
        assert_eq!(heads.len(), 2);
        Ok(())
    }

    #[test]
    fn values_of_a_query_are_escaped() {
        assert_eq!(with_query("/v1/threads", &[("cursor", "a&b=c d")]), "/v1/threads?cursor=a%26b%3Dc+d");
    }
}
