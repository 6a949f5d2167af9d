//! Brings `latest/` in line with the index on a disk that is only a cache (spec 001 §5), before a folder is walked.
//!
//! The index is listed with one query per folder, the disk is read in one pass, and only differences are fetched. Contents are hashed once: a
//! verified file is remembered by its inode and times, which every write changes.
//!
//! Invariant: an older listing never undoes a commit of this process. The disk is read *before* the index is listed, and a file is put or removed
//! under its lock, and only if nothing changed it since that read: then the listing is no older than the disk. Hydrations of one workspace run one
//! after the other, so that each sees the files that an earlier one put.

mod chats;
mod listing;

use crate::{
    Result, Workspace,
    cache::{Cache, CachedWorkspace, Hydrated, KnownContent, State},
    commit::whole,
    contents::{self, is_large},
    damages::is_damage,
    error,
    handle::Shared,
    mirror::{Area, Mirror, OnDisk},
    snapshot::Seen,
};
use domain::{Code, FilePath, WorkspaceId};
use futures::{StreamExt, TryStreamExt, stream};
pub(crate) use listing::Listed;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use tokio::sync::Semaphore;

/// How many contents are fetched at once.
const FETCHED_AT_ONCE: usize = 16;
/// How many KiB of contents are in memory at once.
const KIB_AT_ONCE: usize = 64 * 1024;
/// How many files are hashed at once.
const HASHED_AT_ONCE: usize = 4;

impl Workspace {
    /// Brings `latest/` at and below `path` in line with the index, as far as it is a cache; elsewhere it always is. It stays so,
    /// or gets newer, for as long as the answer is held.
    ///
    /// # Errors
    /// `PAYLOAD_TOO_LARGE` when there is more than the [`Budget`] allows.
    pub async fn hydrate(&self, path: &FilePath) -> Result<Hydrated> {
        // The cache is of everybody: what one party does not see is no stray.
        self.unlimited("the cache of a disk").hydrate_all(path).await
    }

    async fn hydrate_all(&self, path: &FilePath) -> Result<Hydrated> {
        let Some(shared) = self.0.shared.upgrade() else { return Ok(Hydrated::default()) };
        let Some(cache) = shared.cache.get() else { return Ok(Hydrated::default()) };
        let kept = cache.of(self.0.id);
        let held = Hydrated::holding(&kept).await;
        let mut state = kept.state.lock().await;
        let at = path.clone();
        let before = move |mirror: &Mirror| mirror.lay_out().and_then(|()| mirror.snapshot(&at));
        let before = self.disk("to look at a folder", before).await?;
        let listed = self.listed(path, &cache.budget).await?;
        let is_there = |known: &FilePath| !known.is_within(path) || listed.contains_key(known);
        state.verified.retain(|known, _| is_there(known));
        state.projected.retain(|known, _| is_there(known));

        self.remove_strays(&before, &listed).await?;
        let (mut doubtful, mut missing, mut projections, mut folders) = (vec![], vec![], vec![], vec![]);
        let mut large = vec![];
        for (path, entry) in listed {
            let seen = before.get(&path).copied();
            let what = seen.map_or(OnDisk::Nothing, |seen| seen.what);
            match (entry, what) {
                (Listed::Folder, OnDisk::Folder) => {}
                (Listed::Folder, _) => folders.push(path),
                (Listed::Projection, _) => projections.push((path, seen)),
                (Listed::File(known), OnDisk::File(size)) if is_large(known.size) && size == known.size => {}
                (Listed::File(known), _) if is_large(known.size) => large.push((path, known, seen)),
                (Listed::File(known), OnDisk::File(size)) if size == known.size => {
                    match (state.verified.get(&path), seen.and_then(|seen| seen.stamp)) {
                        (Some(right), Some(stamp)) if *right == (known.sha256, stamp) => {}
                        _ => doubtful.push((path, known, seen)),
                    }
                }
                (Listed::File(known), _) => missing.push((path, known, seen)),
            }
        }
        self.make_folders(folders).await?;
        self.stand_in_for(large).await?;
        missing.extend(self.wrong_among(doubtful, &mut state).await?);
        let bytes = missing.iter().map(|(_, known, _)| known.size).sum();
        cache.make_room(&shared, self.0.id, &mut state, bytes).await;
        self.fetch(missing, &mut state).await?;
        self.project(projections, &mut state).await?;
        drop(state);
        Ok(held)
    }

