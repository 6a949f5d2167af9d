//! The part of a webhook that makes it a push notification.

use crate::event::WebhookEvent;
use domain::{TaskId, TurnId};
use protocols::task_as_turn;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The part of a webhook that makes it a push notification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PushSettings {
    /// The turn that it is told of; of a task of a flow the one that the task is told as.
    pub turn: TurnId,
    /// The id that its agent gave it, unique within the turn.
    pub id: String,
    /// A text that comes with each notification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

impl PushSettings {
    /// The body of a notification.
    pub(crate) fn body(&self, event: &WebhookEvent) -> Vec<u8> {
        let chat = event.data.get("chat_id").and_then(|id| id.as_str()?.parse().ok());
        // The log of a task names no chat: it is told as one with its own id.
        let chat = chat.unwrap_or_else(|| task_as_turn::chat_of(TaskId(self.turn.0)));
        let kind = json!(event.kind);
        let body = protocols::a2a::pushed(chat, self.turn, kind.as_str().unwrap_or_default(), event.at, &event.data);
        serde_json::to_vec(&body).unwrap_or_default()
    }
}
