//! JSON-RPC 2.0 with a process: requests that wait for their responses, and messages that go out in order.

use serde_json::{Value, json};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    io::AsyncWriteExt as _,
    process::ChildStdin,
    sync::{mpsc, oneshot},
    time::timeout,
};

/// How many messages may wait for a process that does not read.
const WAITING: usize = 64;
/// How long a message waits for its place among them.
const PATIENCE: Duration = Duration::from_secs(10);

/// An error of a call, as JSON-RPC numbers it.
pub(crate) const FAILED: i64 = -32603;

/// Why a request has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RequestFailure {
    /// The process answered with an error.
    Refused(String),
    /// It did not answer in time, or does not read.
    Silent,
    /// It is gone.
    Closed,
}

type Waiting = HashMap<u64, oneshot::Sender<Result<Value, RequestFailure>>>;

/// The way to a process.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    out: mpsc::Sender<String>,
    waiting: Arc<Mutex<(u64, Option<Waiting>)>>,
}

impl Connection {
    /// Writes to this input, in a task that ends with the last connection or with the process.
    pub fn new(mut input: ChildStdin) -> Self {
        let (out, mut messages) = mpsc::channel::<String>(WAITING);
        tokio::spawn(async move {
            while let Some(message) = messages.recv().await {
                if input.write_all(message.as_bytes()).await.is_err() || input.flush().await.is_err() {
                    return;
                }
            }
        });
        Self { out, waiting: Arc::new(Mutex::new((0, Some(HashMap::new())))) }
    }

    async fn send(&self, message: &Value) -> Result<(), RequestFailure> {
        match timeout(PATIENCE, self.out.send(format!("{message}\n"))).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(RequestFailure::Closed),
            Err(_) => Err(RequestFailure::Silent),
        }
    }

    /// Sends a request, and waits for its response for as long as it takes.
    pub async fn request(&self, method: &str, params: Value) -> Result<Value, RequestFailure> {
        let (answer, answered) = oneshot::channel();
        let id = {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.0 += 1;
            let id = waiting.0;
            waiting.1.as_mut().ok_or(RequestFailure::Closed)?.insert(id, answer);
            id
        };
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await?;
        answered.await.unwrap_or(Err(RequestFailure::Closed))
    }

    /// The same, within a time.
    pub async fn request_within(&self, time: Duration, method: &str, params: Value) -> Result<Value, RequestFailure> {
        timeout(time, self.request(method, params)).await.unwrap_or(Err(RequestFailure::Silent))
    }

    /// Sends a notification if the process reads.
    pub fn notify(&self, method: &str, params: &Value) {
        let message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        if self.out.try_send(format!("{message}\n")).is_err() {
            tracing::debug!(method, "an agent does not read");
        }
    }

    /// Answers a request of the process.
    pub async fn respond(&self, id: &Value, result: Result<Value, (i64, String)>) -> Result<(), RequestFailure> {
        let message = match result {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err((code, message)) => {
                json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
            }
        };
        self.send(&message).await
    }

    /// Takes in a response.
    pub fn answered(&self, message: &Value) {
        let Some(id) = message["id"].as_u64() else { return };
        let waiting =
            self.waiting.lock().unwrap_or_else(PoisonError::into_inner).1.as_mut().and_then(|all| all.remove(&id));
        let Some(waiting) = waiting else { return };
        let result = match message.get("error").filter(|error| !error.is_null()) {
            Some(error) => Err(RequestFailure::Refused(words(error))),
            None => Ok(message["result"].clone()),
        };
        // One that waits no more needs no answer.
        let _ = waiting.send(result);
    }

    /// Ends all requests: the process is gone.
    pub fn close(&self) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).1 = None;
    }
}

/// An error of a process, in its own words: the message, and the details that some agents put into its data.
fn words(error: &Value) -> String {
    const MOST: usize = 2_000;
    let message = error["message"].as_str().unwrap_or("an error without a message");
    let mut text = match &error["data"] {
        Value::Null => message.to_owned(),
        data => format!("{message}: {}", data["details"].as_str().map_or_else(|| data.to_string(), ToOwned::to_owned)),
    };
    text.truncate(text.floor_char_boundary(MOST));
    text
}