    /// Removes files and folders that the index does not have. A folder goes with all in it; only the uppermost ones count.
    async fn remove_strays(
        &self,
        before: &BTreeMap<FilePath, Seen>,
        listed: &BTreeMap<FilePath, Listed>,
    ) -> Result<()> {
        let strays: BTreeSet<&FilePath> = before.keys().filter(|path| !listed.contains_key(path)).collect();
        let inside = |path: &&&FilePath| path.parent().is_some_and(|parent| strays.contains(&parent));
        for path in strays.iter().filter(|path| !inside(path)) {
            let (this, path, seen) = (self.clone(), (*path).clone(), before.get(*path).copied());
            whole(async move {
                if seen.is_some_and(|seen| seen.what == OnDisk::Folder) {
                    // Another writer may have made it anew, with files in it: the index tells, and the lock keeps writers out meanwhile.
                    let _tree = this.0.tree.write().await;
                    let walk = this.walk(&path).await;
                    let is_there = match walk {
                        Ok(walk) => walk.found.is_some(),
                        Err(error) if error.code == Code::NotFound => false,
                        // The listing leaves it out, and it is there.
                        Err(error) if error::is_damage_of_index(&error) => true,
                        Err(error) => return Err(error),
                    };
                    if is_there || path.is_root() {
                        return Ok(());
                    }
                    let id = this.0.clock.id();
                    let remove = move |mirror: &Mirror| mirror.remove(crate::mirror::Area::Latest, &path, id).map(drop);
                    return this.disk("to remove a folder", remove).await;
                }
                this.unless_touched(path, seen, |mirror, path, id| {
                    mirror.remove(crate::mirror::Area::Latest, path, id).map(drop)
                })
                .await
                .map(drop)
            })
            .await?;
        }
        Ok(())
    }

    async fn make_folders(&self, folders: Vec<FilePath>) -> Result<()> {
        if folders.is_empty() {
            return Ok(());
        }
        let this = self.clone();
        whole(async move {
            let _tree = this.0.tree.read().await;
            let make = move |mirror: &Mirror| folders.iter().try_for_each(|path| mirror.make(path));
            this.disk("to make folders", make).await
        })
        .await
    }

    /// Puts a sparse file of the same length in the place of each large file, which no cache fetches: listings show it, and searches skip it.
    async fn stand_in_for(&self, files: Vec<File>) -> Result<()> {
        for (path, known, seen) in files {
            let this = self.clone();
            whole(async move {
                let stand_in = move |mirror: &Mirror, path: &FilePath, id| mirror.stand_in(path, known.size, id);
                this.unless_touched(path, seen, stand_in).await
            })
            .await?;
        }
        Ok(())
    }

    /// Compares files of the right length with their digests; gives those that are wrong.
    async fn wrong_among(&self, files: Vec<File>, state: &mut State) -> Result<Vec<File>> {
        let mut wrong = Vec::new();
        let mut checked = stream::iter(files)
            .map(|(path, known, seen)| async move {
                let (at, size) = (path.clone(), known.size);
                let content = self.disk("to read a file", move |mirror| mirror.read(&at, size)).await?;
                let is_right = match content {
                    Some(content) => contents::digest(&content.into()).await? == known.sha256,
                    None => false,
                };
                Ok::<_, domain::Error>((path, known, seen, is_right))
            })
            .buffer_unordered(HASHED_AT_ONCE);
        while let Some((path, known, seen, is_right)) = checked.try_next().await? {
            match seen.and_then(|seen| seen.stamp) {
                Some(stamp) if is_right => drop(state.verified.insert(path, (known.sha256, stamp))),
                _ => wrong.push((path, known, seen)),
            }
        }
        Ok(wrong)
    }

