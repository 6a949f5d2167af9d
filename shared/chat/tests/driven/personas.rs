//! Personas and skills of a workspace in the chats that have them (spec 001 §4).

use crate::hub::Hub;
use async_trait::async_trait;
use buildscale_chat::{NewChat, NewMessage};
use domain::{ChatId, ChatStatus, CommandId, Message, Principal, StopReason, Usage};
use futures::{StreamExt, stream};
use parking_lot::Mutex;
use ports::{Clock, Delta, Model, ModelError, ModelInfo, ModelRequest, ModelStream};
use serde_json::{Value, json};
use std::sync::Arc;

const SKILL: &str = "/system/skills/deploy/SKILL.md";

/// Reads a skill and does as it says when it is told to deploy. It keeps the system texts that it was asked with.
#[derive(Default)]
struct Deploys(Mutex<Vec<String>>);

#[async_trait]
impl Model for Deploys {
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        self.0.lock().push(request.system.to_string());
        let call = |tool: &str, args: Value| Delta::Call { tool: tool.into(), args: args.to_string() };
        let mut deltas = match request.messages.last().map(AsRef::as_ref) {
            Some(Message::User { content, .. }) if content == "deploy" => vec![
                call("read", json!({ "path": SKILL })),
                call("write", json!({ "path": "/system/deployed.md", "content": "x" })),
            ],
            _ => vec![Delta::Text("done".into())],
        };
        let usage = Usage::default();
        deltas.push(Delta::End { reason: StopReason::EndTurn, usage, provider: Value::Null, model: None });
        Ok(stream::iter(deltas.into_iter().map(Ok)).boxed())
    }

    fn catalog(&self) -> Vec<ModelInfo> {
        Vec::new()
    }
}

async fn begin(hub: &Hub, role: Option<&str>, goal: &str) -> ChatId {
    let chat = ChatId(hub.clock.id());
    let role = role.map(str::to_owned);
    let new = NewChat { goal: goal.into(), role, may_approve: true, ..NewChat::default() };
    hub.chats.create(hub.workspace, chat, CommandId(hub.clock.id()), new, &Principal::local()).await.unwrap();
    hub.drive().await;
    chat
}

/// The answers to the calls of a chat, each with whether it is a success.
async fn answers(hub: &Hub, chat: ChatId) -> Vec<(bool, String)> {
    let history = hub.chats.history(hub.workspace, chat, 0, 100).await.unwrap();
    let answer = |message: Message| match message {
        Message::Tool { output, success, .. } => Some((success, output)),
        _ => None,
    };
    history.messages.into_iter().filter_map(|one| answer(one.message)).collect()
}

#[tokio::test]
async fn the_text_of_a_persona_stays_as_it_was_when_its_chat_was_made() {
    let model = Arc::new(Deploys::default());
    let hub = Hub::with(model.clone()).await;
    let poet = async |text: &str| hub.put("/system/agents/poet/AGENT.md", text).await;
    poet("You rhyme.\n").await;
    let chat = begin(&hub, Some("poet"), "hello").await;
    poet("You shout.\n").await;
    hub.put(SKILL, "---\nname: deploy\ndescription: Deploys it.\n---\nDeploy.\n").await;
    let more = NewMessage { content: "and now?".into(), ..NewMessage::default() };
    hub.chats.post(hub.workspace, chat, CommandId(hub.clock.id()), more, &Principal::local()).await.unwrap();
    hub.drive().await;
    begin(&hub, Some("poet"), "hello").await;
    let asked = model.0.lock().clone();
    let [first, second, of_another] = &asked[..] else { panic!("{asked:?}") };
    assert!(first.starts_with("You rhyme."), "{first}");
    assert_eq!(second, first, "the prefix that the provider keeps");
    assert!(of_another.starts_with("You shout.") && of_another.contains(SKILL), "{of_another}");
}

#[tokio::test]
async fn the_tools_that_a_skill_allows_are_asked_about_and_denied_as_any_others() {
    let hub = Hub::with(Arc::new(Deploys::default())).await;
    let allows =
        "---\nname: deploy\ndescription: Deploys it.\nallowed-tools: Write(*) write exec\n---\nWrite to /system.\n";
    hub.put(SKILL, allows).await;
    hub.put("/system/agents/reader/AGENT.md", "---\ntools: [read]\n---\nYou read.\n").await;

    let chat = begin(&hub, None, "deploy").await;
    let view = hub.chats.look(hub.workspace, chat).await.unwrap();
    assert_eq!(view.status, ChatStatus::Suspended);
    let asked = &view.waiting_for[0];
    assert_eq!((&asked["event"], &asked["data"]["tool"]), (&json!("permission_required"), &json!("write")), "{asked}");
    let given = answers(&hub, chat).await;
    let [(true, skill)] = &given[..] else { panic!("{given:?}") };
    assert!(skill.contains("allowed-tools"), "{skill}");

    let chat = begin(&hub, Some("reader"), "deploy").await;
    assert_eq!(hub.chats.look(hub.workspace, chat).await.unwrap().status, ChatStatus::Idle);
    let given = answers(&hub, chat).await;
    let [(true, _), (false, refused)] = &given[..] else { panic!("{given:?}") };
    assert!(refused.contains("there is no tool \"write\""), "{refused}");
}
