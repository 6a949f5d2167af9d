//! All workspaces: made, found, opened, renamed, removed, repaired.

use crate::{
    Access, Result, Workspace, WorkspaceInfo, WorkspacePage, Workspaces,
    cache::{Budget, Cache},
    commit::whole,
    error,
    handle::{Inner, Projector},
    keys::{Keys, WORKSPACES},
    model::Record,
    party::HandleAccess,
};
use domain::{Code, Error, Principal, WorkspaceId};
use ports::{Expect, Query, Write};
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

/// The longest name of a workspace, in characters.
const MAX_NAME: usize = 200;
/// How long a deletion may run in another process: longer than any request.
const DELETED_WITHIN: Duration = Duration::from_secs(600);

impl Workspaces {
    /// Says that the folder does not last, or that others write to the same workspaces elsewhere: so it is a cache, which
    /// [`Workspace::hydrate`] fills within these bounds. Without this, no other process changes the index of these workspaces while this one runs.
    #[must_use]
    pub fn caching(self, budget: Budget) -> Self {
        drop(self.0.cache.set(Cache::new(budget)));
        self
    }

    /// From now on projections are brought up to date when they are read, until the process ends; the first projector counts.
    pub fn project_on_read(&self, projector: Arc<dyn Projector>) {
        drop(self.0.projector.set(projector));
    }

    /// Makes a workspace with its folders, and with skills to begin with. The same id by the same person again is
    /// the same workspace.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a name that is empty, has over 200 characters, or has one that [`domain::check_shown`] refuses; `CONFLICT` when the id is another
    /// person's, or is being made elsewhere; else those of [`Workspaces`].
    pub async fn create(&self, id: WorkspaceId, name: &str, by: &Principal) -> Result<WorkspaceInfo> {
        self.create_with(id, name, by, Vec::new()).await
    }

    /// The same, with further writes in the commit that makes it; at most twenty. They are not made where the workspace is there already.
    ///
    /// # Errors
    /// Those of [`Workspaces::create`]; `CONFLICT` when the precondition of one of these writes does not hold, too.
    pub async fn create_with(
        &self,
        id: WorkspaceId,
        name: &str,
        by: &Principal,
        beside: Vec<Write>,
    ) -> Result<WorkspaceInfo> {
        let name = valid_name(name)?;
        let stamp = self.0.clock.stamp();
        let info = WorkspaceInfo { workspace_id: id, name, owner: by.user(), created_at: stamp.at };
        let workspace = self.handle(id);
        let by = by.clone();
        whole(async move {
            let _tree = workspace.lock_tree().await;
            if let Some(found) = workspace.record().await? {
                let same = found.0.owner == info.owner;
                return if same { Ok(found.0.info()) } else { Err(taken()) };
            }
            workspace.complete_earlier_deletion().await?;
            workspace.remove_remains().await?;
            let keys = workspace.0.keys;
            let mut writes = vec![Write::put(keys.workspace(), error::json(&info)?, Expect::Absent)];
            writes.push(Write::check(keys.deletion(), Expect::Absent));
            writes.push(Write::check(keys.tombstone(), Expect::Absent));
            writes.extend(beside);
            writes.extend(workspace.taxonomy(&by, stamp)?);
            workspace.0.table.commit(writes).await.map_err(error::port)?;
            workspace.rebuild().await?;
            Ok(info)
        })
        .await
    }

    /// Makes a workspace for work in another one, such as that of a case of an evaluation, which nobody is a member of.
    ///
    /// # Errors
    /// Those of [`Workspaces::create`].
    pub async fn create_within(
        &self,
        id: WorkspaceId,
        name: &str,
        by: &Principal,
        parent: WorkspaceId,
    ) -> Result<WorkspaceInfo> {
        let note = Write::put(Keys(id).parent(), error::json(&parent)?, Expect::Any);
        self.create_with(id, name, by, vec![note]).await
    }

    /// The workspace that another one was made [within](Workspaces::create_within), if it was.
    ///
    /// # Errors
    /// Those of [`Workspaces`].
    pub async fn parent(&self, id: WorkspaceId) -> Result<Option<WorkspaceId>> {
        let note = self.0.table.get(&Keys(id).parent()).await.map_err(error::port)?;
        note.map(|note| error::parse(&note.body)).transpose()
    }

