//! ECS, as far as sandboxes go, and stricter than the real one: `RunTask` starts a process of the test's own, on an address of its own, and
//! `DescribeTasks` reports its state. Moto has the shapes of it and starts nothing; a test compares the two.
//!
//! Stricter parts: a task is unknown to the first look after it was made, since ECS's reads may be old; it comes step by step, one step per
//! look, and without looks it never comes; pages can be of one; requests with unknown fields are refused.

mod check;
mod deployed;
mod task;

pub use deployed::{Deployed, environment};

use crate::account::{ACCOUNT, REGION};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::{
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};
use task::Task;
use tempfile::TempDir;
use tokio::{net::TcpListener, task::JoinHandle};

/// How far tasks come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Hold {
    /// They run.
    #[default]
    Nowhere,
    /// No machine comes for them.
    Machine,
    /// Their image is being pulled for ever.
    Image,
    /// They end before they run, with this reason.
    Fails(String),
}

/// A task, for tests that look on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watched {
    /// Its ARN.
    pub task: String,
    /// Its last status.
    pub status: String,
    /// Whether it is there or coming, and has not been told to stop.
    pub lives: bool,
    /// Its `startedBy`.
    pub started_by: String,
}

/// A running ECS. Dropping it ends its tasks.
pub struct Ecs {
    endpoint: String,
    port: u16,
    state: Shared,
    server: JoinHandle<()>,
}

type Shared = Arc<Mutex<State>>;

struct State {
    deployed: Deployed,
    port: u16,
    hold: Hold,
    tasks: BTreeMap<String, Task>,
    /// The requests by client token, with their results.
    asked: BTreeMap<String, (Value, String)>,
    made: u16,
    /// The folders of tasks, with their output.
    folder: TempDir,
}

const CLUSTER: &str = "buildscale";
const FAMILY: &str = "buildscale-sandbox";
const REVISION: u32 = 3;
const TARGET: &str = "AmazonEC2ContainerServiceV20141113.";

/// A refusal: its name, and its message.
type Refusal = (&'static str, String);

impl Ecs {
    /// Starts one. Its tasks listen on the port that it has itself on 127.0.0.1, at addresses of their own: so the port is free there.
    ///
    /// # Errors
    /// When there is no port, or no folder for logs.
    pub async fn start(deployed: Deployed) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let state = Arc::new(Mutex::new(State {
            deployed,
            port,
            hold: Hold::Nowhere,
            tasks: BTreeMap::new(),
            asked: BTreeMap::new(),
            made: 0,
            folder: folder()?,
        }));
        let shared = state.clone();
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shared = shared.clone();
                let service = service_fn(move |request| answer(shared.clone(), request));
                tokio::spawn(async move {
                    _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Ok(Self { endpoint: format!("http://127.0.0.1:{port}"), port, state, server })
    }

    /// The URL for clients.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The variables that name it to functions.
    pub fn variables(&self) -> Vec<(String, String)> {
        let provider = self.state.lock().deployed.capacity_provider.clone().unwrap_or_default();
        [
            ("CLUSTER", CLUSTER),
            ("TASK_DEFINITION", &format!("arn:aws:ecs:{REGION}:{ACCOUNT}:task-definition/{FAMILY}:{REVISION}")),
            ("SUBNETS", "subnet-1,subnet-2"),
            ("SECURITY_GROUPS", "sg-1"),
            ("CAPACITY_PROVIDER", &provider),
            ("PORT", &self.port.to_string()),
        ]
        .map(|(name, value)| (format!("BUILDSCALE__AWS__SANDBOX_{name}"), value.to_owned()))
        .into()
    }

    /// Another environment for tasks that start from now on: a new revision of the task definition.
    pub fn revise(&self, environment: Vec<(String, String)>) {
        self.state.lock().deployed.environment = environment;
    }

    /// How far tasks come from now on; those that wait, too.
    pub fn hold(&self, hold: Hold) {
        self.state.lock().hold = hold;
    }

    /// All tasks that it knows, in the order in which they were made.
    pub fn tasks(&self) -> Vec<Watched> {
        let state = self.state.lock();
        let mut tasks: Vec<&Task> = state.tasks.values().collect();
        tasks.sort_by_key(|task| task.number);
        tasks.into_iter().map(Task::watched).collect()
    }

    /// Those that are there or coming.
    pub fn living(&self) -> Vec<Watched> {
        self.tasks().into_iter().filter(|task| task.lives).collect()
    }

    /// Kills the process of a task, as the kernel does for want of memory.
    pub fn kill(&self, task: &str) {
        if let Some(task) = self.state.lock().tasks.get(task) {
            task.signal(rustix::process::Signal::KILL);
        }
    }

    /// Tells the process of a task to end, as an idle sandbox tells itself.
    pub fn end(&self, task: &str) {
        if let Some(task) = self.state.lock().tasks.get(task) {
            task.terminate();
        }
    }

    /// Forgets ended tasks, as ECS does after an hour.
    pub fn forget(&self) {
        self.state.lock().tasks.retain(|_, task| !task.has_ended());
    }

    /// The file of a task's output.
    pub fn log(&self, task: &str) -> PathBuf {
        own(self.state.lock().folder.path(), task).join("log")
    }

    /// The folder in which the commands of a task have a scratch folder each, by its [`environment`].
    pub fn scratch(&self, task: &str) -> PathBuf {
        self.log(task).with_file_name(deployed::SCRATCH).join("scratch")
    }

    /// The URL of the process in a task, once it answers.
    pub fn url(&self, task: &str) -> Option<String> {
        let state = self.state.lock();
        Some(format!("http://{}:{}", state.tasks.get(task)?.address(), state.port))
    }
}

impl Drop for Ecs {
    fn drop(&mut self) {
        self.server.abort();
        for task in self.state.lock().tasks.values() {
            task.signal(rustix::process::Signal::KILL);
        }
    }
}

/// The folder of all tasks. Each task is another user, who gets to its own folder below.
fn folder() -> io::Result<TempDir> {
    let folder = tempfile::tempdir()?;
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o711))?;
    Ok(folder)
}

