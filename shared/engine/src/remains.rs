//! The rows of the tasks of a deleted workspace, and their removal.

use crate::{
    admission_keys, artifact, flows,
    machine::actor_id,
    memory::{self, Scope},
    metadata, reruns,
};
use actor::ended;
use domain::{TaskId, WorkspaceId, task::FlowRef};
use flow::flow::StoreKind;
use ports::{Expect, MAX_WRITES, Query, Result, Table, Write};
use serde::Deserialize;

/// The part of a task's view that names its flow.
#[derive(Deserialize)]
struct OfFlow {
    flow: FlowRef,
}

/// Removes the tasks of a deleted workspace that are on its lists, with their logs, artifacts and memory; the memory of its flows and its own; and the
/// manifests that its tasks began with. Tasks that were deleted before are [`actor::ended`]. Again is harmless.
///
/// # Errors
/// Those of [`Table::clear`]. Some of it is gone then.
pub async fn remove_remains(table: &dyn Table, workspace: WorkspaceId) -> Result<()> {
    // Clones and subtasks are in the same partition.
    let of_tasks = Query::all(format!("{workspace}/tasks"), MAX_WRITES);
    loop {
        let views = table.query(&of_tasks).await?.items;
        if views.is_empty() {
            break;
        }
        for view in views {
            if let Ok(OfFlow { flow }) = view.content() {
                remove_of_flow(table, workspace, &flow.name).await?;
            }
            if let Ok(task) = view.key.sk.parse() {
                remove_task(table, workspace, task).await?;
            }
            table.commit(vec![Write::delete(view.key, Expect::Any)]).await?;
        }
    }
    let mut pages = table.pages(Query::all(flows::partition(workspace), MAX_WRITES));
    while let Some(bundles) = pages.next().await? {
        for bundle in &bundles {
            if let Some((name, _)) = bundle.key.sk.rsplit_once('/') {
                remove_of_flow(table, workspace, name).await?;
            }
        }
    }
    let global = memory::partition(&scope(workspace, ""), StoreKind::Global);
    let others = [flows::partition(workspace), metadata::partition(workspace), reruns::partition(workspace)];
    for partition in [global].into_iter().chain(others) {
        table.clear(&partition).await?;
    }
    Ok(())
}

/// Removes a task that was deleted, or whose workspace was: its log, its artifacts' rows, its memory, the snapshot of its end and the record of its
/// origins. Nothing may drive it any more. Again is harmless.
///
/// # Errors
/// Those of [`Table::clear`]. Some of it is gone then.
pub async fn remove_task(table: &dyn Table, workspace: WorkspaceId, task: TaskId) -> Result<()> {
    artifact::forget(table, workspace, task).await?;
    memory::forget_task(table, &Scope { root: task, ..scope(workspace, "") }).await?;
    table.commit(vec![Write::delete(metadata::key(workspace, task), Expect::Any)]).await?;
    ended::remove(table, &actor_id(workspace, task)).await
}

/// Removes the memory of a flow, and the places of its tasks.
async fn remove_of_flow(table: &dyn Table, workspace: WorkspaceId, flow: &str) -> Result<()> {
    table.clear(&memory::partition(&scope(workspace, flow), StoreKind::Project)).await?;
    table.clear(&admission_keys::partition_of(workspace, flow)).await
}

/// The scope of the memory of a flow and of a workspace, which is of no task.
fn scope(workspace: WorkspaceId, flow: &str) -> Scope {
    Scope { workspace, flow: flow.into(), root: TaskId(workspace.0) }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use std::sync::Arc;
    use testkit::{
        TestClock,
        fakes::{FakeTable, Faults},
    };
    use uuid::Uuid;

    #[tokio::test]
    async fn the_record_of_the_origins_of_a_deleted_task_goes_with_its_log() {
        let table = FakeTable::new(Arc::new(TestClock::new(1)), 1, Faults::none());
        let (workspace, [deleted, other]) =
            (WorkspaceId(Uuid::from_u128(1)), [2, 3].map(|id| TaskId(Uuid::from_u128(id))));
        for task in [deleted, other] {
            for key in [metadata::key(workspace, task), actor_id(workspace, task).entry_key(1)] {
                table.commit(vec![Write::put(key, "{}", Expect::Absent)]).await.unwrap();
            }
        }
        for _ in 0..2 {
            remove_task(&table, workspace, deleted).await.unwrap();
            let left: Vec<_> = table.items().into_iter().map(|item| item.key).collect();
            assert_eq!(left, [metadata::key(workspace, other), actor_id(workspace, other).entry_key(1)]);
        }
    }
}
