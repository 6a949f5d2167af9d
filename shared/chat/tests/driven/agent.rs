//! The chat of a task's agent: reports to the task, and its view for people.

use crate::hub::Hub;
use actor::{Content, Envelope};
use buildscale_chat::{NewMessage, Setup, actor_id};
use domain::{
    AgentOf, AgentTool, AgentToolRuns, ChatCommand, ChatConfig, ChatId, Code, CommandId, FilePath, Limits, Mode,
    ModelSettings, Principal, Status, TaskId, TurnRequest, WorkspaceId,
};
use ports::{Clock, QueueSender};
use uuid::Uuid;

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
        model_settings: ModelSettings::default(),
        mode: Mode::Chat,
        limits: Limits::default(),
        system: String::new(),
        cut: Vec::new(),
        tools: None,
        plan: None,
        context_tokens: 10_000,
        created_at: domain::Timestamp::default(),
        agent: Some(Box::new(AgentOf {
            task,
            above: Vec::new(),
            node: "code".into(),
            tools,
            temperature: None,
            top_p: None,
            max_tokens: None,
            priority: 0,
            turns: Vec::new(),
            flow: None,
            no_home: false,
            executor: None,
        })),
        thread: None,
        forked_from: None,
        session: None,
        scenario: None,
        member: None,
        functions: Vec::new(),
        labels: domain::Labels::default(),
    }
}

#[tokio::test]
async fn a_task_is_told_once_and_people_only_watch() {
    let hub = Hub::new().await;
    hub.put("/projects/app/in.md", "inside").await;
    hub.put("/data/secret.md", "secret").await;
    let (task, chat) = (TaskId(hub.clock.id()), ChatId(hub.clock.id()));
    let body = ChatCommand::StartTurn(TurnRequest {
        content: "look around".into(),
        create: Some(Box::new(agent_of(hub.workspace, task, chat))),
        ..TurnRequest::default()
    });
    let envelope = Envelope {
        id: CommandId(hub.clock.id()),
        at: hub.clock.now(),
        by: Principal::System,
        content: Content::Command { body },
    };
    hub.queue.send(vec![envelope.to(&actor_id(hub.workspace, chat)).unwrap()]).await.unwrap();
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

    let post = NewMessage { content: "me, too".into(), ..NewMessage::default() };
    let refused = hub.chats.post(hub.workspace, chat, CommandId(hub.clock.id()), post, &by).await.unwrap_err();
    assert!(refused.code == Code::Conflict && refused.hint.unwrap().contains(&task.to_string()));
    let configured =
        hub.chats.configure(hub.workspace, chat, Setup { mode: Some(Mode::Plan), ..Setup::default() }, &by).await;
    assert_eq!(configured.unwrap_err().code, Code::Conflict);

    let files = hub.workspaces.open(hub.workspace, workspace::Access::platform("a test")).await.unwrap();
    let file: FilePath = format!("/chats/{chat}.md").parse().unwrap();
    assert_eq!(files.stat(&file).await.unwrap_err().code, Code::NotFound, "the task has what was said");
    let usage = hub.chats.usage(hub.workspace, "0000-01-01", "9999-12-31").await.unwrap();
    assert_eq!(usage.iter().map(|turn| (turn.task_id, turn.calls)).collect::<Vec<_>>(), [(Some(task), 2)]);
    assert_eq!(hub.queue.messages().len(), 1, "nothing else waits");
}
