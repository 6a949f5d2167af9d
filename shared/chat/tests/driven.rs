//! The chat of a task's agent, driven by the runtime over real tools: what the task is told, and what people see of it.
#![expect(clippy::unwrap_used, reason = "tests")]

use actor::{ActorId, Content, Mail, Runtime};
use async_trait::async_trait;
use chat::{ChatEffects, ChatMachine, Chats, Post, Settings, SimpleGate, Transcript, actor_id};
use domain::{
    AgentOf, AgentTool, AgentToolRuns, ChatCommand, ChatConfig, ChatId, Code, CommandId, FilePath, Limits, Message,
    Mode, Principal, Status, StopReason, TaskCommand, TaskId, Usage, WorkspaceId, task::AgentAnswer,
};
use futures::{StreamExt, stream};
use ports::{Clock, Delta, Model, ModelError, ModelInfo, ModelRequest, ModelStream, Queue};
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use tempfile::TempDir;
use testkit::{
    TestClock,
    fakes::{FakeBlobs, FakeBus, FakeQueue, FakeTable, Faults},
};
use tokio_util::sync::CancellationToken;
use tools::Registry;
use uuid::Uuid;
use workspace::{Expect, Workspaces, Writer};

/// Looks around, then says how many tools it was shown.
struct LooksAround;

