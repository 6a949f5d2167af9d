//! Bringing `latest/` back in line with the index.
//!
//! `latest/` is never synced on the way of a write, so after a crash of the process it may lack the last flushes, and after
//! one of the machine any of those since the mark. The mark says up to when all is durable there: it is set after a sync of
//! the file system, while nothing was between a commit and its flush. So a repair looks at the changes after the mark only;
//! it looks at everything when `latest/` or the mark is missing.

use crate::{
    Change, FileKind, Op, Repaired, Result, Workspace,
    commit::CHANGES_KEPT,
    crashes, error,
    keys::Keys,
    mirror::{Area, Mirror, OnDisk},
    model::Entry,
    trash_entry,
};
use domain::{Code, FileId, FilePath, Timestamp};
use ports::Query;
use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    sync::atomic::Ordering,
    time::Duration,
};

/// How far before the mark a repair begins, for clocks that are set back a little.
pub(crate) const OVERLAP: Duration = Duration::from_secs(60);
/// With an older mark, changes may have expired that it does not cover.
pub(crate) const TRUSTED: Duration = Duration::from_secs(CHANGES_KEPT.as_secs() - 24 * 3600);
/// How old the mark of a workspace gets that nothing changes.
pub(crate) const REFRESHED: Duration = Duration::from_secs(24 * 3600);

impl Workspace {
    /// Brings `latest/` in line with the index; compares only the changes since its mark.
    ///
    /// # Errors
    /// Those of [`Workspace`]. Repaired files stay, and the mark stays where it was, so that the next repair looks at all of it again.
    pub async fn repair(&self) -> Result<Repaired> {
        let _tree = self.lock_tree().await;
        let (mark, whole) = self
            .disk("to look at a workspace", |mirror| {
                let whole = mirror.look(Area::Latest, &FilePath::root())? == OnDisk::Folder;
                mirror.lay_out()?;
                mirror.clear_tmp()?;
                Ok((mirror.mark(), whole))
            })
            .await?;
        let now = self.0.clock.now();
        match mark {
            // With a mark ahead of the clock, the clock was set back: changes since then have times from before the mark.
            Some(mark) if whole && mark <= now && now.since(mark) < TRUSTED => {
                if now.since(mark) > REFRESHED {
                    self.touched();
                }
                self.replay(mark).await
            }
            _ => self.rebuild().await,
        }
    }

    /// Looks at the changes after the mark, in their order.
    async fn replay(&self, mark: Timestamp) -> Result<Repaired> {
        let from = mark - OVERLAP;
        let (mut done, mut paths) = (Repaired::default(), BTreeSet::new());
        let range = Query { from: Some(Keys::changes_from(from)), ..Query::all(self.0.keys.changes(), 500) };
        let mut pages = self.0.table.pages(range);
        while let Some(items) = pages.next().await.map_err(error::port)? {
            for item in &items {
                let change: Change = match error::parse(&item.body) {
                    Ok(change) => change,
                    // A comparison of everything finds the change.
                    Err(error) => {
                        tracing::error!(workspace = %self.0.id, change = %item.key.sk, %error, "a change is damaged: everything is compared");
                        return self.rebuild().await;
                    }
                };
                self.move_what_was_moved(&change).await?;
                if change.op == Op::Purged {
                    self.remove_purged(change.file_id).await?;
                }
                let deep = change.kind == FileKind::Folder && matches!(change.op, Op::Moved | Op::Restored);
                paths.extend(change.from.map(|path| (path, false)));
                // Folders that a write made on its way have no change of their own, and the written file may be gone since.
                let above = std::iter::successors(change.path.parent(), FilePath::parent);
                paths.extend(above.map(|folder| (folder, false)));
                paths.insert((change.path, deep));
            }
        }
        if !paths.is_empty() {
            self.touched();
        }
        for (path, deep) in paths {
            done += self.settle(&path, deep).await?;
        }
        Ok(done)
    }

    /// Does a rename on disk that a crash left out. Files could be made anew from the archive; projections could not.
    async fn move_what_was_moved(&self, change: &Change) -> Result<()> {
        let trashed = trash_entry::place(change.file_id)?;
        let (from, to) = match (change.op, &change.from) {
            (Op::Moved, Some(from)) => ((Area::Latest, from.clone()), (Area::Latest, change.path.clone())),
            (Op::Removed, _) => ((Area::Latest, change.path.clone()), (Area::Trash, trashed)),
            (Op::Restored, _) => ((Area::Trash, trashed), (Area::Latest, change.path.clone())),
            (Op::Made | Op::Written | Op::Moved | Op::Purged | Op::Converted | Op::Marked, _) => return Ok(()),
        };
        let is_at = |path: FilePath| async move {
            match self.walk(&path).await {
                Ok(walk) => Ok(walk.found.map(|found| found.entry.file_id)),
                Err(error) if error.code == Code::NotFound => Ok(None),
                Err(error) => Err(error),
            }
        };
        let id = change.file_id;
        let leads = match to.0 {
            Area::Latest => is_at(to.1.clone()).await? == Some(id),
            Area::Trash => self.0.table.get(&self.0.keys.trashed(id)).await.map_err(error::port)?.is_some(),
        };
        let left = from.0 == Area::Trash || is_at(from.1.clone()).await?.is_none();
        if !(leads && left) {
            return Ok(());
        }
        let aside = self.0.clock.id();
        self.disk("to move a file", move |mirror| {
            if mirror.look(to.0, &to.1)? == OnDisk::Nothing {
                mirror.rename((from.0, &from.1), (to.0, &to.1), aside)?;
            }
            Ok(())
        })
        .await
    }

