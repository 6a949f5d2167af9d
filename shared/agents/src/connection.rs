//! JSON-RPC 2.0 with a process: requests that wait for their responses, and messages that go out in order.

use parking_lot::Mutex;
use serde_json::{Value, json};
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio::{
    io::AsyncWriteExt as _,
    process::ChildStdin,
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot},
    time::timeout,
};

/// How many messages may wait for a process that does not read.
const WAITING: usize = 64;
/// How many bytes of messages may wait: the content of a file has 8 MiB, and in JSON up to six times as many. A longer message takes all of the room.
const WAITING_BYTES: u32 = 16 << 20;
/// How long a message waits for its place among them.
const PATIENCE: Duration = Duration::from_secs(10);

/// An error of a call, as JSON-RPC numbers it.
pub(crate) const FAILED: i64 = -32603;
/// A sign-in is missing, as the Agent Client Protocol numbers it (`auth_required`). Many JSON-RPC servers use this number for any error,
/// so the words decide, too.
const SIGNED_OUT: i64 = -32000;
/// The words of an error about a sign-in, in small letters.
const SIGN_IN_WORDS: [&str; 8] =
    ["auth_required", "authenticat", "sign in", "sign-in", "signed in", "log in", "login", "logged in"];

/// Why a request has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RequestFailure {
    /// The process answered with an error.
    Refused(String),
    /// It answered that nobody has signed in to it.
    SignedOut(String),
    /// It did not answer in time, or does not read.
    Silent,
    /// It is gone.
    Closed,
}

type Waiting = HashMap<u64, oneshot::Sender<Result<Value, RequestFailure>>>;

/// A message that waits, with its part of the room; none for a notification, which is short.
type OutMessage = (String, Option<OwnedSemaphorePermit>);

/// The way to a process.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    out: mpsc::Sender<OutMessage>,
    /// A permit for each byte that may still wait.
    room: Arc<Semaphore>,
    waiting: Arc<Mutex<(u64, Option<Waiting>)>>,
}

impl Connection {
    /// Writes to this input, in a task that ends with the last connection or with the process.
    pub fn new(mut input: ChildStdin) -> Self {
        let (out, mut messages) = mpsc::channel::<OutMessage>(WAITING);
        tokio::spawn(async move {
            while let Some((message, _room)) = messages.recv().await {
                if input.write_all(message.as_bytes()).await.is_err() || input.flush().await.is_err() {
                    return;
                }
            }
        });
        let room = Arc::new(Semaphore::new(WAITING_BYTES as usize));
        Self { out, room, waiting: Arc::new(Mutex::new((0, Some(HashMap::new())))) }
    }

    async fn send(&self, message: &Value) -> Result<(), RequestFailure> {
        let message = format!("{message}\n");
        let sending = async {
            let room = self.room.clone().acquire_many_owned(room_for(&message)).await;
            let room = room.map_err(|_| RequestFailure::Closed)?;
            self.out.send((message, Some(room))).await.map_err(|_| RequestFailure::Closed)
        };
        timeout(PATIENCE, sending).await.unwrap_or(Err(RequestFailure::Silent))
    }

