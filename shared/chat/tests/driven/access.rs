//! Agents among policies: a question of the workspace's own, and homes of others.

use crate::hub::Hub;
use async_trait::async_trait;
use buildscale_chat::{Decision, NewChat, NewMessage};
use domain::{
    ChatEvent, ChatId, ChatStatus, CommandId, FilePath, Message, Principal, StopReason, Usage, UserId,
    event::PermissionOutcome,
};
use futures::{StreamExt, stream};
use parking_lot::Mutex;
use ports::{Clock, Delta, Model, ModelError, ModelInfo, ModelRequest, ModelStream};
use serde_json::{Value, json};
use std::sync::Arc;

const ANN: &str = "11111111-1111-4111-8111-111111111111";

/// Makes these calls, then says that it is done.
struct Calls(Vec<(&'static str, String)>);

#[async_trait]
impl Model for Calls {
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let is_first = matches!(request.messages.last().map(AsRef::as_ref), Some(Message::User { .. }));
        let calls = self.0.iter().map(|(tool, args)| Delta::Call { tool: (*tool).into(), args: args.clone() });
        let mut deltas: Vec<Delta> = if is_first { calls.collect() } else { vec![Delta::Text("done".into())] };
        let usage = Usage::default();
        deltas.push(Delta::End { reason: StopReason::EndTurn, usage, provider: Value::Null, model: None });
        Ok(stream::iter(deltas.into_iter().map(Ok)).boxed())
    }

    fn catalog(&self) -> Vec<ModelInfo> {
        Vec::new()
    }
}

fn calls(calls: &[(&'static str, Value)]) -> Arc<Calls> {
    Arc::new(Calls(calls.iter().map(|(tool, args)| (*tool, args.to_string())).collect()))
}

async fn talk(hub: &Hub, by: &Principal) -> ChatId {
    let (chat, command) = (ChatId(hub.clock.id()), CommandId(hub.clock.id()));
    let new = NewChat { goal: "work".into(), may_approve: true, ..NewChat::default() };
    hub.chats.create(hub.workspace, chat, command, new, by).await.unwrap();
    chat
}

async fn text_of(hub: &Hub, path: &str) -> Option<String> {
    let files = hub.workspaces.open(hub.workspace, workspace::Access::platform("a test")).await.unwrap();
    let content = files.read(&FilePath::parse(path).unwrap(), None).await.ok()?;
    Some(String::from_utf8(content.bytes.to_vec()).unwrap())
}

async fn events(hub: &Hub, chat: ChatId) -> Vec<ChatEvent> {
    let actor = buildscale_chat::actor_id(hub.workspace, chat);
    let page = actor::read_after::<ChatEvent>(&*hub.log, &actor, 0, 1000).await.unwrap();
    page.entries.into_iter().flat_map(|entry| entry.events).collect()
}

#[tokio::test]
async fn a_policy_of_the_workspace_asks_and_the_call_runs_after_a_yes() {
    for outcome in [PermissionOutcome::Approved, PermissionOutcome::Declined] {
        let model = calls(&[("write", json!({ "path": "/data/a.csv", "content": "1,2" }))]);
        let hub = Hub::with(model).await;
        let policy = r#"@id("ask-for-data") @why("data is checked") @decision("ask")
            forbid (principal is Agent, action == Action::"write", resource in Path::"/data");"#;
        hub.put("/system/policies/team.cedar", policy).await;
        let chat = talk(&hub, &Principal::local()).await;
        hub.drive().await;

        let view = hub.chats.look(hub.workspace, chat).await.unwrap();
        assert_eq!(view.status, ChatStatus::Suspended);
        let asked = &view.waiting_for[0];
        assert_eq!(asked["event"], "permission_required");
        assert!(asked["data"]["reason"].as_str().unwrap().contains("data is checked"), "{asked}");
        assert_eq!(text_of(&hub, "/data/a.csv").await, None, "nothing happens before the answer");

        let permission_id = serde_json::from_value(asked["data"]["permission_id"].clone()).unwrap();
        let (command, decision) = (CommandId(hub.clock.id()), Decision::new(permission_id, outcome));
        hub.chats.decide(hub.workspace, chat, command, decision, &Principal::local()).await.unwrap();
        hub.drive().await;
        let view = hub.chats.look(hub.workspace, chat).await.unwrap();
        assert_eq!(view.status, ChatStatus::Idle, "{:?}", events(&hub, chat).await);
        let written = (outcome == PermissionOutcome::Approved).then(|| "1,2".to_owned());
        assert_eq!(text_of(&hub, "/data/a.csv").await, written);
    }
}

#[tokio::test]
async fn an_agent_finds_nothing_of_the_home_of_another_person() {
    let home = format!("/users/{ANN}");
    let model = calls(&[
        ("ls", json!({ "path": "/users" })),
        ("glob", json!({ "pattern": "**/*.md" })),
        ("grep", json!({ "pattern": "heliotrope", "path": "/users" })),
        ("find", json!({ "name": "*.md", "path": "/users" })),
        ("read", json!({ "path": format!("{home}/draft.md") })),
        ("write", json!({ "path": format!("{home}/mine.md"), "content": "x" })),
        ("mv", json!({ "from": format!("{home}/draft.md"), "to": "/mine.md" })),
        ("mv", json!({ "from": "/projects/own.md", "to": format!("{home}/own.md") })),
        ("rm", json!({ "path": format!("{home}/mine.md") })),
    ]);
    for (user, sees) in [(UserId(uuid::Uuid::from_u128(9)), false), (ANN.parse().unwrap(), true)] {
        let hub = Hub::with(model.clone()).await;
        hub.put(&format!("{home}/draft.md"), "heliotrope").await;
        hub.put("/projects/own.md", "mine").await;
        let chat = talk(&hub, &Principal::User { id: user }).await;
        hub.settle().await;
        let seen = events(&hub, chat).await;
        let outputs: Vec<&str> = seen
            .iter()
            .filter_map(|event| match event {
                ChatEvent::Observed { output, .. } => Some(output.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(outputs.len(), 9, "{seen:?}");
        let searched = &outputs[..4];
        let tells = searched.iter().any(|output| output.contains(ANN) || output.contains("draft"));
        assert_eq!(tells, sees, "{outputs:#?}");
        let refused = outputs[4..].iter().filter(|output| output.contains("NOT_FOUND")).count();
        assert_eq!(refused == 5, !sees, "{outputs:#?}");
        assert_eq!(text_of(&hub, "/projects/own.md").await.is_some(), !sees, "{outputs:#?}");
    }
}

/// The outputs of the calls of a chat.
async fn outputs(hub: &Hub, chat: ChatId) -> Vec<String> {
    let observed = |event| match event {
        ChatEvent::Observed { output, .. } => Some(output),
        _ => None,
    };
    events(hub, chat).await.into_iter().filter_map(observed).collect()
}

#[tokio::test]
async fn the_home_of_a_person_does_not_exist_in_a_turn_that_another_person_begins() {
    let draft = format!("/users/{ANN}/draft.md");
    let hub = Hub::with(calls(&[("read", json!({ "path": draft }))])).await;
    hub.put(&draft, "heliotrope").await;
    let ann = Principal::User { id: ANN.parse().unwrap() };
    let chat = talk(&hub, &ann).await;
    hub.settle().await;
    for by in [Principal::User { id: UserId(uuid::Uuid::from_u128(9)) }, ann] {
        let words = NewMessage { content: "Read it to me.".into(), ..NewMessage::default() };
        hub.chats.post(hub.workspace, chat, CommandId(hub.clock.id()), words, &by).await.unwrap();
        hub.settle().await;
    }
    let seen = outputs(&hub, chat).await;
    let tells: Vec<bool> = seen.iter().map(|output| output.contains("heliotrope")).collect();
    assert_eq!(tells, [true, false, true], "{seen:#?}");
    assert!(seen[1].contains("NOT_FOUND"), "{seen:#?}");
}

/// Notes how many files it is asked with.
#[derive(Default)]
struct Sees(Mutex<Vec<usize>>);

#[async_trait]
impl Model for Sees {
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        self.0.lock().push(request.media.len());
        let end =
            Delta::End { reason: StopReason::EndTurn, usage: Usage::default(), provider: Value::Null, model: None };
        Ok(stream::iter([Ok(Delta::Text("done".into())), Ok(end)]).boxed())
    }

    fn catalog(&self) -> Vec<ModelInfo> {
        Vec::new()
    }
}

#[tokio::test]
async fn a_model_sees_no_picture_of_a_home_in_a_turn_that_another_person_begins() {
    let model = Arc::new(Sees::default());
    let hub = Hub::with(model.clone()).await;
    let picture = format!("/users/{ANN}/a.gif");
    hub.put(&picture, "GIF89a, so it begins").await;
    let files = hub.workspaces.open(hub.workspace, workspace::Access::platform("a test")).await.unwrap();
    let file = files.stat(&FilePath::parse(&picture).unwrap()).await.unwrap().file_id;
    let ann = Principal::User { id: ANN.parse().unwrap() };
    let (chat, command) = (ChatId(hub.clock.id()), CommandId(hub.clock.id()));
    let new = NewChat { goal: "look".into(), files: vec![file], ..NewChat::default() };
    hub.chats.create(hub.workspace, chat, command, new, &ann).await.unwrap();
    hub.settle().await;
    for by in [Principal::User { id: UserId(uuid::Uuid::from_u128(9)) }, ann] {
        let words = NewMessage { content: "What does it show?".into(), ..NewMessage::default() };
        hub.chats.post(hub.workspace, chat, CommandId(hub.clock.id()), words, &by).await.unwrap();
        hub.settle().await;
    }
    assert_eq!(*model.0.lock(), [1, 0, 1]);
}

#[tokio::test]
async fn a_persona_of_ones_own_has_no_rights_by_its_name() {
    let write = json!({ "path": "/projects/a.md", "content": "x" });
    let model = calls(&[("read", json!({ "path": "/vault/key.md" })), ("write", write)]);
    for (user, is_own) in [(ANN.parse().unwrap(), true), (UserId(uuid::Uuid::from_u128(9)), false)] {
        let hub = Hub::with(model.clone()).await;
        let policy = r#"@id("assistants-open-the-vault")
            forbid (principal is Agent, action == Action::"read", resource in Path::"/vault")
            unless { principal == Agent::"assistant" };"#;
        hub.put("/system/policies/team.cedar", policy).await;
        hub.put("/vault/key.md", "heliotrope").await;
        hub.put(&format!("/users/{ANN}/personas/assistant/AGENT.md"), "You are Ann's.").await;
        let chat = talk(&hub, &Principal::User { id: user }).await;
        hub.settle().await;
        let seen = outputs(&hub, chat).await;
        assert_eq!(seen[0].contains("heliotrope"), !is_own, "{seen:#?}");
        let files = hub.workspaces.open(hub.workspace, workspace::Access::platform("a test")).await.unwrap();
        let written = files.stat(&FilePath::parse("/projects/a.md").unwrap()).await.unwrap();
        assert_eq!(written.author, if is_own { "agent:~assistant" } else { "agent:assistant" });
        assert_eq!(hub.chats.get(hub.workspace, chat).await.unwrap().role, "assistant", "people read its name");
        let file = text_of(&hub, &format!("/chats/{chat}.md")).await.unwrap();
        assert!(file.contains("role: \"assistant\"") && !file.contains("You are Ann's."), "{file}");
    }
}

#[tokio::test]
async fn an_agent_asks_before_it_changes_how_later_chats_of_its_person_begin() {
    let home = format!("/users/{ANN}");
    let write = |below: &str| ("write", json!({ "path": format!("{home}{below}"), "content": "Obey." }));
    let mv = |to: String| ("mv", json!({ "from": "/projects/prepared", "to": to }));
    for (below, call) in [
        ("/profile.md", write("/profile.md")),
        ("/personas/poet/AGENT.md", write("/personas/poet/AGENT.md")),
        ("/skills/rhyme/SKILL.md", write("/skills/rhyme/SKILL.md")),
        ("/daily-brief.md", write("/daily-brief.md")),
        ("/calendars/work.yaml", write("/calendars/work.yaml")),
        ("/calendars/poet/AGENT.md", mv(format!("{home}/calendars"))),
        ("/personas/poet/AGENT.md", mv(format!("{home}/personas"))),
        ("/personas/poet/AGENT.md", mv(home.clone())),
    ] {
        let path = format!("{home}{below}");
        let hub = Hub::with(calls(&[call])).await;
        hub.put("/projects/prepared/poet/AGENT.md", "Obey.").await;
        let chat = talk(&hub, &Principal::User { id: ANN.parse().unwrap() }).await;
        hub.drive().await;
        let view = hub.chats.look(hub.workspace, chat).await.unwrap();
        assert_eq!(view.status, ChatStatus::Suspended, "{below}");
        assert_eq!(view.waiting_for[0]["event"], "permission_required", "{below}");
        assert_eq!(text_of(&hub, &path).await, None, "{below}");
    }
}
