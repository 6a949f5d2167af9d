//! Webhooks: ends of turns and tasks, questions and requests for approval, told to receivers elsewhere. Admins have them: who sets an address
//! sends what happens in the workspace there.

use crate::{
    Context,
    access::{Access, Administer},
    error::Answer,
    extract::{Json, Query},
    full_disk::demand_room,
    ids::Ids,
    keys::NO_STORE,
    schema,
    workspaces::{InWorkspace, Paging},
};
use ::webhooks::{EventType, WebhookAndSecret, WebhookChange};
use axum::{extract::State, response::IntoResponse};
use domain::{ChatId, Error, WorkspaceId};
use http::{StatusCode, header};
use serde::Deserialize;
use std::{collections::BTreeSet, sync::Arc};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

/// The webhook of a path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct InWebhook {
    /// The workspace.
    #[param(value_type = Uuid)]
    workspace_id: WorkspaceId,
    /// The webhook.
    webhook_id: Uuid,
}

/// The delivery of a path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct InDelivery {
    /// The workspace.
    #[param(value_type = Uuid)]
    workspace_id: WorkspaceId,
    /// The webhook.
    webhook_id: Uuid,
    /// The delivery.
    delivery_id: Uuid,
}

/// A webhook to make.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewWebhook {
    /// Its name: 1 to 100 characters.
    #[schema(min_length = 1, max_length = 100, example = "Team channel")]
    name: String,
    /// The address that events are posted to: http or https, on a public network unless the operator allows private ones.
    #[schema(max_length = 2048, example = "https://example.com/hooks/buildscale")]
    url: String,
    /// The types of events that it is told.
    #[schema(value_type = Vec<schema::WebhookEventType>, min_items = 1)]
    events: BTreeSet<EventType>,
    /// The only chat that it is told of.
    #[schema(value_type = Option<Uuid>)]
    chat_id: Option<ChatId>,
    /// The only flow that it is told of, by name: its tasks, and the questions of their steps.
    #[schema(min_length = 1, max_length = 200)]
    flow: Option<String>,
}

/// Changes of a webhook; what is left out stays.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WebhookChanges {
    /// Another name.
    #[schema(min_length = 1, max_length = 100)]
    name: Option<String>,
    /// Another address.
    #[schema(max_length = 2048)]
    url: Option<String>,
    /// Other types of events.
    #[schema(value_type = Option<Vec<schema::WebhookEventType>>, min_items = 1)]
    events: Option<BTreeSet<EventType>>,
    /// Whether it is told anything. To enable one that was disabled forgets its failures.
    enabled: Option<bool>,
}

/// An answer with a secret, which nothing on the way keeps.
fn with_secret(context: &Context, workspace: WorkspaceId, made: WebhookAndSecret) -> impl IntoResponse + use<> {
    let webhook = schema::Webhook::of(workspace, made.webhook, context.base.clock.now());
    ([NO_STORE], axum::Json(schema::WebhookWithSecret { webhook, secret: made.secret.expose().to_owned() }))
}

/// Makes a webhook. Its secret is in this answer and nowhere else; the same request with the same `Idempotency-Key` gives it again.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/webhooks", tag = "webhooks", params(InWorkspace),
    request_body = NewWebhook,
    responses((status = 201, description = "It was made.", body = schema::WebhookWithSecret)))]
pub(crate) async fn create_webhook(
    State(context): State<Arc<Context>>,
    Access { at, by, .. }: Access<Administer, InWorkspace>,
    ids: Ids,
    Json(asked): Json<NewWebhook>,
) -> Answer<impl IntoResponse> {
    let NewWebhook { name, url, events, chat_id: chat, flow } = asked;
    if let Some(chat) = chat {
        context.chats.get(at.workspace_id, chat).await?;
    }
    let id = ids.id("webhook");
    let new = ::webhooks::NewWebhook { name, url, events, chat, flow };
    let made = context.webhooks.create(at.workspace_id, id, new, &by).await?;
    let place = format!("/api/v1/workspaces/{}/webhooks/{id}", at.workspace_id);
    Ok((StatusCode::CREATED, [(header::LOCATION, place)], with_secret(&context, at.workspace_id, made)))
}

/// The webhooks of a workspace, the oldest first.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/webhooks", tag = "webhooks", params(InWorkspace),
    responses((status = 200, description = "All of them.", body = schema::WebhookList)))]
pub(crate) async fn list_webhooks(
    State(context): State<Arc<Context>>,
    Access { at, .. }: Access<Administer, InWorkspace>,
) -> Answer<impl IntoResponse> {
    let now = context.base.clock.now();
    let all = context.webhooks.list(at.workspace_id).await?;
    let webhooks = all.into_iter().map(|hook| schema::Webhook::of(at.workspace_id, hook, now)).collect();
    Ok(axum::Json(schema::WebhookList { webhooks }))
}

/// A webhook, and whether its receiver fails.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}", tag = "webhooks", params(InWebhook),
    responses((status = 200, description = "The webhook.", body = schema::Webhook)))]
