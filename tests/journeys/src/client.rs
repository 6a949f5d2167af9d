//! A person's program: HTTP with a token, and event streams.

use crate::{Answer, OneStream, PATIENCE, Result, Watch};
use ::client::{Address, Event, Source, Url};
use parking_lot::Mutex;
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::sync::watch;

/// How long to leave the machine to others before one looks again.
pub(crate) const PAUSE: Duration = Duration::from_millis(10);
/// The longest of these waits: each doubles the one before.
const LONGEST_PAUSE: Duration = Duration::from_millis(320);

/// A client that finds the server again when it has moved.
#[derive(Clone)]
pub struct Client {
    api: ::client::Client,
    /// Comes again when it is told to (429), as well-behaved clients of a server with limits do.
    waits: bool,
    /// The model of the chats that it makes; the server's own choice when none.
    model: Option<&'static str>,
    /// The workspaces that it has made, and those that were made from it.
    made: Arc<Mutex<Vec<String>>>,
}

impl Client {
    /// Of the server at an address that may change, such as `http://127.0.0.1:8686`, for whom this token names.
    pub fn new(url: watch::Receiver<Url>, token: Option<&str>) -> Self {
        let api = ::client::Client::moving(url, token).expect("a token that can be sent");
        Self { api, waits: false, model: None, made: Arc::default() }
    }

    /// The same for another person; without a token, for an anonymous caller.
    #[must_use]
    pub fn with_token(&self, token: Option<&str>) -> Self {
        Self { api: self.api.with_token(token).expect("a token that can be sent"), ..self.clone() }
    }

    /// The same on a server that others use, too: it waits when it is told to, and its chats are played by the offline demo.
    #[must_use]
    pub(crate) fn guest(self) -> Self {
        Self { waits: true, model: Some("scripted/demo"), ..self }
    }

    /// The token that identifies it.
    pub(crate) fn token(&self) -> Option<&str> {
        self.api.token()
    }

    /// The URL of a path.
    pub fn address(&self, path: &str) -> String {
        self.api.address(path)
    }

