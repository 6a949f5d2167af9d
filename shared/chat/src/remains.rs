//! The rows of deleted chats, and of the chats of a deleted workspace, and their removal.

use crate::{
    keys::{actor_id, people_partition, permission_key, permission_partition},
    standing_rules, threads,
};
use actor::{LogReader, ended};
use domain::{ChatEvent, ChatId, WorkspaceId};
use ports::{Expect, Result, Table, Write};

/// Removes the log of a deleted chat, and the rows by which its requests for permission are found, as far as the log can be read. Nothing may drive the
/// chat any more. Again is harmless.
///
/// # Errors
/// Those of [`Table::query`] and [`Table::clear`]. The note of the chat among those that have [ended] stays then.
pub async fn remove_chat(table: &dyn Table, workspace: WorkspaceId, chat: ChatId) -> Result<()> {
    let actor = actor_id(workspace, chat);
    let mut log = LogReader::<ChatEvent>::starting_at(actor.clone(), 1);
    loop {
        match log.next(table).await {
            Ok(Some((_, _, ChatEvent::PermissionRequired { permission_id, .. }))) => {
                table.commit(vec![Write::delete(permission_key(workspace, permission_id), Expect::Any)]).await?;
            }
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(error) if error.is_damage() => {
                tracing::warn!(%actor, %error, "some rows of a deleted chat stay until its workspace is deleted");
                break;
            }
            Err(error) => return Err(error),
        }
    }
    ended::remove(table, &actor).await
}

/// Removes the chats of a deleted workspace that are on its lists, those of its agents among them, with their logs; and its requests for permission,
/// rules and threads. The records of usage stay: the limits of a person count them wherever they were spent. Chats that were deleted before are
/// [`actor::ended`]. Again is harmless.
///
/// # Errors
/// Those of [`Table::clear`]. Some of it is gone then.
pub async fn remove_remains(table: &dyn Table, workspace: WorkspaceId) -> Result<()> {
    let chat = |id: &str| Some(actor_id(workspace, id.parse().ok()?));
    ended::remove_listed(table, &people_partition(workspace), chat).await?;
    let others = [permission_partition(workspace), standing_rules::partition(workspace), threads::partition(workspace)];
    for partition in others {
        table.clear(&partition).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use ports::Key;
    use serde_json::json;
    use std::sync::Arc;
    use testkit::{
        TestClock,
        fakes::{FakeTable, Faults},
    };
    use uuid::Uuid;

    #[tokio::test]
    async fn the_requests_for_permission_of_a_deleted_chat_go_with_its_log() {
        let table = FakeTable::new(Arc::new(TestClock::new(1)), 1, Faults::none());
        let workspace = WorkspaceId(Uuid::from_u128(1));
        let [chat, other, damaged] = [2, 3, 4].map(|id| ChatId(Uuid::from_u128(id)));
        let [first, second, of_other] = [5, 6, 7].map(|id| domain::PermissionId(Uuid::from_u128(id)));
        let put = async |key: Key, body: String| {
            table.commit(vec![Write::put(key, body, Expect::Absent)]).await.unwrap();
        };
        for (number, (chat, permission)) in [(chat, first), (chat, second), (other, of_other)].into_iter().enumerate() {
            let at = "2026-01-01T00:00:00.000Z";
            let event = json!({
                "type": "permission_required", "permission_id": permission, "call_id": Uuid::nil(), "category": "command",
                "tool": "exec", "args": "{}", "reason": "r", "at": at, "expires_at": at,
            });
            let first = number as u64 + 1;
            let entry = json!({ "first": first, "next": first + 1, "at": at, "step": Uuid::nil(), "events": [event] });
            put(actor_id(workspace, chat).entry_key(first), entry.to_string()).await;
            put(permission_key(workspace, permission), json!(chat).to_string()).await;
        }
        put(actor_id(workspace, damaged).entry_key(1), "{}".into()).await;
        for _ in 0..2 {
            remove_chat(&table, workspace, chat).await.unwrap();
            remove_chat(&table, workspace, damaged).await.unwrap();
            let left: Vec<_> = table.items().into_iter().map(|item| item.key).collect();
            assert_eq!(left, [permission_key(workspace, of_other), actor_id(workspace, other).entry_key(3)]);
        }
    }
}
