//! The index: rows by task, by node and by schema of a flow, and by time, each in the order of time.

use super::{Artifact, Artifacts};
use crate::error::store_failed;
use domain::{Code, Error, TaskId, Timestamp, WorkspaceId};
use ports::{Expect, Key, MAX_WRITES, Query, Table, Write, validate};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The most rows of one page.
const MAX_PAGE: usize = 200;
/// How many rows one artifact has at most.
const ROWS: usize = 3;
const DAY: Duration = Duration::from_secs(24 * 3600);

/// The key by which artifacts are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArtifactSelector<'a> {
    /// Those of one task.
    Task(TaskId),
    /// Those of one node, over all tasks of a flow.
    Node {
        /// The flow, by name.
        flow: &'a str,
        /// The node.
        node: &'a str,
    },
    /// Those that fit one schema, over all tasks of a flow.
    Schema {
        /// The flow, by name.
        flow: &'a str,
        /// The schema.
        schema: &'a str,
    },
    /// All. It may lag a little behind the others.
    Time,
}

/// A page of artifacts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Page {
    /// Oldest first.
    pub artifacts: Vec<Artifact>,
    /// The cursor of the next page; none at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

fn partition(workspace: WorkspaceId, by: ArtifactSelector<'_>) -> String {
    // Names are quoted, so that none of them reaches into another's place.
    match by {
        ArtifactSelector::Task(task) => format!("{workspace}/artifacts/task/{task}"),
        ArtifactSelector::Node { flow, node } => format!("{workspace}/artifacts/node/{flow:?}/{node:?}"),
        ArtifactSelector::Schema { flow, schema } => format!("{workspace}/artifacts/schema/{flow:?}/{schema:?}"),
        ArtifactSelector::Time => format!("{workspace}/artifacts/time"),
    }
}

fn when(at: Timestamp) -> String {
    format!("{:020}", at.as_millis().max(0))
}

impl Artifacts {
    /// Artifacts from `since` on (inclusive), before `until`; at most `limit` of them (1 to 200), oldest first.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a cursor of another list; `UPSTREAM_UNAVAILABLE` when the table does not answer. A row that cannot be read is
    /// left out.
    pub async fn list(
        &self,
        workspace: WorkspaceId,
        by: ArtifactSelector<'_>,
        (since, until): (Option<Timestamp>, Option<Timestamp>),
        limit: usize,
        cursor: Option<String>,
    ) -> Result<Page, Error> {
        let query = Query {
            from: since.map(when),
            to: until.map(when),
            cursor,
            ..Query::all(partition(workspace, by), limit.clamp(1, MAX_PAGE))
        };
        let page = match by {
            ArtifactSelector::Time => self.table.query_index(&query).await,
            ArtifactSelector::Task(_) | ArtifactSelector::Node { .. } | ArtifactSelector::Schema { .. } => {
                self.table.query(&query).await
            }
        };
        let page = page.map_err(validate::of_page(&query, port))?;
        let artifacts = ports::readable(&page.items).map(|(_, artifact)| artifact).collect();
        Ok(Page { artifacts, next_cursor: page.next })
    }

    /// Takes the artifacts of a task out of the index, as of one that is deleted. Again is harmless.
    ///
    /// # Errors
    /// `UPSTREAM_UNAVAILABLE` when the table does not answer. Of a row that cannot be read, the rows in other lists stay.
    pub async fn forget(&self, workspace: WorkspaceId, task: TaskId) -> Result<(), Error> {
        forget(&*self.table, workspace, task).await.map_err(port)
    }
}

/// The same for callers with a table alone.
pub(crate) async fn forget(table: &dyn Table, workspace: WorkspaceId, task: TaskId) -> ports::Result<()> {
    let mut pages = table.pages(Query::all(partition(workspace, ArtifactSelector::Task(task)), MAX_WRITES / ROWS));
    while let Some(items) = pages.next().await? {
        let mut writes = Vec::with_capacity(items.len() * ROWS);
        for item in items {
            if let Ok(artifact) = item.content::<Artifact>() {
                let lists = other_lists(&artifact).map(|by| Key::new(partition(workspace, by), &item.key.sk));
                writes.extend(lists.map(|key| Write::delete(key, Expect::Any)));
            }
            writes.push(Write::delete(item.key, Expect::Any));
        }
        if !writes.is_empty() {
            table.commit(writes).await?;
        }
    }
    Ok(())
}

/// The lists that have an artifact, beside those of its task and of all by time.
fn other_lists(artifact: &Artifact) -> impl Iterator<Item = ArtifactSelector<'_>> {
    let flow = artifact.flow.name.as_str();
    let node = artifact.node.as_ref().map(|node| ArtifactSelector::Node { flow, node: node.as_str() });
    let schema = artifact.schema.as_deref().map(|schema| ArtifactSelector::Schema { flow, schema });
    node.into_iter().chain(schema)
}

/// Writes the rows of a task. All of one artifact are in one commit.
pub(super) async fn write(
    table: &dyn Table,
    workspace: WorkspaceId,
    artifacts: &[Artifact],
    retention_days: Option<u32>,
) -> Result<(), Error> {
    for some in artifacts.chunks(MAX_WRITES / ROWS) {
        let mut writes = Vec::with_capacity(some.len() * ROWS);
        for artifact in some {
            let body =
                serde_json::to_string(artifact).map_err(|error| Error::new(Code::Internal, error.to_string()))?;
            let at = when(artifact.at);
            let sk = format!("{at}/{}/{}", artifact.task_id, artifact.id);
            let time = Key::new(partition(workspace, ArtifactSelector::Time), &sk);
            let of_task = (ArtifactSelector::Task(artifact.task_id), Some(time));
            for (by, index) in [of_task].into_iter().chain(other_lists(artifact).map(|by| (by, None))) {
                let mut write = Write::put(Key::new(partition(workspace, by), &sk), body.clone(), Expect::Any);
                if let Some(index) = index {
                    write = write.indexed(index);
                }
                if let Some(days) = retention_days {
                    write = write.expiring(artifact.at + DAY * days);
                }
                writes.push(write);
            }
        }
        table.commit(writes).await.map_err(port)?;
    }
    Ok(())
}

fn port(error: ports::Error) -> Error {
    store_failed("the index of artifacts", error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_is_full_or_away_is_told_from_a_fault_of_ours() {
        assert_eq!(port(ports::Error::full("the store")).code, Code::StorageFull);
        assert_eq!(port(ports::Error::unavailable("the store", "x")).code, Code::UpstreamUnavailable);
        assert_eq!(port(ports::Error::Invalid("a body is too long".into())).code, Code::Internal);
    }
}
