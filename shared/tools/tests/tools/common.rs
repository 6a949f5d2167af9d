//! An agent, or a person, with tools over a workspace in memory and on disk.

use async_trait::async_trait;
use buildscale_tools::{Call, CallOutcome, Registry};
use domain::{CallId, ChatEvent, ChatId, Code, FilePath, Principal, Sha256, UserId, WorkspaceId};
use futures::future::BoxFuture;
use parking_lot::Mutex;
use ports::{IndexQuery, Item, Key, Page, Query, Table, Write};
use std::{collections::BTreeMap, sync::Arc};
use tempfile::TempDir;
use testkit::{
    TestClock,
    fakes::{FakeBlobs, FakeTable, Faults},
};
use uuid::Uuid;
use workspace::{Expect, Workspace, Workspaces, Writer};

pub struct Hands {
    pub workspace: Workspace,
    pub by: Principal,
    pub chat: Option<ChatId>,
    pub seen: BTreeMap<FilePath, Option<Sha256>>,
    pub events: Vec<ChatEvent>,
    pub registry: Registry,
    machine: Machine,
}

/// A table that does something right after the first look for the change of a call.
struct Late {
    table: Arc<FakeTable>,
    call: CallId,
    meanwhile: Mutex<Option<BoxFuture<'static, ()>>>,
}

#[async_trait]
impl Table for Late {
    async fn get(&self, key: &Key) -> ports::Result<Option<Item>> {
        let found = self.table.get(key).await;
        let is_look = format!("{key:?}").contains(&self.call.to_string());
        let meanwhile = is_look.then(|| self.meanwhile.lock().take()).flatten();
        if let Some(meanwhile) = meanwhile {
            meanwhile.await;
        }
        found
    }
    async fn query(&self, query: &Query) -> ports::Result<Page> {
        self.table.query(query).await
    }
    async fn query_index(&self, query: &IndexQuery) -> ports::Result<Page> {
        self.table.query_index(query).await
    }
    async fn commit(&self, writes: Vec<Write>) -> ports::Result<()> {
        self.table.commit(writes).await
    }
}

/// Stores, and a disk.
#[derive(Clone)]
struct Machine {
    clock: Arc<TestClock>,
    table: Arc<FakeTable>,
    blobs: Arc<FakeBlobs>,
    root: Arc<TempDir>,
    _all: Option<Workspaces>,
}

impl Machine {
    fn new() -> Self {
        let clock = Arc::new(TestClock::new(1));
        let table = Arc::new(FakeTable::new(clock.clone(), 1, Faults::none()));
        let blobs = Arc::new(FakeBlobs::new(1, Faults::none()));
        Self { clock, table, blobs, root: Arc::new(TempDir::new().unwrap()), _all: None }
    }

    /// Another one, over the same stores.
    fn another(&self) -> Self {
        Self { root: Arc::new(TempDir::new().unwrap()), _all: None, ..self.clone() }
    }

    fn workspaces(&self) -> Workspaces {
        let (table, blobs, clock) = (self.table.clone(), self.blobs.clone(), self.clock.clone());
        Workspaces::new(table, blobs, clock, self.root.path().into())
    }
}

impl Hands {
    pub async fn agent() -> Self {
        let machine = Machine::new();
        let all = machine.workspaces();
        let id = WorkspaceId(Uuid::now_v7());
        all.create(id, "test", &Principal::local()).await.unwrap();
        let workspace = all.open(id, workspace::Access::platform("a test")).await.unwrap();
        let chat = ChatId(Uuid::now_v7());
        let by = Principal::Agent { role: "assistant".into(), chat, user: UserId(Uuid::nil()) };
        let (seen, events, registry) = (BTreeMap::new(), Vec::new(), Registry::builtin());
        Self {
            workspace,
            by,
            chat: Some(chat),
            seen,
            events,
            registry,
            machine: Machine { _all: Some(all), ..machine },
        }
    }

    /// Another one in the same workspace, with no memory.
    pub fn other(&self, by: Principal) -> Self {
        let (workspace, registry, machine) = (self.workspace.clone(), self.registry.clone(), self.machine.clone());
        Self { workspace, by, chat: None, seen: BTreeMap::new(), events: Vec::new(), registry, machine }
    }

    pub fn person(&self) -> Self {
        self.other(Principal::local())
    }

    /// Another person, who has no role there: they look, and have a home.
    pub async fn viewer(&self) -> Self {
        let by = Principal::User { id: UserId(Uuid::now_v7()) };
        let all = self.machine.workspaces();
        let workspace = all.open(self.workspace.id(), workspace::Access::of(&by, None)).await.unwrap();
        let machine = Machine { _all: Some(all), ..self.machine.clone() };
        Self { workspace, machine, ..self.other(by) }
    }

