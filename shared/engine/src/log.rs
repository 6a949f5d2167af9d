//! The log of a task.

use crate::machine::actor_id;
use actor::{Entry, LogReader};
use domain::{TaskConfig, TaskEvent, TaskId, WorkspaceId, task::is_stop};
use ports::{Result, Table};

/// The newest entries that are looked at to learn how a task ended: its artifacts may be stored after it.
const NEWEST: usize = 4;

/// The log of a task from its beginning.
pub fn of(workspace: WorkspaceId, task: TaskId) -> LogReader<TaskEvent> {
    starting_at(workspace, task, 1)
}

/// The log of a task from the event with this number on.
pub fn starting_at(workspace: WorkspaceId, task: TaskId, number: u64) -> LogReader<TaskEvent> {
    LogReader::starting_at(actor_id(workspace, task), number)
}

/// The setup of a task as its log has it, also of one that was deleted; none before its log begins.
///
/// # Errors
/// Those of the table, and one of an entry that cannot be read.
pub async fn config(table: &dyn Table, workspace: WorkspaceId, task: TaskId) -> Result<Option<TaskConfig>> {
    let mut log = of(workspace, task);
    while let Some((_, _, event)) = log.next(table).await? {
        if let TaskEvent::Created { config } = event {
            return Ok(Some(*config));
        }
    }
    Ok(None)
}

/// Whether a task was stopped before its end: how far it came then is chance.
///
/// # Errors
/// Those of the table, and one of an entry that cannot be read.
pub async fn was_stopped(table: &dyn Table, workspace: WorkspaceId, task: TaskId) -> Result<bool> {
    let actor = actor_id(workspace, task);
    for item in table.query(&actor.entries(NEWEST).descending()).await?.items {
        for event in item.content::<Entry<TaskEvent>>()?.events {
            if let TaskEvent::Finished { error, .. } = event {
                return Ok(error.as_ref().is_some_and(is_stop));
            }
        }
    }
    Ok(false)
}