    /// The metadata of a workspace.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is none; else those of [`Workspaces`].
    pub async fn get(&self, id: WorkspaceId) -> Result<WorkspaceInfo> {
        Ok(self.handle(id).existing().await?.0.info())
    }

    /// The workspaces, by their ids; `limit` is cut to 1 to 200. One whose record cannot be read is left out, so a page may have none and still
    /// have a next one.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a broken cursor; else those of [`Workspaces`].
    pub async fn list(&self, limit: usize, cursor: Option<String>) -> Result<WorkspacePage> {
        let query = Query::all(WORKSPACES, limit.clamp(1, 200)).after(cursor);
        let page = self.0.table.query(&query).await.map_err(ports::validate::of_page(&query, error::port))?;
        let workspaces = ports::readable::<Record>(&page.items).map(|(_, record)| record.info()).collect();
        Ok(WorkspacePage { workspaces, next_cursor: page.next })
    }

    /// Gives it another name.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a name as of [`Workspaces::create`]; `NOT_FOUND` when there is none; `CONFLICT` when another rename was faster;
    /// else those of [`Workspaces`].
    pub async fn rename(&self, id: WorkspaceId, name: &str) -> Result<WorkspaceInfo> {
        let name = valid_name(name)?;
        let (mut record, rev) = self.handle(id).existing().await?;
        record.name = name;
        let write = Write::put(Keys(id).workspace(), error::json(&record)?, Expect::Rev(rev));
        self.0.table.commit(vec![write]).await.map_err(error::port)?;
        Ok(record.info())
    }

    /// Removes a workspace with all its files, versions and contents, for good. From the first commit on it does not exist. A note of the deletion stays
    /// until all is gone: after a crash or a failure, a second delete removes the rest, or [`Workspaces::complete_deletions`]. What others keep of it goes
    /// later, when nothing works in it any more: [`Workspaces::remove_remains_before`].
    ///
    /// # Errors
    /// `NOT_FOUND` when there is none, and when nothing of it is left; else those of [`Workspaces`], and files and contents may be left then.
    pub async fn delete(&self, id: WorkspaceId) -> Result<()> {
        let workspace = self.handle(id);
        if workspace.0.table.get(&workspace.0.keys.deletion()).await.map_err(error::port)?.is_none() {
            workspace.existing().await?;
        }
        whole(async move {
            let _tree = workspace.lock_tree().await;
            let (table, keys) = (&workspace.0.table, workspace.0.keys);
            let record = Write::delete(keys.workspace(), Expect::Any);
            let due = crate::retention::deletion_due(id, workspace.0.clock.now());
            let deletion = Write::put(keys.deletion(), "{}", Expect::Any).indexed(due);
            let first = [record, deletion].into_iter().chain(workspace.note_of_remains().await?);
            table.commit(first.collect()).await.map_err(error::port)?;
            workspace.remove_rest().await
        })
        .await
    }

    /// Removes the rest of a workspace whose deletion, or import, broke off. Nothing happens without a note of that: the index, by which notes are found, may lag. Where a workspace is
    /// there beside its note, only the note goes: earlier versions made a workspace again without a look at it.
    pub(crate) async fn complete_deletion(&self, id: WorkspaceId) -> Result<()> {
        let workspace = self.handle(id);
        whole(async move {
            let _tree = workspace.lock_tree().await;
            let (table, note) = (&workspace.0.table, workspace.0.keys.deletion());
            if table.get(&note).await.map_err(error::port)?.is_none() {
                return Ok(());
            }
            if workspace.record().await?.is_some() {
                return table.commit(vec![Write::delete(note, Expect::Any)]).await.map_err(error::port);
            }
            workspace.remove_rest().await
        })
        .await
    }

    /// The handle of a workspace that exists, for a party. It decides by the policies that are in force now, for as long as it is held.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is none; else those of [`Workspaces`].
    pub async fn open(&self, id: WorkspaceId, access: Access) -> Result<Workspace> {
        let workspace = self.handle(id);
        let (record, _) = workspace.existing().await?;
        if let Some(reason) = access.reason() {
            tracing::trace!(workspace = %id, reason, "opened past the policies");
        }
        let policies = workspace.policies(&record.policies).await?;
        Ok(Workspace(workspace.0, HandleAccess::new(access, policies)))
    }

