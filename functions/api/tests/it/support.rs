//! A door over embedded adapters in a temporary folder, and a client that checks every answer against the document.

use crate::openapi::check;
use actor::ActorId;
use async_trait::async_trait;
use axum::{Router, body::Body, response::Response};
use buildscale_api::{Auth, Context, Probe, StreamContext, Streams};
use bytes::Bytes;
use chat::{Chats, Settings};
use domain::{ActorRef, ChatEvent, Code, CommandId, Error, TaskEvent, Timestamp, WorkspaceId};
use embedded::{LocalBlobs, LocalBus, Options, Store};
use engine::{FlowCache, Flows, Tasks};
use flow::load::KnownNames;
use http::{HeaderMap, Request, StatusCode};
use ports::{
    Bus, Clock, ModelInfo, ServerAccounts, ServerState, ServerTransport, ServerView, ServersOf, SignIn, SignInAnswer,
    SignedIn, Spilling, SystemClock, Table,
};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use stream::{FeedOptions, Feeds, Start};
use testkit::{Queue, crash::Crash};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;
use workspace::Workspaces;

/// The headers of answers that every page can read (Fetch), and those that are for browsers and proxies alone.
const OF_NO_USE: [&str; 10] = [
    "access-control-allow-origin",
    "access-control-expose-headers",
    "cache-control",
    "content-length",
    "content-security-policy",
    "content-type",
    "cross-origin-resource-policy",
    "vary",
    "x-accel-buffering",
    "x-content-type-options",
];

/// The door, with the parts behind it.
pub struct Door {
    pub router: Router,
    /// A server that only holds streams, over the same parts.
    pub streams: Router,
    pub table: Arc<dyn Table>,
    /// Counts the calls of the ports.
    pub calls: Crash,
    pub queue: Arc<dyn Queue>,
    /// How many messages were taken off the queue.
    taken: AtomicUsize,
    /// Whether the disk has no room.
    pub full: Arc<AtomicBool>,
    /// Ends the event streams.
    pub shutdown: CancellationToken,
    pub folder: tempfile::TempDir,
}

/// The configuration of a door.
pub struct Setup {
    pub auth: Auth,
    pub origins: Vec<String>,
    pub ready: Vec<Probe>,
    pub models: Vec<ModelInfo>,
    /// Whether requests may name a model: each one but those of `nobody` by default.
    pub knows_model: chat::KnowsModel,
    pub most_waiting: usize,
    pub clock: Arc<dyn Clock>,
    /// The machines of commands; none by default.
    pub sandboxes: Option<Arc<dyn ports::Sandboxes>>,
    /// The coding agents; none by default.
    pub agents: Arc<dyn ports::Agents>,
    /// The folders that threads may work in; none by default.
    pub folders: Option<Arc<dyn ports::Folders>>,
    /// Decides which new versions of files may start flows; without it, none does.
    pub handoffs: Option<Arc<dyn workspace::HandoffObserver>>,
    /// Whether this process serves streams.
    pub has_streams: bool,
    /// Whether it learns that a client has gone.
    pub sees_clients_go: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            auth: Auth::loopback(),
            origins: Vec::new(),
            ready: Vec::new(),
            models: Vec::new(),
            knows_model: Arc::new(|model: &str| !model.starts_with("nobody/")),
            most_waiting: engine::tasks::MOST_WAITING,
            clock: Arc::new(SystemClock),
            sandboxes: None,
            agents: Arc::new(ports::NoAgents::default()),
            folders: None,
            handoffs: None,
            has_streams: true,
            sees_clients_go: true,
        }
    }
}

/// An answer.
#[derive(Debug)]
pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub bytes: Bytes,
    pub json: Value,
}

