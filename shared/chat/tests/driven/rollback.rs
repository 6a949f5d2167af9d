//! Rollbacks over real files.

use crate::{
    hub::Hub,
    scenarios::{Silence, Stumbles},
};
use async_trait::async_trait;
use buildscale_chat::{NewChat, NewMessage, actor_id};
use domain::{
    ChatEvent, ChatId, Code, CommandId, FilePath, Message, OnBusy, Principal, StopReason, TurnId, Usage,
    event::RollbackFact,
};
use futures::{StreamExt, stream};
use ports::{Clock, Delta, Model, ModelError, ModelInfo, ModelRequest, ModelStream};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::Notify;
use workspace::Access;

const PATH: &str = "/projects/a/new.md";

/// Writes a file when it is told to, and then comes to no end. It answers anything else at once.
#[derive(Default)]
struct Writes {
    has_written: Notify,
}

#[async_trait]
impl Model for Writes {
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let said = match request.messages.last().map(AsRef::as_ref) {
            Some(Message::User { content, .. }) if content == "write" => {
                Delta::Call { tool: "write".into(), args: json!({ "path": PATH, "content": "new" }).to_string() }
            }
            Some(Message::Tool { .. }) => {
                self.has_written.notify_one();
                return Ok(stream::pending().boxed());
            }
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

#[tokio::test(start_paused = true)]
async fn a_table_that_stumbles_while_files_go_back_leaves_none_of_them() {
    let (model, silence) = (Arc::new(Writes::default()), Silence::default());
    let of_table = silence.clone();
    let hub = Hub::over(model.clone(), |_, table, _| Arc::new(Stumbles { table, silence: of_table })).await;
    let (chat, command, by) = (ChatId(hub.clock.id()), CommandId(hub.clock.id()), Principal::local());
    let new = NewChat { goal: "write".into(), ..NewChat::default() };
    hub.chats.create(hub.workspace, chat, command, new, &by).await.unwrap();
    let files = hub.workspaces.open(hub.workspace, Access::platform("a test")).await.unwrap();
    let path: FilePath = PATH.parse().unwrap();
    let rewind = CommandId::from_key("rollback", &TurnId(command.0).to_string()).0;
    let rolling_back = async {
        model.has_written.notified().await;
        assert!(files.stat(&path).await.is_ok());
        *silence.lock() = (rewind.to_string(), 1);
        let post = NewMessage { content: "rather so".into(), on_busy: OnBusy::Rollback, ..NewMessage::default() };
        hub.chats.post(hub.workspace, chat, CommandId(hub.clock.id()), post, &by).await.unwrap();
    };
    tokio::join!(hub.settle(), rolling_back);
    // The stop comes before the message, which may find the chat at rest.
    hub.settle().await;

    assert_eq!(silence.lock().1, 0, "it has stumbled");
    let page = actor::read_after::<ChatEvent>(&*hub.log, &actor_id(hub.workspace, chat), 0, 1_000).await.unwrap();
    let log: Vec<ChatEvent> = page.entries.into_iter().flat_map(|entry| entry.events).collect();
    let ended = log.iter().find_map(|event| match event {
        ChatEvent::Rollback { fact } => match &**fact {
            RollbackFact::Ended { changes, error, .. } => Some((*changes > 0, error.clone())),
            RollbackFact::Began { .. } => None,
        },
        _ => None,
    });
    assert_eq!(ended, Some((true, None)), "{log:?}");
    assert_eq!(files.stat(&path).await.unwrap_err().code, Code::NotFound);
    assert!(matches!(log.last(), Some(ChatEvent::Done { stop_reason: StopReason::EndTurn, .. })), "{log:?}");
}
