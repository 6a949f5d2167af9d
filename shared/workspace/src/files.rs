//! Reading: one file, one folder, a tree.

use crate::{
    Content, FileKind, Info, Listing, MAX_FILE, Result, Workspace,
    contents::{self, is_large, too_large},
    damages::{self, is_damage},
    error,
    index::FoundEntry,
    mirror::{Area, OnDisk},
    system_folder::{SYSTEM, inside},
};
use access::Action;
use bytes::Bytes;
use domain::{Code, FileId, FilePath, Sha256};
use futures::FutureExt;
use std::{
    ops::Range,
    sync::{Arc, atomic::Ordering},
};

/// How often a read is begun anew because the file got a new version meanwhile.
const READS: u32 = 8;

/// The entries at and below a path, as far as they can be read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadableTree {
    /// Each folder before its entries.
    pub entries: Vec<Info>,
    /// Whether the limit had room for all of them.
    pub is_whole: bool,
    /// How many entries cannot be read. What is in such a folder is not counted.
    pub left_out: usize,
}

impl Workspace {
    /// The entry at a path.
    ///
    /// # Errors
    /// `NOT_FOUND`, with similar names, when there is no such path; else those of [`Workspace`].
    pub async fn stat(&self, path: &FilePath) -> Result<Info> {
        if path.is_root() {
            return Ok(self.root_info());
        }
        let mut info = self.as_seen(self.found(path).await?.entry.info(path.clone()));
        self.measure(std::slice::from_mut(&mut info)).await?;
        Ok(info)
    }