    /// Sends a request, and waits for its response for as long as it takes.
    pub async fn request(&self, method: &str, params: Value) -> Result<Value, RequestFailure> {
        let (answer, answered) = oneshot::channel();
        let id = {
            let mut waiting = self.waiting.lock();
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
        // Without room of its own: a cancellation must not be lost because a long file is on its way.
        if self.out.try_send((format!("{message}\n"), None)).is_err() {
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

    /// Answers requests of the process in this order. The first answer that finds no room ends it: the others would wait in vain, too.
    pub async fn respond_each(&self, answers: impl IntoIterator<Item = (Value, Value)>) {
        for (id, result) in answers {
            if let Err(failure) = self.respond(&id, Ok(result)).await {
                return tracing::debug!(?failure, "an agent does not take its answers");
            }
        }
    }

    /// Takes in a response.
    pub fn answered(&self, message: &Value) {
        let Some(id) = message["id"].as_u64() else { return };
        let waiting = self.waiting.lock().1.as_mut().and_then(|all| all.remove(&id));
        let Some(waiting) = waiting else { return };
        let result = match message.get("error").filter(|error| !error.is_null()) {
            Some(error) => Err(failure(error)),
            None => Ok(message["result"].clone()),
        };
        // One that waits no more needs no answer.
        let _ = waiting.send(result);
    }

    /// Ends all requests: the process is gone.
    pub fn close(&self) {
        self.waiting.lock().1 = None;
    }
}

/// The room that a message takes while it waits, in bytes.
fn room_for(message: &str) -> u32 {
    u32::try_from(message.len()).unwrap_or(u32::MAX).min(WAITING_BYTES)
}

/// The failure that an error of a process tells.
fn failure(error: &Value) -> RequestFailure {
    let why = words(error);
    let said = why.to_lowercase();
    match error["code"] == SIGNED_OUT && SIGN_IN_WORDS.iter().any(|word| said.contains(word)) {
        true => RequestFailure::SignedOut(why),
        false => RequestFailure::Refused(why),
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

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::process::Stdio;
    use tokio::{
        process::{Child, Command},
        time::Instant,
    };

    #[test]
    fn a_sign_in_is_missing_when_the_code_and_the_words_say_so() {
        let is_signed_out = |code: i64, message: &str, data: Value| {
            let error = json!({ "code": code, "message": message, "data": data });
            matches!(failure(&error), RequestFailure::SignedOut(_))
        };
        assert!(is_signed_out(SIGNED_OUT, "Authentication required", Value::Null));
        assert!(is_signed_out(SIGNED_OUT, "Refused", json!({ "details": "not logged in: run /login" })));
        assert!(is_signed_out(SIGNED_OUT, "Refused", json!({ "reason": "auth_required" })));
        assert!(!is_signed_out(SIGNED_OUT, "Server error", json!({ "details": "the model is overloaded" })));
        assert!(!is_signed_out(FAILED, "Authentication of the proxy failed", Value::Null));
    }

    /// A process that reads nothing, and the way to it.
    fn deaf() -> (Child, Connection) {
        let mut command = Command::new("sleep");
        let mut child = command.arg("100000").stdin(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        let connection = Connection::new(child.stdin.take().unwrap());
        (child, connection)
    }

    #[tokio::test(start_paused = true)]
    async fn only_so_many_bytes_wait_for_a_process_that_does_not_read() {
        let (_child, connection) = deaf();
        let file = json!({ "content": "x".repeat(8 << 20) });
        let mut taken = 0;
        while connection.respond(&json!(taken), Ok(file.clone())).await.is_ok() {
            taken += 1;
            assert!(taken < 4, "{taken} files wait");
        }
        // One that needs more than all of the room waits for all of it, and not for ever.
        let longest = json!({ "content": "x".repeat(2 * WAITING_BYTES as usize) });
        assert_eq!(connection.respond(&json!("long"), Ok(longest.clone())).await, Err(RequestFailure::Silent));
        let (_other, unused) = deaf();
        assert_eq!(unused.respond(&json!("long"), Ok(longest)).await, Ok(()));
        // It waits for the pipe, and a notification behind it.
        let before = unused.out.capacity();
        unused.notify("session/cancel", &json!({ "sessionId": "s" }));
        assert_eq!(unused.out.capacity(), before - 1, "a cancellation takes no room");
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_that_does_not_read_is_waited_for_once_and_not_for_each_answer() {
        let (_child, connection) = deaf();
        let began = Instant::now();
        // More than a pipe and the messages that may wait.
        let answers = (0..300).map(|number| (json!(format!("{number}{}", "x".repeat(1_000))), json!({})));
        connection.respond_each(answers).await;
        assert!(began.elapsed() < 2 * PATIENCE, "{:?}", began.elapsed());
    }
}
