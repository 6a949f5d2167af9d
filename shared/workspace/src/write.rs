//! Writing: a new version of a file, a new folder.

use crate::{
    Change, Expect, FileContent, FileKind, Op, Result, Version, Workspace, Writer,
    commit::{ATTEMPTS, whole},
    contents::{self, LONG_TO_HASH},
    error, files,
    index::{FoundEntry, MAX_DEPTH, Walk},
    mentions,
    model::Entry,
    policies::Touches,
    taxonomy,
};
use access::Action;
use bytes::Bytes;
use domain::{Code, Error, FileId, FilePath, Sha256};
use ports::Write;
use std::time::Duration;

/// How often a write that wants no certain version is decided anew after another process was faster.
const UNCONDITIONAL_ATTEMPTS: u32 = 200;

impl Workspace {
    /// Makes `content` the newest version of the file at `path`; makes the file, and the folders above it, when they are
    /// not there. A content that is current already makes no new version.
    ///
    /// # Errors
    /// `PAYLOAD_TOO_LARGE` over [`MAX_FILE`](crate::MAX_FILE); `STALE_VERSION` and `CONFLICT` as [`Expect`] says; `CONFLICT` also when a file
    /// is on the way, or others were faster again and again; `UNPROCESSABLE` for a folder; `FORBIDDEN` for the file of a chat;
    /// `INVALID_ARGUMENT` for over 40 names, or a new name that people could not tell from another; else those of [`Workspace`].
    pub async fn write(
        &self,
        path: &FilePath,
        content: impl Into<Bytes>,
        expect: Expect,
        writer: &Writer,
    ) -> Result<Change> {
        let content = content.into();
        files::fits(path, content.len())?;
        self.write_given(path, FileContent::Bytes(content), expect, writer).await
    }

    /// The same with any content, also a large one that the archive has.
    ///
    /// # Errors
    /// As [`Workspace::write`]; `CONTENT_MISSING` or `CONTENT_DAMAGED` when the archive has not got that many bytes of it.
    pub async fn write_given(
        &self,
        path: &FilePath,
        content: FileContent,
        expect: Expect,
        writer: &Writer,
    ) -> Result<Change> {
        let (this, path, writer) = (self.clone(), path.clone(), writer.clone());
        whole(async move { this.write_whole(&path, content, expect, &writer).await }).await
    }

