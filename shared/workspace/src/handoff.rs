//! Handoffs: new versions of files that may start flows (spec 001 §6).
//!
//! The commit of such a version writes one item more, in the same transaction as the index: so no crash between the write and the start of a
//! flow loses it. The item stays until the version was dealt with. After the commit a message tells of it at once; when the process dies before
//! that, a sweep finds the item by its time. This crate knows no flows: an observer says which paths concern one.

use crate::{
    Change, FileKind, Result, Workspace, Workspaces, Writer, error, growing_pauses::moved, handle::HandoffObserver,
    model::Entry,
};
use domain::{Code, FileId, FilePath, Principal, Sha256, Timestamp, WorkspaceId};
use futures::{StreamExt, TryStreamExt};
use ports::{Expect, Key, Query, Write};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use uuid::Uuid;

/// The number of parts in which the index has the items: one key of an index takes a thousand writes a second.
pub const HANDOFF_SHARDS: u8 = 16;
/// Folders that are looked at side by side.
const AT_ONCE: usize = 16;

/// A version that may start flows and was not dealt with yet; the body of its item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PendingHandoff {
    /// The change that made the version.
    pub change: Change,
    /// Its author.
    pub by: Principal,
    /// Whether the author's credential may run flows.
    pub may_run: bool,
}

/// The part of a [`PendingHandoff`] that its sweep reads: it writes the rest back as it is, also that of a later version.
#[derive(Deserialize)]
struct Since {
    change: ChangedAt,
}

#[derive(Deserialize)]
struct ChangedAt {
    at: Timestamp,
}

/// A pending handoff whose message is due again.
#[derive(Clone, Debug)]
pub struct ForgottenHandoff {
    /// The workspace of the version.
    pub workspace: WorkspaceId,
    /// The id of the pending handoff, as [`Workspace::handoff`] takes it.
    pub id: Uuid,
    /// The item at its next place in the index.
    wait: Write,
}

/// A file that lies in a folder of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileInFolder {
    /// The name of the folder that it lies in.
    pub folder: String,
    /// Its path.
    pub path: FilePath,
    /// The SHA-256 of its content.
    pub sha256: Sha256,
}

impl Workspaces {
    /// From now on this observer decides which new versions may start flows; the first one counts. Without one, none does.
    pub fn hand_off_to(&self, observer: Arc<dyn HandoffObserver>) {
        drop(self.0.handoffs.set(observer));
    }

    /// The pending handoffs of one shard whose place in the index is before `before`, at most `limit` of them, and the cursor when there is more. The
    /// caller sends their messages, and then has them wait on with [`Self::postpone_handoffs`].
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a cursor of another range; else those of [`Workspaces`], when the index cannot be read.
    pub async fn forgotten_handoffs(
        &self,
        shard: u8,
        before: Timestamp,
        limit: usize,
        cursor: Option<String>,
    ) -> Result<(Vec<ForgottenHandoff>, Option<String>)> {
        let range = Query { to: Some(before.to_string()), ..Query::all(shard_key(shard), limit) };
        let page = self.table().query_index(&range.after(cursor)).await.map_err(error::port)?;
        let mut found = Vec::new();
        // No worker can read one that is damaged either.
        for (item, Since { change }) in ports::readable(&page.items) {
            let workspace = item.key.pk.strip_suffix("/handoffs").and_then(|id| id.parse::<WorkspaceId>().ok());
            let (Some(workspace), Ok(id)) = (workspace, item.key.sk.parse::<Uuid>()) else { continue };
            let wait = moved(item, waits(workspace, id, self.next_due(before, change.at)));
            found.push(ForgottenHandoff { workspace, id, wait });
        }
        Ok((found, page.next))
    }

    /// Has these wait on after their messages were sent. One that is not dealt with is found again after a pause that doubles each time, up to 7 days:
    /// its message may wait in the queue, which would grow with each sweep.
    ///
    /// # Errors
    /// Those of [`Workspaces`], when the index cannot be written. The others are found again by the next sweep.
    pub async fn postpone_handoffs(&self, sent: Vec<ForgottenHandoff>) -> Result<()> {
        self.postpone(sent.into_iter().map(|one| one.wait)).await
    }
}

impl Workspace {
    /// The version that waits under this id; none once it was dealt with.
    ///
    /// # Errors
    /// Those of [`Workspace`].
    pub async fn handoff(&self, id: Uuid) -> Result<Option<PendingHandoff>> {
        let item = self.0.table.get(&self.0.keys.handoff(id)).await.map_err(error::port)?;
        item.map(|item| error::parse(&item.body)).transpose()
    }

