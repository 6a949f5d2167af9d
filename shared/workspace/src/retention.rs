//! Purges entries that have been in the trash too long, and completes deletions of workspaces that broke off. The index has the trash of all workspaces by time, so that due entries are found without
//! reading the others.

use crate::{Access, Result, Workspaces, error};
use domain::{Code, FileId, Principal, Timestamp, WorkspaceId};
use ports::{Key, Query};

/// The number of parts in which the index has it: one key of an index takes a thousand writes a second.
pub const TRASH_SHARDS: u8 = 16;

fn partition(shard: u8) -> String {
    format!("trash/{shard:x}")
}

/// The key of an entry of the trash in that index.
pub(crate) fn due(workspace: WorkspaceId, file: FileId, at: Timestamp) -> Key {
    let shard = file.0.as_bytes().last().copied().unwrap_or_default() % TRASH_SHARDS;
    Key::new(partition(shard), format!("{at}/{workspace}/{file}"))
}

/// The index partition of the notes of deletions, by the time at which they began.
const DELETIONS: &str = "deletions";

/// The key of the note of a deletion in that index.
pub(crate) fn deletion_due(workspace: WorkspaceId, at: Timestamp) -> Key {
    Key::new(DELETIONS, format!("{at}/{workspace}"))
}

impl Workspaces {
    /// Completes deletions of workspaces that began before `before` and broke off, at most `limit` of them. Returns those that are gone now, how many are
    /// not, and the cursor when there is more.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a cursor of another range; else those of [`Workspaces`], when the index cannot be read.
    pub async fn complete_deletions(
        &self,
        before: Timestamp,
        limit: usize,
        cursor: Option<String>,
    ) -> Result<(Vec<WorkspaceId>, u64, Option<String>)> {
        let range = Query { to: Some(before.to_string()), ..Query::all(DELETIONS, limit) };
        let page = self.table().query_index(&range.after(cursor)).await.map_err(error::port)?;
        let (mut gone, mut failed) = (Vec::new(), 0);
        for item in &page.items {
            let id = item.index.as_ref().and_then(|index| index.sk.rsplit('/').next()?.parse::<WorkspaceId>().ok());
            let Some(id) = id else { continue };
            match self.complete_deletion(id).await {
                Ok(()) => gone.push(id),
                Err(error) => {
                    failed += 1;
                    tracing::warn!(workspace = %id, %error, "the deletion of a workspace could not be completed; the next sweep tries again");
                }
            }
        }
        Ok((gone, failed, page.next))
    }

    /// Purges entries of one shard that went to the trash before `before`, at most `limit` of them. Returns the count, and the cursor when there is
    /// more. An entry that cannot be purged now is skipped.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a cursor of another range; else those of [`Workspaces`], when the index cannot be read.
    pub async fn purge_trashed_before(
        &self,
        before: Timestamp,
        shard: u8,
        limit: usize,
        cursor: Option<String>,
    ) -> Result<(u64, Option<String>)> {
        let range = Query { to: Some(before.to_string()), ..Query::all(partition(shard), limit) };
        let page = self.table().query_index(&range.after(cursor)).await.map_err(error::port)?;
        let mut purged = 0;
        for item in &page.items {
            let workspace = item.key.pk.strip_suffix("/trash").and_then(|id| id.parse::<WorkspaceId>().ok());
            let (Some(workspace), Ok(file)) = (workspace, item.key.sk.parse::<FileId>()) else { continue };
            let gone = async {
                let files = self.open(workspace, Access::platform("retention of the trash")).await?;
                files.purge_older(file, before, &Principal::System.into()).await
            };
            match gone.await {
                Ok(_) => purged += 1,
                // Somebody was faster, or took it back: an index may lag.
                Err(error) if error.code == Code::NotFound => {}
                Err(error) => tracing::warn!(%workspace, %file, %error, "this stays in the trash for now"),
            }
        }
        Ok((purged, page.next))
    }
}
