//! The rows of webhooks and their deliveries, and the messages about them.

use crate::{
    delivery::{Delivery, DeliveryStatus},
    event::{EventType, WebhookEvent},
    webhook::WebhookSet,
};
use domain::{Code, Sha256, Timestamp, WorkspaceId};
use ports::{Error, ErrorKind, Expect, Item, Key, Query, QueueMessage, Result, Table, Write};
use serde::{
    Deserialize, Serialize,
    de::{DeserializeOwned, IgnoredAny},
};
use std::time::Duration;
use uuid::Uuid;

/// The kind of the queue groups of webhooks.
pub(crate) const KIND: &str = "hook";
/// The groups of one webhook: so many of its receivers' answers are waited for at once. A chat or task is always in the same one.
const GROUPS: u8 = 4;
/// How long a delivery is listed.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);
/// How often a lost race for the set of webhooks is run again.
const ATTEMPTS: u32 = 16;

/// A message of a group of a webhook.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "hook", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum HookMessage {
    /// An event happened.
    #[serde(rename = "letter")]
    Event {
        /// The line.
        source: String,
        /// The event.
        event: WebhookEvent,
    },
    /// The first delivery of a line may be due.
    Wake {
        /// The line.
        source: String,
    },
}

/// The webhook that a group is of.
pub(crate) fn webhook_of(group: &str) -> Option<(WorkspaceId, Uuid)> {
    let mut parts = group.strip_prefix(KIND)?.strip_prefix('/')?.split('/');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// A message to the group of a line.
pub(crate) fn message(workspace: WorkspaceId, webhook: Uuid, id: String, body: &HookMessage) -> Result<QueueMessage> {
    let (HookMessage::Event { source, .. } | HookMessage::Wake { source }) = body;
    let digest = Sha256::of(source.as_bytes()).to_string();
    let group = u8::from_str_radix(digest.get(..2).unwrap_or_default(), 16).unwrap_or_default() % GROUPS;
    let group = format!("{KIND}/{workspace}/{}/{group}", webhook.hyphenated());
    let body = serde_json::to_string(body).map_err(invalid)?;
    Ok(QueueMessage { group, id, body, ..QueueMessage::default() })
}

/// An item and its revision.
pub(crate) struct HeldItem<T> {
    pub value: T,
    pub rev: u64,
}

fn set_key(workspace: WorkspaceId) -> Key {
    Key::new(format!("{workspace}/webhooks"), "all")
}

/// The partition of the deliveries of a webhook, of the table and of its index.
pub(crate) fn partition(workspace: WorkspaceId, webhook: Uuid) -> String {
    format!("{workspace}/webhooks/{}", webhook.hyphenated())
}

fn delivery_key(workspace: WorkspaceId, webhook: Uuid, delivery: Uuid) -> Key {
    Key::new(partition(workspace, webhook), delivery.hyphenated().to_string())
}

fn open_key(workspace: WorkspaceId, delivery: &Delivery) -> Key {
    Key::new(format!("{}/open", partition(workspace, delivery.webhook)), delivery.place())
}

/// The webhooks of a workspace.
pub(crate) async fn webhooks(table: &dyn Table, workspace: WorkspaceId) -> Result<WebhookSet> {
    Ok(held_set(table, workspace).await?.0)
}

async fn held_set(table: &dyn Table, workspace: WorkspaceId) -> Result<(WebhookSet, Expect)> {
    match table.get(&set_key(workspace)).await? {
        Some(item) => Ok((from_json(&item.body)?, Expect::Rev(item.rev))),
        None => Ok((WebhookSet::default(), Expect::Absent)),
    }
}

/// Changes the webhooks of a workspace under their revision; `change` may be called again, and says with none that nothing changes.
pub(crate) async fn change<T>(
    table: &dyn Table,
    workspace: WorkspaceId,
    mut change: impl FnMut(&mut WebhookSet) -> Option<T> + Send,
) -> Result<Option<T>> {
    for round in 1.. {
        let (mut set, expect) = held_set(table, workspace).await?;
        let Some(changed) = change(&mut set) else { return Ok(None) };
        let body = serde_json::to_string(&set).map_err(invalid)?;
        match table.commit(vec![Write::put(set_key(workspace), body, expect)]).await {
            Ok(()) => return Ok(Some(changed)),
            Err(Error::Conflict { .. }) if round < ATTEMPTS => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Forgets the webhooks of a workspace, with the deliveries of each; none is fine. Of a set that cannot be read the deliveries stay until they expire.
/// Returns the ids of the webhooks.
pub(crate) async fn forget(table: &dyn Table, workspace: WorkspaceId) -> Result<Vec<Uuid>> {
    let set = match webhooks(table, workspace).await {
        Err(error) if error.kind() == ErrorKind::Retry => return Err(error),
        set => set.unwrap_or_default(),
    };
    // The set goes first, so that nothing is added to the lines meanwhile.
    table.commit(vec![Write::delete(set_key(workspace), Expect::Any)]).await?;
    let ids: Vec<_> = set.webhooks.iter().map(|webhook| webhook.id).collect();
    for id in &ids {
        clear(table, workspace, *id).await?;
    }
    Ok(ids)
}

/// Removes the deliveries of a webhook that is gone.
pub(crate) async fn clear(table: &dyn Table, workspace: WorkspaceId, webhook: Uuid) -> Result<()> {
    let deliveries = partition(workspace, webhook);
    table.clear(&format!("{deliveries}/open")).await?;
    table.clear(&deliveries).await
}

/// A delivery.
pub(crate) async fn delivery(
    table: &dyn Table,
    workspace: WorkspaceId,
    webhook: Uuid,
    id: Uuid,
) -> Result<Option<HeldItem<Delivery>>> {
    let item = table.get(&delivery_key(workspace, webhook, id)).await?;
    item.map(|item| Ok(HeldItem { value: from_json(&item.body)?, rev: item.rev })).transpose()
}

/// Records a new delivery at the end of its line. One that is recorded already stays as it is.
pub(crate) async fn record(table: &dyn Table, workspace: WorkspaceId, delivery: &Delivery) -> Result<()> {
    match replace(table, workspace, delivery, Expect::Absent).await {
        Err(Error::Conflict { .. }) => Ok(()),
        written => written,
    }
}

/// Writes a delivery; it is in its line while it is pending.
///
/// # Errors
/// [`Error::Conflict`] when another was faster.
pub(crate) async fn replace(
    table: &dyn Table,
    workspace: WorkspaceId,
    delivery: &Delivery,
    expect: Expect,
) -> Result<()> {
    table.commit(writes_of(workspace, delivery, expect)?).await
}

/// The writes of a delivery and of its place in the line.
fn writes_of(workspace: WorkspaceId, delivery: &Delivery, expect: Expect) -> Result<Vec<Write>> {
    let key = delivery_key(workspace, delivery.webhook, delivery.id);
    let index = Key::new(&key.pk, format!("{}/{}", delivery.created_at, delivery.id.hyphenated()));
    let body = serde_json::to_string(delivery).map_err(invalid)?;
    let gone = delivery.since + KEPT;
    let open = open_key(workspace, delivery);
    let in_line = match delivery.status {
        DeliveryStatus::Pending => {
            let id = serde_json::to_string(&delivery.id).map_err(invalid)?;
            Write::put(open, id, Expect::Any).expiring(gone)
        }
        DeliveryStatus::Delivered | DeliveryStatus::Failed => Write::delete(open, Expect::Any),
    };
    Ok(vec![Write::put(key, body, expect).indexed(index).expiring(gone), in_line])
}

/// The first delivery of a line: its place there, and its id. A place whose row no version can read is that of the delivery that belongs there, and goes where there is none.
pub(crate) async fn first(
    table: &dyn Table,
    workspace: WorkspaceId,
    webhook: Uuid,
    source: &str,
) -> Result<Option<(Key, Uuid)>> {
    let pk = format!("{}/open", partition(workspace, webhook));
    loop {
        let page = table.query(&Query::prefix(&pk, &format!("{source}/"), 2)).await?;
        let Some(item) = page.items.into_iter().next() else { return Ok(None) };
        match from_json(&item.body) {
            Ok(id) => return Ok(Some((item.key, id))),
            // A newer version may have written it, and can read it.
            Err(error) if is_json(&item) => return Err(error),
            Err(_) => {}
        }
        tracing::error!(%workspace, %webhook, place = item.key.sk, "a row of a line is damaged: its delivery is looked for");
        match belonging_to(table, workspace, webhook, source, &item.key).await? {
            Some(id) => return Ok(Some((item.key, id))),
            None => table.commit(vec![Write::delete(item.key, Expect::Rev(item.rev))]).await?,
        }
    }
}

/// The delivery that belongs to a place of a line and waits: its id follows from the event, of which the place lacks the type alone.
async fn belonging_to(
    table: &dyn Table,
    workspace: WorkspaceId,
    webhook: Uuid,
    source: &str,
    place: &Key,
) -> Result<Option<Uuid>> {
    let number = number_at(place);
    for kind in EventType::ALL.into_iter().chain([EventType::Test]) {
        let id = Delivery::id_of(workspace, webhook, source, number, kind);
        for (id, kind) in [(id, kind), (Delivery::id_of_news(id), EventType::Lost)] {
            if Delivery::place_of(source, number, kind) != place.sk {
                continue;
            }
            match delivery(table, workspace, webhook, id).await {
                Ok(found) => {
                    if found.is_some_and(|found| found.value.status == DeliveryStatus::Pending) {
                        return Ok(Some(id));
                    }
                }
                // It is there, and the reader of the line tells of its loss.
                Err(error) if error.is_damage() => return Ok(Some(id)),
                Err(error) => return Err(error),
            }
        }
    }
    Ok(None)
}

fn is_json(item: &Item) -> bool {
    serde_json::from_str::<IgnoredAny>(&item.body).is_ok()
}

/// The number of the event that has this place in a line.
pub(crate) fn number_at(place: &Key) -> u64 {
    place.sk.rsplit('/').nth(1).and_then(|number| number.parse().ok()).unwrap_or_default()
}

/// Why a delivery can be read by no version: its content is lost, or is no JSON. None for any other one.
pub(crate) async fn loss(table: &dyn Table, workspace: WorkspaceId, webhook: Uuid, id: Uuid) -> Result<Option<Code>> {
    match table.get(&delivery_key(workspace, webhook, id)).await {
        Ok(item) => Ok(item.filter(|item| !is_json(item)).map(|_| Code::ContentDamaged)),
        Err(error) => match error.lost() {
            Some(told) => Ok(Some(told.code)),
            None => Err(error),
        },
    }
}

/// Puts the news of a lost event into its line, from which the delivery at this place goes. Its record stays: a backup may bring the content back.
pub(crate) async fn supersede(table: &dyn Table, workspace: WorkspaceId, place: &Key, news: &Delivery) -> Result<()> {
    let leave = || Write::delete(place.clone(), Expect::Any);
    let mut writes = writes_of(workspace, news, Expect::Absent)?;
    writes.push(leave());
    match table.commit(writes).await {
        // The receiver was told before: a person had the delivery sent again, and its content was lost once more.
        Err(Error::Conflict { .. }) => table.commit(vec![leave()]).await,
        written => written,
    }
}

/// The message that has a line looked at again, at once or at a time.
pub(crate) fn wake(
    workspace: WorkspaceId,
    webhook: Uuid,
    source: &str,
    id: String,
    at: Option<Timestamp>,
) -> Result<QueueMessage> {
    let message = message(workspace, webhook, id, &HookMessage::Wake { source: source.to_owned() })?;
    Ok(QueueMessage { deliver_at: at, ..message })
}

pub(crate) fn from_json<T: DeserializeOwned>(body: &str) -> Result<T> {
    serde_json::from_str(body).map_err(|error| Error::Damaged(error.to_string()))
}

fn invalid(error: impl std::fmt::Display) -> Error {
    Error::Invalid(error.to_string())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use serde_json::json;

    #[test]
    fn a_chat_is_always_in_the_same_group_of_its_workspace() {
        let (workspace, hook) = (WorkspaceId(Uuid::from_u128(1)), Uuid::from_u128(2));
        let group = |source: &str| wake(workspace, hook, source, "1".into(), None).unwrap().group;
        assert_eq!(group("chat/1"), group("chat/1"));
        let groups: std::collections::BTreeSet<_> = (0..100).map(|chat| group(&format!("chat/{chat}"))).collect();
        assert_eq!(groups.len(), usize::from(GROUPS));
        assert_eq!(ports::tenant(&group("chat/1")), workspace.to_string());
        assert_eq!(webhook_of(&group("chat/1")), Some((workspace, hook)));
        assert_eq!(webhook_of("hook/nonsense"), None);
    }

    #[test]
    fn webhooks_with_a_field_of_a_newer_version_are_left_to_its_workers() {
        let read = |body: &str| from_json::<WebhookSet>(body).map_err(|error| error.is_damage());
        assert!(read(r#"{"webhooks":[]}"#).is_ok());
        // A delivery that needs such a row waits for a newer worker, and counts no failure.
        assert_eq!(read(r#"{"webhooks":[],"later":[]}"#).err(), Some(true));
    }

    #[test]
    fn messages_are_read_for_ever() {
        let source = "chat/7".to_owned();
        let event = WebhookEvent {
            kind: crate::EventType::TurnEnded,
            number: 9,
            at: Timestamp::from_millis(1_800_000_000_000),
            data: json!({ "turn_id": "t" }).as_object().unwrap().clone(),
        };
        let all = vec![HookMessage::Event { source: source.clone(), event }, HookMessage::Wake { source }];
        testkit::golden::check(env!("CARGO_MANIFEST_DIR"), "hook_messages", &all);
    }
}