    async fn write_whole(
        &self,
        path: &FilePath,
        content: FileContent,
        expect: Expect,
        writer: &Writer,
    ) -> Result<Change> {
        let (digest, size) = match &content {
            FileContent::Bytes(content) => (contents::digest(content).await?, content.len() as u64),
            FileContent::Large { sha256, size } => (*sha256, *size),
        };
        self.demand(Action::Write, path)?;
        let observer = self.handoff_of(path).await;
        let written = mentions::written_in(path, &content).await;
        let _tree = self.0.tree.read().await;
        let _file = self.lock_file(path).await;
        // A write without an expected version is never refused because others are fast: in this process such writes wait for each other, and another
        // process wins only a bounded number of rounds.
        let unconditional = matches!(expect, Expect::Any | Expect::File(_));
        for round in 0..if unconditional { UNCONDITIONAL_ATTEMPTS } else { ATTEMPTS } {
            self.make_way(round).await;
            if round > 0 {
                self.demand_existence().await?;
            }
            if let Some(done) = self.applied(writer).await? {
                return Ok(done);
            }
            let mut walk = self.walk_to_make(path).await?;
            let mut stays = None;
            if let Some(found) = walk.found.take() {
                let Some(held) = self.hold(found).await? else { continue };
                stays = held.check(self.0.keys);
                walk.found = Some(held.found);
            }
            taxonomy::may_write(path, walk.found.as_ref().map(|found| found.entry.kind), writer)?;
            taxonomy::check_new_names(walk.missing.iter().map(String::as_str))?;
            self.check(path, walk.found.as_ref(), expect).await?;
            let text = match &content {
                FileContent::Bytes(content) => Some(content),
                FileContent::Large { .. } => None,
            };
            let short = text.filter(|text| text.len() <= LONG_TO_HASH).map(|text| text.as_ref());
            let (entry, mut writes) = self.version_of(&walk, path, (digest, size, short), writer)?;
            writes.extend(self.policies_after(&[Touches::Writes(path, digest, size, text)]).await?);
            let mut unconverted = None;
            let change = Change::of(Op::Written, &entry, path.clone(), writer, entry.updated_at);
            let is_current = walk.found.is_some_and(|found| found.entry.v == entry.v);
            if is_current {
                // The content is the same; but the writer may write it again because the archive has lost it.
                match &content {
                    FileContent::Bytes(content) => self.0.archive.put_again(digest, content).await?,
                    FileContent::Large { .. } => self.0.archive.expect_there(digest, size).await?,
                }
                if writer.key.is_none() && writes.is_empty() {
                    return Ok(change);
                }
            } else {
                writes.extend(stays);
                match &content {
                    FileContent::Bytes(content) => writes.extend(self.0.archive.put(digest, content).await?),
                    FileContent::Large { .. } => self.0.archive.expect_there(digest, size).await?,
                }
                unconverted = self.unconverted_item(&entry, None, writer, entry.updated_at).await?;
                writes.extend(unconverted.clone());
                self.take_up(path, &entry, &written, &mut writes).await?;
            }
            let mut handoff = None;
            if let Some(observer) = observer.as_ref().filter(|_| !is_current) {
                let (id, pending) = self.pending(&change, writer)?;
                writes.push(pending);
                handoff = Some((observer, id));
            }
            if self.commit(writes, &change, writer).await? {
                if let Some((observer, id)) = handoff {
                    observer.committed(self.0.id, id).await;
                }
                self.tell_converter(&change, unconverted.is_some()).await;
                self.0.archive.is_good_again(digest).await?;
                match content {
                    FileContent::Bytes(content) => {
                        let (path, id) = (path.clone(), self.0.clock.id());
                        self.flush("to write a file", move |mirror| mirror.write(&path, &content, id)).await;
                    }
                    FileContent::Large { .. } => self.flush_large(path, digest, size).await,
                }
                return Ok(change);
            }
        }
        Err(error::busy())
    }

    /// Waits before a write is decided anew, for the longer the more often others were faster, and never as long as they do.
    async fn make_way(&self, round: u32) {
        if round > 0 {
            let random = self.0.clock.id().as_u128() as u64 % 1000;
            let most_us = 500_u64 << round.min(7);
            tokio::time::sleep(Duration::from_micros(most_us * random / 1000)).await;
        }
    }

    /// The entry with a content of this digest, and the writes that make it so; none when it is so.
    fn version_of(
        &self,
        walk: &Walk,
        path: &FilePath,
        (sha256, size, content): (Sha256, u64, Option<&[u8]>),
        writer: &Writer,
    ) -> Result<(Entry, Vec<Write>)> {
        let (author, at) = (writer.principal.to_string(), self.0.clock.now());
        let (entry, mut writes) = match &walk.found {
            Some(found) if found.entry.sha256 == Some(sha256) => return Ok((found.entry.clone(), Vec::new())),
            Some(FoundEntry { folder, name, entry, rev }) => {
                let v = entry.v + 1;
                let conversion = self.conversion_of(path, (size, content), entry.conversion.as_ref(), writer);
                let derived_from = writer.derived_from;
                let entry = Entry {
                    file_id: entry.file_id,
                    kind: entry.kind,
                    created_at: entry.created_at,
                    v,
                    sha256: Some(sha256),
                    size,
                    author,
                    updated_at: at,
                    conversion,
                    derived_from,
                };
                let key = self.0.keys.entry(*folder, name);
                let write = Write::put(key, error::json(&entry)?, ports::Expect::Rev(*rev));
                (entry, vec![write])
            }
            None => {
                let file_id = FileId(self.0.clock.id());
                let (created_at, updated_at, sha256) = (at, at, Some(sha256));
                let conversion = self.conversion_of(path, (size, content), None, writer);
                let (kind, derived_from) = (FileKind::File, writer.derived_from);
                let entry = Entry {
                    file_id,
                    kind,
                    v: 1,
                    sha256,
                    size,
                    author,
                    created_at,
                    updated_at,
                    conversion,
                    derived_from,
                };
                let above = walk.missing.len().saturating_sub(1);
                let folders = walk.missing.get(..above).unwrap_or_default();
                let (mut writes, folder) = self.new_folders(walk.deepest(), folders, writer, at)?;
                writes.extend(self.new_entry(folder, path.name(), &entry)?);
                (entry, writes)
            }
        };
        let author = entry.author.clone();
        let version = Version { v: entry.v, sha256, size, author, at, call_id: writer.call };
        let key = self.0.keys.version(entry.file_id, entry.v);
        writes.push(Write::put(key, error::json(&version)?, ports::Expect::Absent));
        Ok((entry, writes))
    }