pub(crate) async fn get_webhook(
    State(context): State<Arc<Context>>,
    Access { at, .. }: Access<Administer, InWebhook>,
) -> Answer<impl IntoResponse> {
    let hook = context.webhooks.get(at.workspace_id, at.webhook_id).await?;
    Ok(axum::Json(schema::Webhook::of(at.workspace_id, hook, context.base.clock.now())))
}

/// Changes, disables or enables a webhook.
#[utoipa::path(patch, path = "/api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}", tag = "webhooks",
    params(InWebhook), request_body = WebhookChanges,
    responses((status = 200, description = "The webhook as it is now.", body = schema::Webhook)))]
pub(crate) async fn change_webhook(
    State(context): State<Arc<Context>>,
    Access { at, .. }: Access<Administer, InWebhook>,
    Json(asked): Json<WebhookChanges>,
) -> Answer<impl IntoResponse> {
    let WebhookChanges { name, url, events, enabled } = asked;
    if name.is_none() && url.is_none() && events.is_none() && enabled.is_none() {
        return Err(Error::invalid("body", "there is nothing to change")
            .hint("send a name, a url, events or enabled")
            .into());
    }
    if name.is_some() || url.is_some() || events.is_some() || enabled == Some(true) {
        demand_room(&context.base)?;
    }
    let change = WebhookChange { name, url, events, enabled };
    let hook = context.webhooks.change(at.workspace_id, at.webhook_id, change).await?;
    Ok(axum::Json(schema::Webhook::of(at.workspace_id, hook, context.base.clock.now())))
}

/// Removes a webhook, with the deliveries that still waited.
#[utoipa::path(delete, path = "/api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}", tag = "webhooks",
    params(InWebhook), responses((status = 204, description = "It is gone.")))]
pub(crate) async fn delete_webhook(
    State(context): State<Arc<Context>>,
    Access { at, .. }: Access<Administer, InWebhook>,
) -> Answer<impl IntoResponse> {
    context.webhooks.delete(at.workspace_id, at.webhook_id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Gives a webhook another secret, which is in this answer and nowhere else. The one before it signs beside it for 24 hours. Each request makes
/// another one; while three replaced secrets sign, it is refused with `CONFLICT`.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}/secret", tag = "webhooks",
    params(InWebhook), responses((status = 200, description = "The secret.", body = schema::WebhookWithSecret)))]
pub(crate) async fn rotate_webhook_secret(
    State(context): State<Arc<Context>>,
    Access { at, .. }: Access<Administer, InWebhook>,
) -> Answer<impl IntoResponse> {
    let made = context.webhooks.rotate(at.workspace_id, at.webhook_id).await?;
    Ok(with_secret(&context, at.workspace_id, made))
}

/// Sends an event of the type `webhook.test`. Its delivery says how the receiver answered.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}/test", tag = "webhooks",
    params(InWebhook), responses((status = 202, description = "It is on its way.", body = schema::WebhookDelivery)))]
pub(crate) async fn test_webhook(
    State(context): State<Arc<Context>>,
    Access { at, .. }: Access<Administer, InWebhook>,
) -> Answer<impl IntoResponse> {
    let delivery = context.webhooks.test(at.workspace_id, at.webhook_id).await?;
    Ok((StatusCode::ACCEPTED, axum::Json(schema::WebhookDelivery::from(delivery))))
}

/// The deliveries of a webhook of the last 30 days, with their attempts, the newest first.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}/deliveries", tag = "webhooks",
    params(InWebhook, Paging), responses((status = 200, description = "A page of them.", body = schema::WebhookDeliveryPage)))]
pub(crate) async fn list_webhook_deliveries(
    State(context): State<Arc<Context>>,
    Access { at, .. }: Access<Administer, InWebhook>,
    Query(paging): Query<Paging>,
) -> Answer<impl IntoResponse> {
    let page = context.webhooks.deliveries(at.workspace_id, at.webhook_id, paging.limit()?, paging.cursor).await?;
    let deliveries = page.deliveries.into_iter().map(Into::into).collect();
    Ok(axum::Json(schema::WebhookDeliveryPage { deliveries, next_cursor: page.next_cursor }))
}

/// Sends a delivery again now, also one that was delivered or given up. It is then tried for as long as a new one.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}/deliveries/{delivery_id}/retry",
    tag = "webhooks", params(InDelivery),
    responses((status = 202, description = "It is on its way.", body = schema::WebhookDelivery)))]
pub(crate) async fn retry_webhook_delivery(
    State(context): State<Arc<Context>>,
    Access { at, .. }: Access<Administer, InDelivery>,
) -> Answer<impl IntoResponse> {
    let delivery = context.webhooks.retry(at.workspace_id, at.webhook_id, at.delivery_id).await?;
    Ok((StatusCode::ACCEPTED, axum::Json(schema::WebhookDelivery::from(delivery))))
}
