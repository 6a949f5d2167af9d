//! One instance of a function: its process, and the Runtime API that it asks for work.
//!
//! The API is that of <https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html>, version 2018-06-01.

use crate::{Failure, Settings, lineage::Lineage};
use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Path, Request, State},
    http::{HeaderMap, StatusCode, header::HeaderName},
    response::IntoResponse,
    routing::{get, post},
};
use futures::StreamExt as _;
use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process_group};
use std::{
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::{
    net::TcpListener,
    sync::{Mutex as Queue, mpsc, oneshot, watch},
    task::JoinHandle,
    time::Instant,
};

/// How long a binary may take to its first poll. Lambda gives it ten seconds.
const INIT: Duration = Duration::from_secs(60);

/// The longest event, and the longest answer, of an invocation that is waited for.
pub(crate) const LARGEST: usize = 6 << 20;

/// A process that waits for an invocation, or runs one.
pub struct Instance {
    child: Child,
    invocations: mpsc::Sender<Invocation>,
    /// Whether it waits for work.
    polls: watch::Receiver<bool>,
    api: JoinHandle<()>,
    /// From the start of the process to its first poll.
    pub init: Duration,
}

struct Invocation {
    id: String,
    event: Bytes,
    deadline: SystemTime,
    trace: String,
    answer: Answer,
}

type Answer = oneshot::Sender<Result<Answered, Failure>>;

/// How a function answers.
pub(crate) enum Answered {
    Whole(Bytes),
    /// Piece by piece, until there are no more. The invocation lasts until then, also without a reader.
    Pieces(mpsc::Receiver<Bytes>),
}

struct Api {
    next: Queue<mpsc::Receiver<Invocation>>,
    running: Mutex<Option<(String, Answer)>>,
    polls: watch::Sender<bool>,
    function: String,
}

impl Instance {
    /// Starts the binary and waits until it asks for work.
    pub async fn start(settings: &Settings) -> Result<Self, Failure> {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let (invocations, next) = mpsc::channel(1);
        let (polling, polls) = watch::channel(false);
        let api = Arc::new(Api {
            next: Queue::new(next),
            running: Mutex::new(None),
            polls: polling,
            function: settings.name.clone(),
        });
        let router = Router::new()
            .route("/2018-06-01/runtime/invocation/next", get(next_invocation))
            .route("/2018-06-01/runtime/invocation/{id}/response", post(response))
            .route("/2018-06-01/runtime/invocation/{id}/error", post(error))
            .route("/2018-06-01/runtime/init/error", post(init_error))
            .with_state(api);
        let api = tokio::spawn(async move { drop(axum::serve(listener, router).await) });
        let began = Instant::now();
        let child = spawn(settings, &address);
        let mut instance = Self { child, invocations, polls: polls.clone(), api, init: Duration::ZERO };
        let mut first = polls;
        let polled = tokio::select! {
            polled = tokio::time::timeout(INIT, first.wait_for(|polled| *polled)) => polled.is_ok_and(|polled| polled.is_ok()),
            () = instance.gone() => false,
        };
        instance.init = began.elapsed();
        match polled {
            true => Ok(instance),
            false => Err(Failure::Init(format!("{} never asked for work", settings.binary.display()))),
        }
    }

    /// Runs one invocation, at the end of this chain. An instance that failed by time-out or exit is dead.
    pub(crate) async fn invoke(
        &mut self,
        event: Bytes,
        chain: &Lineage,
        timeout: Duration,
    ) -> Result<Answered, Failure> {
        static IDS: AtomicU64 = AtomicU64::new(1);
        let id = format!("00000000-0000-4000-8000-{:012}", IDS.fetch_add(1, Ordering::Relaxed));
        let (answer, answered) = oneshot::channel();
        #[expect(clippy::disallowed_methods, reason = "the deadline is in wall-clock time, by protocol")]
        let deadline = SystemTime::now() + timeout;
        if self.invocations.send(Invocation { id, event, deadline, trace: chain.trace(), answer }).await.is_err() {
            return Err(Failure::Exited);
        }
        tokio::select! {
            answer = tokio::time::timeout(timeout, answered) => match answer {
                Ok(Ok(answer)) => answer,
                Ok(Err(_)) => Err(Failure::Exited),
                Err(_) => { self.kill(); Err(Failure::TimedOut) }
            },
            () = self.gone() => Err(Failure::Exited),
        }
    }

    /// Stops the process where it is once it waits for work, as Lambda does between invocations: work that it has left to do beside an
    /// answer waits for the next one, or is never done. False when it has ended instead.
    pub async fn freeze(&mut self) -> bool {
        let mut polls = self.polls.clone();
        let waits = tokio::select! {
            waits = polls.wait_for(|polls| *polls) => waits.is_ok(),
            () = self.gone() => false,
        };
        waits && self.signal(Signal::STOP)
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) -> bool {
        let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        group.is_some_and(|group| kill_process_group(group, signal).is_ok())
    }

    /// The process id, to be killed by.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// SIGKILL, as Lambda does when the time is over.
    pub fn kill(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }

    /// Returns when the process has ended.
    async fn gone(&mut self) {
        while self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            // poll: a process does not tell about its state
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.kill();
        self.api.abort();
    }
}

fn spawn(settings: &Settings, address: &str) -> Child {
    let mut command = Command::new(&settings.binary);
    command
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("AWS_LAMBDA_RUNTIME_API", address)
        .env("AWS_LAMBDA_FUNCTION_NAME", &settings.name)
        .env("AWS_LAMBDA_FUNCTION_VERSION", "1")
        // The variables by which SDKs tell services their environment. (Lambda's own names the runtime, and not the function.)
        .env("AWS_EXECUTION_ENV", format!("AWS_Lambda_{}", settings.name))
        .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "512")
        .env("AWS_LAMBDA_LOG_GROUP_NAME", format!("/aws/lambda/{}", settings.name))
        .env("AWS_LAMBDA_LOG_STREAM_NAME", "1")
        .envs(settings.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .process_group(0);
    match &settings.log {
        Some(log) => {
            let file = std::fs::OpenOptions::new().create(true).append(true).open(log).expect("a log file");
            command.stderr(file.try_clone().expect("a log file")).stdout(file)
        }
        None => command.stderr(Stdio::null()),
    };
    command.spawn().unwrap_or_else(|error| panic!("{}: {error}", settings.binary.display()))
}

async fn next_invocation(State(api): State<Arc<Api>>) -> impl IntoResponse {
    api.polls.send_replace(true);
    let Some(invocation) = api.next.lock().await.recv().await else {
        return (StatusCode::GONE, HeaderMap::new(), Bytes::new());
    };
    api.polls.send_replace(false);
    let deadline = invocation.deadline.duration_since(UNIX_EPOCH).expect("after 1970").as_millis();
    let arn = format!("arn:aws:lambda:eu-central-1:000000000000:function:{}", api.function);
    *api.running.lock() = Some((invocation.id.clone(), invocation.answer));
    let headers: HeaderMap = [
        ("lambda-runtime-aws-request-id", invocation.id),
        ("lambda-runtime-deadline-ms", deadline.to_string()),
        ("lambda-runtime-invoked-function-arn", arn),
        ("lambda-runtime-trace-id", invocation.trace),
    ]
    .into_iter()
    .map(|(name, value)| (HeaderName::from_static(name), value.parse().expect("a header")))
    .collect();
    (StatusCode::OK, headers, invocation.event)
}

async fn response(State(api): State<Arc<Api>>, Path(id): Path<String>, request: Request) -> StatusCode {
    let streams =
        request.headers().get("lambda-runtime-function-response-mode").is_some_and(|mode| mode == "streaming");
    if streams {
        return pass_on(&api, &id, request.into_body()).await;
    }
    match axum::body::to_bytes(request.into_body(), LARGEST).await {
        Ok(body) => api.answer(&id, Ok(Answered::Whole(body))),
        Err(_) => {
            api.answer(&id, Err(Failure::Function("Function.ResponseSizeTooLarge".into())));
            StatusCode::PAYLOAD_TOO_LARGE
        }
    }
}

/// The reader may go; the function goes on until its answer ends, as Lambda lets it.
async fn pass_on(api: &Api, id: &str, body: Body) -> StatusCode {
    let (pieces, read) = mpsc::channel(1);
    let status = api.answer(id, Ok(Answered::Pieces(read)));
    let mut body = body.into_data_stream();
    while let Some(Ok(piece)) = body.next().await {
        drop(pieces.send(piece).await);
    }
    status
}

async fn error(State(api): State<Arc<Api>>, Path(id): Path<String>, body: Bytes) -> StatusCode {
    api.answer(&id, Err(Failure::Function(String::from_utf8_lossy(&body).into_owned())))
}

async fn init_error(body: Bytes) -> StatusCode {
    tracing::error!(error = %String::from_utf8_lossy(&body), "a function failed to start");
    StatusCode::ACCEPTED
}

impl Api {
    fn answer(&self, id: &str, answer: Result<Answered, Failure>) -> StatusCode {
        match self.running.lock().take_if(|(running, _)| running == id) {
            Some((_, waits)) => {
                drop(waits.send(answer));
                StatusCode::ACCEPTED
            }
            None => StatusCode::BAD_REQUEST,
        }
    }
}
