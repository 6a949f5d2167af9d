//! How webhooks and their deliveries look.

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

/// A type of event that webhooks tell.
#[derive(Serialize, ToSchema)]
pub enum WebhookEventType {
    /// A turn of a chat has ended, or was stopped. Not of the agents of tasks.
    #[serde(rename = "turn.ended")]
    TurnEnded,
    /// A task has ended. Not its children.
    #[serde(rename = "task.ended")]
    TaskEnded,
    /// An agent, or a step of a flow, asks people.
    #[serde(rename = "question.asked")]
    QuestionAsked,
    /// A call waits for a person's permission.
    #[serde(rename = "permission.asked")]
    PermissionAsked,
    /// A turn in the mode `plan` has ended and left a plan that can be approved: once for each time that the agent wrote it.
    #[serde(rename = "plan.submitted")]
    PlanSubmitted,
    /// A person tries the webhook.
    #[serde(rename = "webhook.test")]
    Test,
    /// The content of an event is lost, and this is told in its place. No webhook asks for it.
    #[serde(rename = "event.lost")]
    Lost,
}

/// Why a webhook is told nothing.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WebhookDisabledBecause {
    /// A person disabled it.
    Person,
    /// The receiver answered 410 Gone.
    Gone,
    /// The receiver failed for five days.
    Failing,
}

/// The end of a webhook until it is enabled again.
#[derive(Serialize, ToSchema)]
pub struct WebhookDisabled {
    /// The reason.
    #[schema(value_type = WebhookDisabledBecause)]
    pub because: ::webhooks::DisabledBecause,
    /// The time of it.
    #[schema(value_type = String, format = DateTime)]
    pub at: domain::Timestamp,
}

/// A webhook. Its secret is shown when it is made, and never again.
#[derive(Serialize, ToSchema)]
pub struct Webhook {
    /// Its id.
    pub webhook_id: Uuid,
    /// Its workspace.
    pub workspace_id: Uuid,
    /// Its name.
    pub name: String,
    /// The address that events are posted to.
    pub url: String,
    /// The types of events that it is told.
    #[schema(value_type = Vec<WebhookEventType>)]
    pub events: Vec<::webhooks::EventType>,
    /// The only chat that it is told of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat_id: Option<Uuid>,
    /// The only flow that it is told of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// Whether it is told anything.
    pub enabled: bool,
    /// Why it is told nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled: Option<WebhookDisabled>,
    /// The first failure since the last success.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub failing_since: Option<domain::Timestamp>,
    /// Until when the secret before the last one is good, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub previous_secret_until: Option<domain::Timestamp>,
    /// The person who made it.
    pub user_id: Uuid,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: domain::Timestamp,
}

/// A webhook with the secret that was just made for it.
#[derive(Serialize, ToSchema)]
pub struct WebhookWithSecret {
    /// The webhook.
    pub webhook: Webhook,
    /// The secret of Standard Webhooks, with which receivers check signatures. It is in this answer and nowhere else.
    #[schema(example = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")]
    pub secret: String,
}

/// The webhooks of a workspace, the oldest first.
#[derive(Serialize, ToSchema)]
pub struct WebhookList {
    /// The webhooks: at most 20.
    pub webhooks: Vec<Webhook>,
}

/// The state of a delivery.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WebhookDeliveryStatus {
    /// It waits for an attempt, or for the deliveries of its chat or task before it.
    Pending,
    /// The receiver took it.
    Delivered,
    /// It was given up.
    Failed,
}

/// An attempt of a delivery.
#[derive(Serialize, ToSchema)]
pub struct WebhookAttempt {
    /// When it was made.
    #[schema(format = DateTime)]
    pub at: String,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// The status of the answer; left out where nothing was answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A delivery of an event to a webhook.
#[derive(Serialize, ToSchema)]
pub struct WebhookDelivery {
    /// Its id.
    pub delivery_id: Uuid,
    /// The webhook.
    pub webhook_id: Uuid,
    /// `webhook-id`, by which a receiver knows an event that comes again.
    #[schema(example = "msg_0190b1c2d3e44f5a8b6c7d8e9f001122")]
    pub message_id: String,
    /// The type of the event.
    #[schema(value_type = WebhookEventType)]
    pub r#type: ::webhooks::EventType,
    /// The time of the event.
    #[schema(value_type = String, format = DateTime)]
    pub timestamp: domain::Timestamp,
    /// The facts that are posted.
    pub data: Map<String, Value>,
    /// The state.
    #[schema(value_type = WebhookDeliveryStatus)]
    pub status: ::webhooks::DeliveryStatus,
    /// When it is tried next, at the earliest.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub next_at: Option<domain::Timestamp>,
    /// How many attempts were made.
    pub attempts_made: u32,
    /// The last 20 of them, the oldest first.
    #[schema(value_type = Vec<WebhookAttempt>)]
    pub attempts: Vec<::webhooks::Attempt>,
    /// Why it was given up, where that is not the failure of the last attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub given_up: Option<String>,
    /// When it was recorded.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: domain::Timestamp,
}

/// A page of deliveries, the newest first.
#[derive(Serialize, ToSchema)]
pub struct WebhookDeliveryPage {
    /// The deliveries.
    pub deliveries: Vec<WebhookDelivery>,
    /// The cursor of the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

impl Webhook {
    /// A webhook of a workspace, as it looks now.
    pub(crate) fn of(workspace: domain::WorkspaceId, hook: ::webhooks::Webhook, now: domain::Timestamp) -> Self {
        let previous = hook.previous.map(|previous| previous.until);
        Self {
            webhook_id: hook.id,
            workspace_id: workspace.0,
            name: hook.name,
            url: hook.url,
            events: hook.events.into_iter().collect(),
            chat_id: hook.chat.map(|chat| chat.0),
            flow: hook.flow,
            enabled: hook.disabled.is_none(),
            disabled: hook.disabled.map(|::webhooks::Disabled { because, at }| WebhookDisabled { because, at }),
            failing_since: hook.failing_since,
            previous_secret_until: previous.filter(|until| now < *until),
            user_id: hook.by.0,
            created_at: hook.created_at,
        }
    }
}

impl From<::webhooks::Delivery> for WebhookDelivery {
    fn from(delivery: ::webhooks::Delivery) -> Self {
        Self {
            delivery_id: delivery.id,
            webhook_id: delivery.webhook,
            message_id: delivery.message_id(),
            r#type: delivery.event.kind,
            timestamp: delivery.event.at,
            data: delivery.event.data,
            status: delivery.status,
            next_at: delivery.next_at,
            attempts_made: delivery.made,
            attempts: delivery.attempts,
            given_up: delivery.given_up,
            created_at: delivery.created_at,
        }
    }
}
