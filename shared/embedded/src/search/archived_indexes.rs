//! Indexes with a copy in the archive, for processes whose disk does not last: a new instance of a function begins with the copy.
//!
//! An item of the table names the parts of the copy and its age; the parts are in a space of their own. Of two instances that keep one at a time the
//! later age stays: the item is written conditionally, and the loser takes its own parts back. So does a search that ends after the deletion of its
//! workspace. A part that is missing, or a copy of another form, is
//! no copy: the index is made anew, as it is without any.
//!
//! The disk is small, and an instance may serve many workspaces before it ends. So an index that is opened takes the room of those of other workspaces.

use super::{FOLDER, LocalIndex, LocalIndexes, blocking, disk, remove, schema};
use crate::readers::failed;
use async_trait::async_trait;
use bytes::Bytes;
use domain::{FilePath, Sha256, WorkspaceId};
use parking_lot::{Mutex, MutexGuard};
use ports::{
    Blobs, Error, Expect, FileFilter, IndexEdit, IndexMatches, IndexNearest, IndexTerm, IndexVector, IndexedFile, Item,
    Passage, Result, SearchIndex, SearchIndexes, Table, Unembedded, Visible, Write, deleted_workspace, kept_index,
    kept_index_space,
};
use serde::{Deserialize, Serialize};
use std::{
    collections::HashMap,
    fs::{self, File},
    io::{self, Read, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};
use tokio::time::Instant;

/// The bytes of a part: no process holds more at once.
const PART: usize = 16 * 1024 * 1024;
/// The largest index that is kept: the temporary folder of a function has to hold it twice.
const LARGEST: u64 = 200 * 1024 * 1024;
/// How many bytes the files of other workspaces may have when an index is opened: the temporary folder of a function has 512 MB.
const BESIDE: u64 = 64 * 1024 * 1024;
/// How many indexes stay open without a use: the disk has the room of a removed one back when that is closed.
const OPEN: usize = 2;
/// A copy is due after so many changes, or after any when the last one is so old.
const CHANGES: usize = 256;
const AGE: Duration = Duration::from_secs(600);

/// The indexes of a folder, with copies.
#[derive(Clone)]
pub struct ArchivedIndexes {
    local: LocalIndexes,
    table: Arc<dyn Table>,
    blobs: Arc<dyn Blobs>,
    beside: u64,
}

/// The body of the item.
#[derive(Debug, Serialize, Deserialize)]
struct ArchivedCopy {
    /// The form of the tables.
    form: i64,
    age: i64,
    parts: Vec<Sha256>,
    /// The space of the parts; none in copies of earlier versions, whose parts are among the contents of the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    space: Option<String>,
}

impl ArchivedCopy {
    fn space(&self, workspace: WorkspaceId) -> String {
        self.space.clone().unwrap_or_else(|| workspace.to_string())
    }
}

impl ArchivedIndexes {
    /// In the folders of the workspaces below `root`, with copies in this archive.
    pub fn new(root: impl Into<PathBuf>, table: Arc<dyn Table>, blobs: Arc<dyn Blobs>) -> Self {
        Self { local: LocalIndexes::new(root), table, blobs, beside: BESIDE }
    }

    /// Removes the files of other workspaces that have not been written to for the longest time, until the rest has `beside` bytes at most. An
    /// index that is open goes on without the names of its files.
    async fn make_room(&self, workspace: WorkspaceId) -> Result<()> {
        let (root, own, beside) = (self.local.root.clone(), self.local.folder(workspace), self.beside);
        blocking(move || {
            let entries = match fs::read_dir(root) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                entries => entries.map_err(disk)?,
            };
            let mut others = Vec::new();
            for entry in entries {
                let folder = entry.map_err(disk)?.path().join(FOLDER);
                if folder != own
                    && let Some((written, bytes)) = written_and_bytes(&folder)
                {
                    others.push((written, bytes, folder));
                }
            }
            others.sort_by_key(|(written, ..)| std::cmp::Reverse(*written));
            let mut kept = 0;
            for (_, bytes, folder) in others {
                kept += bytes;
                if kept > beside {
                    remove(&folder).map_err(disk)?;
                }
            }
            Ok(())
        })
        .await
    }

    async fn copy(&self, workspace: WorkspaceId) -> Result<Option<(ArchivedCopy, Item)>> {
        let Some(item) = self.table.get(&kept_index(workspace)).await? else { return Ok(None) };
        Ok(serde_json::from_str(&item.body).ok().map(|copy| (copy, item)))
    }

    /// Puts the copy into its place on the disk; whether there was one.
    async fn fetch(&self, workspace: WorkspaceId) -> Result<bool> {
        let Some((copy, _)) = self.copy(workspace).await? else { return Ok(false) };
        if copy.form != schema::VERSION {
            return Ok(false);
        }
        let (file, folder) = (self.local.file(workspace), self.local.folder(workspace));
        let space = copy.space(workspace);
        let coming = file.with_extension("coming");
        let target = coming.clone();
        let mut writer = blocking(move || {
            fs::create_dir_all(&folder).map_err(disk)?;
            File::create(&target).map_err(disk)
        })
        .await?;
        for part in copy.parts {
            let Some(bytes) = self.blobs.get(&space, part, None).await? else { return Ok(false) };
            writer = blocking(move || writer.write_all(&bytes).map(|()| writer).map_err(disk)).await?;
        }
        blocking(move || fs::rename(coming, file).map_err(disk)).await?;
        Ok(true)
    }

    /// Keeps the file as the copy, unless another instance has kept a later one.
    async fn store(&self, workspace: WorkspaceId, file: &Path, age: i64) -> Result<()> {
        let before = self.table.get(&kept_index(workspace)).await?;
        let known = before.as_ref().and_then(|item| serde_json::from_str::<ArchivedCopy>(&item.body).ok());
        if known.as_ref().is_some_and(|known| known.form == schema::VERSION && known.age >= age) {
            return Ok(());
        }
        let (parts, space) = (self.put(workspace, file).await?, Some(kept_index_space(workspace)));
        let copy = ArchivedCopy { form: schema::VERSION, age, parts, space };
        let body = serde_json::to_string(&copy).map_err(|error| Error::Invalid(error.to_string()))?;
        let expect = before.map_or(Expect::Absent, |item| Expect::Rev(item.rev));
        let put = Write::put(kept_index(workspace), body, expect);
        let is_there = Write::check(deleted_workspace(workspace), Expect::Absent);
        let (stays, goes) = match self.table.commit(vec![put, is_there]).await {
            Ok(()) => (Some(copy), known),
            Err(Error::Conflict { .. }) => (self.copy(workspace).await?.map(|(winner, _)| winner), Some(copy)),
            // It may have been written: nothing is taken back.
            Err(error) => return Err(error),
        };
        let Some(goes) = goes else { return Ok(()) };
        let space = goes.space(workspace);
        let kept = stays.filter(|stays| stays.space(workspace) == space).map(|stays| stays.parts).unwrap_or_default();
        for part in goes.parts.into_iter().filter(|part| !kept.contains(part)) {
            self.blobs.delete(&space, part).await?;
        }
        Ok(())
    }

    async fn put(&self, workspace: WorkspaceId, file: &Path) -> Result<Vec<Sha256>> {
        let file = file.to_owned();
        let mut reader = blocking(move || File::open(file).map_err(disk)).await?;
        let mut parts = Vec::new();
        loop {
            let (rest, part) = blocking(move || {
                let mut part = Vec::new();
                (&mut reader).take(PART as u64).read_to_end(&mut part).map_err(disk)?;
                Ok((reader, part))
            })
            .await?;
            reader = rest;
            if part.is_empty() {
                return Ok(parts);
            }
            parts.push(self.blobs.put(&kept_index_space(workspace), Bytes::from(part)).await?);
        }
    }
}

