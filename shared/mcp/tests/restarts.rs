//! A server over HTTP that is started again: its sessions are gone, and it may have other tools. And one that refuses calls by a status.

#![expect(clippy::unwrap_used, reason = "tests")]

use async_trait::async_trait;
use buildscale_mcp::{Egress, ServerConfig, ServerDependencies, Servers};
use domain::{Code, WorkspaceId};
use ports::{Recipient, Secret, SecretRef, Secrets, ServersOf, ToolServers};
use serde_json::{Map, Value, json};
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

struct Anywhere;

impl Egress for Anywhere {
    fn client(&self, _: &str, _: bool) -> Result<reqwest::Client, String> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        reqwest::Client::builder().no_proxy().build().map_err(|error| error.to_string())
    }
}

struct Nothing;

#[async_trait]
impl Secrets for Nothing {
    async fn get(&self, _: &SecretRef, _: Recipient<'_>) -> ports::Result<Option<Secret>> {
        Ok(None)
    }
}

fn servers(url: &str) -> Servers {
    let config = ServerConfig { url: Some(url.to_owned()), allow_private: true, ..ServerConfig::default() };
    let parts = ServerDependencies {
        confined: None,
        children: None,
        egress: Arc::new(Anywhere),
        secrets: Arc::new(Nothing),
        host_secrets: Arc::new(Nothing),
        accounts: None,
    };
    Servers::new(&BTreeMap::from([("r".to_owned(), config)]), parts).unwrap()
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::trim))
}

fn result(message: &Value, life: &str) -> Value {
    match message["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": message["params"]["protocolVersion"], "capabilities": { "tools": {} },
            "serverInfo": { "name": "r", "version": life },
        }),
        Some("tools/list") => {
            json!({ "tools": [{ "name": format!("tool-{life}"), "inputSchema": { "type": "object" } }] })
        }
        _ => json!({ "content": [{ "type": "text", "text": format!("life {life}") }] }),
    }
}

/// Answers one request: a call with the argument `status` by that. Sessions of an earlier life of the server are gone.
async fn answer(mut stream: TcpStream, life: Arc<AtomicU64>) {
    let (mut asked, mut piece) = (Vec::new(), [0; 4_096]);
    let (head, body) = loop {
        let length = stream.read(&mut piece).await.unwrap_or_default();
        if length == 0 {
            return;
        }
        asked.extend_from_slice(&piece[..length]);
        let text = String::from_utf8_lossy(&asked).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let head = head.to_ascii_lowercase();
        let length: usize = header(&head, "content-length").map_or(0, |length| length.parse().unwrap());
        if body.len() >= length {
            break (head, body.to_owned());
        }
    };
    let life = life.load(Ordering::SeqCst).to_string();
    let message: Value = serde_json::from_str(&body).unwrap_or_default();
    let is_known = message["method"] == "initialize" || header(&head, "mcp-session-id") == Some(life.as_str());
    let refused_by = message["params"]["arguments"]["status"].as_str().unwrap_or_default();
    let (status, result) = match () {
        () if !head.starts_with("post") => ("405 Method Not Allowed", None),
        () if !is_known => ("404 Not Found", None),
        () if message["id"].is_null() => ("202 Accepted", None),
        () if !refused_by.is_empty() => (refused_by, None),
        () => ("200 OK", Some(result(&message, &life))),
    };
    let body = result.map_or_else(String::new, |result| {
        json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string()
    });
    let told =
        format!("content-type: application/json\r\nmcp-session-id: {life}\r\nretry-after: 7\r\nconnection: close");
    let reply = format!("HTTP/1.1 {status}\r\n{told}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    // A client that is gone reads nothing.
    drop(stream.write_all(reply.as_bytes()).await);
}

/// A server in its first life, its workspace, and the number of its life.
async fn started() -> (Servers, ServersOf, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let life = Arc::new(AtomicU64::new(1));
    let lives = life.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream, lives.clone()));
        }
    });
    (servers(&url), ServersOf::new(WorkspaceId::from_key("tests", "restarts")), life)
}

#[tokio::test]
async fn a_call_that_is_refused_by_a_status_is_told_so_and_its_server_stays() {
    let (servers, of, _) = started().await;
    let call = async |status: Value| {
        let args = Map::from_iter([("status".to_owned(), status)]);
        servers.call(&of, "mcp__r__tool-1", args).await.map(|answer| answer.text)
    };
    for (status, code, word) in [
        ("429 Too Many Requests", Code::RateLimited, "takes no more calls now (HTTP 429)"),
        ("503 Service Unavailable", Code::UpstreamUnavailable, "has failed (HTTP 503)"),
        ("401 Unauthorized", Code::UpstreamRefused, "refuses our credentials (HTTP 401)"),
        ("400 Bad Request", Code::Unprocessable, "refuses the call (HTTP 400)"),
    ] {
        let refused = call(status.into()).await.unwrap_err();
        assert!(refused.code == code && refused.message.contains(word), "{refused:?}");
        let after = refused.details.get("retry_after_ms").and_then(Value::as_u64);
        assert_eq!(
            after,
            matches!(code, Code::RateLimited | Code::UpstreamUnavailable).then_some(7_000),
            "{refused:?}"
        );
        assert_eq!(call(Value::Null).await.unwrap(), "life 1", "{status}");
    }
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_told_as_such_and_not_as_a_tool_that_is_missing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    drop(listener);
    let (servers, of) = (servers(&url), ServersOf::new(WorkspaceId::from_key("tests", "away")));
    let away = servers.call(&of, "mcp__r__tool-1", Map::new()).await.unwrap_err();
    assert_eq!(away.code, Code::UpstreamUnavailable, "{away:?}");
    assert!(away.message.contains("was not called") && away.hint.is_some(), "{away:?}");
    let none = servers.call(&of, "mcp__other__tool", Map::new()).await.unwrap_err();
    assert_eq!(none.code, Code::NotFound, "{none:?}");
}

#[tokio::test]
async fn a_server_that_was_started_again_is_asked_for_its_tools_again() {
    let (servers, of, life) = started().await;
    let call = async |tool: &str| servers.call(&of, tool, Map::new()).await.map(|answer| answer.text);
    assert_eq!(call("mcp__r__tool-1").await.unwrap(), "life 1");
    life.store(2, Ordering::SeqCst);
    assert_eq!(call("mcp__r__tool-1").await.unwrap(), "life 2", "the call begins another session");
    assert_eq!(call("mcp__r__tool-2").await.unwrap(), "life 2");
    assert_eq!(call("mcp__r__tool-1").await.unwrap_err().code, Code::NotFound);
}