    /// Brings every workspace's `latest/` in line with its index. To be called once at start, before requests are served. On a full disk, the repair
    /// waits until there is room, and reads use the archive until then. A workspace whose index is damaged waits for `buildscale fsck`, and keeps
    /// no other one from being served.
    ///
    /// # Errors
    /// Those of [`Workspace::repair`] but `STORAGE_FULL` and damage of an index. The first one ends it, and the workspaces after that are as they were.
    pub async fn repair_all(&self) -> Result<crate::Repaired> {
        let mut done = crate::Repaired::default();
        for id in self.ids().await? {
            let workspace = self.handle(id);
            match workspace.repair().await {
                Ok(repaired) => done += repaired,
                Err(error) if error.code == Code::StorageFull => {
                    tracing::error!(workspace = %id, "the disk is full: latest/ stays behind its index until there is room");
                    workspace.0.behind.store(true, Ordering::Relaxed);
                    workspace.touched();
                }
                Err(error) if error::is_damage_of_index(&error) => {
                    tracing::error!(workspace = %id, "the index is damaged: buildscale fsck finds the places");
                    workspace.0.behind.store(true, Ordering::Relaxed);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    /// Makes the mirrors that changed durable and advances their marks, so that the next start has less to look at. To
    /// be called now and then and at the end; it waits for the disk, so never on the way of a request.
    ///
    /// # Errors
    /// Those of [`Workspaces`]. The first one ends it, and the marks of the other workspaces stay where they are.
    pub async fn checkpoint(&self) -> Result<()> {
        let changed = std::mem::take(&mut *self.0.changed.lock());
        let mut first = Ok(());
        for workspace in changed.into_values() {
            let workspace = Workspace(workspace, HandleAccess::own("a checkpoint"));
            if let Err(error) = workspace.checkpoint().await {
                workspace.remains_changed();
                first = first.and(Err(error));
            }
        }
        first
    }

    async fn ids(&self) -> Result<Vec<WorkspaceId>> {
        let (mut ids, mut cursor) = (Vec::new(), None);
        loop {
            let page = self.list(200, cursor).await?;
            ids.extend(page.workspaces.iter().map(|workspace| workspace.workspace_id));
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(ids);
            }
        }
    }
}

impl Workspace {
    /// Completes the deletion of an earlier workspace of this id, which broke off: its rest would be in the new one. Under the tree's lock, so in this process neither a deletion
    /// nor an import of the id is under way.
    ///
    /// # Errors
    /// `CONFLICT` while another process may be at it; else those of [`Workspaces`].
    async fn complete_earlier_deletion(&self) -> Result<()> {
        let note = self.0.table.get(&self.0.keys.deletion()).await.map_err(error::port)?;
        let Some(note) = note else { return Ok(()) };
        let before = crate::retention::deletion_due(self.0.id, self.0.clock.now() - DELETED_WITHIN);
        let is_over = note.index.is_some_and(|due| due.sk < before.sk);
        if self.writes_alone() || is_over {
            return self.remove_rest().await;
        }
        Err(taken())
    }

    /// Removes all that stands below the id of a workspace that has no item, or none any more, and then the note of that. Under the tree's lock.
    pub(crate) async fn remove_rest(&self) -> Result<()> {
        let Inner { id, keys, table, archive, system, .. } = &*self.0;
        let cleared = self.clear_index().await;
        // Also after an error: some of it is gone.
        system.forget();
        cleared?;
        for space in [id.to_string(), ports::kept_index_space(*id)] {
            archive.blobs.delete_space(&space).await.map_err(error::port)?;
        }
        // The logs of work that is being stopped may have long bodies: those go with the logs.
        if table.get(&keys.tombstone()).await.map_err(error::port)?.is_none() {
            archive.blobs.delete_space(&ports::spill_space(*id)).await.map_err(error::port)?;
        }
        self.disk("to delete a workspace", |mirror| mirror.delete()).await?;
        self.tell_deleted();
        for partition in keys.memberships() {
            self.clear(&partition).await?;
        }
        table.commit(vec![Write::delete(keys.deletion(), Expect::Any)]).await.map_err(error::port)
    }
}

fn taken() -> Error {
    Error::new(Code::Conflict, "this id is taken").hint("use another Idempotency-Key")
}

pub(crate) fn valid_name(name: &str) -> Result<String> {
    domain::checked_name("name", name, MAX_NAME)
}
