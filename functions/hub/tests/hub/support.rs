//! A hub as a child process, and a small client for it.

use futures::StreamExt;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::{
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    sync::watch,
    task::JoinHandle,
};

pub type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// How long anything may take before the test fails: far more than it ever does.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// Where a hub logs to if there is such a file in its data directory.
pub const LOG: &str = "hub.log";

/// How long to leave the machine to others before one looks again.
const PAUSE: Duration = Duration::from_millis(10);

/// A script that writes, reads and edits a file under a name that the person gives, with text that is streamed in pieces.
/// What begins with `slow` says something and then never ends by itself: however slow the machine is, a stop is in time.
pub const SCRIPT: &str = r"
rules:
- when: {user: '^slow'}
  steps:
  - {text: 'one two three four five six seven eight nine ten', chunks: 10, delay_ms: 20, hang: true}
- when: {user: '^ask'}
  steps:
  - text: One question.
    calls: [{tool: ask_user, args: {questions: [{name: colour, question: 'Which colour?', schema: {enum: [red, blue]}}]}}]
  - {text: 'You said {{call.0.output/colour}}.'}
- steps:
  - {reasoning: 'I think about it.', text: 'I write the file.', chunks: 4, delay_ms: 3, calls: [{tool: write, args: {path: '/projects/{{user}}/a.md', content: 'first'}}]}
  - {text: 'I look at it.', chunks: 3, delay_ms: 3, calls: [{tool: read, args: {path: '/projects/{{user}}/a.md'}}, {tool: ls, args: {path: /projects}}]}
  - {text: 'I change it.', chunks: 3, delay_ms: 3, calls: [{tool: edit, args: {path: '/projects/{{user}}/a.md', edits: [{old: first, new: second}]}}]}
  - {text: 'The file of {{user}} is done.', chunks: 6, delay_ms: 3}
";

/// A running hub.
pub struct Hub {
    child: Child,
    data: PathBuf,
    environment: Vec<(String, String)>,
    pub url: watch::Sender<String>,
}

impl Hub {
    /// Starts a hub on this data directory with the test's script as its model.
    pub async fn start(data: &Path) -> Result<Self> {
        Self::start_scripted(data, &[]).await
    }

    /// The same with some more variables.
    pub async fn start_scripted(data: &Path, more: &[(&str, &str)]) -> Result<Self> {
        let script = data.join("script.yaml");
        std::fs::create_dir_all(data)?;
        std::fs::write(&script, SCRIPT)?;
        let script = script.display().to_string();
        let environment = [("BUILDSCALE__AI__SCRIPT", script.as_str()), ("BUILDSCALE__AI__MODEL", "scripted/script")];
        Self::start_with(data, &[&environment, more].concat()).await
    }

    /// Starts a hub with these variables and no others that it would look at.
    pub async fn start_with(data: &Path, environment: &[(&str, &str)]) -> Result<Self> {
        let environment: Vec<_> = environment.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let (child, url) = launch(data, &environment).await?;
        Ok(Self { child, data: data.into(), environment, url: watch::Sender::new(url) })
    }

    /// Ends it as a power cut would: SIGKILL.
    pub async fn kill(&mut self) -> Result {
        Ok(self.child.kill().await?)
    }

    /// Asks it to end, and waits until it has.
    pub async fn terminate(&mut self) -> Result<std::process::ExitStatus> {
        let id = self.child.id().ok_or("it has ended")?;
        let sent = Command::new("kill").args(["-TERM", &id.to_string()]).status().await?;
        assert!(sent.success());
        Ok(tokio::time::timeout(PATIENCE, self.child.wait()).await??)
    }

    /// Starts it again on the same data directory, at another address.
    pub async fn restart(&mut self) -> Result {
        let (child, url) = launch(&self.data, &self.environment).await?;
        self.child = child;
        self.url.send_replace(url);
        Ok(())
    }

    pub fn client(&self) -> Client {
        // The client insists on a TLS provider, also for plain HTTP. Another test may have installed it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Client { http: reqwest::Client::new(), url: self.url.subscribe() }
    }
}

