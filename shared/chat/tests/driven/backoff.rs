//! A provider that has to be asked again later, with a queue and a worker: nothing is held while the chat waits.

use crate::hub::Hub;
use async_trait::async_trait;
use buildscale_chat::{NewChat, actor_id};
use domain::{ChatEvent, ChatId, ChatStatus, CommandId, Principal, StopReason, Usage, native};
use futures::{StreamExt, stream};
use ports::{Clock, Delta, Model, ModelError, ModelInfo, ModelRequest, ModelStream};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

const AFTER: Duration = Duration::from_secs(17);

/// Asks for patience twice, then answers.
struct Busy;

#[async_trait]
impl Model for Busy {
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let usage = Usage::default();
        let said = match request.failures {
            0 | 1 => vec![Err(ModelError::Postponed {
                after: AFTER,
                failures: request.failures + 1,
                why: Box::new(ModelError::RateLimited { retry_after: Some(AFTER) }),
            })],
            _ => vec![
                Ok(Delta::Text("At last.".into())),
                Ok(Delta::End { reason: StopReason::EndTurn, usage, provider: Value::Null, model: None }),
            ],
        };
        Ok(stream::iter(said).boxed())
    }

    fn catalog(&self) -> Vec<ModelInfo> {
        Vec::new()
    }
}

#[tokio::test(start_paused = true)]
async fn a_chat_that_waits_for_its_provider_is_a_row_and_says_why() {
    let hub = Hub::with(Arc::new(Busy)).await;
    let (chat, command) = (ChatId(hub.clock.id()), CommandId(hub.clock.id()));
    let new = NewChat { goal: "go".into(), ..NewChat::default() };
    hub.chats.create(hub.workspace, chat, command, new, &Principal::local()).await.unwrap();
    let began = hub.clock.now();
    hub.drive().await;
    // The worker is done with the chat at once, and all that is left is a message that is due later.
    let due: Vec<_> = hub.queue.messages().into_iter().map(|message| message.deliver_at).collect();
    let [Some(due)] = due[..] else { panic!("{due:?}") };
    assert!(due.since(began) >= AFTER && hub.clock.now() < due, "{due} after {began}");
    assert_eq!(hub.chats.look(hub.workspace, chat).await.unwrap().status, ChatStatus::Running);

    hub.settle().await;
    assert!(hub.clock.now().since(began) >= 2 * AFTER);
    let log = actor::read_after::<ChatEvent>(&*hub.log, &actor_id(hub.workspace, chat), 0, 100).await.unwrap();
    let shown: Vec<_> = log.entries.iter().flat_map(|entry| &entry.events).filter_map(native::encode).collect();
    let waiting: Vec<_> = shown.iter().filter(|(name, _)| *name == "waiting").map(|(_, data)| data).collect();
    assert_eq!(waiting.len(), 2);
    assert_eq!((&waiting[0]["reason"], &waiting[0]["code"]), (&json!("model"), &json!("RATE_LIMITED")));
    assert_eq!(waiting[0]["until"], json!(due));
    assert_eq!(shown.last().map(|(name, data)| (*name, &data["message"])), Some(("done", &json!("At last."))));
}
