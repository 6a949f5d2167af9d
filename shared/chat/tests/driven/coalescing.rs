//! The pieces of an answer: those that have come already are one event.

use crate::hub::Hub;
use async_trait::async_trait;
use buildscale_chat::{NewChat, actor_id};
use domain::{ChatEvent, ChatId, CommandId, Message, Principal, StopReason, Usage};
use futures::{StreamExt, future, stream};
use ports::{Clock, Delta, Model, ModelError, ModelInfo, ModelRequest, ModelStream};
use serde_json::Value;
use std::sync::{Arc, OnceLock};
use testkit::fakes::FakeTable;

/// Says all at once, or the end only when the beginning is in the log.
#[derive(Default)]
struct Speaks {
    log: OnceLock<Arc<FakeTable>>,
}

#[async_trait]
impl Model for Speaks {
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let Some(Message::User { content, .. }) = request.messages.last().map(AsRef::as_ref) else { panic!() };
        let text = |piece: &str| Ok(Delta::Text(piece.into()));
        let (reason, usage) = (StopReason::EndTurn, Usage::default());
        let end = Ok(Delta::End { reason, usage, provider: Value::Null, model: None });
        let beginning = stream::iter([text("All "), text("at ")]);
        let rest = stream::iter([text("once."), end]);
        if content == "at once" {
            return Ok(beginning.chain(rest).boxed());
        }
        let log = self.log.get().unwrap().clone();
        let shown = async move {
            while !log.items().iter().any(|item| item.body.contains("All at \"")) {
                tokio::task::yield_now().await;
            }
        };
        Ok(beginning.chain(stream::once(shown).filter_map(|()| future::ready(None))).chain(rest).boxed())
    }

    fn catalog(&self) -> Vec<ModelInfo> {
        Vec::new()
    }
}

#[tokio::test]
async fn pieces_that_are_there_at_once_are_one_event_and_the_first_ones_wait_for_no_others() {
    let model = Arc::new(Speaks::default());
    let hub = Hub::with(model.clone()).await;
    assert!(model.log.set(hub.table.clone()).is_ok());
    for (how, expected) in
        [("at once", vec![vec![], vec!["All at once."]]), ("slowly", vec![vec![], vec!["All at "], vec!["once."]])]
    {
        let (chat, command) = (ChatId(hub.clock.id()), CommandId(hub.clock.id()));
        let new = NewChat { goal: how.into(), ..NewChat::default() };
        hub.chats.create(hub.workspace, chat, command, new, &Principal::local()).await.unwrap();
        hub.drive().await;
        let log = actor::read_after::<ChatEvent>(&*hub.log, &actor_id(hub.workspace, chat), 0, 100).await.unwrap();
        let said = |event: &ChatEvent| match event {
            ChatEvent::Chunk { text, .. } => Some(text.clone()),
            _ => None,
        };
        let entries: Vec<Vec<String>> =
            log.entries.iter().map(|entry| entry.events.iter().filter_map(said).collect()).collect();
        assert_eq!(entries, expected, "{how}: the pieces of each entry");
    }
}
