//! The rows of a deleted workspace that are not about its files: the logs, views and memory of its chats, tasks and schedules, and its evaluations.
//!
//! The semaphore of the workspace stays. It has no text of people, and a worker that has it in memory goes on behind its last entry: where the workspace is
//! made again, another worker would begin a second line of entries at 1, and neither would see the slots of the other. The slots and places that the chats
//! and tasks of the removed logs had are given back.

mod semaphores;

pub(crate) use semaphores::Semaphores;

use async_trait::async_trait;
use domain::{ActorRef, Error, WorkspaceId};
use ports::Table;
use std::sync::Arc;
use workspace::Dependents;

/// The error of a store, for work that nobody waits for.
pub(crate) fn unreachable(error: ports::Error) -> Error {
    Error::new(domain::Code::UpstreamUnavailable, format!("a sweep's stores did not answer: {error}"))
}

/// Removes them from this table.
pub(crate) struct TableDependents {
    pub table: Arc<dyn Table>,
    pub semaphores: Semaphores,
}

#[async_trait]
impl Dependents for TableDependents {
    async fn remove(&self, workspace: WorkspaceId) -> Result<(), Error> {
        self.removed(workspace).await.map_err(unreachable)
    }
}

impl TableDependents {
    async fn removed(&self, workspace: WorkspaceId) -> ports::Result<()> {
        let table = &*self.table;
        chat::remove_remains(table, workspace).await?;
        engine::remove_remains(table, workspace).await?;
        schedule::remove_remains(table, workspace).await?;
        evaluation::remove_remains(table, workspace).await?;
        loop {
            let ended = actor::ended::of(table, workspace).await?;
            if ended.is_empty() {
                break;
            }
            for actor in ended {
                match actor.as_str().parse::<ActorRef>() {
                    Ok(ActorRef::Task { task, .. }) => engine::remove_task(table, workspace, task).await?,
                    _ => actor::ended::remove(table, &actor).await?,
                }
            }
        }
        actor::waiting::remove_remains(table, workspace).await?;
        // Last, so that a request which a step made during the removal is withdrawn, too.
        self.semaphores.release_workspace(workspace).await
    }
}

#[cfg(test)]
mod tests;
