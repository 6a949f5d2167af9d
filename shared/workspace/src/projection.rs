//! Projections: files whose truth is a log elsewhere, above all the chat files.
//!
//! The index has only their identity. Their content is in `latest/` alone and never synced: after a crash their owner reads the
//! [`tail`](Workspace::projection_tail) and appends or cuts until it agrees with the log. One version per message would cost the square of a chat's
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

    /// Appends to a projection and returns its length in bytes.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no projection at the path; else those of [`Workspace`].
    pub async fn append_projection(&self, path: &FilePath, text: impl Into<Bytes>) -> Result<u64> {
        let text = text.into();
        self.on_projection(path, "to append to a projection", move |mirror, path, _| mirror.append(path, &text)).await
    }

    /// The length of a projection in bytes, and its last `max_bytes` bytes (which may begin inside of a character).
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no projection at the path; else those of [`Workspace`].
    pub async fn projection_tail(&self, path: &FilePath, max_bytes: u64) -> Result<(u64, Bytes)> {
        let tail = move |mirror: &Mirror, path: &FilePath, _| mirror.tail(path, max_bytes);
        let (length, bytes) = self.on_projection(path, "to read a projection", tail).await?;
        Ok((length, bytes.into()))
    }

    /// Cuts a projection to `length` bytes.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no projection at the path; else those of [`Workspace`].
    pub async fn truncate_projection(&self, path: &FilePath, length: u64) -> Result<()> {
        let cut = move |mirror: &Mirror, path: &FilePath, _| {
            let (is, _) = mirror.tail(path, 0)?;
            if is > length { mirror.truncate(path, length) } else { Ok(()) }
        };
        self.on_projection(path, "to cut a projection", cut).await
    }

    /// Gives a projection another content, at once as readers see it.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no projection at the path; else those of [`Workspace`].
    pub async fn replace_projection(&self, path: &FilePath, text: impl Into<Bytes>) -> Result<()> {
        let text = text.into();
        self.on_projection(path, "to write a projection", move |mirror, path, id| mirror.write(path, &text, id)).await
    }

    /// Does something on disk under the file's lock, after the index said that it is a projection; one that the disk has
    /// lost is made anew, empty.
    async fn on_projection<T: Send + 'static>(
        &self,
        path: &FilePath,
        what: &'static str,
        work: impl Fn(&Mirror, &FilePath, uuid::Uuid) -> io::Result<T> + Send + Sync + 'static,
    ) -> Result<T> {
        self.platform_alone(path)?;
        let (this, path) = (self.clone(), path.clone());
        whole(async move {
            let _tree = this.0.tree.read().await;
            let _file = this.lock_file(&path).await;
            if this.found(&path).await?.entry.kind != FileKind::Projection {
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
            this.disk(what, on_disk).await
        })
        .await
    }
}
