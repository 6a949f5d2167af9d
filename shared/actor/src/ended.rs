//! Actors that are on no list any more: their logs stay for a while. They are found by their workspace, and by the time at which they left their list.

use crate::{ActorId, View};
use domain::{Timestamp, WorkspaceId};
use ports::{Expect, Item, Key, MAX_WRITES, Query, Result, Table, Write};
use serde::{Deserialize, Serialize};

/// The index partition of all of them.
const ENDED: &str = "ended";

/// An actor that has left its list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its workspace.
    pub workspace: WorkspaceId,
    /// The actor.
    pub actor: ActorId,
    /// Its place on the list. An item there says that the actor is listed again, and needs its log.
    pub view: Key,
}

/// The body of the note: the place of the view.
#[derive(Serialize, Deserialize)]
struct Note<'a> {
    list: &'a str,
    place: &'a str,
}

fn partition(workspace: WorkspaceId) -> String {
    format!("{workspace}/ended")
}

fn key(actor: &ActorId) -> Option<Key> {
    let workspace = actor.as_str().split('/').nth(1)?.parse().ok()?;
    Some(Key::new(partition(workspace), actor.as_str()))
}

/// The note that an actor has left its list, to be written with the removal of its view; none of an actor of no workspace.
pub(crate) fn note(actor: &ActorId, view: &Key, at: Timestamp) -> Option<View> {
    let index = Key::new(ENDED, format!("{at}/{actor}"));
    let body = serde_json::to_string(&Note { list: &view.pk, place: &view.sk }).ok()?;
    Some(View { key: key(actor)?, index: Some(index), body: Some(body) })
}

/// The same note for a caller that removes the view itself. Again is harmless.
pub fn noting(actor: &ActorId, view: &Key, at: Timestamp) -> Option<Write> {
    let View { key, index, body } = note(actor, view, at)?;
    Some(Write::Put { key, body: body?, index, expires_at: None, expect: Expect::Any })
}

/// A check for a caller that makes an actor: it fails where one of this id has left its list and its log is still there, so that no other can begin. None of
/// an actor of no workspace.
pub fn absent(actor: &ActorId) -> Option<Write> {
    Some(Write::check(key(actor)?, Expect::Absent))
}

/// Whether an actor of this id has left its list and was not [removed](remove) yet.
///
/// # Errors
/// Those of [`Table::get`].
pub async fn has_left(table: &dyn Table, actor: &ActorId) -> Result<bool> {
    match key(actor) {
        Some(note) => Ok(table.get(&note).await?.is_some()),
        None => Ok(false),
    }
}

/// Moves the note of an actor whose log is still needed to the time `at`: until then the actor is not among those of [`before`]. An actor that was
/// [removed](remove) meanwhile gets no note again.
///
/// # Errors
/// Those of [`Table::commit`] but a conflict.
pub async fn postpone(table: &dyn Table, ended: &Ended, at: Timestamp) -> Result<()> {
    let Some(View { key, index: Some(index), body: Some(body) }) = note(&ended.actor, &ended.view, at) else {
        return Ok(());
    };
    match table.commit(vec![Write::put(key, body, Expect::Present).indexed(index)]).await {
        Err(ports::Error::Conflict { .. }) => Ok(()),
        written => written,
    }
}

/// Actors that left their lists before `before`, the first ones first, at most `limit`; with the cursor when there are more. A note that cannot be read
/// is left out.
///
/// # Errors
/// Those of [`Table::query_index`].
pub async fn before(
    table: &dyn Table,
    before: Timestamp,
    limit: usize,
    cursor: Option<String>,
) -> Result<(Vec<Ended>, Option<String>)> {
    let range = Query { to: Some(before.to_string()), ..Query::all(ENDED, limit) };
    let page = table.query_index(&range.after(cursor)).await?;
    let actor = |item: &Item| {
        let workspace = item.key.pk.strip_suffix("/ended")?.parse().ok()?;
        let Note { list, place } = serde_json::from_str(&item.body).ok()?;
        Some(Ended { workspace, actor: ActorId::from_group(&item.key.sk), view: Key::new(list, place) })
    };
    Ok((page.items.iter().filter_map(actor).collect(), page.next))
}

