//! Chats and their services, in memory.

use actor::{Content, EntryObservers, Envelope, Runtime};
use async_trait::async_trait;
use buildscale_chat::{ChatEffects, ChatMachine, Chats, Settings, SimpleGate, StandingRuleObserver, Transcript};
use domain::{ActorRef, Message, Principal, StopReason, TaskCommand, TaskId, Usage, WorkspaceId, task::AgentAnswer};
use futures::{StreamExt, stream};
use ports::{
    Clock, Delta, Model, ModelError, ModelInfo, ModelRequest, ModelStream, NoAgents, QueueReceiver, Spilling, Table,
    ToolServers,
};
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use tempfile::TempDir;
use testkit::{
    TestClock,
    fakes::{FakeBlobs, FakeBus, FakeQueue, FakeTable, Faults},
};
use tokio_util::sync::CancellationToken;
use tools::Registry;
use workspace::{Expect, Workspaces, Writer};

/// Looks around when it is told to, then says how many tools it was shown.
struct LooksAround;

#[async_trait]
impl Model for LooksAround {
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let call = |tool: &str, args: &str| Delta::Call { tool: tool.into(), args: args.into() };
        let mut deltas = match request.messages.last().map(AsRef::as_ref) {
            Some(Message::User { content, .. }) if content.starts_with("look") => vec![
                call("look", ""),
                call("read", r#"{"path": "/projects/app/in.md"}"#),
                call("read", r#"{"path": "/projects/app/none.md"}"#),
                call("read", r#"{"path": "/data/secret.md"}"#),
                call("rm", r#"{"path": "/projects/app/in.md"}"#),
            ],
            _ => vec![Delta::Text(format!("{} tools", request.tools.len()))],
        };
        let usage = Usage { input_tokens: 7, ..Usage::default() };
        deltas.push(Delta::End { reason: StopReason::EndTurn, usage, provider: Value::Null, model: None });
        Ok(stream::iter(deltas.into_iter().map(Ok)).boxed())
    }

    fn catalog(&self) -> Vec<ModelInfo> {
        Vec::new()
    }
}

pub struct Hub {
    pub workspace: WorkspaceId,
    pub workspaces: Workspaces,
    pub table: Arc<FakeTable>,
    pub blobs: Arc<FakeBlobs>,
    pub queue: Arc<FakeQueue>,
    pub clock: Arc<TestClock>,
    pub runtime: Runtime<ChatMachine>,
    pub chats: Chats,
    /// The table as actors see it: with what is too long for it.
    pub log: Arc<dyn Table>,
    _root: TempDir,
}

impl Hub {
    pub async fn new() -> Self {
        Self::with(Arc::new(LooksAround)).await
    }

    pub async fn with(model: Arc<dyn Model>) -> Self {
        Self::over(model, |_, fake, _| fake).await
    }

    /// With the tools of these servers.
    pub async fn serving(model: Arc<dyn Model>, servers: Arc<dyn ToolServers>) -> Self {
        Self::built(model, |_, fake, _| fake, Registry::builtin().with_servers(servers)).await
    }

    /// Over another table than the fake one: it gets the clock and a folder.
    pub async fn over(
        model: Arc<dyn Model>,
        store: impl FnOnce(Arc<TestClock>, Arc<dyn Table>, &std::path::Path) -> Arc<dyn Table>,
    ) -> Self {
        Self::built(model, store, Registry::builtin()).await
    }

    /// With these tools, over another table than the fake one.
    pub async fn built(
        model: Arc<dyn Model>,
        store: impl FnOnce(Arc<TestClock>, Arc<dyn Table>, &std::path::Path) -> Arc<dyn Table>,
        tools: Registry,
    ) -> Self {
        let (clock, root) = (Arc::new(TestClock::new(1)), TempDir::new().unwrap());
        let fake = Arc::new(FakeTable::new(clock.clone(), 1, Faults::none()));
        let table = store(clock.clone(), fake.clone(), root.path());
        let blobs = Arc::new(FakeBlobs::new(1, Faults::none()));
        let queue = Arc::new(FakeQueue::new(clock.clone(), 1, Faults::none(), 100));
        let bus = Arc::new(FakeBus::new(1, Faults::none()));
        let workspaces = Workspaces::new(table.clone(), blobs.clone(), clock.clone(), root.path().into());
        let workspace = WorkspaceId(clock.id());
        workspaces.create(workspace, "test", &Principal::local()).await.unwrap();
        let tools = Arc::new(tools);
        let machine = ChatMachine {
            gate: Arc::new(SimpleGate::default()),
            tools: tools.clone(),
            question_timeout: Duration::from_secs(60),
            places: None,
            cost: Arc::new(|_, _| 0.0),
        };
        let perform = Arc::new(ChatEffects {
            model,
            tools,
            workspaces: workspaces.clone(),
            agents: Arc::new(NoAgents::default()),
            clock: clock.clone(),
            mailbox: actor::Mailbox { queue: queue.clone(), table: table.clone(), bus: bus.clone() },
        });
        let spilling: Arc<dyn Table> = Arc::new(Spilling::new(table.clone(), blobs.clone()));
        let settings = Settings::default();
        let chats =
            Chats::new(spilling.clone(), queue.clone(), bus.clone(), clock.clone(), workspaces.clone(), settings);
        let transcript = Arc::new(Transcript::new(table.clone(), workspaces.clone()));
        let standing = Arc::new(StandingRuleObserver(chats.clone()));
        let follow = Arc::new(EntryObservers::<ChatMachine>(vec![transcript, standing]));
        let runtime = Runtime::new(
            machine,
            perform,
            spilling.clone(),
            queue.clone(),
            bus,
            clock.clone(),
            follow,
            actor::Options::default(),
        );
        let log = spilling;
        Self { workspace, workspaces, table: fake, blobs, queue, clock, runtime, chats, log, _root: root }
    }

    pub async fn put(&self, path: &str, text: &str) {
        let files = self.workspaces.open(self.workspace, workspace::Access::platform("a test")).await.unwrap();
        let writer = Writer::new(Principal::local());
        files.write(&path.parse().unwrap(), text.to_owned(), Expect::Any, &writer).await.unwrap();
    }

    pub async fn drive(&self) {
        for delivery in self.queue.receive(10, Duration::from_secs(30)).await.unwrap() {
            let verdict = self.runtime.deliver(std::slice::from_ref(&delivery), &CancellationToken::new()).await;
            assert_eq!(verdict.done, 1);
            assert!(self.queue.ack(&[delivery.receipt]).await.unwrap());
        }
    }

    /// Drives until nothing waits, as a worker does: failed work comes again later.
    pub async fn settle(&self) {
        while !self.queue.is_empty() {
            let deliveries = self.queue.receive(10, Duration::from_secs(30)).await.unwrap();
            for batch in deliveries.chunk_by(|one, next| one.group == next.group) {
                let verdict = self.runtime.deliver(batch, &CancellationToken::new()).await;
                let receipts: Vec<_> = batch.iter().map(|delivery| delivery.receipt.clone()).collect();
                let (done, again) = receipts.split_at(verdict.done);
                assert!(done.is_empty() || self.queue.ack(done).await.unwrap());
                assert!(again.is_empty() || self.queue.reject(again, verdict.again).await.unwrap());
            }
        }
    }

    /// The reports to a task, from the messages that wait for it.
    pub fn told(&self, task: TaskId) -> Vec<AgentAnswer> {
        let group = ActorRef::Task { workspace: self.workspace, task }.to_string();
        let messages = self.queue.messages().into_iter().filter(|message| message.group == group);
        let answer = |envelope: Envelope<TaskCommand>| match envelope.content {
            Content::Command { body: TaskCommand::AgentAnswered { answer } } => *answer,
            other => panic!("{other:?}"),
        };
        messages.map(|message| answer(serde_json::from_str(&message.body).unwrap())).collect()
    }
}
