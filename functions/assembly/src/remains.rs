//! The rows of a deleted workspace that are not about its files: the logs, views and memory of its chats, tasks and schedules, and its evaluations.
//!
//! The semaphore of the workspace stays. It has no words, and a worker that has it in memory goes on behind its last entry: where the workspace is made
//! again, another worker would begin a second line of entries at 1, and neither would see the slots of the other.

use async_trait::async_trait;
use domain::{ActorRef, Error, WorkspaceId};
use ports::Table;
use std::sync::Arc;
use workspace::Remains;

/// The error of a store, for work that nobody waits for.
pub(crate) fn unreachable(error: ports::Error) -> Error {
    Error::new(domain::Code::UpstreamUnavailable, format!("a sweep's stores did not answer: {error}"))
}

/// Removes them from this table.
pub(crate) struct TableRemains(pub Arc<dyn Table>);

#[async_trait]
impl Remains for TableRemains {
    async fn remove(&self, workspace: WorkspaceId) -> Result<(), Error> {
        self.removed(workspace).await.map_err(unreachable)
    }
}

impl TableRemains {
    async fn removed(&self, workspace: WorkspaceId) -> ports::Result<()> {
        let table = &*self.0;
        chat::remove_remains(table, workspace).await?;
        engine::remove_remains(table, workspace).await?;
        schedule::remove_remains(table, workspace).await?;
        evaluation::remove_remains(table, workspace).await?;
        loop {
            let ended = actor::ended::of(table, workspace).await?;
            if ended.is_empty() {
                return actor::waiting::remove_remains(table, workspace).await;
            }
            for actor in ended {
                match actor.as_str().parse::<ActorRef>() {
                    Ok(ActorRef::Task { task, .. }) => engine::remove_task(table, workspace, task).await?,
                    _ => actor::ended::remove(table, &actor).await?,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
