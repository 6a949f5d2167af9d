//! The rows that other crates have of a deleted workspace, such as the logs of its chats. Work that is being stopped still writes there, so they are removed
//! later, with all that came after the deletion.

use crate::{DeletionObserver, Dependents, Result, Workspace, Workspaces, error};
use domain::{Code, Error, Timestamp, WorkspaceId};
use ports::{Expect, Key, Query, Write};
use serde::{Deserialize, Serialize};
use std::{
    sync::{Arc, Weak},
    time::Duration,
};

/// The index partition of the notes, by the time of the deletion.
const REMAINS: &str = "remains";
/// How long a claim keeps other processes away. A process gives up after half of it, so that it removes nothing beside the next one. A sweep whose time is up
/// leaves its claim behind, so this is less than the shortest time between two sweeps (two minutes, `SweepMinutes` in `template.yaml`): the next one goes on.
const CLAIMED_FOR: Duration = Duration::from_secs(100);

/// The body of the note.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Note {
    /// When a process began with the removal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    claimed_at: Option<Timestamp>,
}

fn due(workspace: WorkspaceId, at: Timestamp) -> Key {
    Key::new(REMAINS, format!("{at}/{workspace}"))
}

impl Workspaces {
    /// From now on this removes what others keep of deleted workspaces; the first one counts.
    pub fn set_dependents(&self, dependents: Arc<dyn Dependents>) {
        drop(self.0.dependents.set(dependents));
    }

    /// From now on this learns of the workspaces that this process deletes, for as long as somebody holds it.
    pub fn observe_deletions(&self, observer: Weak<dyn DeletionObserver>) {
        let mut observers = self.0.deletion_observers.lock();
        observers.retain(|other| other.strong_count() > 0);
        observers.push(observer);
    }

    /// Removes what is left of workspaces that were deleted before `before`, at most `limit` of them. Returns those that are gone now, how many are not, and
    /// the cursor when there is more. A workspace that was made again has its own alone: its making has removed the rest.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a cursor of another range; else those of [`Workspaces`], when the index cannot be read.
    pub async fn remove_remains_before(
        &self,
        before: Timestamp,
        limit: usize,
        cursor: Option<String>,
    ) -> Result<(Vec<WorkspaceId>, u64, Option<String>)> {
        let range = Query { to: Some(before.to_string()), ..Query::all(REMAINS, limit) };
        let page = self.table().query_index(&range.after(cursor)).await.map_err(error::port)?;
        let (mut gone, mut failed) = (Vec::new(), 0);
        for item in &page.items {
            let Ok(id) = item.key.sk.parse::<WorkspaceId>() else { continue };
            let workspace = self.handle(id);
            let _tree = workspace.lock_tree().await;
            match workspace.remove_remains().await {
                Ok(()) => gone.push(id),
                Err(error) => {
                    failed += 1;
                    tracing::warn!(workspace = %id, %error, "something of a deleted workspace stays; the next sweep tries again");
                }
            }
        }
        Ok((gone, failed, page.next))
    }
}

impl Workspace {
    /// What removes the things that other crates keep, if they keep any.
    fn others(&self) -> Option<Arc<dyn Dependents>> {
        self.0.shared.upgrade()?.dependents.get().cloned()
    }

    /// The note for the first commit of a deletion; none where nobody else keeps anything.
    ///
    /// # Errors
    /// Those of [`Workspaces`].
    pub(crate) async fn note_of_remains(&self) -> Result<Option<Write>> {
        if self.others().is_none() {
            return Ok(None);
        }
        let key = self.0.keys.tombstone();
        let earlier = self.0.table.get(&key).await.map_err(error::port)?;
        // A repeated deletion does not take the claim from a process that is at the removal.
        let note = earlier.map(|note| note.content::<Note>().unwrap_or_default()).unwrap_or_default();
        let write = Write::put(key, error::json(&note)?, Expect::Any);
        Ok(Some(write.indexed(due(self.0.id, self.0.clock.now()))))
    }

    /// Removes what is left of an earlier workspace of this id; nothing without a note of that. Under the tree's lock, and the note is claimed: so neither
    /// this process nor another one makes the workspace again meanwhile.
    ///
    /// # Errors
    /// `CONFLICT` while another process is at it, when it takes too long, and where this process does not know the other crates; else those of
    /// [`Workspaces`]. The note stays then.
    pub(crate) async fn remove_remains(&self) -> Result<()> {
        let (table, keys) = (&self.0.table, self.0.keys);
        let Some(note) = table.get(&keys.tombstone()).await.map_err(error::port)? else { return Ok(()) };
        let others = self.others().ok_or_else(under_way)?;
        let mut rev = note.rev;
        // An earlier version may have made the workspace again, which is not to be touched.
        if self.record().await?.is_none() {
            self.claim(&note).await?;
            rev += 1;
            let removal = self.remove_rest_of_others(&*others);
            tokio::time::timeout(CLAIMED_FOR / 2, removal).await.map_err(|_| under_way())??;
        }
        match table.commit(vec![Write::delete(keys.tombstone(), Expect::Rev(rev))]).await {
            // Another process claimed it, or the workspace was deleted once more.
            Err(ports::Error::Conflict { .. }) => Err(under_way()),
            removed => removed.map_err(error::port),
        }
    }

    async fn remove_rest_of_others(&self, others: &dyn Dependents) -> Result<()> {
        let id = self.0.id;
        others.remove(id).await?;
        self.clear(&self.0.keys.search()).await?;
        for space in [ports::spill_space(id), ports::kept_index_space(id), id.to_string()] {
            self.0.archive.blobs.delete_space(&space).await.map_err(error::port)?;
        }
        self.disk("to remove the rest of a workspace", |mirror| mirror.delete()).await?;
        self.tell_deleted();
        Ok(())
    }

    /// Tells those who keep something of it in memory that it is gone.
    pub(crate) fn tell_deleted(&self) {
        let Some(shared) = self.0.shared.upgrade() else { return };
        let observers = shared.deletion_observers.lock().clone();
        observers.iter().filter_map(Weak::upgrade).for_each(|observer| observer.deleted(self.0.id));
    }

    async fn claim(&self, note: &ports::Item) -> Result<()> {
        let now = self.0.clock.now();
        let claimed_at = note.content::<Note>().unwrap_or_default().claimed_at;
        let stands = |at: Timestamp| now.is_within(CLAIMED_FOR, at);
        if !self.writes_alone() && claimed_at.is_some_and(stands) {
            return Err(under_way());
        }
        let body = error::json(&Note { claimed_at: Some(now) })?;
        let mut claim = Write::put(note.key.clone(), body, Expect::Rev(note.rev));
        if let Some(index) = &note.index {
            claim = claim.indexed(index.clone());
        }
        match self.0.table.commit(vec![claim]).await {
            Err(ports::Error::Conflict { .. }) => Err(under_way()),
            claimed => claimed.map_err(error::port),
        }
    }
}

fn under_way() -> Error {
    Error::new(Code::Conflict, "the rest of a deleted workspace of this id is being removed")
        .hint("try again in a minute")
}