impl Reply {
    /// A header as text.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
    /// The code of the error.
    pub fn code(&self) -> &str {
        self.json["error"]["code"].as_str().unwrap_or_default()
    }
    /// A text in the JSON.
    pub fn text(&self, key: &str) -> String {
        self.json[key].as_str().unwrap_or_default().to_owned()
    }
    /// The same answer, which has this status.
    #[track_caller]
    pub fn is(self, status: u16) -> Self {
        assert_eq!(self.status.as_u16(), status, "{}", String::from_utf8_lossy(&self.bytes));
        self
    }
    /// The same answer, which is this refusal.
    #[track_caller]
    pub fn refuses(self, status: u16, code: &str) -> Self {
        assert_eq!((self.status.as_u16(), self.code()), (status, code), "{}", String::from_utf8_lossy(&self.bytes));
        self
    }
}

/// One server for every workspace, at which everybody signs in.
struct Accounts;

#[async_trait]
impl ServerAccounts for Accounts {
    async fn servers(&self, _: &ServersOf, _: Duration) -> Vec<ServerView> {
        let (name, reason) = ("tracker".to_owned(), Some("a person has to sign in at it first".to_owned()));
        let (transport, state) = (ServerTransport::Http, ServerState::NeedsSignIn);
        vec![ServerView { name, transport, state, reason, signed_in: false, tools: 0 }]
    }
    async fn sign_in(&self, _: &ServersOf, _: &str, redirect: &str, _: bool) -> Result<SignIn, Error> {
        Ok(SignIn {
            url: format!("https://id.example/authorize?redirect_uri={redirect}"),
            expires_at: Timestamp::default(),
        })
    }
    async fn complete(&self, answer: &SignInAnswer) -> Result<SignedIn, Error> {
        let (workspace, server) = (WorkspaceId::from_key("tests", "accounts"), "tracker".to_owned());
        match answer.state.as_str() {
            "a" => Ok(SignedIn { workspace, server, code: None }),
            "confirmed" => Ok(SignedIn { workspace, server, code: Some("12345678".to_owned()) }),
            _ => Err(Error::new(Code::NotFound, "no sign-in waits for this answer")),
        }
    }
    async fn confirm(&self, _: &ServersOf, _: &str, _: &str) -> Result<(), Error> {
        Ok(())
    }
    async fn sign_out(&self, _: &ServersOf, _: &str) -> Result<(), Error> {
        Ok(())
    }
    async fn forget(&self, _: WorkspaceId) -> Result<(), Error> {
        Ok(())
    }
}

struct LocalStreams {
    feeds: Feeds,
    are_here: bool,
    see_clients_go: bool,
}

#[async_trait]
impl Streams for LocalStreams {
    async fn open(
        &self,
        actor: ActorRef,
        first: u64,
        headers: &HeaderMap,
        after: Option<&str>,
    ) -> ports::Result<Response> {
        stream::events(&self.feeds, actor, Start::Turn(first), headers, after).await
    }
    fn are_here(&self) -> bool {
        self.are_here
    }
    fn see_clients_go(&self) -> bool {
        self.see_clients_go
    }
    async fn open_projected(
        &self,
        actor: ActorRef,
        projection: Box<dyn protocols::Projection<Event = domain::ChatEvent>>,
        span: protocols::Span,
        headers: &HeaderMap,
        after: Option<&str>,
    ) -> ports::Result<Response> {
        self.feeds.projected(actor, projection, span, stream::Cursor::from_request(headers, after)).await
    }
    async fn open_task(
        &self,
        actor: ActorRef,
        projection: Box<dyn protocols::Projection<Event = TaskEvent>>,
        span: protocols::Span,
        headers: &HeaderMap,
    ) -> ports::Result<Response> {
        self.feeds.projected(actor, projection, span, stream::Cursor::from_request(headers, None)).await
    }
    /// These tests ask only who may watch; deployables test the changes themselves.
    async fn open_changes(
        &self,
        _: WorkspaceId,
        _: workspace::Access,
        _: Vec<buildscale_api::Followed>,
        _: &HeaderMap,
        _: Option<&str>,
    ) -> ports::Result<Response> {
        let mut response = Response::new(axum::body::Body::from("id: 1\nevent: cursor\n\n"));
        response.headers_mut().insert("content-type", http::HeaderValue::from_static("text/event-stream"));
        Ok(response)
    }
}

