//! Persisted shapes of webhooks, as every version wrote them.

use buildscale_webhooks::{
    Attempt, Delivery, DeliveryStatus, Disabled, DisabledBecause, EventType, PushSettings, Webhook, WebhookEvent,
    webhook::{Previous, SecretName, WebhookSet},
};
use domain::{ChatId, Code, Timestamp, TurnId, UserId, WorkspaceId};
use serde_json::{Map, json};
use testkit::golden;
use uuid::Uuid;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const AT: Timestamp = Timestamp::from_millis(1_800_000_000_000);

fn id(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

fn webhook() -> Webhook {
    Webhook {
        id: id(1),
        name: "Team channel".into(),
        url: "https://example.com/hooks".into(),
        events: EventType::ALL.into(),
        chat: None,
        flow: None,
        by: UserId(id(2)),
        created_at: AT,
        secret: SecretName { key: "00112233aabbccdd".into(), generation: 2 },
        previous: None,
        earlier: Vec::new(),
        failing_since: None,
        disabled: None,
        push: None,
    }
}

#[test]
fn webhooks_are_read_for_ever() {
    let replaced = |generation| Previous { secret: SecretName { key: "ffee".into(), generation }, until: AT };
    let disabled = |because| Some(Disabled { because, at: AT });
    let of_chat = Webhook { chat: Some(ChatId(id(3))), disabled: disabled(DisabledBecause::Person), ..webhook() };
    let of_flow = Webhook { flow: Some("review".into()), disabled: disabled(DisabledBecause::Gone), ..webhook() };
    let failing = Webhook {
        secret: SecretName { key: "00112233aabbccdd".into(), generation: 3 },
        previous: Some(replaced(2)),
        earlier: vec![replaced(1)],
        failing_since: Some(AT),
        disabled: disabled(DisabledBecause::Failing),
        ..webhook()
    };
    let push = PushSettings { turn: TurnId(id(6)), id: "mine".into(), token: Some("a token".into()) };
    let pushed = Webhook { chat: Some(ChatId(id(3))), push: Some(push), ..webhook() };
    let set = WebhookSet { webhooks: vec![webhook(), of_chat, of_flow, failing, pushed] };
    golden::check(ROOT, "webhook_sets", &set);
}

#[test]
fn deliveries_are_read_for_ever() {
    let event =
        |kind| WebhookEvent { kind, number: 7, at: AT, data: Map::from_iter([("workspace_id".into(), json!("w"))]) };
    let new = |kind| Delivery::new(WorkspaceId(id(4)), id(1), "chat/5", event(kind), AT);
    let attempts = vec![
        Attempt { at: AT, duration_ms: 12, status: Some(500), error: Some("it says 500".into()) },
        Attempt { at: AT, duration_ms: 15_000, status: None, error: Some("it did not answer in time".into()) },
    ];
    let failed = Delivery {
        status: DeliveryStatus::Failed,
        next_at: None,
        made: 2,
        tries: 2,
        attempts: attempts.clone(),
        given_up: Some("the webhook is disabled (gone)".into()),
        ..new(EventType::PlanSubmitted)
    };
    let taken = Attempt { at: AT, duration_ms: 9, status: Some(204), error: None };
    let delivered =
        Delivery { status: DeliveryStatus::Delivered, next_at: None, attempts: vec![taken], ..new(EventType::Test) };
    let news = Delivery::of_lost(WorkspaceId(id(4)), id(1), "chat/5", 7, id(7), Code::ContentMissing, AT);
    golden::check(ROOT, "webhook_deliveries", &vec![new(EventType::TurnEnded), failed, delivered, news]);
}