    /// Makes a folder, and those above it. One that is there already is fine.
    ///
    /// # Errors
    /// `CONFLICT` when a file is at the path or on the way, or others were faster again and again; `INVALID_ARGUMENT` as of
    /// [`Workspace::write`]; else those of [`Workspace`].
    pub async fn mkdir(&self, path: &FilePath, writer: &Writer) -> Result<Change> {
        let (this, path, writer) = (self.clone(), path.clone(), writer.clone());
        whole(async move { this.mkdir_whole(&path, &writer).await }).await
    }

    async fn mkdir_whole(&self, path: &FilePath, writer: &Writer) -> Result<Change> {
        self.demand(Action::Write, path)?;
        let _tree = self.0.tree.read().await;
        for _ in 0..ATTEMPTS {
            if let Some(done) = self.applied(writer).await? {
                return Ok(done);
            }
            let at = self.0.clock.now();
            if path.is_root() {
                let root = Entry::folder(self.0.keys.root(), writer, at);
                return Ok(Change::of(Op::Made, &root, path.clone(), writer, at));
            }
            let walk = self.walk_to_make(path).await?;
            match walk.found {
                Some(FoundEntry { entry, .. }) if entry.kind == FileKind::Folder => {
                    return Ok(Change::of(Op::Made, &entry, path.clone(), writer, at));
                }
                Some(_) => return Err(taken(path)),
                None => {}
            }
            taxonomy::check_new_names(walk.missing.iter().map(String::as_str))?;
            let (writes, file_id) = self.new_folders(walk.deepest(), &walk.missing, writer, at)?;
            let entry = Entry::folder(file_id, writer, at);
            let change = Change::of(Op::Made, &entry, path.clone(), writer, at);
            if self.commit(writes, &change, writer).await? {
                let path = path.clone();
                self.flush("to make a folder", move |mirror| mirror.make(&path)).await;
                return Ok(change);
            }
        }
        Err(error::busy())
    }

    /// Follows a path whose missing folders a write will make.
    pub(crate) async fn walk_to_make(&self, path: &FilePath) -> Result<Walk> {
        let depth = path.names().count();
        if depth > MAX_DEPTH {
            let message = format!("the path has {depth} names; the limit is {MAX_DEPTH}");
            return Err(Error::invalid("path", message).hint("use fewer folders inside each other"));
        }
        self.walk(path).await.map_err(|error| {
            // A file on the way: for a reader nothing is there, for a writer something is in the way.
            if error.code == Code::NotFound { Error { code: Code::Conflict, ..error } } else { error }
        })
    }

    /// Checks the precondition of a write alone.
    ///
    /// # Errors
    /// `STALE_VERSION` and `CONFLICT` as [`Expect`] says; `NOT_FOUND` when a file is on the way; else those of [`Workspace`].
    pub async fn expect(&self, path: &FilePath, expect: Expect) -> Result<()> {
        let walk = self.walk(path).await?;
        self.check(path, walk.found.as_ref(), expect).await
    }