    /// A request with the token, to be sent with [`Client::send`].
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.api.request(method, path)
    }

    /// Sends, and reads the whole answer.
    ///
    /// # Errors
    /// When there is none.
    pub async fn send(&self, request: RequestBuilder) -> Result<Answer> {
        let mut request = Some(request);
        loop {
            let this = request.take().ok_or("a body that can be sent once")?;
            request = this.try_clone();
            let answer = Answer::of(self.api.answer(this).await?);
            match answer.retry_after() {
                Some(after) if self.waits && answer.status == StatusCode::TOO_MANY_REQUESTS && request.is_some() => {
                    // poll: a server with limits says when to come again
                    tokio::time::sleep(after.min(PATIENCE)).await;
                }
                _ => return Ok(answer),
            }
        }
    }

    /// Sends a request that the server has given, without the token. Its status, and the body of the answer.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn transfer(&self, request: &Value, content: Vec<u8>) -> Result<(StatusCode, Vec<u8>)> {
        let at: Address = serde_json::from_value(request.clone())?;
        let length = content.len() as u64;
        let content = (length > 0).then(|| (content.into(), length));
        let answer = self.api.transfer(&at, content).await?;
        Ok((answer.status(), answer.bytes().await?.to_vec()))
    }

    /// Asks with a JSON body; with none when it is null.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn ask(&self, method: Method, path: &str, body: Value) -> Result<Answer> {
        let request = self.request(method, path);
        self.send(if body.is_null() { request } else { request.json(&body) }).await
    }

    /// The same; status and body.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn call(&self, method: Method, path: &str, body: Value) -> Result<(StatusCode, Value)> {
        let answer = self.ask(method, path, body).await?;
        Ok((answer.status, answer.json()))
    }

    /// Sends a GET, and takes any answer.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn look(&self, path: &str) -> Result<Answer> {
        self.ask(Method::GET, path, Value::Null).await
    }

    /// The resource at a path.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn get(&self, path: &str) -> Result<Value> {
        self.look(path).await?.good()
    }

    /// Posts.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn post(&self, path: &str, body: Value) -> Result<Value> {
        self.ask(Method::POST, path, body).await?.good()
    }

    /// Posts until it is accepted, under one idempotency key, as a careful client does while a server dies and comes back.
    ///
    /// # Errors
    /// When it is refused for good.
    pub async fn post_surely(&self, path: &str, key: &str, body: &Value) -> Result<Value> {
        let posting = async {
            let mut pause = PAUSE;
            loop {
                let request = self.request(Method::POST, path).header("idempotency-key", key).json(body);
                match self.send(request).await {
                    Ok(answer) if answer.status.is_success() || answer.status.is_client_error() => {
                        return answer.good();
                    }
                    _ => wait(&mut pause).await,
                }
            }
        };
        tokio::time::timeout(PATIENCE, posting).await?
    }

    /// Asks until the answer fits, and returns it.
    ///
    /// # Errors
    /// When it is refused, or never fits.
    pub async fn until(&self, path: &str, fits: impl Fn(&Value) -> bool) -> Result<Value> {
        let mut last = Value::Null;
        let asking = async {
            let mut pause = PAUSE;
            loop {
                last = self.get(path).await?;
                if fits(&last) {
                    return Ok(last.clone());
                }
                wait(&mut pause).await;
            }
        };
        let asked = tokio::time::timeout(PATIENCE, asking).await;
        let shown = |last: &Value| last.to_string().chars().take(4000).collect::<String>();
        asked.unwrap_or_else(|_| Err(format!("GET {path} never fitted: {}", shown(&last)).into()))
    }

    /// Opens one event stream, which is not opened again when it breaks.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn open(&self, path: &str) -> Result<OneStream> {
        self.open_with(self.request(Method::GET, path)).await
    }

    /// The same by a request that says more.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn open_with(&self, request: RequestBuilder) -> Result<OneStream> {
        Ok(OneStream::of(self.api.connect(request).await?.ok_or("no event will come")?))
    }

    /// Watches a chat or a task from its first event on, across deaths of the server.
    pub fn watch(&self, path: &str) -> Watch {
        self.watch_after(path, 0)
    }

    /// Watches the events after this one.
    pub fn watch_after(&self, path: &str, after: u64) -> Watch {
        Watch::start(self.api.watch(Source::Path(format!("{path}/events"))), after)
    }

    /// Watches events from now on: the stream is open when this returns.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn watch_live(&self, path: &str) -> Result<Watch> {
        let opened = self.open(&format!("{path}/events")).await?;
        let after = opened.cursor().await?;
        Ok(self.watch_after(path, after))
    }

    /// Everything that a stream has from the first event on, up to the one numbered `last`.
    ///
    /// # Errors
    /// When it has no such event.
    pub async fn replay(&self, path: &str, last: u64) -> Result<Vec<Event>> {
        let watch = self.watch(path);
        watch.until(|events| events.last().is_some_and(|event| event.id >= last)).await?;
        Ok(watch.events())
    }

    /// A new workspace's id.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn workspace(&self) -> Result<String> {
        let made = self.post("/api/v1/workspaces", json!({ "name": "test" })).await?;
        let workspace = made["workspace_id"].as_str().ok_or("no workspace_id")?;
        self.made.lock().push(workspace.into());
        Ok(workspace.into())
    }

    /// The workspaces that it, and every client made from it, has made.
    pub(crate) fn made(&self) -> Vec<String> {
        self.made.lock().clone()
    }

    /// The path of a new workspace.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn place(&self) -> Result<String> {
        Ok(format!("/api/v1/workspaces/{}", self.workspace().await?))
    }

    /// The path of a new chat, in the workspace at this path, with this goal.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn chat(&self, place: &str, goal: &str) -> Result<String> {
        let mut new = json!({ "goal": goal });
        if let Some(model) = self.model {
            new["model"] = model.into();
        }
        let made = self.ask(Method::POST, &format!("{place}/chats"), new).await?.is(202)?.json();
        Ok(format!("{place}/chats/{}", made["chat_id"].as_str().ok_or("no chat_id")?))
    }

    /// The path of a new file.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn file(&self, place: &str, path: &str, content: &str) -> Result<String> {
        let made = self.post(&format!("{place}/files"), json!({ "path": path, "content": content })).await?;
        Ok(format!("{place}/files/{}", made["file_id"].as_str().ok_or("no file_id")?))
    }

    /// Writes the files of a flow.
    ///
    /// # Errors
    /// When one is refused.
    pub async fn flow(&self, place: &str, name: &str, files: &[(&str, &str)]) -> Result {
        for (path, content) in files {
            self.file(place, &format!("/system/flows/{name}/{path}"), content).await?;
        }
        Ok(())
    }

    /// The path of a new task of a flow.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn task(&self, place: &str, flow: &str, new: Value) -> Result<String> {
        let made = self.post(&format!("{place}/flows/{flow}/tasks"), new).await?;
        Ok(format!("{place}/tasks/{}", made["task_id"].as_str().ok_or("no task_id")?))
    }

    /// Runs a flow to its end, and returns the task.
    ///
    /// # Errors
    /// When it is refused, or does not end.
    pub async fn run(&self, place: &str, flow: &str, input: Value) -> Result<Value> {
        let task = self.task(place, flow, json!({ "input": input })).await?;
        self.until(&task, |task| task["phase"] == "finished").await
    }

    /// Answers the question of a node of a task or an agent, at the path of the question.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn answer(&self, question: &str, answers: Value) -> Result {
        self.post(question, json!({ "answers": answers })).await.map(drop)
    }

    /// Waits until a hub has settled all requests to it. The end of a turn shows in its events a moment before.
    ///
    /// # Errors
    /// When it has no counters for this person, or never settles.
    pub async fn until_settled(&self) -> Result {
        let settled = ["buildscale_queue_waiting 0\n", "buildscale_queue_in_flight 0\n"];
        self.until_counted(|text| settled.iter().all(|line| text.contains(line))).await
    }

    /// Waits until the counters fit.
    ///
    /// # Errors
    /// When there are none for this person, or they never fit.
    pub async fn until_counted(&self, fits: impl Fn(&str) -> bool) -> Result {
        self.until("/metrics", |metrics| metrics.as_str().is_some_and(&fits)).await.map(drop)
    }
}

/// Leaves the machine to others, each time for longer.
pub(crate) async fn wait(pause: &mut Duration) {
    // poll: the condition is in another process, which does not notify this one
    tokio::time::sleep(*pause).await;
    *pause = (*pause * 2).min(LONGEST_PAUSE);
}