/// The actors of a workspace that have left their lists, at most [`MAX_WRITES`]; those that were [removed](remove) are not among them.
///
/// # Errors
/// Those of [`Table::query`].
pub async fn of(table: &dyn Table, workspace: WorkspaceId) -> Result<Vec<ActorId>> {
    let page = table.query(&Query::all(partition(workspace), MAX_WRITES)).await?;
    Ok(page.items.into_iter().map(|item| ActorId::from_group(&item.key.sk)).collect())
}

/// Removes all that the table has of an actor, its log included, and then the note of it. Nothing may drive it any more. Again is harmless.
///
/// # Errors
/// Those of [`Table::clear`]. The note stays then.
pub async fn remove(table: &dyn Table, actor: &ActorId) -> Result<()> {
    table.clear(actor.as_str()).await?;
    match key(actor) {
        Some(note) => table.commit(vec![Write::delete(note, Expect::Any)]).await,
        None => Ok(()),
    }
}

/// Removes the actors whose views are a partition of the table, each [with all of its own](remove) before its view; `actor_of` gives the one of a sort
/// key. Nothing may drive them any more. Again is harmless.
///
/// # Errors
/// Those of [`Table::query`] and [`Table::clear`]. The view of the actor at which it failed stays, with those after it.
pub async fn remove_listed(
    table: &dyn Table,
    partition: &str,
    actor_of: impl Fn(&str) -> Option<ActorId> + Send + Sync,
) -> Result<()> {
    loop {
        let views = table.query(&Query::all(partition, MAX_WRITES)).await?.items;
        if views.is_empty() {
            return Ok(());
        }
        for view in views {
            if let Some(actor) = actor_of(&view.key.sk) {
                remove(table, &actor).await?;
            }
            table.commit(vec![Write::delete(view.key, Expect::Any)]).await?;
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use testkit::{
        TestClock,
        fakes::{FakeTable, Faults},
    };
    use uuid::Uuid;

    #[tokio::test]
    async fn an_actor_that_has_left_its_list_is_found_by_its_workspace_and_removed() {
        let table = FakeTable::new(std::sync::Arc::new(TestClock::new(1)), 1, Faults::none());
        let (one, other) = (WorkspaceId(Uuid::from_u128(1)), WorkspaceId(Uuid::from_u128(2)));
        let actors = [one, other].map(|workspace| ActorId::new("chat", format_args!("{workspace}/c")));
        let view = Key::new("list", "c");
        for actor in &actors {
            let entry = Write::put(actor.entry_key(1), "{}", Expect::Absent);
            table.commit(vec![entry, noting(actor, &view, Timestamp::from_millis(1_000)).unwrap()]).await.unwrap();
        }
        assert_eq!(noting(&ActorId::new("slots", "name"), &view, Timestamp::from_millis(1_000)), None);
        let until = async |ms: i64| before(&table, Timestamp::from_millis(ms), 9, None).await.unwrap().0;
        let first = Ended { workspace: one, actor: actors[0].clone(), view };
        assert_eq!((until(1_000).await.len(), until(1_001).await[0].clone()), (0, first));
        assert_eq!(of(&table, one).await.unwrap(), actors[..1]);
        let first = until(1_001).await.remove(0);
        postpone(&table, &first, Timestamp::from_millis(2_000)).await.unwrap();
        assert_eq!((until(2_000).await.len(), until(2_001).await.len()), (1, 2));
        for _ in 0..2 {
            remove(&table, &actors[0]).await.unwrap();
            postpone(&table, &first, Timestamp::from_millis(2_000)).await.unwrap();
            assert_eq!(of(&table, one).await.unwrap(), []);
            assert_eq!(table.items().len(), 2, "those of the other one");
        }
    }
}