    /// Checks the precondition of a write against the entry at the path.
    pub(crate) async fn check(&self, path: &FilePath, found: Option<&FoundEntry>, expect: Expect) -> Result<()> {
        match (expect, found.map(|found| &found.entry)) {
            (Expect::Any, _) | (Expect::Absent, None) => Ok(()),
            (Expect::Absent, Some(entry)) => {
                Err(taken(path).detail("current_v", entry.v).detail("current_hash", self.hash_text(path, entry)))
            }
            (Expect::File(id), Some(entry)) if entry.file_id == id => Ok(()),
            (Expect::Exactly(id, v), Some(entry)) if entry.file_id == id && entry.v == v => Ok(()),
            (Expect::Version(v), Some(entry)) if entry.v == v => Ok(()),
            (Expect::Hash(digest), Some(entry)) if entry.sha256 == Some(digest) => Ok(()),
            (Expect::Exactly(id, _), Some(entry)) if entry.file_id == id => Err(self.stale(path, entry, expect).await),
            (Expect::File(_) | Expect::Exactly(..), Some(_)) => {
                Err(Error::new(Code::StaleVersion, format!("another file is at {path} by now"))
                    .hint("look where the file is, then write it there"))
            }
            (Expect::File(_) | Expect::Exactly(..) | Expect::Version(_) | Expect::Hash(_), None) => {
                Err(Error::new(Code::StaleVersion, format!("{path} is not there any more"))
                    .hint("it was moved or removed: look where it is, or write it anew"))
            }
            (Expect::Version(_) | Expect::Hash(_), Some(entry)) => Err(self.stale(path, entry, expect).await),
        }
    }

    /// The refusal of a write that builds on an older version, with the changes since.
    async fn stale(&self, path: &FilePath, entry: &Entry, expect: Expect) -> Error {
        let hash = self.hash_text(path, entry);
        let known = if hash.is_empty() { String::new() } else { format!(" (hash {hash})") };
        let message = format!(
            "{path} has changed: it is now version {}, written by {} at {}{known}",
            entry.v, entry.author, entry.updated_at,
        );
        let error = Error::new(Code::StaleVersion, message)
            .hint("read the file again and base the write on its current content")
            .detail("current_v", entry.v)
            .detail("current_hash", hash);
        match self.what_changed(path, entry, expect).await {
            Ok(Some(diff)) => error.detail("diff", diff),
            // The refusal stands without it.
            Ok(None) | Err(_) => error,
        }
    }

    /// The digest of an entry as text; empty for a party that may not read the content.
    fn hash_text(&self, path: &FilePath, entry: &Entry) -> String {
        let digest = entry.sha256.filter(|_| self.knows_digest(path));
        digest.map(|digest| digest.to_string()).unwrap_or_default()
    }

    async fn what_changed(&self, path: &FilePath, entry: &Entry, expect: Expect) -> Result<Option<String>> {
        self.demand(Action::Read, path)?;
        let seen = match expect {
            Expect::Hash(digest) => match self.0.archive.find(digest).await? {
                Some(FileContent::Bytes(seen)) => Some(seen),
                Some(FileContent::Large { .. }) | None => None,
            },
            Expect::Version(v) | Expect::Exactly(_, v) => Some(self.version(entry.file_id, v).await?.1),
            Expect::Any | Expect::File(_) | Expect::Absent => None,
        };
        let (Some(seen), Some(digest)) = (seen, entry.sha256) else { return Ok(None) };
        let now = self.0.archive.get(digest, entry.size).await?;
        crate::versions::diff(seen, now, (format!("{path} (as you read it)"), format!("{path} (now)"))).await
    }
}

/// The refusal of a write to a path that is taken.
pub(crate) fn taken(path: &FilePath) -> Error {
    Error::new(Code::Conflict, format!("{path} exists already")).hint("choose another name, or remove it first")
}
