//! Stops of turns that run (spec 000 §6).

use crate::hub::Hub;
use async_trait::async_trait;
use buildscale_chat::{Chats, NewChat, NewMessage, Settings, actor_id};
use domain::{ChatEvent, ChatId, CommandId, Message, Principal, StopReason, Usage};
use futures::{StreamExt, stream};
use ports::{Clock, Delta, Model, ModelError, ModelInfo, ModelRequest, ModelStream};
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use testkit::fakes::{FakeBus, Faults};
use tokio::{sync::Notify, time::Instant};

/// Begins an answer to `slow` and never goes on. It answers anything else at once.
#[derive(Default)]
struct Slow {
    began: Notify,
}

#[async_trait]
impl Model for Slow {
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        if matches!(request.messages.last().map(AsRef::as_ref), Some(Message::User { content, .. }) if content == "slow")
        {
            self.began.notify_one();
            return Ok(stream::iter([Ok(Delta::Text("Half".into()))]).chain(stream::pending()).boxed());
        }
        let end =
            Delta::End { reason: StopReason::EndTurn, usage: Usage::default(), provider: Value::Null, model: None };
        Ok(stream::iter([Delta::Text("Done.".into()), end].map(Ok)).boxed())
    }

    fn catalog(&self) -> Vec<ModelInfo> {
        Vec::new()
    }
}

/// A chat whose first turn comes to no end by itself.
async fn slow() -> (Arc<Slow>, Hub, ChatId) {
    let model = Arc::new(Slow::default());
    let hub = Hub::with(model.clone()).await;
    let chat = ChatId(hub.clock.id());
    let new = NewChat { goal: "slow".into(), ..NewChat::default() };
    hub.chats.create(hub.workspace, chat, CommandId(hub.clock.id()), new, &Principal::local()).await.unwrap();
    (model, hub, chat)
}

/// The beginnings and the ends of turns, and the words of people, in order.
async fn story(hub: &Hub, chat: ChatId) -> Vec<String> {
    let page = actor::read_after::<ChatEvent>(&*hub.log, &actor_id(hub.workspace, chat), 0, 1_000).await.unwrap();
    let told = |event: ChatEvent| match event {
        ChatEvent::TurnStarted { .. } => Some("begins".to_owned()),
        ChatEvent::MessageAdded { message: Message::User { content, .. } } => Some(content),
        ChatEvent::Done { message, .. } => Some(format!("done: {message}")),
        ChatEvent::Stopped { reason, .. } => Some(reason),
        _ => None,
    };
    page.entries.into_iter().flat_map(|entry| entry.events).filter_map(told).collect()
}

#[tokio::test(start_paused = true)]
async fn a_stop_whose_announcement_was_lost_is_seen_within_two_seconds() {
    let (model, hub, chat) = slow().await;
    // No worker listens to the bus of these.
    let bus = Arc::new(FakeBus::new(2, Faults::none()));
    let (queue, clock, workspaces) = (hub.queue.clone(), hub.clock.clone(), hub.workspaces.clone());
    let unheard = Chats::new(hub.log.clone(), queue, bus, clock, workspaces, Settings::default());
    let stopping = async {
        model.began.notified().await;
        let stop = CommandId(hub.clock.id());
        unheard.stop(hub.workspace, chat, stop, &Principal::local()).await.unwrap();
        Instant::now()
    };
    let ((), asked) = tokio::join!(hub.drive(), stopping);
    // Time is paused: it passes only while nothing else can be done.
    let seen_after = asked.elapsed();
    assert!(seen_after <= Duration::from_millis(2_100), "{seen_after:?}");
    assert_eq!(story(&hub, chat).await, ["begins", "slow", "user_cancelled"]);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_waits_begins_when_the_turn_before_it_is_stopped() {
    let (model, hub, chat) = slow().await;
    let by = Principal::local();
    let stopping = async {
        model.began.notified().await;
        let next = NewMessage { content: "quick".into(), ..NewMessage::default() };
        hub.chats.post(hub.workspace, chat, CommandId(hub.clock.id()), next, &by).await.unwrap();
        hub.chats.stop(hub.workspace, chat, CommandId(hub.clock.id()), &by).await.unwrap();
    };
    tokio::join!(hub.settle(), stopping);
    let told = ["begins", "slow", "user_cancelled", "begins", "quick", "done: Done."];
    assert_eq!(story(&hub, chat).await, told);
}