impl Door {
    pub fn open() -> Self {
        Self::with(Setup::default())
    }

    pub fn with(setup: Setup) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = setup.clock.clone();
        let store = Store::open(folder.path().join("test.sqlite3"), clock.clone(), Options::default()).unwrap();
        let files = folder.path().join("workspaces");
        let blobs = Arc::new(LocalBlobs::new(&files));
        let calls = Crash::never();
        let table = calls.table(Arc::new(Spilling::new(store.table(), blobs.clone())));
        let queue = calls.queue(store.queue());
        let bus: Arc<dyn Bus> = Arc::new(LocalBus::new());
        let mut workspaces = Workspaces::new(table.clone(), blobs, clock.clone(), files.clone());
        let indexes = Arc::new(embedded::LocalIndexes::new(&files));
        let search = search::Search::new(workspaces.clone(), indexes, clock.clone());
        let mut tools = tools::Registry::builtin().with_search(search);
        if let Some(observer) = setup.handoffs {
            workspaces.hand_off_to(observer);
        }
        if let Some(sandboxes) = setup.sandboxes {
            workspaces = workspaces.with_sandboxes(sandboxes);
            tools = tools.with_commands(tools::Commands::default());
        }
        let settings = Settings::default();
        let chats = Chats::new(table.clone(), queue.clone(), bus.clone(), clock.clone(), workspaces.clone(), settings);
        let flows = Flows::new(table.clone(), workspaces.clone(), FlowCache::default(), KnownNames::default());
        let tasks = Tasks::new(table.clone(), queue.clone(), bus.clone(), clock.clone(), workspaces.clone(), flows)
            .with_most_waiting(setup.most_waiting);
        let shutdown = CancellationToken::new();
        let feeds = Feeds::new(table.clone(), bus.clone(), FeedOptions::default(), Arc::default(), shutdown.clone());
        let Setup { auth, origins, ready, models, knows_model, agents, folders, has_streams, sees_clients_go, .. } =
            setup;
        let full = Arc::new(AtomicBool::new(false));
        let base = Arc::new(StreamContext {
            chats: chats.reader(),
            tasks: tasks.reader(),
            workspaces: workspaces.clone(),
            streams: Arc::new(LocalStreams { feeds, are_here: has_streams, see_clients_go: sees_clients_go }),
            table: table.clone(),
            bus: bus.clone(),
            clock: clock.clone(),
            auth,
            origins,
            ready,
            has_room: Box::new({
                let full = full.clone();
                move || !full.load(Ordering::SeqCst)
            }),
            dead_letters: Some(store.queue()),
            notes: Vec::new(),
            metrics: vec![Box::new(|out: &mut String| out.push_str("others_total 7\n"))],
        });
        let streams = buildscale_api::streams(base.clone());
        let mailbox = actor::Mailbox { queue: queue.clone(), table: table.clone(), bus: bus.clone() };
        let schedules = schedule::Schedules::new(table.clone(), mailbox, clock.clone(), workspaces.clone());
        let key = ports::Secret::new("a key of webhooks, of at least thirty-two bytes");
        let keys = webhooks::HookKeys::new(&key).unwrap();
        let posts = Arc::new(sinks::HttpPosts::new(false).unwrap());
        let hooks = webhooks::HookSetup::new(keys, posts);
        let webhooks = webhooks::Webhooks::new(table.clone(), queue.clone(), clock.clone(), workspaces.clone())
            .set_up(Some(hooks));
        let context = Context {
            base,
            schedules,
            webhooks,
            chats: chats.with_models(knows_model.clone()),
            evaluations: evaluation::Evaluations::new(tasks.clone(), workspaces, table.clone(), queue.clone(), clock),
            tasks,
            tools: Arc::new(tools),
            models,
            knows_model,
            agents,
            folders,
            accounts: Some(Arc::new(Accounts)),
        };
        let context = Arc::new(context);
        let taken = AtomicUsize::new(0);
        Self { router: buildscale_api::router(context), streams, table, calls, queue, taken, full, shutdown, folder }
    }

    /// The bodies of the messages that were sent since this was asked last.
    pub async fn take_messages(&self) -> Vec<String> {
        let sent = self.calls.names().iter().filter(|name| **name == "queue.send").count();
        let mut bodies = Vec::new();
        while self.taken.load(Ordering::SeqCst) < sent {
            for delivery in self.queue.receive(10, Duration::from_secs(3600)).await.unwrap() {
                assert!(self.queue.ack(&[delivery.receipt]).await.unwrap());
                self.taken.fetch_add(1, Ordering::SeqCst);
                bodies.push(delivery.body);
            }
        }
        bodies
    }

    /// Sends a request as it is.
    pub async fn send(&self, request: Request<Body>) -> Response {
        self.router.clone().oneshot(request).await.unwrap()
    }

    /// Sends a request and reads the whole answer; checks the answer against the document.
    pub async fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: impl Into<Body>) -> Reply {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = self.send(request.body(body.into()).unwrap()).await;
        let (parts, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap();
        let is_json = parts.headers.get("content-type").is_some_and(|kind| kind == "application/json");
        let json = if is_json { serde_json::from_slice(&bytes).unwrap() } else { Value::Null };
        let reply = Reply { status: parts.status, headers: parts.headers, bytes, json };
        assert!(!reply.header("x-request-id").is_empty(), "{method} {path} has no request id");
        for name in reply.headers.keys() {
            let can_be_read = buildscale_api::EXPOSED.contains(name) || OF_NO_USE.contains(&name.as_str());
            assert!(can_be_read, "pages cannot read {name} of {method} {path}: add it to EXPOSED of api/src/cors.rs");
        }
        if is_json {
            check(method, path, &reply);
        }
        reply
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.ask("GET", path, &[], Body::empty()).await
    }

    pub async fn json(&self, method: &str, path: &str, body: Value) -> Reply {
        self.ask(method, path, &[("content-type", "application/json")], body.to_string()).await
    }

    pub async fn keyed(&self, key: &str, path: &str, body: Value) -> Reply {
        let headers = [("content-type", "application/json"), ("idempotency-key", key)];
        self.ask("POST", path, &headers, body.to_string()).await
    }

    /// The path of a new workspace.
    pub async fn workspace(&self) -> String {
        let made = self.json("POST", "/api/v1/workspaces", json!({ "name": "Test" })).await.is(201);
        format!("/api/v1/workspaces/{}", made.text("workspace_id"))
    }

    /// A file with one version: its path under the API.
    pub async fn file(&self, workspace: &str, path: &str, content: &str) -> String {
        let body = json!({ "path": path, "content": content });
        let made = self.json("POST", &format!("{workspace}/files"), body).await.is(201);
        format!("{workspace}/files/{}", made.text("file_id"))
    }

    /// A chat without a worker: its path under the API, and its id.
    pub async fn chat(&self, workspace: &str) -> (String, String) {
        let made = self.json("POST", &format!("{workspace}/chats"), json!({ "goal": "Write a report" })).await.is(202);
        let id = made.text("chat_id");
        (format!("{workspace}/chats/{id}"), id)
    }

    /// Appends these events to the log of a chat that has none, as a worker would.
    pub async fn put_events(&self, chat: &str, events: Vec<ChatEvent>) {
        let (workspace, id) = ids(chat);
        self.put_log(chat::actor_id(workspace, id.parse().unwrap()), 1, Vec::new(), events).await;
    }

    /// The same behind others: as an entry whose first event has this number.
    pub async fn put_events_from(&self, first: u64, chat: &str, events: Vec<ChatEvent>) {
        let (workspace, id) = ids(chat);
        self.put_log(chat::actor_id(workspace, id.parse().unwrap()), first, Vec::new(), events).await;
    }

    /// The same, as what this command led to.
    pub async fn put_events_of(&self, command: CommandId, chat: &str, events: Vec<ChatEvent>) {
        let (workspace, id) = ids(chat);
        self.put_log(chat::actor_id(workspace, id.parse().unwrap()), 1, vec![command], events).await;
    }

    /// The same for a task.
    pub async fn put_task_events(&self, task: &str, events: Vec<TaskEvent>) {
        let (workspace, id) = ids(task);
        self.put_log(engine::machine::actor_id(workspace, id.parse().unwrap()), 1, Vec::new(), events).await;
    }

    async fn put_log<E: serde::Serialize>(&self, actor: ActorId, first: u64, commands: Vec<CommandId>, events: Vec<E>) {
        let (at, step, next) = (Timestamp::from_millis(0), uuid::Uuid::nil(), first + events.len() as u64);
        let entry = actor::Entry { first, next, at, step, commands, events, outbox: Vec::new(), parking: None };
        let key = actor.entry_key(first);
        let put = ports::Write::put(key, serde_json::to_string(&entry).unwrap(), ports::Expect::Absent);
        self.table.commit(vec![put]).await.unwrap();
    }

    /// Notes that a chat asked for a permission, as a worker would.
    pub async fn put_permission(&self, chat: &str, permission: uuid::Uuid) {
        let (workspace, id) = ids(chat);
        let key = ports::Key::new(format!("{workspace}/permissions"), permission.to_string());
        let put = ports::Write::put(key, Value::from(id).to_string(), ports::Expect::Absent);
        self.table.commit(vec![put]).await.unwrap();
    }

    /// Changes the view of a chat as a worker would.
    pub async fn put_view(&self, chat: &str, fields: Value) {
        self.put_view_of("chats", chat, fields).await;
    }

    /// Changes the view of a task as a worker would.
    pub async fn put_task_view(&self, task: &str, fields: Value) {
        self.put_view_of("tasks", task, fields).await;
    }

    /// Grants a rule for all chats of a workspace: its id.
    pub async fn put_standing_rule(&self, workspace: &str, rule: &domain::PermissionRule) -> String {
        let id = format!(
            "{:016x}",
            rule.id().bytes().fold(0_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()))
        );
        let granted = chat::StandingRule {
            rule_id: id.clone(),
            scope: chat::RuleScope::Workspace,
            rule: rule.clone(),
            cwd: None,
            by: domain::Principal::local().user(),
            at: SystemClock.now(),
        };
        let workspace = workspace.rsplit('/').next().unwrap();
        let key = ports::Key::new(format!("{workspace}/rules"), format!("workspace/{id}"));
        let put = ports::Write::put(key, serde_json::to_string(&granted).unwrap(), ports::Expect::Any);
        self.table.commit(vec![put]).await.unwrap();
        id
    }

    async fn put_view_of(&self, kind: &str, path: &str, fields: Value) {
        let (workspace, id) = ids(path);
        let key = ports::Key::new(format!("{workspace}/{kind}"), id);
        let item = self.table.get(&key).await.unwrap().unwrap();
        let mut view: Value = serde_json::from_str(&item.body).unwrap();
        view.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let put = ports::Write::put(key, view.to_string(), ports::Expect::Any).indexed(item.index.unwrap());
        self.table.commit(vec![put]).await.unwrap();
    }
}

/// The workspace and the id in the path of a chat or a task.
fn ids(chat: &str) -> (WorkspaceId, &str) {
    let mut parts = chat.rsplit('/');
    let (id, _, workspace) = (parts.next().unwrap(), parts.next(), parts.next().unwrap());
    (workspace.parse().unwrap(), id)
}

/// A moment long ago.
pub fn long_ago() -> String {
    Timestamp::from_millis(0).to_string()
}
