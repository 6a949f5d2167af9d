//! Standing rules: a yes for all chats of a workspace, or for those of one person.

use crate::hub::Hub;
use async_trait::async_trait;
use buildscale_chat::{Decision, NewChat, RuleScope, StandingRule};
use domain::{
    ChatId, ChatStatus, Code, CommandId, Message, PermissionRule, Principal, StopReason, Timestamp, Usage, UserId,
    event::PermissionOutcome,
};
use futures::{StreamExt, stream};
use ports::{Clock, Delta, Model, ModelError, ModelInfo, ModelRequest, ModelStream};
use serde_json::Value;
use std::sync::Arc;
use uuid::Uuid;

/// Writes a persona, which is asked about.
struct Persona;

#[async_trait]
impl Model for Persona {
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let args = r#"{"path": "/system/agents/poet/AGENT.md", "content": "You are a poet."}"#;
        let said = match request.messages.last().map(AsRef::as_ref) {
            Some(Message::User { .. }) => Delta::Call { tool: "write".into(), args: args.into() },
            _ => Delta::Text("Done.".into()),
        };
        let end =
            Delta::End { reason: StopReason::EndTurn, usage: Usage::default(), provider: Value::Null, model: None };
        Ok(stream::iter([said, end].map(Ok)).boxed())
    }

    fn catalog(&self) -> Vec<ModelInfo> {
        Vec::new()
    }
}

/// A new chat of this person, driven as far as it goes: whether it asks people, and for what.
async fn chat(hub: &Hub, by: &Principal, may_approve: bool) -> (ChatId, Option<Value>) {
    let (chat, command) = (ChatId(hub.clock.id()), CommandId(hub.clock.id()));
    let new = NewChat { goal: "become a poet".into(), may_approve, ..NewChat::default() };
    hub.chats.create(hub.workspace, chat, command, new, by).await.unwrap();
    hub.drive().await;
    // A rule has decided; the message that lets the request expire is due later.
    if hub.queue.messages().iter().any(|message| message.deliver_at.is_none()) {
        hub.drive().await;
    }
    let view = hub.chats.get(hub.workspace, chat).await.unwrap();
    let asked = view.waiting_for.first().map(|asked| asked["data"].clone());
    assert_eq!(view.status == ChatStatus::Suspended, asked.is_some());
    (chat, asked)
}

async fn allow(hub: &Hub, chat: ChatId, asked: &Value, scope: RuleScope, by: &Principal) {
    let id = asked["permission_id"].as_str().unwrap().parse().unwrap();
    let decision = Decision { always: true, scope, ..Decision::new(id, PermissionOutcome::Approved) };
    hub.chats.decide(hub.workspace, chat, CommandId(hub.clock.id()), decision, by).await.unwrap();
    hub.drive().await;
    assert_eq!(hub.chats.get(hub.workspace, chat).await.unwrap().status, ChatStatus::Idle);
}

fn person(id: u128) -> Principal {
    Principal::User { id: UserId(Uuid::from_u128(id)) }
}

#[tokio::test]
async fn a_rule_of_the_workspace_answers_in_every_chat_until_it_is_revoked() {
    let hub = Hub::with(Arc::new(Persona)).await;
    let (ann, bob) = (person(5), person(6));
    let (first, asked) = chat(&hub, &ann, true).await;
    allow(&hub, first, &asked.unwrap(), RuleScope::Workspace, &ann).await;
    assert_eq!(chat(&hub, &bob, true).await.1, None, "it is answered by the rule");
    assert!(chat(&hub, &bob, false).await.1.is_some(), "a rule counts in turns of people with the right to approve");
    let rules = hub.chats.standing_rules(hub.workspace, bob.user()).await.unwrap();
    let [rule] = &rules[..] else { panic!("{rules:?}") };
    assert_eq!((rule.scope, rule.by), (RuleScope::Workspace, ann.user()));
    hub.chats.revoke_standing(hub.workspace, &rule.rule_id, bob.user()).await.unwrap();
    assert!(chat(&hub, &bob, true).await.1.is_some(), "it is asked about again");
    let again = hub.chats.revoke_standing(hub.workspace, &rule.rule_id, bob.user()).await;
    assert_eq!(again.unwrap_err().code, Code::NotFound);
}

#[tokio::test]
async fn a_rule_of_a_person_answers_in_their_own_chats_alone() {
    let hub = Hub::with(Arc::new(Persona)).await;
    let (ann, bob) = (person(5), person(6));
    let (first, asked) = chat(&hub, &ann, true).await;
    allow(&hub, first, &asked.unwrap(), RuleScope::Person, &ann).await;
    assert_eq!(chat(&hub, &ann, true).await.1, None);
    assert!(chat(&hub, &bob, true).await.1.is_some());
    assert_eq!(hub.chats.standing_rules(hub.workspace, bob.user()).await.unwrap(), []);
    let rules = hub.chats.standing_rules(hub.workspace, ann.user()).await.unwrap();
    let theirs = hub.chats.revoke_standing(hub.workspace, &rules[0].rule_id, bob.user()).await;
    assert_eq!(theirs.unwrap_err().code, Code::NotFound, "it is not theirs");
}

#[test]
fn old_standing_rules_are_read_for_ever() {
    let rule = StandingRule {
        rule_id: "0123456789abcdef".into(),
        scope: RuleScope::Person,
        rule: PermissionRule::Tool { tool: "mcp__github__create_issue".into() },
        cwd: Some("/srv/app".into()),
        by: UserId(Uuid::from_u128(5)),
        at: Timestamp::default(),
    };
    testkit::golden::check(env!("CARGO_MANIFEST_DIR"), "standing_rules", &rule);
}