    async fn fetch(&self, files: Vec<File>, state: &mut State) -> Result<()> {
        let memory = Semaphore::new(KIB_AT_ONCE);
        let memory = &memory;
        let mut fetched = stream::iter(files)
            .map(|(path, known, seen)| async move {
                let kib = u32::try_from(known.size / 1024 + 1).unwrap_or(u32::MAX).min(KIB_AT_ONCE as u32);
                let _memory = memory.acquire_many(kib).await;
                let content = match self.0.archive.get(known.sha256, known.size).await {
                    Ok(content) => content,
                    // The others can be searched without it.
                    Err(error) if is_damage(&error) => return Ok(None),
                    Err(error) => return Err(error),
                };
                let (this, at) = (self.clone(), path.clone());
                let stamp = whole(async move {
                    this.unless_touched(at, seen, move |mirror, path, id| {
                        mirror.write(path, &content, id)?;
                        Ok(mirror.seen(path)?.and_then(|seen| seen.stamp))
                    })
                    .await
                })
                .await?;
                Ok::<_, domain::Error>(stamp.flatten().map(|stamp| (path, (known.sha256, stamp))))
            })
            .buffer_unordered(FETCHED_AT_ONCE);
        while let Some(done) = fetched.try_next().await? {
            state.verified.extend(done);
        }
        Ok(())
    }

    /// Does something to a file, under its lock, if it still is as it was seen.
    async fn unless_touched<T: Send + 'static>(
        &self,
        path: FilePath,
        seen: Option<Seen>,
        work: impl FnOnce(&Mirror, &FilePath, uuid::Uuid) -> std::io::Result<T> + Send + 'static,
    ) -> Result<Option<T>> {
        let _tree = self.0.tree.read().await;
        let _file = self.lock_file(&path).await;
        let id = self.0.clock.id();
        let work = move |mirror: &Mirror| match mirror.seen(&path)? == seen {
            true => work(mirror, &path, id).map(Some),
            false => Ok(None),
        };
        self.disk("to put a file right", work).await
    }
}

/// A file, its target state, and the state on disk.
type File = (FilePath, KnownContent, Option<Seen>);

impl Cache {
    /// Counts `bytes` for a workspace, and empties the folders of others until all fits. One that is being used stays: then
    /// there is more than was meant, and the disk says when it is too much.
    async fn make_room(&self, shared: &Arc<Shared>, id: WorkspaceId, state: &mut State, bytes: u64) {
        state.fetched = state.fetched.saturating_add(bytes);
        let others: Vec<_> = {
            let all = self.kept.lock();
            all.iter().filter(|(other, _)| *other != id).cloned().collect()
        };
        let free = |kept: &CachedWorkspace| kept.state.try_lock().map_or(0, |state| state.fetched);
        let mut sum = others.iter().fold(state.fetched, |sum, (_, kept)| sum.saturating_add(free(kept)));
        for (other, kept) in others {
            if sum <= self.budget.kept {
                return;
            }
            let (Ok(_nobody), Ok(mut of_other)) = (kept.in_use.try_write(), kept.state.try_lock()) else { continue };
            let workspace = Shared::handle(shared, other);
            let Ok(_tree) = workspace.0.tree.try_write() else { continue };
            let aside = shared.clock.id();
            let emptied = workspace.disk("to make room", move |mirror| mirror.empty(Area::Latest, aside)).await;
            if emptied.is_ok() {
                sum = sum.saturating_sub(of_other.fetched);
                *of_other = State::default();
                let mut all = self.kept.lock();
                all.retain(|(known, _)| *known != other);
            }
        }
    }
}