async fn launch(data: &Path, environment: &[(String, String)]) -> Result<(Child, String)> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_buildscale"));
    command.args(["serve", "--listen", "127.0.0.1:0", "--json", "--data-dir"]).arg(data).env_clear();
    command.env("BUILDSCALE_LOG", "warn").envs(environment.iter().cloned());
    // A test that reads the log gives it a file.
    let log = std::fs::OpenOptions::new().append(true).open(data.join(LOG));
    let stderr = log.map_or_else(|_| Stdio::inherit(), Stdio::from);
    let mut child = command.stdout(Stdio::piped()).stderr(stderr).kill_on_drop(true).spawn()?;
    let mut lines = BufReader::new(child.stdout.take().ok_or("no stdout")?).lines();
    let line = tokio::time::timeout(PATIENCE, lines.next_line()).await??.ok_or("it ended before it was ready")?;
    let ready: Value = serde_json::from_str(&line)?;
    let address = ready["address"].as_str().ok_or("no address")?;
    Ok((child, format!("http://{address}")))
}

/// A client that finds the hub again when it has moved.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    url: watch::Receiver<String>,
}

impl Client {
    pub fn address(&self, path: &str) -> String {
        format!("{}{path}", *self.url.borrow())
    }

    pub async fn call(&self, method: Method, path: &str, body: Value) -> Result<(StatusCode, Value)> {
        let mut request = self.http.request(method, self.address(path));
        if !body.is_null() {
            request = request.json(&body);
        }
        let answer = request.send().await?;
        let status = answer.status();
        let text = answer.text().await?;
        Ok((status, serde_json::from_str(&text).unwrap_or(Value::String(text))))
    }

    pub async fn get(&self, path: &str) -> Result<Value> {
        let (status, body) = self.call(Method::GET, path, Value::Null).await?;
        if status.is_success() { Ok(body) } else { Err(format!("GET {path}: {status} {body}").into()) }
    }

    pub async fn post(&self, path: &str, body: Value) -> Result<Value> {
        let (status, answer) = self.call(Method::POST, path, body).await?;
        if status.is_success() { Ok(answer) } else { Err(format!("POST {path}: {status} {answer}").into()) }
    }

    /// Posts until it is accepted, under one idempotency key, as a careful client does while a hub dies and comes back.
    pub async fn post_surely(&self, path: &str, key: &str, body: &Value) -> Result<Value> {
        let posting = async {
            loop {
                let sent = self.http.post(self.address(path)).header("idempotency-key", key).json(body).send().await;
                if let Ok(answer) = sent {
                    let status = answer.status();
                    let text = answer.text().await.unwrap_or_default();
                    if status.is_success() {
                        return Ok(serde_json::from_str(&text)?);
                    }
                    if status.is_client_error() {
                        return Err(format!("POST {path}: {status} {text}").into());
                    }
                }
                // poll: another process is waited for, which tells nobody here
                tokio::time::sleep(PAUSE).await;
            }
        };
        tokio::time::timeout(PATIENCE, posting).await?
    }

    /// Asks until the answer fits.
    pub async fn until(&self, path: &str, fits: impl Fn(&Value) -> bool) -> Result {
        let asking = async {
            while !fits(&self.get(path).await?) {
                // poll: another process is waited for, which tells nobody here
                tokio::time::sleep(PAUSE).await;
            }
            Ok(())
        };
        tokio::time::timeout(PATIENCE, asking).await?
    }

    /// Waits until the hub has settled all that was asked of it. What a turn is known by comes a moment before: its events.
    pub async fn until_settled(&self) -> Result {
        let settled = ["buildscale_queue_waiting 0\n", "buildscale_queue_in_flight 0\n"];
        let at_rest =
            |metrics: &Value| metrics.as_str().is_some_and(|text| settled.iter().all(|line| text.contains(line)));
        self.until("/metrics", at_rest).await
    }

    /// Opens one event stream, which is not opened again when it breaks.
    pub async fn open(&self, path: &str) -> Result<OneStream> {
        let answer = self.http.get(self.address(path)).send().await?.error_for_status()?;
        Ok(OneStream { answer, parser: Parser::default(), seen: Vec::new() })
    }

    pub async fn workspace(&self) -> Result<String> {
        let made = self.post("/api/v1/workspaces", json!({ "name": "test" })).await?;
        Ok(made["workspace_id"].as_str().ok_or("no workspace_id")?.into())
    }

