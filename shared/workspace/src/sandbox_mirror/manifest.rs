//! The manifest for a mirror: the changes since its mark, or all entries.

use super::Failed;
use crate::{
    Change, FileKind, Op, Result, Workspace,
    cache::{Budget, KnownContent},
    contents::{self, is_blob, is_large},
    damages::is_damage,
    error,
    hydrate::Listed,
    keys::Keys,
    model::Entry,
    repair::{OVERLAP, REFRESHED, TRUSTED},
};
use bytes::Bytes;
use domain::{Code, FileId, FilePath, Sha256, Timestamp};
use futures::{StreamExt, TryStreamExt, stream};
use ports::{Manifest, ManifestEntry, Mirrored, Presigned, Query, Transfer};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// Over so many changed paths, all folders are listed instead: that takes fewer requests.
const MANY: usize = 500;
/// The budget of a mirror.
const ALL: Budget = Budget { files: 1_000_000, bytes: u64::MAX, kept: 0 };
/// How many contents are read at once, and about how many bytes go in one request.
const READ_AT_ONCE: usize = 8;
const BATCH: usize = 4 * 1024 * 1024;
/// How many rounds a mirror gets that bring it no further: one to name missing contents, one for contents that it could not read at their addresses,
/// and another for changes that came meanwhile.
const ROUNDS: usize = 4;
/// How many addresses a mirror gets at once: each has one or two kilobytes, and a mirror reads so many contents within a minute.
const ADDRESSES: usize = 4_000;
/// How long an address is good. A mirror that begins to read later is given another one.
const GOOD_FOR: Duration = Duration::from_secs(15 * 60);

/// A manifest, and the contents that only this machine has: those of the files of chats.
#[derive(Default)]
pub(super) struct Delta {
    manifest: Manifest,
    sizes: BTreeMap<Sha256, u64>,
    chats: BTreeMap<Sha256, Bytes>,
    /// Whether the mirror has to be told even when there is nothing new.
    refresh: bool,
}

impl Delta {
    fn add(&mut self, path: FilePath, listed: Option<Listed>) {
        let entry = match listed {
            None => ManifestEntry::Absent,
            Some(Listed::Folder) => ManifestEntry::Folder,
            Some(Listed::File(KnownContent { sha256, size })) => {
                self.sizes.insert(sha256, size);
                ManifestEntry::File { sha256, size }
            }
            // The files of chats are brought in line separately, before they are searched.
            Some(Listed::Projection) => return,
        };
        self.manifest.entries.insert(path, entry);
    }

    /// Whether a file of the manifest has this content.
    fn names(&self, digest: Sha256) -> bool {
        self.sizes.contains_key(&digest) || self.chats.contains_key(&digest)
    }
}

impl Workspace {
    /// The manifest for a mirror with this mark.
    pub(super) async fn manifest_since(&self, mark: Option<&str>) -> Result<Delta> {
        // The time is taken before the reads: a commit that comes meanwhile is part of the next manifest.
        let now = self.0.clock.now();
        let since = mark.and_then(|mark| mark.parse::<Timestamp>().ok());
        // The clock of another process may be a little ahead. One that was set back gives changes times from before the mark.
        let since = since.filter(|mark| *mark <= now + OVERLAP && now.since(*mark) < TRUSTED);
        let mut told = match since {
            Some(since) => match self.changed_since(since).await? {
                Some(told) => Delta { refresh: now.since(since) > REFRESHED, ..told },
                None => self.everything().await?,
            },
            None => self.everything().await?,
        };
        told.manifest.mark = now.to_string();
        Ok(told)
    }

    async fn everything(&self) -> Result<Delta> {
        let mut told = Delta { refresh: true, ..Delta::default() };
        told.manifest.whole = true;
        for (path, listed) in self.listed(&FilePath::root(), &ALL).await? {
            if !path.is_root() && self.may_read(&path) {
                told.add(path, Some(listed));
            }
        }
        Ok(told)
    }