#[async_trait]
impl Model for LooksAround {
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let call = |tool: &str, args: &str| Delta::Call { tool: tool.into(), args: args.into() };
        let mut deltas = match request.messages.last().map(AsRef::as_ref) {
            Some(Message::User { .. }) => vec![
                call("look", ""),
                call("read", r#"{"path": "/projects/app/in.md"}"#),
                call("read", r#"{"path": "/projects/app/none.md"}"#),
                call("read", r#"{"path": "/data/secret.md"}"#),
                call("rm", r#"{"path": "/projects/app/in.md"}"#),
            ],
            _ => vec![Delta::Text(format!("{} tools", request.tools.len()))],
        };
        let usage = Usage { input_tokens: 7, ..Usage::default() };
        deltas.push(Delta::End { reason: StopReason::EndTurn, usage, provider: Value::Null });
        Ok(stream::iter(deltas.into_iter().map(Ok)).boxed())
    }

    fn catalog(&self) -> Vec<ModelInfo> {
        Vec::new()
    }
}

struct Hub {
    workspace: WorkspaceId,
    workspaces: Workspaces,
    queue: Arc<FakeQueue>,
    clock: Arc<TestClock>,
    runtime: Runtime<ChatMachine>,
    chats: Chats,
    _root: TempDir,
}

impl Hub {
    async fn new() -> Self {
        let (clock, root) = (Arc::new(TestClock::new(1)), TempDir::new().unwrap());
        let table = Arc::new(FakeTable::new(clock.clone(), 1, Faults::none()));
        let blobs = Arc::new(FakeBlobs::new(1, Faults::none()));
        let queue = Arc::new(FakeQueue::new(clock.clone(), 1, Faults::none(), 100));
        let bus = Arc::new(FakeBus::new(1, Faults::none()));
        let workspaces = Workspaces::new(table.clone(), blobs, clock.clone(), root.path().into());
        let workspace = WorkspaceId(clock.id());
        workspaces.create(workspace, "test", &Principal::local()).await.unwrap();
        let tools = Arc::new(Registry::builtin());
        let machine = ChatMachine {
            gate: Arc::new(SimpleGate::default()),
            tools: tools.clone(),
            question_timeout: Duration::from_secs(60),
        };
        let perform = Arc::new(ChatEffects {
            model: Arc::new(LooksAround),
            tools,
            workspaces: workspaces.clone(),
            clock: clock.clone(),
            slots: actor::Slots::new(),
        });
        let follow = Arc::new(Transcript::new(table.clone(), workspaces.clone()));
        let runtime = Runtime::new(
            machine,
            perform,
            table.clone(),
            queue.clone(),
            bus.clone(),
            clock.clone(),
            follow,
            actor::Options::default(),
        );
        let settings = Settings::default();
        let chats = Chats::new(table, queue.clone(), bus, clock.clone(), workspaces.clone(), settings);
        Self { workspace, workspaces, queue, clock, runtime, chats, _root: root }
    }

    async fn put(&self, path: &str, text: &str) {
        let files = self.workspaces.open(self.workspace).await.unwrap();
        let writer = Writer::new(Principal::local());
        files.write(&path.parse().unwrap(), text.to_owned(), Expect::Any, &writer).await.unwrap();
    }

    async fn drive(&self) {
        for delivery in self.queue.receive(10, Duration::from_secs(30)).await.unwrap() {
            let verdict = self.runtime.deliver(std::slice::from_ref(&delivery), &CancellationToken::new()).await;
            assert_eq!(verdict.done, 1);
            assert!(self.queue.ack(&[delivery.receipt]).await.unwrap());
        }
    }

    /// What a task was told, by the messages that wait for it.
    fn told(&self, task: TaskId) -> Vec<AgentAnswer> {
        let group = ActorId::new("task", format_args!("{}/{task}", self.workspace));
        let messages = self.queue.messages().into_iter().filter(|message| message.group == group.as_str());
        let answer = |mail: Mail<TaskCommand>| match mail.content {
            Content::Command { body: TaskCommand::AgentAnswered { answer } } => *answer,
            other => panic!("{other:?}"),
        };
        messages.map(|message| answer(serde_json::from_str(&message.body).unwrap())).collect()
    }
}

fn agent_of(workspace: WorkspaceId, task: TaskId, chat: ChatId) -> ChatConfig {
    let root = Some("/projects/app".parse().unwrap());
    let tool = |name: &str, runs| AgentTool { name: name.into(), description: None, runs, root: root.clone() };
    let tools = vec![tool("read", AgentToolRuns::Named), tool("look", AgentToolRuns::Builtin("ls".into()))];
    ChatConfig {
        workspace,
        chat,
        user: Principal::local().user(),
        title: "review/coder".into(),
        role: "coder".into(),
        model: None,
        mode: Mode::Chat,
        limits: Limits::default(),
        system: String::new(),
        context_tokens: 10_000,
        created_at: domain::Timestamp::default(),
        agent: Some(Box::new(AgentOf {
            task,
            node: "code".into(),
            tools,
            temperature: None,
            max_tokens: None,
            turns: Vec::new(),
            flow: None,
        })),
    }
}

#[tokio::test]
async fn a_task_is_told_once_and_people_only_watch() {
    let hub = Hub::new().await;
    hub.put("/projects/app/in.md", "inside").await;
    hub.put("/data/secret.md", "secret").await;
    let (task, chat) = (TaskId(hub.clock.id()), ChatId(hub.clock.id()));
    let body = ChatCommand::StartTurn {
        content: "look around".into(),
        files: Vec::new(),
        context: String::new(),
        create: Some(Box::new(agent_of(hub.workspace, task, chat))),
        limits: None,
        interrupt: false,
    };
    let mail = Mail {
        id: CommandId(hub.clock.id()),
        at: hub.clock.now(),
        by: Principal::System,
        content: Content::Command { body },
    };
    hub.queue.send(vec![mail.to(&actor_id(hub.workspace, chat)).unwrap()]).await.unwrap();
    hub.drive().await;

    let told = hub.told(task);
    let [report] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!((report.chat, report.round, report.text.as_str()), (chat, 1, "2 tools"));
    assert_eq!((report.stop_reason.as_str(), report.steps, report.usage.input_tokens), ("end_turn", 2, 14));
    let used: Vec<_> = report.tools.iter().map(|used| (used.tool.as_str(), used.status)).collect();
    use Status::{Failure, Partial, Success};
    assert_eq!(used, [("look", Success), ("read", Success), ("read", Partial), ("read", Failure), ("rm", Failure)]);
    let listed = &report.tools[0].output;
    assert!(listed.contains("in.md") && !listed.contains("system"), "ls begins at its root: {listed}");
    assert!(report.tools[1].output.contains("inside") && report.tools[3].output.contains("FORBIDDEN"));

    let (by, people) = (Principal::local(), hub.chats.list(hub.workspace, 10, None).await.unwrap());
    assert_eq!(people.chats, [], "it is on no list");
    let of_task = hub.chats.of_task(hub.workspace, task, 10, None).await.unwrap();
    assert_eq!(of_task.chats.iter().map(|chat| chat.chat_id).collect::<Vec<_>>(), [chat]);
    assert_eq!(hub.chats.of_task(WorkspaceId(Uuid::nil()), task, 10, None).await.unwrap().chats, []);
    let view = hub.chats.get(hub.workspace, chat).await.unwrap();
    assert_eq!((view.task_id, view.turns), (Some(task), 1));
    let history = hub.chats.history(hub.workspace, chat, 0, 100).await.unwrap();
    assert_eq!(history.messages.len(), 1 + 1 + 5 + 1);

    let post = Post { content: "me, too".into(), ..Post::default() };
    let refused = hub.chats.post(hub.workspace, chat, CommandId(hub.clock.id()), post, &by).await.unwrap_err();
    assert!(refused.code == Code::Conflict && refused.hint.unwrap().contains(&task.to_string()));
    let configured = hub.chats.configure(hub.workspace, chat, None, None, Some(Mode::Plan), &by).await;
    assert_eq!(configured.unwrap_err().code, Code::Conflict);

    let files = hub.workspaces.open(hub.workspace).await.unwrap();
    let file: FilePath = format!("/chats/{chat}.md").parse().unwrap();
    assert_eq!(files.stat(&file).await.unwrap_err().code, Code::NotFound, "the task has what was said");
    let usage = hub.chats.usage(hub.workspace, "0000-01-01", "9999-12-31").await.unwrap();
    assert_eq!(usage.iter().map(|turn| (turn.task_id, turn.calls)).collect::<Vec<_>>(), [(Some(task), 2)]);
    assert_eq!(hub.queue.messages().len(), 1, "nothing else waits");
}