    /// The entry with this identity.
    ///
    /// # Errors
    /// Those of [`Workspace::path_of`] and [`Workspace::stat`]; `CONFLICT` when it is moved again and again meanwhile.
    pub async fn by_id(&self, file_id: FileId) -> Result<Info> {
        let mut last = error::busy();
        for _ in 0..READS {
            match self.stat(&self.path_of(file_id).await?).await {
                Ok(info) if info.file_id == file_id => return Ok(info),
                // It was moved between the two looks, and another one may have come into its place.
                Ok(_) => {}
                Err(error) if error.code == Code::NotFound => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    /// The entries of a folder, by name, as far as they can be read; `limit` is cut to 1 to 1,000.
    ///
    /// # Errors
    /// `NOT_FOUND`, with similar names, when there is no such path; `UNPROCESSABLE` for a file; `INVALID_ARGUMENT` for a cursor of another
    /// folder; else those of [`Workspace`].
    pub async fn ls(&self, path: &FilePath, limit: usize, cursor: Option<String>) -> Result<Listing> {
        self.page_of(path, limit, cursor, true).await
    }

    /// The same, for callers that take a file which is not listed for one that is gone.
    ///
    /// # Errors
    /// Those of [`Workspace::ls`]; `INTERNAL` for an entry that cannot be read.
    pub async fn ls_whole(&self, path: &FilePath, limit: usize, cursor: Option<String>) -> Result<Listing> {
        self.page_of(path, limit, cursor, false).await
    }

    async fn page_of(
        &self,
        path: &FilePath,
        limit: usize,
        cursor: Option<String>,
        passes_over: bool,
    ) -> Result<Listing> {
        let folder = self.folder_at(path).await?;
        let read = |limit, cursor| {
            let read = async move {
                let page = match passes_over {
                    true => self.readable_page(folder, limit, cursor).await?,
                    false => self.entries(folder, limit, cursor).await?,
                };
                let named =
                    |(name, entry): (String, crate::model::Entry)| Ok(self.as_seen(entry.info(path.join(&name)?)));
                let entries = page.entries.into_iter().map(named).collect::<Result<Vec<_>>>()?;
                Ok((self.only_shown(entries), page.next))
            };
            read.boxed()
        };
        let (mut shown, next_cursor) = self.page(limit.clamp(1, 1000), cursor, Some(path), read).await?;
        self.measure(&mut shown).await?;
        Ok(Listing { entries: shown, next_cursor })
    }

    /// The names of the folders in a folder, in order; none when it is not there.
    ///
    /// # Errors
    /// `UNPROCESSABLE` for a file; else those of [`Workspace`].
    pub async fn folders_in(&self, path: &FilePath) -> Result<Vec<String>> {
        let folder = match self.folder_at(path).await {
            Err(error) if error.code == Code::NotFound => return Ok(Vec::new()),
            folder => folder?,
        };
        let entries = self.readable_entries(folder).await?.0.into_iter();
        let folders = entries.filter(|(_, entry)| entry.kind == FileKind::Folder).map(|(name, _)| name);
        Ok(folders.filter(|name| path.join(name).is_ok_and(|path| self.shows(&path))).collect())
    }

    /// Those of these paths, each of something directly in `/system`, at which something is that exists for the party.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no `/system`; else those of [`Workspace`].
    pub async fn in_system(&self, paths: &[&str]) -> Result<Vec<FilePath>> {
        let names = self.names_in_system().await?;
        let is_there = |path: &&&str| inside(path).is_some_and(|name| names.iter().any(|known| known == name));
        let mut found = Vec::new();
        for path in paths.iter().filter(is_there) {
            let (folder, path) = (FilePath::parse(SYSTEM)?, FilePath::parse(path)?);
            if self.shows(&folder) && self.shows(&path) {
                found.push(path);
            }
        }
        Ok(found)
    }

    async fn names_in_system(&self) -> Result<Arc<[String]>> {
        let (kept, forgotten) = self.0.system.kept();
        if let Some(names) = kept {
            return Ok(names);
        }
        let all = self.unlimited("the names are the same for all parties, and each is shown its own");
        let folder = all.folder_at(&FilePath::parse(SYSTEM)?).await?;
        let names: Arc<[String]> = all.readable_entries(folder).await?.0.into_iter().map(|(name, _)| name).collect();
        if self.writes_alone() {
            self.0.system.keep(&names, forgotten);
        }
        Ok(names)
    }

    /// The entries at and below a path, at most `max`, each folder before its entries; and whether that was all.
    ///
    /// # Errors
    /// `NOT_FOUND`, with similar names, when there is no such path; `UNPROCESSABLE` for a file; `INTERNAL` for an entry that cannot be read, since its
    /// callers decide by all that is there; else those of [`Workspace`].
    pub async fn list_tree(&self, path: &FilePath, max: usize) -> Result<(Vec<Info>, bool)> {
        let ReadableTree { entries, is_whole, .. } = self.tree(path, max, false).await?;
        Ok((entries, is_whole))
    }

    /// The same without the entries that cannot be read, for searches: none of these may end a search.
    ///
    /// # Errors
    /// `NOT_FOUND`, with similar names, when there is no such path; `UNPROCESSABLE` for a file; else those of [`Workspace`].
    pub async fn list_readable(&self, path: &FilePath, max: usize) -> Result<ReadableTree> {
        self.tree(path, max, true).await
    }

    async fn tree(&self, path: &FilePath, max: usize, passes_over: bool) -> Result<ReadableTree> {
        let (mut found, mut left_out) = (Vec::new(), 0);
        let mut folders = vec![(path.clone(), self.folder_at(path).await?)];
        while let Some((path, folder)) = folders.pop() {
            let mut inner = Vec::new();
            let (entries, unreadable) = match passes_over {
                true => self.readable_entries(folder).await?,
                false => (self.all_entries(folder).await?, Vec::new()),
            };
            // A number that counts hidden entries would tell of them.
            left_out += unreadable.iter().filter(|name| path.join(name).is_ok_and(|path| self.shows(&path))).count();
            for (name, entry) in entries {
                let info = entry.info(path.join(&name)?);
                if !self.shows(&info.path) {
                    continue;
                }
                if found.len() >= max {
                    self.measure(&mut found).await?;
                    return Ok(ReadableTree { entries: found, is_whole: false, left_out });
                }
                if info.kind == FileKind::Folder {
                    inner.push((info.path.clone(), info.file_id));
                }
                found.push(self.as_seen(info));
            }
            folders.extend(inner.into_iter().rev());
        }
        self.measure(&mut found).await?;
        Ok(ReadableTree { entries: found, is_whole: true, left_out })
    }

    /// A file's content, or the bytes of it in `range` (cut to its end).
    ///
    /// The content is that of the version told in the answer, also while others write: the bytes in `latest/` are compared with the index's digest,
    /// and if they are missing or torn, the archive serves the read and `latest/` is repaired.
    ///
    /// # Errors
    /// `NOT_FOUND`, with similar names, when there is no such path; `UNPROCESSABLE` for a folder; `PAYLOAD_TOO_LARGE` for a large content without a
    /// range, or with a range of so many bytes; `CONTENT_MISSING` and `CONTENT_DAMAGED`, with the place, when no good copy of it was found;
    /// `CONFLICT` when the file changed again and again meanwhile; else those of [`Workspace`].
    pub async fn read(&self, path: &FilePath, range: Option<Range<u64>>) -> Result<Content> {
        for _ in 0..READS {
            let found = self.found(path).await?;
            self.demand(Action::Read, path)?;
            let mut info = found.entry.info(path.clone());
            let bytes = match (info.kind, info.sha256) {
                (FileKind::File, Some(digest)) if is_large(info.size) => {
                    let range = range.clone().ok_or_else(|| too_large(info.size).detail("path", path.to_string()))?;
                    match self.0.archive.part(digest, info.size, range).await {
                        Ok(bytes) => return Ok(Content { info, bytes }),
                        Err(error) if is_damage(&error) && self.found(path).await?.entry.v != info.v => continue,
                        Err(error) => return Err(damages::at(error, Some(path), info.file_id, info.v)),
                    }
                }
                (FileKind::File, Some(digest)) => {
                    if let Some(bytes) = self.intact_in_latest(path, digest, info.size).await {
                        bytes
                    } else {
                        match self.0.archive.get(digest, info.size).await {
                            Ok(bytes) => {
                                let (this, path) = (self.clone(), path.clone());
                                crate::commit::whole(async move { this.heal(&path).await }).await?;
                                bytes
                            }
                            // Its workspace may be being deleted, or the file was replaced meanwhile.
                            Err(error) if is_damage(&error) && self.found(path).await?.entry.v != info.v => continue,
                            Err(error) => return Err(damages::at(error, Some(path), info.file_id, info.v)),
                        }
                    }
                }
                (FileKind::Projection, _) => {
                    let projector = self.0.shared.upgrade().and_then(|shared| shared.projector.get().cloned());
                    if let Some(projector) = projector {
                        projector.refresh(self.0.id, path).await?;
                    }
                    let bytes = self.in_latest(path, u64::MAX).await?.unwrap_or_default();
                    info.size = bytes.len() as u64;
                    info.sha256 = Some(contents::digest(&bytes).await?);
                    bytes
                }
                _ => return Err(error::wrong_kind(path, "a folder", "list it instead")),
            };
            return Ok(Content { info, bytes: cut(bytes, range) });
        }
        Err(error::busy())
    }

    /// The folder at a path.
    pub(crate) async fn folder_at(&self, path: &FilePath) -> Result<FileId> {
        if path.is_root() {
            return Ok(self.0.keys.root());
        }
        let FoundEntry { entry, .. } = self.found(path).await?;
        if entry.kind == FileKind::Folder {
            Ok(entry.file_id)
        } else {
            Err(error::wrong_kind(path, "a file, not a folder", "read it instead, or list the folder that it is in"))
        }
    }

    /// A file's content as `latest/` has it, when it is not longer than `limit`.
    pub(crate) async fn in_latest(&self, path: &FilePath, limit: u64) -> Result<Option<Bytes>> {
        let path = path.clone();
        let content = self.disk("to read a file", move |mirror| mirror.read(&path, limit)).await?;
        Ok(content.map(Bytes::from))
    }

    /// A file's content as `latest/` has it, when it is the one with this digest. A disk that cannot be read has nothing: the
    /// archive is asked then.
    async fn intact_in_latest(&self, path: &FilePath, digest: Sha256, size: u64) -> Option<Bytes> {
        let bytes = self.in_latest(path, size).await.ok().flatten()?;
        contents::digest(&bytes).await.is_ok_and(|found| found == digest).then_some(bytes)
    }

    /// Writes the current content of the index to `latest/`, unless a writer has just done so. A disk that refuses it, for example a full one, does
    /// not fail the read: the next read tries again.
    async fn heal(&self, path: &FilePath) -> Result<()> {
        let _tree = self.0.tree.read().await;
        let _file = self.lock_file(path).await;
        if let Some(found) = self.walk(path).await?.found
            && let Err(error) = self.restore_to_latest(path, &found.entry).await
        {
            self.0.behind.store(true, Ordering::Relaxed);
            tracing::warn!(workspace = %self.0.id, %path, %error, "latest/ is behind its index until it is repaired");
        }
        Ok(())
    }

    /// Puts one file right in `latest/`; whether it was wrong. Under the file's lock, or the tree's.
    pub(crate) async fn restore_to_latest(&self, path: &FilePath, entry: &crate::model::Entry) -> Result<bool> {
        let Some(digest) = entry.sha256 else { return Ok(false) };
        if is_large(entry.size) {
            return self.put_large(path, digest, entry.size).await;
        }
        if self.intact_in_latest(path, digest, entry.size).await.is_some() {
            return Ok(false);
        }
        let content = match self.0.archive.get(digest, entry.size).await {
            Ok(content) => content,
            // The wrong bytes in `latest/` stay; every read compares the digest and rejects them.
            Err(error) if is_damage(&error) => return Ok(false),
            Err(error) => return Err(error),
        };
        let (path, id) = (path.clone(), self.0.clock.id());
        self.disk("to write a file", move |mirror| mirror.write(&path, &content, id)).await?;
        Ok(true)
    }

    /// Fills in the sizes of projections, which only the disk knows.
    async fn measure(&self, infos: &mut [Info]) -> Result<()> {
        let projections: Vec<(usize, FilePath)> = infos
            .iter()
            .enumerate()
            .filter(|(_, info)| info.kind == FileKind::Projection)
            .map(|(position, info)| (position, info.path.clone()))
            .collect();
        if projections.is_empty() {
            return Ok(());
        }
        let sizes = move |mirror: &crate::mirror::Mirror| {
            let size = |(position, path): (usize, FilePath)| match mirror.look(Area::Latest, &path)? {
                OnDisk::File(size) => Ok((position, size)),
                _ => Ok((position, 0)),
            };
            projections.into_iter().map(size).collect::<std::io::Result<Vec<_>>>()
        };
        for (position, size) in self.disk("to look at files", sizes).await? {
            if let Some(info) = infos.get_mut(position) {
                info.size = size;
            }
        }
        Ok(())
    }
}

fn cut(bytes: Bytes, range: Option<Range<u64>>) -> Bytes {
    let Some(range) = range else { return bytes };
    let end = usize::try_from(range.end).unwrap_or(usize::MAX).min(bytes.len());
    let start = usize::try_from(range.start).unwrap_or(usize::MAX).min(end);
    bytes.slice(start..end)
}

/// That a content is not too long for one write.
pub(crate) fn fits(path: impl std::fmt::Display, length: usize) -> Result<()> {
    if length <= MAX_FILE {
        return Ok(());
    }
    let message = format!("the content for {path} is {length} bytes long; the limit is {MAX_FILE}");
    Err(domain::Error::new(domain::Code::PayloadTooLarge, message)
        .hint("send a longer content to the address that POST …/uploads gives"))
}
