//! One task's log, event by event: never more than a page of it in memory.

use crate::machine::actor_id;
use actor::{ActorId, Entry};
use domain::{TaskEvent, TaskId, WorkspaceId, task::is_stop};
use ports::{Query, Result, Table};
use std::collections::VecDeque;

/// Entries that are read at once.
const PAGE: usize = 64;
/// The newest entries that are looked at to learn how a task ended: its artifacts may be stored after it.
const NEWEST: usize = 4;

/// A place in a log.
pub struct Log {
    actor: ActorId,
    after: u64,
    page: VecDeque<TaskEvent>,
    more: bool,
}

impl Log {
    /// The beginning of a task's log.
    pub fn of(workspace: WorkspaceId, task: TaskId) -> Self {
        Self { actor: actor_id(workspace, task), after: 0, page: VecDeque::new(), more: true }
    }

    /// The next event; none at the end of what there is.
    ///
    /// # Errors
    /// Those of [`actor::read_after`]; the same place is read again then.
    pub async fn next(&mut self, table: &dyn Table) -> Result<Option<TaskEvent>> {
        loop {
            if let Some(event) = self.page.pop_front() {
                return Ok(Some(event));
            }
            if !self.more {
                return Ok(None);
            }
            let page = actor::read_after::<TaskEvent>(table, &self.actor, self.after, PAGE).await?;
            self.more = page.more && !page.entries.is_empty();
            for entry in page.entries {
                self.after = entry.next.saturating_sub(1).max(self.after);
                self.page.extend(entry.events);
            }
        }
    }
}

/// Whether a task was stopped before its end: how far it came then is chance.
///
/// # Errors
/// Those of the table, and one of an entry that cannot be read.
pub async fn was_stopped(table: &dyn Table, workspace: WorkspaceId, task: TaskId) -> Result<bool> {
    let actor = actor_id(workspace, task);
    let newest =
        Query { from: Some("log/".into()), to: Some("log0".into()), ..Query::all(actor.as_str(), NEWEST) }.descending();
    for item in table.query(&newest).await?.items {
        let entry: Entry<TaskEvent> =
            serde_json::from_str(&item.body).map_err(|error| ports::Error::Damaged(error.to_string()))?;
        for event in entry.events {
            if let TaskEvent::Finished { error, .. } = event {
                return Ok(error.as_ref().is_some_and(is_stop));
            }
        }
    }
    Ok(false)
}
