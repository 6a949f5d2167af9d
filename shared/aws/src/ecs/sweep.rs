//! The sweep: moves on items without a look, and ends tasks that no item wants.

use super::{
    EcsSandboxes, KeptRecord, WHAT,
    record::{PARTITION, Phase, Record},
    settle::Call,
    tasks::{DESCRIBED_AT_ONCE, Status},
};
use domain::WorkspaceId;
use ports::{Query, Result};
use std::collections::HashMap;

/// The result of a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Items that were looked at.
    pub seen: usize,
    /// Sandboxes that could not be had in time, or at all.
    pub failed: usize,
    /// Sandboxes whose end had not been noticed.
    pub ended: usize,
    /// Tasks that no item wanted, stopped.
    pub stopped: usize,
}

impl EcsSandboxes {
    /// Goes once through all items and through all tasks: starts nothing that was not asked for, fails requests past their deadline,
    /// notices ended tasks, and stops every task whose item is gone, replaced or over. To be called every few minutes; two at once do no
    /// harm. Items that are over expire by themselves after a day.
    ///
    /// # Errors
    /// When the table or ECS does not answer. Finished parts stay done; the next sweep goes on.
    pub async fn sweep(&self) -> Result<Swept> {
        let mut swept = Swept::default();
        let mut wanted = HashMap::new();
        let mut cursor = None;
        loop {
            let query = Query::all(PARTITION, DESCRIBED_AT_ONCE).after(cursor);
            let page = self.table.query(&query).await?;
            self.sweep_items(page.items.iter().map(KeptRecord::read), &mut swept, &mut wanted).await?;
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        let mut from = None;
        loop {
            let (tasks, next) = self.tasks.list(from).await.map_err(|fault| fault.into_error(WHAT))?;
            for some in tasks.chunks(DESCRIBED_AT_ONCE) {
                swept.stopped += self.sweep_tasks(some, &wanted).await?;
            }
            from = next;
            if from.is_none() {
                return Ok(swept);
            }
        }
    }

    async fn sweep_items(
        &self,
        items: impl Iterator<Item = Result<KeptRecord>>,
        swept: &mut Swept,
        wanted: &mut HashMap<WorkspaceId, String>,
    ) -> Result<()> {
        let mut some = Vec::new();
        for kept in items {
            match kept {
                Ok(kept) if kept.record.is_wanted() => some.push(kept),
                Ok(_) => {}
                Err(error) => tracing::error!(error = %error.with_causes(), "an item is left as it is"),
            }
        }
        let tasks: Vec<String> = some.iter().filter_map(|kept| kept.record.task().map(str::to_owned)).collect();
        let mut seen = self.tasks.describe(&tasks).await.map_err(|fault| fault.into_error(WHAT))?;
        for kept in some {
            let (workspace, task) = (kept.workspace, kept.record.task().map(str::to_owned));
            swept.seen += 1;
            let standing = match task {
                Some(task) => self.judge(kept, seen.remove(&task), Call::UntilReady).await,
                None => self.settle(kept, Call::UntilReady).await,
            }?;
            let Some(KeptRecord { record, .. }) = standing.kept else { continue };
            match record.phase {
                Phase::Failed { .. } => swept.failed += 1,
                Phase::Ended { .. } => swept.ended += 1,
                Phase::Asked { .. } | Phase::Started { .. } | Phase::Ready { .. } => {
                    wanted.insert(workspace, Record::started_by(workspace, &record.attempt));
                }
            }
        }
        Ok(())
    }

    /// Stops those of these tasks that no item wants; how many.
    async fn sweep_tasks(&self, tasks: &[String], wanted: &HashMap<WorkspaceId, String>) -> Result<usize> {
        let seen = self.tasks.describe(tasks).await.map_err(|fault| fault.into_error(WHAT))?;
        let mut stopped = 0;
        for (task, seen) in seen {
            if matches!(seen.status, Status::Over { .. }) {
                continue;
            }
            let owner = seen.started_by.split_once('/').and_then(|(workspace, _)| workspace.parse().ok());
            let Some(workspace) = owner else {
                tracing::warn!(task, started_by = seen.started_by, "somebody has started a sandbox by hand");
                continue;
            };
            // A request made since the items were read is in the table before it is in ECS.
            let is_wanted = wanted.get(&workspace) == Some(&seen.started_by)
                || self.kept(workspace).await?.is_some_and(|kept| {
                    kept.record.is_wanted() && Record::started_by(workspace, &kept.record.attempt) == seen.started_by
                });
            if !is_wanted {
                tracing::info!(task, %workspace, "a task that no item wants is stopped");
                let reason = "its workspace has let it go";
                self.tasks.stop(&task, reason).await.map_err(|fault| fault.into_error(WHAT))?;
                stopped += 1;
            }
        }
        Ok(stopped)
    }
}
