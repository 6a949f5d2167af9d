//! A person's client: a token, JSON, and an event stream that is followed to where it is.

use futures::StreamExt;
use reqwest::{Method, StatusCode, header, redirect::Policy};
use serde_json::{Value, json};
use std::time::Duration;

/// How long anything may take before the test fails: far more than it ever does.
pub const PATIENCE: Duration = Duration::from_secs(180);

#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    url: String,
    token: String,
}

/// One event of a stream.
#[derive(Clone, Debug)]
pub struct Event {
    pub id: u64,
    pub name: String,
    pub data: Value,
}

impl Client {
    pub fn new(url: String, token: String) -> Self {
        Self { http: reqwest::Client::builder().redirect(Policy::none()).build().unwrap(), url, token }
    }

    pub fn with_token(&self, token: String) -> Self {
        Self { token, ..self.clone() }
    }

    pub async fn call(&self, method: Method, path: &str, body: Value) -> (StatusCode, Value) {
        let mut request = self.http.request(method, format!("{}{path}", self.url)).bearer_auth(&self.token);
        if !body.is_null() {
            request = request.json(&body);
        }
        let answer = request.send().await.unwrap();
        let status = answer.status();
        let text = answer.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    pub async fn get(&self, path: &str) -> Value {
        let (status, body) = self.call(Method::GET, path, Value::Null).await;
        assert!(status.is_success(), "GET {path}: {status} {body}");
        body
    }

    pub async fn post(&self, path: &str, body: Value) -> Value {
        let (status, answer) = self.call(Method::POST, path, body).await;
        assert!(status.is_success(), "POST {path}: {status} {answer}");
        answer
    }

    pub async fn workspace(&self) -> String {
        let made = self.post("/api/v1/workspaces", json!({ "name": "tests" })).await;
        made["workspace_id"].as_str().unwrap().to_owned()
    }

    /// The path of a new chat with this goal.
    pub async fn chat(&self, workspace: &str, goal: &str) -> String {
        let chats = format!("/api/v1/workspaces/{workspace}/chats");
        let made = self.post(&chats, json!({ "goal": goal })).await;
        format!("{chats}/{}", made["chat_id"].as_str().unwrap())
    }

    /// The events of a chat after a number, until one fits, over as many connections as it takes.
    pub async fn watch(&self, chat: &str, after: u64, fits: impl Fn(&Event) -> bool) -> Vec<Event> {
        let mut events: Vec<Event> = Vec::new();
        let watching = async {
            loop {
                let after = events.last().map_or(after, |event| event.id);
                self.read(&format!("{chat}/events?after={after}"), &mut events, &fits).await;
                if events.last().is_some_and(&fits) {
                    return;
                }
            }
        };
        let ended = tokio::time::timeout(PATIENCE, watching).await;
        assert!(ended.is_ok(), "no such event in {:?}", events.iter().map(|event| &event.name).collect::<Vec<_>>());
        events
    }

    async fn read(&self, path: &str, events: &mut Vec<Event>, fits: &impl Fn(&Event) -> bool) {
        let sent = self.http.get(format!("{}{path}", self.url)).bearer_auth(&self.token).send().await.unwrap();
        assert_eq!(sent.status(), StatusCode::TEMPORARY_REDIRECT, "{path}");
        let location = sent.headers()[header::LOCATION].to_str().unwrap().to_owned();
        let answer = self.http.get(location).bearer_auth(&self.token).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
        let (mut stream, mut text) = (answer.bytes_stream(), String::new());
        while let Some(Ok(piece)) = stream.next().await {
            text.push_str(&String::from_utf8_lossy(&piece));
            while let Some((block, rest)) = text.split_once("\n\n") {
                let event = parse(block);
                text = rest.to_owned();
                let Some(event) = event else { continue };
                events.push(event);
                if events.last().is_some_and(fits) {
                    return;
                }
            }
        }
    }
}

fn parse(block: &str) -> Option<Event> {
    let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name).map(str::trim));
    let data = serde_json::from_str(field("data:")?).ok()?;
    Some(Event { id: field("id:")?.parse().ok()?, name: field("event:")?.to_owned(), data })
}