    /// A person in the same workspace on another machine, whose disk is an empty cache.
    pub async fn elsewhere(&self) -> Self {
        let machine = self.machine.another();
        let all = machine.workspaces().caching(workspace::Budget::default());
        self.on(machine, all).await
    }

    /// The same, with the use of these sandboxes.
    pub async fn elsewhere_with(&self, sandboxes: Arc<dyn ports::Sandboxes>) -> Self {
        let machine = self.machine.another();
        let all = machine.workspaces().caching(workspace::Budget::default()).with_sandboxes(sandboxes);
        self.on(machine, all).await
    }

    /// The same person on the same machine, with the use of these sandboxes.
    pub async fn with_sandboxes(&self, sandboxes: Arc<dyn ports::Sandboxes>) -> Self {
        let machine = self.machine.clone();
        let all = machine.workspaces().with_sandboxes(sandboxes);
        self.on(machine, all).await
    }

    /// The same one on the same machine, with the use of these sandboxes, and with the rights that policies give it.
    pub async fn judged_with(&self, sandboxes: Arc<dyn ports::Sandboxes>) -> Self {
        let machine = self.machine.clone();
        let all = machine.workspaces().with_sandboxes(sandboxes);
        let access = workspace::Access::of(&self.by, None);
        let workspace = all.open(self.workspace.id(), access).await.unwrap();
        Self { workspace, machine: Machine { _all: Some(all), ..machine }, ..self.other(self.by.clone()) }
    }

    /// The same one on another machine, where the table does `meanwhile` right after the first look for the change of a call.
    pub async fn late(&self, call: CallId, meanwhile: BoxFuture<'static, ()>) -> Self {
        let machine = self.machine.another();
        let table = Late { table: machine.table.clone(), call, meanwhile: Mutex::new(Some(meanwhile)) };
        let (blobs, clock, root) = (machine.blobs.clone(), machine.clock.clone(), machine.root.path().into());
        let all = Workspaces::new(Arc::new(table), blobs, clock, root).caching(workspace::Budget::default());
        Self { by: self.by.clone(), seen: self.seen.clone(), ..self.on(machine, all).await }
    }

    async fn on(&self, machine: Machine, all: Workspaces) -> Self {
        let access = workspace::Access::platform("a test");
        let workspace = all.open(self.workspace.id(), access).await.unwrap();
        Self { workspace, machine: Machine { _all: Some(all), ..machine }, ..self.person() }
    }

    pub async fn call(&mut self, tool: &str, args: &str) -> CallOutcome {
        self.call_as(CallId(Uuid::now_v7()), tool, args).await
    }

    pub async fn call_as(&mut self, call_id: CallId, tool: &str, args: &str) -> CallOutcome {
        let (workspace, by, chat) = (self.workspace.clone(), self.by.clone(), self.chat);
        let call = Call { chat, seen: &self.seen, may_run: true, ..Call::outside(workspace, call_id, by) };
        let outcome = self.registry.call(&call, tool, args).await;
        assert_eq!(outcome.success, outcome.error.is_none());
        assert!(outcome.output.len() < 60_000, "an answer is capped");
        self.seen.extend(outcome.seen.clone());
        self.events.extend(outcome.events.clone());
        outcome
    }

    /// Its output, of a call that has to succeed.
    pub async fn ok(&mut self, tool: &str, args: &str) -> String {
        let outcome = self.call(tool, args).await;
        assert!(outcome.success, "{tool} {args}: {}", outcome.output);
        outcome.output
    }

    /// The message and code of a call that has to fail.
    pub async fn refused(&mut self, tool: &str, args: &str) -> (Code, String) {
        let outcome = self.call(tool, args).await;
        let error = outcome.error.unwrap_or_else(|| panic!("{tool} {args} succeeded: {}", outcome.output));
        assert!(outcome.events.is_empty() && outcome.seen.is_empty());
        (error.code, outcome.output)
    }

    /// Puts a file there behind its back.
    pub async fn put(&self, path: &str, content: impl Into<Vec<u8>>) {
        let path = FilePath::parse(path).unwrap();
        let writer = Writer::new(Principal::local());
        self.workspace.write(&path, content.into(), Expect::Any, &writer).await.unwrap();
    }

    /// Damages the entry of a file or folder.
    pub async fn damage(&self, folder: &str, name: &str) {
        let folder = self.workspace.stat(&FilePath::parse(folder).unwrap()).await.unwrap().file_id;
        let key = Key::new(format!("{}/dir/{folder}", self.workspace.id()), name);
        self.machine.table.damage(&key, "{}");
    }

    pub async fn text(&self, path: &str) -> String {
        let content = self.workspace.read(&FilePath::parse(path).unwrap(), None).await.unwrap();
        String::from_utf8(content.bytes.to_vec()).unwrap()
    }
}

/// Asserts that the text has each of the parts.
#[track_caller]
pub fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
}