/// When a file in a folder was written to the last time, and the bytes of all of them; none for a folder without files.
fn written_and_bytes(folder: &Path) -> Option<(SystemTime, u64)> {
    let files = fs::read_dir(folder).ok()?.filter_map(|entry| entry.ok()?.metadata().ok());
    files
        .filter_map(|file| Some((file.modified().ok()?, file.len())))
        .reduce(|(last, sum), (written, bytes)| (last.max(written), sum + bytes))
}

#[async_trait]
impl SearchIndexes for ArchivedIndexes {
    fn most_open(&self) -> usize {
        OPEN
    }

    async fn open(&self, workspace: WorkspaceId) -> Result<Arc<dyn SearchIndex>> {
        if let Err(error) = self.make_room(workspace).await {
            tracing::warn!(%workspace, error = %error.with_causes(), "indexes of other workspaces stay on the disk");
        }
        let file = self.local.file(workspace);
        if !blocking(move || Ok(file.exists())).await?
            && let Err(error) = self.fetch(workspace).await
        {
            tracing::warn!(%workspace, error = %error.with_causes(), "the copy of an index cannot be used, and the index is made anew");
        }
        let index = self.local.open_local(workspace).await?;
        let state = Mutex::new(State { changes: 0, since: Instant::now() });
        Ok(Arc::new(ArchivedIndex { index, workspace, indexes: self.clone(), state }))
    }