    /// Notes that this version was dealt with. Again is harmless.
    ///
    /// # Errors
    /// Those of [`Workspace`]; the version may be dealt with once more then.
    pub async fn handed_off(&self, id: Uuid) -> Result<()> {
        let gone = Write::delete(self.0.keys.handoff(id), Expect::Any);
        self.0.table.commit(vec![gone]).await.map_err(error::port)
    }

    /// From now on no new version in this workspace starts a flow: for a workspace in which work is only tried.
    ///
    /// # Errors
    /// Those of [`Workspace`].
    pub async fn start_nothing(&self) -> Result<()> {
        let off = Write::put(self.0.keys.no_handoffs(), "{}", Expect::Any);
        self.0.table.commit(vec![off]).await.map_err(error::port)
    }

    /// The names of the folders in `folder`, and of each the files whose names begin with `prefix`; nothing when `folder` is not there.
    ///
    /// # Errors
    /// `UNPROCESSABLE` for a file; else those of [`Workspace`].
    pub async fn inside_of_each(&self, folder: &FilePath, prefix: &str) -> Result<(Vec<String>, Vec<FileInFolder>)> {
        let above = match self.walk(folder).await {
            Err(error) if error.code == Code::NotFound => return Ok((Vec::new(), Vec::new())),
            walk => walk?.found,
        };
        let above = match above {
            None => return Ok((Vec::new(), Vec::new())),
            Some(found) if found.entry.kind == FileKind::Folder => found.entry.file_id,
            Some(_) => return Err(error::wrong_kind(folder, "a file, not a folder", "name a folder")),
        };
        let folders: Vec<(String, FileId)> = self
            .readable_entries(above)
            .await?
            .0
            .into_iter()
            .filter(|(_, entry)| entry.kind == FileKind::Folder)
            .map(|(name, entry)| (name, entry.file_id))
            .collect();
        let look = |(name, id): (String, FileId)| async move {
            let query = Query::prefix(self.0.keys.folder(id), prefix, AT_ONCE);
            let page = self.0.table.query(&query).await.map_err(error::port)?;
            let mut files = Vec::new();
            // A row that cannot be read keeps the files of no other folder back.
            for (item, entry) in ports::readable::<Entry>(&page.items) {
                let Some(sha256) = entry.sha256 else { continue };
                files.push(FileInFolder {
                    folder: name.clone(),
                    path: folder.join(&name)?.join(&item.key.sk)?,
                    sha256,
                });
            }
            Ok::<_, domain::Error>(files)
        };
        let names = folders.iter().map(|(name, _)| name.clone()).collect();
        let found: Vec<Vec<FileInFolder>> =
            futures::stream::iter(folders).map(look).buffered(AT_ONCE).try_collect().await?;
        Ok((names, found.into_iter().flatten().collect()))
    }

    /// The observer, where it wants to hear of new versions at this path. To be asked before any lock is taken: it reads files.
    pub(crate) async fn handoff_of(&self, path: &FilePath) -> Option<Arc<dyn HandoffObserver>> {
        let observer = self.0.shared.upgrade()?.handoffs.get()?.clone();
        let concerns = async {
            if !observer.concerns(self, path).await? {
                return Ok(false);
            }
            let off = self.0.table.get(&self.0.keys.no_handoffs()).await.map_err(error::port)?;
            Ok::<_, domain::Error>(off.is_none())
        };
        match concerns.await {
            Ok(concerns) => concerns.then(|| observer.clone()),
            Err(error) => {
                tracing::warn!(workspace = %self.0.id, %path, %error, "whether this file starts a flow is looked at later");
                Some(observer.clone())
            }
        }
    }

    /// The write that notes a version, and the id of the note.
    pub(crate) fn pending(&self, change: &Change, writer: &Writer) -> Result<(Uuid, Write)> {
        let id = self.0.clock.id();
        let pending = PendingHandoff { change: change.clone(), by: writer.principal.clone(), may_run: writer.may_run };
        let put = Write::put(self.0.keys.handoff(id), error::json(&pending)?, Expect::Absent);
        Ok((id, put.indexed(waits(self.0.id, id, change.at))))
    }
}

fn shard_key(shard: u8) -> String {
    format!("handoffs/{shard:x}")
}

/// The key of a pending handoff in the index.
fn waits(workspace: WorkspaceId, id: Uuid, at: Timestamp) -> Key {
    let shard = id.as_bytes().last().copied().unwrap_or_default() % HANDOFF_SHARDS;
    Key::new(shard_key(shard), format!("{at}/{workspace}/{id}"))
}