    /// Removes the copy of a purged entry from the trash of the disk. The purge is over with its commit, so nothing else removes a copy that a crash left.
    async fn remove_purged(&self, file_id: FileId) -> Result<()> {
        for key in [self.0.keys.trashed(file_id), self.0.keys.node(file_id)] {
            if self.0.table.get(&key).await.map_err(error::port)?.is_some() {
                return Ok(());
            }
        }
        let (at, id) = (trash_entry::place(file_id)?, self.0.clock.id());
        self.disk("to purge a file", move |mirror| mirror.remove(Area::Trash, &at, id)).await.map(drop)
    }

    /// The same for every entry of the trash of the disk.
    async fn remove_all_purged(&self) -> Result<()> {
        for file_id in self.disk("to list the trash", Mirror::in_trash).await? {
            match self.remove_purged(file_id).await {
                // An entry whose item cannot be read stays.
                Err(error) if !error::is_damage_of_index(&error) => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Repairs one path on disk; with `deep`, all below it, including entries that should not be there. Under the tree's lock.
    pub(crate) async fn settle(&self, path: &FilePath, deep: bool) -> Result<Repaired> {
        let mut done = Repaired::default();
        let found = match self.walk(path).await {
            Ok(walk) => walk.found.map(|found| found.entry),
            // A file is on the way to it: so it is not there. Any other error leaves that open.
            Err(error) if error.code == Code::NotFound => None,
            Err(error) => return Err(error),
        };
        let mut paths = vec![(path.clone(), found)];
        while let Some((path, found)) = paths.pop() {
            done.checked += 1;
            let (at, id) = (path.clone(), self.0.clock.id());
            let kind = found.as_ref().map(|entry| entry.kind).or(path.is_root().then_some(FileKind::Folder));
            let fixed = match (kind, found) {
                (Some(FileKind::File), Some(entry)) => {
                    let put_right = self.restore_to_latest(&path, &entry);
                    crashes::unless_refused(&self.0.keys, &path, entry.sha256, put_right).await.unwrap_or(Ok(false))?
                }
                (Some(FileKind::Folder), entry) => {
                    if deep {
                        let folder = entry.map_or(self.0.keys.root(), |entry| entry.file_id);
                        paths.extend(self.below(&path, folder).await?);
                    }
                    let make = move |mirror: &Mirror| match mirror.look(Area::Latest, &at)? {
                        OnDisk::Folder => Ok(false),
                        _ => mirror.make(&at).map(|()| true),
                    };
                    self.disk("to make a folder", make).await?
                }
                (Some(FileKind::Projection), _) => {
                    let make = move |mirror: &Mirror| match mirror.look(Area::Latest, &at)? {
                        OnDisk::File(_) => Ok(false),
                        _ => mirror.write(&at, b"", id).map(|()| true),
                    };
                    self.disk("to make a projection", make).await?
                }
                _ => self.disk("to remove a file", move |mirror| mirror.remove(Area::Latest, &at, id)).await?,
            };
            done.fixed += u64::from(fixed);
        }
        Ok(done)
    }

    /// The paths in a folder, each with its entry; without one for what is on the disk alone.
    async fn below(&self, path: &FilePath, folder: FileId) -> Result<Vec<(FilePath, Option<Entry>)>> {
        let entries = self.all_entries(folder).await?;
        let mut names: BTreeMap<String, Option<Entry>> =
            entries.into_iter().map(|(name, entry)| (name, Some(entry))).collect();
        let at = path.clone();
        let on_disk = move |mirror: &Mirror| match mirror.names(&at) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            names => names,
        };
        for name in self.disk("to list a folder", on_disk).await? {
            names.entry(name).or_default();
        }
        // A name that is no path (a control character in it) is not one of ours; there it stays.
        Ok(names.into_iter().filter_map(|(name, entry)| Some((path.join(&name).ok()?, entry))).collect())
    }

    /// Compares everything. Under the tree's lock. The next checkpoint sets the mark; a crash before it means to compare
    /// everything again.
    pub(crate) async fn rebuild(&self) -> Result<Repaired> {
        self.disk("to lay out a workspace", |mirror| {
            mirror.lay_out()?;
            mirror.clear_tmp()
        })
        .await?;
        let done = self.settle(&FilePath::root(), true).await?;
        self.remove_all_purged().await?;
        self.touched();
        Ok(Repaired { rebuilt: true, ..done })
    }

    /// Makes `latest/` durable and advances its mark.
    pub(crate) async fn checkpoint(&self) -> Result<()> {
        if self.0.behind.swap(false, Ordering::Relaxed)
            && let Err(error) = self.repair().await
        {
            self.0.behind.store(true, Ordering::Relaxed);
            return Err(error);
        }
        let mark = {
            // A writer between commit and flush holds the lock for reading: with the lock for writing there is none.
            let _tree = self.0.tree.write().await;
            self.0.dirty.store(false, Ordering::Relaxed);
            self.0.clock.now()
        };
        let set = move |mirror: &Mirror| {
            if mirror.look(Area::Latest, &FilePath::root())? == OnDisk::Nothing {
                // Deleted meanwhile.
                return Ok(());
            }
            mirror.sync()?;
            mirror.set_mark(mark)
        };
        self.disk("to make a workspace durable", set).await
    }
}