    /// The paths that changed since the mark, as they are now; none when there are too many. It begins before the mark as the
    /// repair does: for clocks that differ.
    async fn changed_since(&self, mark: Timestamp) -> Result<Option<Delta>> {
        let from = mark - OVERLAP;
        let (mut paths, mut deep) = (BTreeSet::new(), BTreeSet::new());
        let range = Query { from: Some(Keys::changes_from(from)), ..Query::all(self.0.keys.changes(), 500) };
        let mut pages = self.0.table.pages(range);
        while let Some(items) = pages.next().await.map_err(error::port)? {
            for item in &items {
                // It may be about any file.
                let Ok(change) = error::parse::<Change>(&item.body) else { return Ok(None) };
                let policies = FilePath::parse(access::FOLDER)?;
                if std::iter::once(&change.path).chain(&change.from).any(|path| path.is_within(&policies)) {
                    // Other policies: the mirror may have to lose files that have not changed.
                    return Ok(None);
                }
                paths.extend(change.from);
                // Folders that a write made on its way have no change of their own.
                paths.extend(std::iter::successors(change.path.parent(), FilePath::parent));
                if change.kind == FileKind::Folder && matches!(change.op, Op::Moved | Op::Restored) {
                    deep.insert(change.path.clone());
                }
                paths.insert(change.path);
            }
            if paths.len() > MANY {
                return Ok(None);
            }
        }
        let (mut told, mut seen) = (Delta::default(), BTreeMap::new());
        for path in paths.into_iter().filter(|path| !path.is_root()) {
            let listed = if self.may_read(&path) { self.listed_at(&path, &mut seen).await? } else { None };
            told.add(path, listed);
        }
        for path in deep {
            for (path, listed) in self.listed(&path, &ALL).await? {
                if self.may_read(&path) {
                    told.add(path, Some(listed));
                }
            }
        }
        Ok(Some(told))
    }

    /// The entry at a path; `seen` caches lookups, so that no folder is looked up twice.
    async fn listed_at(&self, path: &FilePath, seen: &mut BTreeMap<FilePath, Option<Entry>>) -> Result<Option<Listed>> {
        let (mut folder, mut at): (FileId, FilePath) = (self.0.keys.root(), FilePath::root());
        let mut found = None;
        for name in path.names() {
            at = at.join(name)?;
            let entry = match seen.get(&at) {
                Some(entry) => entry.clone(),
                None => {
                    let item = self.0.table.get(&self.0.keys.entry(folder, name)).await.map_err(error::port)?;
                    let entry = item.map(|item| error::parse::<Entry>(&item.body)).transpose()?;
                    seen.insert(at.clone(), entry.clone());
                    entry
                }
            };
            match entry {
                // Below a file there is nothing.
                Some(entry) if entry.kind == FileKind::Folder || at == *path => {
                    folder = entry.file_id;
                    found = Some(entry);
                }
                _ => return Ok(None),
            }
        }
        found.as_ref().map(Listed::of).transpose()
    }

    /// Adds the files of chats at and below `path`, as they are by now. No archive has them.
    pub(super) async fn add_chats(&self, told: &mut Delta, path: &FilePath) -> Result<()> {
        let chats = FilePath::parse("/chats")?;
        let below = if path.is_within(&chats) { path } else { &chats };
        if !(path.is_within(&chats) || chats.is_within(path)) {
            return Ok(());
        }
        let listed = self.listed(below, &ALL).await?;
        let chats = listed.into_iter().filter(|(_, listed)| matches!(listed, Listed::Projection));
        let chats: Vec<FilePath> = chats.map(|(path, _)| path).filter(|path| self.may_read(path)).collect();
        let _held = self.hydrate_chats(chats.clone()).await?;
        for path in chats {
            // One that went away meanwhile is told of as that by the next manifest.
            let Some(content) = self.in_latest(&path, u64::MAX).await? else { continue };
            let (sha256, size) = (contents::digest(&content).await?, content.len() as u64);
            told.chats.insert(sha256, content);
            told.manifest.entries.insert(path, ManifestEntry::File { sha256, size });
        }
        Ok(())
    }

