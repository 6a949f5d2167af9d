//! Re-runs that have not ended, by workspace. A re-run reads the log of its recorded task, and its children read those of the children, for as long as it
//! runs; the recorded task may be deleted meanwhile.

use crate::machine::view_key;
use domain::{TaskId, TaskPhase, WorkspaceId};
use ports::{Expect, Key, MAX_WRITES, Query, Result, Table, Write};
use serde::Deserialize;

/// The part of a task's view that says whether it has ended.
#[derive(Deserialize)]
struct OfPhase {
    phase: TaskPhase,
}

/// The partition of the notes of a workspace.
pub(crate) fn partition(workspace: WorkspaceId) -> String {
    format!("{workspace}/reruns")
}

/// The note of a re-run, to be written before it begins.
pub(crate) fn noting(workspace: WorkspaceId, task: TaskId) -> Write {
    Write::put(Key::new(partition(workspace), task.to_string()), "{}", Expect::Any)
}

/// Whether a workspace has a re-run that has not ended. Notes of those that have ended or were deleted are removed on the way.
///
/// # Errors
/// Those of [`Table::query`], [`Table::get`] and [`Table::commit`].
pub async fn any_runs(table: &dyn Table, workspace: WorkspaceId) -> Result<bool> {
    loop {
        let notes = table.query(&Query::all(partition(workspace), MAX_WRITES)).await?.items;
        if notes.is_empty() {
            return Ok(false);
        }
        for note in notes {
            if let Ok(task) = note.key.sk.parse()
                && runs(table, workspace, task).await?
            {
                return Ok(true);
            }
            table.commit(vec![Write::delete(note.key, Expect::Any)]).await?;
        }
    }
}

/// A view that cannot be read counts as that of a task that runs.
async fn runs(table: &dyn Table, workspace: WorkspaceId, task: TaskId) -> Result<bool> {
    let Some(view) = table.get(&view_key(workspace, task)).await? else { return Ok(false) };
    Ok(view.content::<OfPhase>().map_or(true, |view| view.phase != TaskPhase::Finished))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use testkit::{
        TestClock,
        fakes::{FakeTable, Faults},
    };

    #[tokio::test]
    async fn a_re_run_counts_until_it_has_ended_or_is_deleted() {
        let table = FakeTable::new(std::sync::Arc::new(TestClock::new(1)), 1, Faults::none());
        let workspace = WorkspaceId::from_key("test", "w");
        let tasks = ["ended", "waits", "unreadable", "deleted"].map(|name| TaskId::from_key("test", name));
        let put = async |task: TaskId, body: &str| {
            table.commit(vec![Write::put(view_key(workspace, task), body, Expect::Any)]).await.unwrap();
        };
        for task in tasks {
            table.commit(vec![noting(workspace, task)]).await.unwrap();
        }
        put(tasks[0], r#"{"phase":"finished"}"#).await;
        put(tasks[1], r#"{"phase":"suspended"}"#).await;
        put(tasks[2], r#"{"phase":"of a later version"}"#).await;
        assert!(any_runs(&table, workspace).await.unwrap());
        put(tasks[1], r#"{"phase":"finished"}"#).await;
        assert!(any_runs(&table, workspace).await.unwrap(), "the one that cannot be read");
        put(tasks[2], r#"{"phase":"finished"}"#).await;
        assert!(!any_runs(&table, workspace).await.unwrap());
        assert_eq!(table.partition(&partition(workspace)).len(), 0);
        assert!(!any_runs(&table, WorkspaceId::from_key("test", "another")).await.unwrap());
    }
}
