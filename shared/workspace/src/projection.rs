//! Projections: files whose truth is a log elsewhere, above all the chat files.
//!
//! The index has only their identity. Their content is in `latest/` alone and never synced: after a crash their owner reads the
//! [`tail`](Projection::tail) and appends or cuts until it agrees with the log. One version per message would cost the square of a chat's
//! length.

use crate::{
    Change, FileKind, Op, Result, Workspace, Writer,
    commit::{ATTEMPTS, whole},
    error,
    mirror::{Area, Mirror, OnDisk},
    model::Entry,
    write::taken,
};
use bytes::Bytes;
use domain::{Error, FileId, FilePath};
use ports::{Expect, Write};
use std::io;

impl Workspace {
    /// Makes a projection under an identity that the caller chose. The same one at the same path again is fine, and keeps
    /// its content.
    ///
    /// # Errors
    /// `NOT_FOUND` when it is in the trash: a request that comes late does not bring it back. `CONFLICT` when something else is at the path
    /// or a file is on the way, or others were faster again and again. `INVALID_ARGUMENT` for a path of over 40 names. Else those of
    /// [`Workspace`].
    pub async fn create_projection(
        &self,
        path: &FilePath,
        file_id: FileId,
        content: impl Into<Bytes>,
        writer: &Writer,
    ) -> Result<Change> {
        self.platform_alone(path)?;
        let (this, path, content, writer) = (self.clone(), path.clone(), content.into(), writer.clone());
        whole(async move { this.create_projection_whole(&path, file_id, content, &writer).await }).await
    }

    async fn create_projection_whole(
        &self,
        path: &FilePath,
        file_id: FileId,
        content: Bytes,
        writer: &Writer,
    ) -> Result<Change> {
        let _tree = self.0.tree.read().await;
        let _file = self.lock_file(path).await;
        for _ in 0..ATTEMPTS {
            let at = self.0.clock.now();
            let walk = self.walk_to_make(path).await?;
            if let Some(found) = walk.found {
                let same = found.entry.file_id == file_id && found.entry.kind == FileKind::Projection;
                let change = Change::of(Op::Made, &found.entry, path.clone(), writer, at);
                if !same {
                    return Err(taken(path));
                }
                // Made before a crash that came before its content.
                let (path, id) = (path.clone(), self.0.clock.id());
                let write = move |mirror: &Mirror| match mirror.look(Area::Latest, &path)? {
                    OnDisk::File(_) => Ok(()),
                    _ => mirror.write(&path, &content, id),
                };
                self.disk("to write a projection", write).await?;
                return Ok(change);
            }
            let entry = Entry { file_id, kind: FileKind::Projection, ..Entry::folder(file_id, writer, at) };
            let above = walk.missing.len().saturating_sub(1);
            let folders = walk.missing.get(..above).unwrap_or_default();
            let (mut writes, folder) = self.new_folders(walk.deepest(), folders, writer, at)?;
            writes.extend(self.new_entry(folder, path.name(), &entry)?);
            let trashed = self.0.keys.trashed(file_id);
            writes.push(Write::check(trashed.clone(), Expect::Absent));
            let change = Change::of(Op::Made, &entry, path.clone(), writer, at);
            if self.commit(writes, &change, writer).await? {
                let (path, id) = (path.clone(), self.0.clock.id());
                self.flush("to write a projection", move |mirror| mirror.write(&path, &content, id)).await;
                return Ok(change);
            }
            if self.0.table.get(&trashed).await.map_err(error::port)?.is_some() {
                return Err(Error::not_found("file", file_id).hint("it is in the trash"));
            }
        }
        Err(error::busy())
    }

    /// The projection at a path, for its owner. Nothing is read yet.
    ///
    /// # Errors
    /// `FORBIDDEN` for all but BuildScale itself.
    pub fn projection(&self, path: &FilePath) -> Result<Projection> {
        self.platform_alone(path)?;
        let workspace = self.unlimited("a projection is kept by its owner");
        Ok(Projection { workspace, path: path.clone(), found_at: None })
    }
}

/// A projection as its owner keeps it. The index is asked for its path before the first operation, and again after paths of the workspace may have
/// changed. Where other processes write to the workspace, too, it is asked before each.
///
/// # Errors
/// Every operation can fail with `NOT_FOUND` when there is no projection at the path, and with those of [`Workspace`].
#[derive(Debug)]
pub struct Projection {
    workspace: Workspace,
    path: FilePath,
    /// How often paths had changed when the index had it; none when the index has to be asked.
    found_at: Option<u64>,
}

impl Projection {
    /// Appends a text. Returns the length of the projection in bytes.
    ///
    /// # Errors
    /// Those of [`Projection`].
    pub async fn append(&mut self, text: impl Into<Bytes>) -> Result<u64> {
        let text = text.into();
        self.on_disk("to append to a projection", move |mirror, path, _| mirror.append(path, &text)).await
    }

    /// The length in bytes, and the last `max_bytes` bytes (which may begin inside of a character).
    ///
    /// # Errors
    /// Those of [`Projection`].
    pub async fn tail(&mut self, max_bytes: u64) -> Result<(u64, Bytes)> {
        let tail = move |mirror: &Mirror, path: &FilePath, _| mirror.tail(path, max_bytes);
        let (length, bytes) = self.on_disk("to read a projection", tail).await?;
        Ok((length, bytes.into()))
    }

    /// Cuts it to `length` bytes.
    ///
    /// # Errors
    /// Those of [`Projection`].
    pub async fn truncate(&mut self, length: u64) -> Result<()> {
        let cut = move |mirror: &Mirror, path: &FilePath, _| {
            let (is, _) = mirror.tail(path, 0)?;
            if is > length { mirror.truncate(path, length) } else { Ok(()) }
        };
        self.on_disk("to cut a projection", cut).await
    }

    /// Gives it another content, at once as readers see it.
    ///
    /// # Errors
    /// Those of [`Projection`].
    pub async fn replace(&mut self, text: impl Into<Bytes>) -> Result<()> {
        let text = text.into();
        self.on_disk("to write a projection", move |mirror, path, id| mirror.write(path, &text, id)).await
    }

    /// Does something on disk under the file's lock, once the index is known to have the projection; one that the disk has
    /// lost is made anew, empty.
    async fn on_disk<T: Send + 'static>(
        &mut self,
        what: &'static str,
        work: impl Fn(&Mirror, &FilePath, uuid::Uuid) -> io::Result<T> + Send + Sync + 'static,
    ) -> Result<T> {
        let (this, path, found_at) = (self.workspace.clone(), self.path.clone(), self.found_at.take());
        let (done, found_at) = whole(async move {
            let changes = this.0.tree.read().await;
            let _file = this.lock_file(&path).await;
            // A projection is moved and removed under the lock for writing alone, and no file takes its place before.
            let is_known = this.writes_alone() && found_at == Some(*changes);
            if !is_known && this.found(&path).await?.entry.kind != FileKind::Projection {
                return Err(Error::not_found("projection", &path));
            }
            this.touched();
            let id = this.0.clock.id();
            let on_disk = move |mirror: &Mirror| match work(mirror, &path, id) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    mirror.write(&path, b"", id)?;
                    work(mirror, &path, id)
                }
                done => done,
            };
            let done = this.disk(what, on_disk).await?;
            Ok((done, *changes))
        })
        .await?;
        self.found_at = Some(found_at);
        Ok(done)
    }
}