    /// Watches a chat from its first event on, across deaths of the hub.
    pub fn watch(&self, path: &str) -> Watch {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (news, heard) = watch::channel(0);
        let task = tokio::spawn(follow(self.clone(), format!("{path}/events"), seen.clone(), news));
        Watch { seen, heard, task }
    }

    /// Everything that a stream has from the first event on, up to the one numbered `last`.
    pub async fn replay(&self, path: &str, last: u64) -> Result<Vec<Event>> {
        let watch = self.watch(path);
        watch.until(|events| events.last().is_some_and(|event| event.id >= last)).await?;
        Ok(watch.events())
    }
}

/// One connection's events.
pub struct OneStream {
    answer: reqwest::Response,
    parser: Parser,
    seen: Vec<Event>,
}

impl OneStream {
    /// Reads on until what was seen fits, and returns all of it.
    pub async fn until(mut self, fits: impl Fn(&[Event]) -> bool) -> Result<Vec<Event>> {
        let reading = async {
            while !fits(&self.seen) {
                let bytes = self.answer.chunk().await?.ok_or("the stream ended")?;
                self.seen.extend(self.parser.push(&bytes));
            }
            Ok(self.seen)
        };
        tokio::time::timeout(PATIENCE, reading).await?
    }
}

/// One event of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub id: u64,
    pub name: String,
    pub data: Value,
}

/// What was seen of a stream.
pub struct Watch {
    seen: Arc<Mutex<Vec<Event>>>,
    heard: watch::Receiver<usize>,
    task: JoinHandle<()>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Watch {
    pub fn events(&self) -> Vec<Event> {
        self.seen.lock().map(|seen| seen.clone()).unwrap_or_default()
    }

    /// Waits until what was seen fits.
    pub async fn until(&self, fits: impl Fn(&[Event]) -> bool) -> Result {
        let mut heard = self.heard.clone();
        let waiting = async {
            while !fits(&self.events()) {
                heard.changed().await?;
            }
            Ok(())
        };
        let waited = tokio::time::timeout(PATIENCE, waiting).await;
        waited.unwrap_or_else(|_| Err(format!("it did not come: {:#?}", self.events()).into()))
    }

    pub async fn until_event(&self, name: &str) -> Result<Event> {
        self.until(|events| events.iter().any(|event| event.name == name)).await?;
        self.events().into_iter().find(|event| event.name == name).ok_or_else(|| "gone".into())
    }
}

async fn follow(client: Client, path: String, seen: Arc<Mutex<Vec<Event>>>, news: watch::Sender<usize>) {
    loop {
        let last =
            seen.lock().ok().and_then(|seen: std::sync::MutexGuard<'_, Vec<Event>>| seen.last().map(|event| event.id));
        let request = client.http.get(client.address(&path)).header("last-event-id", last.unwrap_or(0).to_string());
        if let Ok(answer) = request.send().await {
            let mut parser = Parser::default();
            let mut body = answer.bytes_stream();
            while let Some(Ok(bytes)) = body.next().await {
                for event in parser.push(&bytes) {
                    if let Ok(mut seen) = seen.lock() {
                        seen.push(event);
                        news.send_replace(seen.len());
                    }
                }
            }
        }
        // poll: another process is waited for, which tells nobody here
        tokio::time::sleep(PAUSE).await;
    }
}

/// The event stream format, as far as it is used.
#[derive(Default)]
struct Parser {
    text: Vec<u8>,
}

impl Parser {
    fn push(&mut self, bytes: &[u8]) -> Vec<Event> {
        self.text.extend_from_slice(bytes);
        let mut events = Vec::new();
        while let Some(end) = self.text.windows(2).position(|pair| pair == b"\n\n") {
            let frame: Vec<u8> = self.text.drain(..end + 2).collect();
            let frame = String::from_utf8_lossy(&frame);
            let field = |name: &str| frame.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
            if let (Some(id), Some(name), Some(data)) = (field("id:"), field("event:"), field("data:")) {
                let data = serde_json::from_str(data).unwrap_or(Value::Null);
                events.push(Event { id: id.parse().unwrap_or(0), name: name.into(), data });
            }
        }
        events
    }
}