    async fn remove(&self, workspace: WorkspaceId) -> Result<()> {
        self.local.remove(workspace).await?;
        // The damage may be in the copy.
        if let Some((copy, _)) = self.copy(workspace).await? {
            self.table.commit(vec![Write::delete(kept_index(workspace), Expect::Any)]).await?;
            let space = copy.space(workspace);
            for part in copy.parts {
                self.blobs.delete(&space, part).await?;
            }
        }
        Ok(())
    }
}

struct ArchivedIndex {
    index: LocalIndex,
    workspace: WorkspaceId,
    indexes: ArchivedIndexes,
    state: Mutex<State>,
}

struct State {
    /// How much the copy is behind, and since when one counts.
    changes: usize,
    since: Instant,
}

impl ArchivedIndex {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    async fn copied(&self, age: i64) -> Result<()> {
        let copy = self.indexes.local.file(self.workspace).with_extension("copy");
        let target = copy.clone();
        let is_made = self.index.copy_to(target, LARGEST).await?;
        let kept = if is_made { self.indexes.store(self.workspace, &copy, age).await } else { Ok(()) };
        blocking(move || {
            drop(fs::remove_file(copy));
            Ok(())
        })
        .await?;
        kept
    }
}

impl LocalIndex {
    /// Writes the index into a new file; false for one that is larger.
    async fn copy_to(&self, target: PathBuf, largest: u64) -> Result<bool> {
        let index = Arc::clone(&self.0);
        blocking(move || {
            // Another index may have taken its room, and the folder with it.
            if let Some(folder) = target.parent() {
                fs::create_dir_all(folder).map_err(disk)?;
            }
            drop(fs::remove_file(&target));
            let index = index.lock();
            let size = "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size";
            let size: i64 = index.connection.query_row(size, [], |row| row.get(0)).map_err(|error| failed(&error))?;
            if size.unsigned_abs() > largest {
                return Ok(false);
            }
            let target = target.to_string_lossy();
            index.connection.execute("VACUUM INTO ?1", [target]).map_err(|error| failed(&error))?;
            Ok(true)
        })
        .await
    }
}

#[async_trait]
impl SearchIndex for ArchivedIndex {
    async fn progress(&self) -> Result<Option<String>> {
        self.index.progress().await
    }

    async fn apply(&self, edits: Vec<IndexEdit>, progress: Option<String>) -> Result<()> {
        self.state().changes += edits.len();
        self.index.apply(edits, progress).await
    }

    async fn waiting(&self, limit: usize) -> Result<Vec<IndexedFile>> {
        self.index.waiting(limit).await
    }

    async fn below(&self, path: &FilePath) -> Result<Vec<IndexedFile>> {
        self.index.below(path).await
    }

    async fn look_up(&self, terms: Vec<IndexTerm>, visible: Visible) -> Result<IndexMatches> {
        self.index.look_up(terms, visible).await
    }

    async fn passages(&self, ids: Vec<i64>) -> Result<HashMap<i64, Passage>> {
        self.index.passages(ids).await
    }

    async fn unembedded(&self, space: &str, limit: usize) -> Result<Vec<Unembedded>> {
        self.index.unembedded(space, limit).await
    }

    async fn embed(&self, space: &str, vectors: Vec<IndexVector>) -> Result<()> {
        self.state().changes += vectors.len();
        self.index.embed(space, vectors).await
    }

    async fn nearest(
        &self,
        space: &str,
        vector: Vec<f32>,
        most: usize,
        visible: Visible,
        looked: FileFilter,
    ) -> Result<IndexNearest> {
        self.index.nearest(space, vector, most, visible, looked).await
    }

    async fn keep(&self, age: i64) -> Result<()> {
        let behind = {
            let mut state = self.state();
            let is_due = state.changes >= CHANGES || state.changes > 0 && state.since.elapsed() >= AGE;
            if !is_due {
                return Ok(());
            }
            state.since = Instant::now();
            std::mem::take(&mut state.changes)
        };
        // Tried again after as long, and not with the next search.
        self.copied(age).await.inspect_err(|_| self.state().changes += behind.min(CHANGES - 1))
    }
}

#[cfg(test)]
mod tests;
