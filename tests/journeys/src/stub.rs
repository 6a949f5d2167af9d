//! A model behind any server that speaks OpenAI's chat completions and embeddings.

use crate::Result;
use axum::{Json, Router, extract::State, http::HeaderMap, response::IntoResponse, routing::post};
use parking_lot::Mutex;
use reqwest::StatusCode;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::{net::TcpListener, task::JoinHandle};

/// One request of a model, and the key that it was made with.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The bearer token.
    pub key: String,
    /// The `traceparent`; empty when there is none.
    pub traceparent: String,
    /// The body.
    pub body: Value,
}

type Play = Arc<dyn Fn(&Asked) -> Vec<Value> + Send + Sync>;

/// A running server. It ends when it is dropped.
pub struct Stub {
    /// Its base URL, such as `http://127.0.0.1:4711/v1`.
    pub base: String,
    state: Served,
    serving: JoinHandle<()>,
}

#[derive(Clone)]
struct Served {
    play: Play,
    takes: Arc<Mutex<Option<String>>>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Stub {
    /// Starts one that answers each request with these frames.
    ///
    /// # Errors
    /// When there is no free port.
    pub async fn start(play: impl Fn(&Asked) -> Vec<Value> + Send + Sync + 'static) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let base = format!("http://{}/v1", listener.local_addr()?);
        let state = Served { play: Arc::new(play), takes: Arc::default(), asked: Arc::default() };
        let router = Router::new()
            .route("/v1/chat/completions", post(complete))
            .route("/v1/embeddings", post(embed))
            .with_state(state.clone());
        let serving = tokio::spawn(async move { drop(axum::serve(listener, router).await) });
        Ok(Self { base, state, serving })
    }

    /// All requests so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.state.asked.lock().clone()
    }

    /// The keys of all requests so far.
    pub fn keys(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.key).collect()
    }

    /// Refuses every other key than this one from now on.
    pub fn take_only(&self, key: &str) {
        *self.state.takes.lock() = Some(key.to_owned());
    }

    /// A frame with a piece of the answer, and the reason why it ends, if it does.
    pub fn piece(delta: Value, reason: Value) -> Value {
        json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }] })
    }

    /// The last frame: its cost in tokens.
    pub fn usage(input: u64, output: u64) -> Value {
        let usage = json!({ "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output });
        json!({ "choices": [], "usage": usage })
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// The key of a request, and the refusal of a wrong one.
fn key(served: &Served, headers: &HeaderMap) -> (String, Option<Value>) {
    let key = headers.get("authorization").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let key = key.trim_start_matches("Bearer ").to_owned();
    let is_wrong = served.takes.lock().as_ref().is_some_and(|takes| *takes != key);
    let refusal = is_wrong.then(|| json!({ "error": { "message": format!("Incorrect API key provided: {key}") } }));
    (key, refusal)
}

const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

async fn complete(State(served): State<Served>, headers: HeaderMap, Json(body): Json<Value>) -> impl IntoResponse {
    let (key, refusal) = key(&served, &headers);
    let traceparent = headers.get("traceparent").and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let asked = Asked { key, traceparent, body };
    served.asked.lock().push(asked.clone());
    if let Some(refusal) = refusal {
        return (StatusCode::UNAUTHORIZED, JSON, refusal.to_string());
    }
    let frames: String = (served.play)(&asked).iter().map(|frame| format!("data: {frame}\n\n")).collect();
    (StatusCode::OK, [("content-type", "text/event-stream")], format!("{frames}data: [DONE]\n\n"))
}

/// Vectors that count words, where a car is an automobile.
async fn embed(State(served): State<Served>, headers: HeaderMap, Json(body): Json<Value>) -> impl IntoResponse {
    if let (_, Some(refusal)) = key(&served, &headers) {
        return (StatusCode::UNAUTHORIZED, JSON, refusal.to_string());
    }
    let texts: Vec<&str> = body["input"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let data: Vec<Value> =
        (0..).zip(&texts).map(|(index, text)| json!({ "index": index, "embedding": vector(text) })).collect();
    let tokens: usize = texts.iter().map(|text| text.split_whitespace().count()).sum();
    let answer = json!({ "data": data, "usage": { "prompt_tokens": tokens, "total_tokens": tokens } });
    (StatusCode::OK, JSON, answer.to_string())
}

fn vector(text: &str) -> Vec<u32> {
    let mut vector = vec![0; 4096];
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    for word in words.map(str::to_lowercase) {
        let word = match word.trim_end_matches('s') {
            "automobile" => "car",
            word => word,
        };
        let place = word.bytes().fold(5381_usize, |sum, byte| sum.wrapping_mul(33) ^ usize::from(byte));
        vector[place % 4096] += 1;
    }
    vector
}