/// A task's own folder.
fn own(folder: &Path, task: &str) -> PathBuf {
    folder.join(task.rsplit('/').next().unwrap_or_default())
}

async fn answer(state: Shared, request: Request<Incoming>) -> io::Result<Response<Full<Bytes>>> {
    let target = request.headers().get("x-amz-target").and_then(|target| target.to_str().ok()).unwrap_or_default();
    let operation = target.strip_prefix(TARGET).unwrap_or_default().to_owned();
    let body = request.into_body().collect().await.map_err(io::Error::other)?.to_bytes();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let done = check::request(&operation, &body).and_then(|()| match operation.as_str() {
        "RunTask" => run_task(&state, &body),
        "DescribeTasks" => Ok(describe_tasks(&state, &body)),
        "StopTask" => stop_task(&state, &body),
        _ => Ok(list_tasks(&state, &body)),
    });
    let (status, body) = match done {
        Ok(body) => (StatusCode::OK, body),
        Err((code, message)) => (StatusCode::BAD_REQUEST, refusal(&state, &body, code, &message)),
    };
    let mut answer = Response::new(Full::from(body.to_string()));
    *answer.status_mut() = status;
    answer.headers_mut().insert("content-type", http::HeaderValue::from_static("application/x-amz-json-1.1"));
    Ok(answer)
}

fn refusal(state: &Shared, body: &Value, code: &str, message: &str) -> Value {
    let mut refusal = json!({ "__type": code, "message": message });
    if code == "ConflictException"
        && let Some((_, task)) = state.lock().asked.get(body["clientToken"].as_str().unwrap_or_default())
    {
        refusal["resourceIds"] = json!([task]);
    }
    refusal
}

fn run_task(state: &Shared, body: &Value) -> Result<Value, Refusal> {
    let mut locked = state.lock();
    check::run(&locked.deployed, body)?;
    let token = body["clientToken"].as_str().unwrap_or_default().to_owned();
    if let Some((request, task)) = locked.asked.get(&token) {
        if request != body {
            let message = "The clientToken is already in use with a different RunTask request.";
            return Err(("ConflictException", message.into()));
        }
        let tasks: Vec<Value> = locked.tasks.get(task).map(Task::describe).into_iter().collect();
        return Ok(json!({ "tasks": tasks, "failures": [] }));
    }
    locked.made += 1;
    let task = Task::new(locked.made, body);
    let described = task.describe();
    locked.asked.insert(token, (body.clone(), task.arn.clone()));
    locked.tasks.insert(task.arn.clone(), task);
    Ok(json!({ "tasks": [described], "failures": [] }))
}

fn describe_tasks(state: &Shared, body: &Value) -> Value {
    let (mut tasks, mut failures) = (Vec::new(), Vec::new());
    for arn in body["tasks"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let mut locked = state.lock();
        let locked = &mut *locked;
        let task = locked.tasks.get_mut(arn).and_then(Task::when_known);
        let Some(task) = task else {
            failures.push(json!({ "arn": arn, "reason": "MISSING" }));
            continue;
        };
        task.step(state, &locked.hold, &locked.deployed, locked.port, locked.folder.path());
        tasks.push(task.describe());
    }
    json!({ "tasks": tasks, "failures": failures })
}

fn stop_task(state: &Shared, body: &Value) -> Result<Value, Refusal> {
    let mut locked = state.lock();
    let task = locked.tasks.get_mut(body["task"].as_str().unwrap_or_default());
    let task = task.ok_or_else(|| ("InvalidParameterException", "The referenced task was not found.".to_owned()))?;
    task.stop(body["reason"].as_str().unwrap_or("Task stopped by user"));
    Ok(json!({ "task": task.describe() }))
}

fn list_tasks(state: &Shared, body: &Value) -> Value {
    let locked = state.lock();
    let wanted = body["desiredStatus"].as_str().unwrap_or("RUNNING");
    let after = body["nextToken"].as_str().unwrap_or_default();
    let family = body["family"].as_str();
    let mut arns = locked
        .tasks
        .values()
        .filter(|task| (wanted == "RUNNING") == task.is_wanted() && family.is_none_or(|family| family == FAMILY))
        .map(|task| task.arn.as_str())
        .filter(|arn| *arn > after);
    let page: Vec<&str> = arns.by_ref().take(locked.deployed.page).collect();
    let mut answer = json!({ "taskArns": page });
    if arns.next().is_some() {
        answer["nextToken"] = json!(page.last());
    }
    answer
}
