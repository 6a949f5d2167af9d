//! The list of what waits for people in a workspace: chats and tasks with open questions and requests for permission, those included that
//! are on no other list, such as agents of tasks. An actor's entry of it is written and removed with the entries of its log.

use crate::{ActorId, Announcement, Machine, View, load::Loaded, unreachable};
use domain::{ActorKind, Error, TaskId, Waiting, WorkspaceId};
use ports::{Expect, Key, Query, Table, Write, validate};
use serde::Serialize;

/// A page of the list.
#[derive(Clone, Debug, Serialize)]
pub struct WaitingPage {
    /// The chats and tasks that wait, in the order of their ids.
    pub waiting: Vec<Waiting>,
    /// The cursor of the next page; none at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A part of the list of a workspace; with `root`, a task that people made, only what waits of it and of all below it.
///
/// # Errors
/// `INVALID_ARGUMENT` for a cursor of another list; as [`unreachable`] when the table does not answer.
pub async fn list(
    table: &dyn Table,
    workspace: WorkspaceId,
    root: Option<TaskId>,
    limit: usize,
    cursor: Option<String>,
) -> Result<WaitingPage, Error> {
    let query = Query::all(root.map_or_else(|| partition(workspace), of_task), limit).after(cursor);
    let page = match root {
        None => table.query(&query).await,
        Some(_) => table.query_index(&query).await,
    };
    let lost = |error: ports::Error| unreachable(ActorKind::Task, error);
    let page = page.map_err(validate::of_page(&query, lost))?;
    let waiting = ports::readable::<Waiting>(&page.items).map(|(_, waiting)| waiting);
    let waiting = waiting.filter(|waiting| waiting.workspace_id == workspace).collect();
    Ok(WaitingPage { waiting, next_cursor: page.next })
}

/// Puts an actor on the list that waits and is not on it: it began to wait under a version that kept no list. False when it is on the list already, or
/// waits for nobody.
///
/// The commit checks that the actor has no further entry, so no entry can have ended the wait meanwhile.
///
/// # Errors
/// Those of [`Table::query`] and [`Table::commit`]; [`ports::Error::Damaged`] for an entry that cannot be read.
pub async fn enlist<M: Machine>(table: &dyn Table, actor: &ActorId) -> ports::Result<bool> {
    loop {
        let loaded = Loaded::<M>::read(table, actor).await?;
        let Some(View { key, index, body: Some(body) }) = written(None, loaded.waiting.as_ref()) else {
            return Ok(false);
        };
        if table.get(&key).await?.is_some() {
            return Ok(false);
        }
        let put = Write::Put { key, body, index, expires_at: None, expect: Expect::Absent };
        let rests = Write::check(actor.entry_key(loaded.next), Expect::Absent);
        match table.commit(vec![put, rests]).await {
            Ok(()) => return Ok(true),
            // The actor has moved, or another process was first.
            Err(ports::Error::Conflict { .. }) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Removes the list of a deleted workspace. Again is harmless.
///
/// # Errors
/// Those of [`Table::clear`].
pub async fn remove_remains(table: &dyn Table, workspace: WorkspaceId) -> ports::Result<()> {
    table.clear(&partition(workspace)).await
}

fn partition(workspace: WorkspaceId) -> String {
    format!("{workspace}/waiting")
}

fn of_task(root: TaskId) -> String {
    format!("{root}/waiting")
}

/// The item by which the list gets from one state to another one.
pub(crate) fn written(before: Option<&Waiting>, after: Option<&Waiting>) -> Option<View> {
    let waiting = after.or(before)?;
    let key = key(waiting);
    Some(match after {
        None => View { key, index: None, body: None },
        Some(waiting) => {
            let index = waiting.root().map(|root| Key::new(of_task(root), key.sk.as_str()));
            View { key, index, body: serde_json::to_string(waiting).ok() }
        }
    })
}

/// The announcement of the second state.
pub(crate) fn announcement(before: Option<&Waiting>, after: Option<&Waiting>) -> Option<Announcement> {
    let waiting = after.or(before)?;
    Announcement::of_workspace(waiting.workspace_id, waiting.event(after.is_none())?)
}

fn key(waiting: &Waiting) -> Key {
    let of_task = || waiting.task_id.map(|task| task.to_string()).unwrap_or_default();
    Key::new(partition(waiting.workspace_id), waiting.chat_id.map_or_else(of_task, |chat| chat.to_string()))
}