    /// Sends a mirror the manifest, and then the contents that it names as missing, or addresses of those that the archive has.
    pub(super) async fn tell(&self, mirror: &dyn Mirrored, mut told: Delta) -> std::result::Result<(), Failed> {
        if told.manifest.entries.is_empty() && !told.refresh {
            return Ok(());
        }
        let (mut rounds, mut least, mut signed) = (0, usize::MAX, BTreeSet::new());
        while rounds < ROUNDS {
            let missing = mirror.apply(told.manifest.clone()).await?;
            if missing.is_empty() {
                return Ok(());
            }
            rounds = if missing.len() < least { 1 } else { rounds + 1 };
            least = least.min(missing.len());
            let addressed = self.addressed(&told, missing, &mut signed).await?;
            told.manifest.addresses = addressed.addresses;
            self.provide(mirror, &told, addressed.others).await?;
        }
        Err(ports::Error::Damaged("the sandbox's mirror misses contents, however often they are given".into()).into())
    }

    /// Signs requests for missing contents: a small one once, as it comes from here when its address did not help (`signed` has those), a large one
    /// in each round, as it comes in no other way. A machine that was taken over may call any content missing: it gets those that its manifest names.
    async fn addressed(&self, told: &Delta, missing: Vec<Sha256>, signed: &mut BTreeSet<Sha256>) -> Result<Addressed> {
        let (space, mut addressed) = (self.0.id.to_string(), Addressed::default());
        for digest in missing.into_iter().filter(|digest| told.names(*digest)) {
            let size = told.sizes.get(&digest).copied().unwrap_or(0);
            let is_read_there = is_blob(size) && (is_large(size) || !signed.contains(&digest));
            if !is_read_there {
                addressed.others.push(digest);
            } else if addressed.addresses.len() < ADDRESSES {
                let request = self.0.archive.blobs.presigned(&space, digest, Transfer::Read, GOOD_FOR).await;
                match request.map_err(error::port)? {
                    Some(request) => {
                        signed.insert(digest);
                        addressed.addresses.insert(digest, request);
                    }
                    None => addressed.others.push(digest),
                }
            }
        }
        Ok(addressed)
    }

    /// Gives a mirror contents, in batches.
    async fn provide(
        &self,
        mirror: &dyn Mirrored,
        told: &Delta,
        missing: Vec<Sha256>,
    ) -> std::result::Result<(), Failed> {
        let mut contents = stream::iter(missing)
            .map(|digest| {
                let (chat, size) = (told.chats.get(&digest).cloned(), told.sizes.get(&digest).copied());
                async move {
                    match chat {
                        Some(content) => Ok(Some(content)),
                        None => match self.0.archive.get_far(digest, size.unwrap_or(0)).await {
                            Ok(content) => Ok(Some(content)),
                            // A large one comes from the blobs or not at all.
                            Err(error) if is_damage(&error) || error.code == Code::PayloadTooLarge => Ok(None),
                            Err(error) => Err(Failed::from(error)),
                        },
                    }
                }
            })
            .buffer_unordered(READ_AT_ONCE);
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while let Some(content) = contents.try_next().await? {
            // Without one that was purged meanwhile the mirror says again that it is missing.
            bytes += content.as_ref().map_or(0, Bytes::len);
            batch.extend(content);
            if bytes >= BATCH {
                mirror.provide(std::mem::take(&mut batch)).await?;
                bytes = 0;
            }
        }
        if !batch.is_empty() {
            mirror.provide(batch).await?;
        }
        Ok(())
    }
}

/// Missing contents, by the way in which they come. Those beyond [`ADDRESSES`] wait for the next round.
#[derive(Default)]
struct Addressed {
    /// From the archive, by these requests.
    addresses: BTreeMap<Sha256, Presigned>,
    /// From here.
    others: Vec<Sha256>,
}
