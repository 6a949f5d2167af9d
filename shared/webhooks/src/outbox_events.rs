//! The outbox events: an entry of a chat or task that tells a webhook something has the message of that in its outbox.

use crate::{
    event::{self, Origin, WebhookEvent},
    store::{self, HookMessage},
    webhook::Webhook,
};
use actor::{ActorId, Entry, OutboxContributor};
use async_trait::async_trait;
use chat::{ChatMachine, ChatState};
use domain::{ChatEvent, TaskEvent, WorkspaceId};
use engine::{TaskMachine, machine::TaskState};
use ports::{QueueMessage, Result, Table};
use std::{collections::BTreeSet, sync::Arc};

/// Writes the outbox events. It reads the webhooks of the workspace once for an entry with such an event, and nothing for any other.
pub struct WebhookOutbox {
    /// The webhooks.
    pub table: Arc<dyn Table>,
}

impl WebhookOutbox {
    async fn to_all(
        &self,
        workspace: WorkspaceId,
        source: &ActorId,
        events: Vec<WebhookEvent>,
        wants: impl Fn(&Webhook, &WebhookEvent) -> bool + Send,
    ) -> Result<Vec<QueueMessage>> {
        if events.is_empty() {
            return Ok(Vec::new());
        }
        let set = store::webhooks(&*self.table, workspace).await?;
        let mut messages = Vec::new();
        for event in events {
            for hook in set.webhooks.iter().filter(|hook| wants(hook, &event)) {
                let (kind, number) = (event.kind, event.number);
                let id = format!("{source}/{number}/{kind:?}");
                let message = HookMessage::Event { source: line_of(source), event: event.clone() };
                messages.push(store::message(workspace, hook.id, id, &message)?);
            }
        }
        Ok(messages)
    }
}

/// The line of an actor: its kind and its own id, as in `chat/<id>`.
fn line_of(actor: &ActorId) -> String {
    let id = actor.as_str().rsplit('/').next().unwrap_or_default();
    format!("{}/{id}", actor.kind())
}

#[async_trait]
impl OutboxContributor<ChatMachine> for WebhookOutbox {
    async fn of(&self, actor: &ActorId, state: &ChatState, entry: &Entry<ChatEvent>) -> Result<Vec<QueueMessage>> {
        let Some(config) = &state.config else { return Ok(Vec::new()) };
        let origin = Origin { chat: Some(config.chat), flow: None };
        let wants = |hook: &Webhook, event: &WebhookEvent| hook.wants(event.kind, &origin) && hook.is_of(event);
        self.to_all(config.workspace, actor, event::of_chat(state, entry), wants).await
    }
}

#[async_trait]
impl OutboxContributor<TaskMachine> for WebhookOutbox {
    async fn of(&self, actor: &ActorId, state: &TaskState, entry: &Entry<TaskEvent>) -> Result<Vec<QueueMessage>> {
        let Some(config) = &state.config else { return Ok(Vec::new()) };
        let origin = Origin { chat: None, flow: Some(config.flow.name.clone()) };
        let mut events = event::of_agents(state, entry);
        let of_agents: BTreeSet<u64> = events.iter().map(|event| event.number).collect();
        events.extend(event::of_task(state, entry));
        events.sort_by_key(|event| event.number);
        let wants = |hook: &Webhook, event: &WebhookEvent| {
            let is_for_all = !of_agents.contains(&event.number);
            (is_for_all || hook.push.is_some()) && hook.wants(event.kind, &origin) && hook.is_of(event)
        };
        self.to_all(config.workspace, actor, events, wants).await
    }
}
