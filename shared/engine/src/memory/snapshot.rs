//! Snapshots (spec 002 §10.10): the memory of a task as of its end, kept for replay and auditing.

use super::{
    Memory, Scope, port,
    store::{self, Newest, parse},
};
use domain::{Code, Error, TaskId, Timestamp, WorkspaceId, task::ContextItem};
use flow::flow::StoreKind;
use ports::{Expect, Key, MAX_WRITES, Query, Table, Write};
use serde::{Deserialize, Serialize};

/// How much of each store a snapshot has, newest first.
const ITEMS: usize = 1000;
const BYTES: usize = 4 * 1024 * 1024;
/// The most bytes in one commit of a snapshot: DynamoDB takes 4 MiB.
const COMMIT_BYTES: usize = 1024 * 1024;
/// The sort key of what a snapshot says about itself, before every item.
const HEAD: &str = "!";

/// Memory at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// When it was taken.
    pub at: Timestamp,
    /// The items, by store (task, project, global), then by key.
    pub items: Vec<ContextItem>,
    /// Stores that had more than a snapshot holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cut: Vec<String>,
}

/// The head of a kept snapshot; written last, so that a snapshot with a head is whole.
#[derive(Serialize, Deserialize)]
struct Head {
    at: Timestamp,
    cut: Vec<String>,
}

fn partition(workspace: WorkspaceId, task: TaskId) -> String {
    format!("{workspace}/memory/snapshot/{task}")
}

impl Memory {
    /// The memory of a task now: the same memory gives the same snapshot, in any order of its writes.
    ///
    /// # Errors
    /// `UPSTREAM_UNAVAILABLE` when the table does not answer; `INTERNAL` when a memory cannot be read.
    pub async fn snapshot(&self, scope: &Scope, at: Timestamp) -> Result<Snapshot, Error> {
        let mut snapshot = Snapshot { at, ..Snapshot::default() };
        for store in StoreKind::ALL {
            let Newest { items, more } = self.newest(scope, store, ITEMS, BYTES).await?;
            let mut items: Vec<ContextItem> = items.into_iter().map(|kept| kept.into_item(store)).collect();
            items.sort_by(|one, other| one.key.cmp(&other.key));
            snapshot.items.extend(items);
            if more {
                snapshot.cut.push(store.name().into());
            }
        }
        Ok(snapshot)
    }

    /// Keeps the snapshot of a task that ends. Once: a task that ends again after a crash keeps its first one.
    ///
    /// # Errors
    /// As [`Memory::snapshot`]. A snapshot that is not whole then is not shown, and the next try writes it again.
    pub async fn keep_snapshot(&self, scope: &Scope, task: TaskId, at: Timestamp) -> Result<(), Error> {
        let pk = partition(scope.workspace, task);
        let head = Key::new(&pk, HEAD);
        if self.table.get(&head).await.map_err(port)?.is_some() {
            return Ok(());
        }
        let snapshot = self.snapshot(scope, at).await?;
        let (mut writes, mut bytes) = (Vec::new(), 0);
        for (position, item) in snapshot.items.iter().enumerate() {
            let body = json(item)?;
            if writes.len() == MAX_WRITES || (bytes + body.len() > COMMIT_BYTES && !writes.is_empty()) {
                self.table.commit(std::mem::take(&mut writes)).await.map_err(port)?;
                bytes = 0;
            }
            bytes += body.len();
            writes.push(Write::put(Key::new(&pk, format!("{position:06}")), body, Expect::Any));
        }
        if !writes.is_empty() {
            self.table.commit(writes).await.map_err(port)?;
        }
        let body = json(&Head { at, cut: snapshot.cut })?;
        match self.table.commit(vec![Write::put(head, body, Expect::Absent)]).await {
            Ok(()) | Err(ports::Error::Conflict { .. }) => Ok(()),
            Err(error) => Err(port(error)),
        }
    }

    /// The snapshot that was kept of a task; none when there is none.
    ///
    /// # Errors
    /// As [`Memory::snapshot`].
    pub async fn kept_snapshot(&self, workspace: WorkspaceId, task: TaskId) -> Result<Option<Snapshot>, Error> {
        let (mut head, mut items) = (None, Vec::new());
        for item in self.table.all(Query::all(partition(workspace, task), MAX_WRITES)).await.map_err(port)? {
            if item.key.sk == HEAD {
                head = Some(parse::<Head>(&item.body)?);
            } else {
                items.push(parse(&item.body)?);
            }
        }
        Ok(head.map(|Head { at, cut }| Snapshot { at, items, cut }))
    }
}

impl Memory {
    /// Removes the memory of a task that is deleted, and the snapshot of its end. The memory of its flow and of the workspace stays. Again is harmless.
    ///
    /// # Errors
    /// `UPSTREAM_UNAVAILABLE` when the table does not answer.
    pub async fn forget_task(&self, scope: &Scope) -> Result<(), Error> {
        forget_task(&*self.table, scope).await.map_err(port)
    }
}

/// The same for callers with a table alone.
pub(crate) async fn forget_task(table: &dyn Table, scope: &Scope) -> ports::Result<()> {
    for pk in [store::partition(scope, StoreKind::Task), partition(scope.workspace, scope.root)] {
        table.clear(&pk).await?;
    }
    Ok(())
}

fn json(value: &impl Serialize) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| Error::new(Code::Internal, error.to_string()))
}
