//! A content that comes in as a stream: hashed and written chunk by chunk, synced, and named by its digest when it is the announced
//! one. Until then it is a temporary file, which goes with the stream; a start removes those of a process that died.

use super::{
    Archive, blocking,
    chunks::{CHUNK, Chunks, place},
};
use crate::reserve::free;
use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use domain::{Hasher, Sha256};
use ports::{Error, Result};
use rustix::{
    fs::{FallocateFlags, fallocate},
    io::Errno,
};
use std::{
    fs::{self, File, Permissions},
    io::{self, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    sync::Arc,
};

/// How many bytes a content or an upload has to leave free on the disk: for the log and for deletions.
pub(super) const SPARE: u64 = 16 * 1024 * 1024;

/// A content that is being received; `length` and `digest` are the announced ones.
pub(super) struct Incoming {
    archive: Arc<Archive>,
    space: String,
    length: u64,
    digest: Sha256,
    /// Less than a chunk.
    buffer: BytesMut,
    /// None after a failure.
    writing: Option<Writing>,
}

/// The temporary file.
struct Writing {
    file: File,
    temporary: TemporaryFile,
    whole: Hasher,
    list: Vec<Sha256>,
    written: u64,
}

/// Removed when it is dropped; a renamed file has left this path, and stays.
struct TemporaryFile(PathBuf);

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.0));
    }
}

impl Incoming {
    /// Reserves the room.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the disk fails; one that [is full](Error::is_full) when the content would leave too little free.
    pub async fn begin(archive: Arc<Archive>, space: &str, digest: Sha256, length: u64) -> Result<Self> {
        let begun = archive.clone();
        let writing = blocking(move || Writing::begin(&begun, length)).await?;
        let (space, buffer, writing) = (space.to_owned(), BytesMut::new(), Some(writing));
        Ok(Self { archive, space, length, digest, buffer, writing })
    }

    /// Works on the file; after a failure it is gone.
    async fn work<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Writing) -> io::Result<T> + Send + 'static,
    ) -> Result<T> {
        let over = || Error::Invalid("the content failed before".into());
        let mut writing = self.writing.take().ok_or_else(over)?;
        let (writing, done) = blocking(move || work(&mut writing).map(|done| (writing, done))).await?;
        self.writing = Some(writing);
        Ok(done)
    }
}

#[async_trait]
impl ports::Incoming for Incoming {
    async fn write(&mut self, bytes: Bytes) -> Result<()> {
        let written = self.writing.as_ref().map_or(0, |writing| writing.written);
        if written + (self.buffer.len() + bytes.len()) as u64 > self.length {
            self.writing = None;
            return Err(Error::Invalid(format!("the content is longer than the {} bytes announced", self.length)));
        }
        self.buffer.extend_from_slice(&bytes);
        while self.buffer.len() >= place(CHUNK) {
            let chunk = self.buffer.split_to(place(CHUNK));
            self.work(move |writing| writing.add(&chunk)).await?;
        }
        Ok(())
    }

    async fn finish(mut self: Box<Self>) -> Result<()> {
        if !self.buffer.is_empty() {
            let rest = std::mem::take(&mut self.buffer);
            self.work(move |writing| writing.add(&rest)).await?;
        }
        let Self { archive, space, length, digest, writing, .. } = *self;
        let writing = writing.ok_or_else(|| Error::Invalid("the content failed before".into()))?;
        if writing.written != length {
            let written = writing.written;
            return Err(Error::Invalid(format!("the content has {written} bytes, not the {length} announced")));
        }
        let found = writing.whole.clone().finish();
        if found != digest {
            return Err(Error::Invalid(format!("the content has the SHA-256 {found}, not {digest}")));
        }
        blocking(move || writing.keep(&archive, &space, digest)).await
    }
}

impl Writing {
    fn begin(archive: &Archive, length: u64) -> io::Result<Self> {
        let temporary = TemporaryFile(archive.new_temporary());
        let file = archive.create_temporary(&temporary.0)?;
        if free(&archive.temporary_folder()) < length.saturating_add(SPARE) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        match fallocate(&file, FallocateFlags::KEEP_SIZE, 0, length.max(1)) {
            Ok(()) | Err(Errno::OPNOTSUPP) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(Self { file, temporary, whole: Hasher::default(), list: Vec::new(), written: 0 })
    }

    fn add(&mut self, chunk: &[u8]) -> io::Result<()> {
        self.whole.update(chunk);
        self.list.push(Sha256::of(chunk));
        self.file.write_all(chunk)?;
        self.written += chunk.len() as u64;
        Ok(())
    }

    fn keep(self, archive: &Archive, space: &str, digest: Sha256) -> io::Result<()> {
        let path = archive.path(space, digest);
        let is_intact = match archive.check(space, digest, None) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                tracing::warn!(space, %digest, "a damaged content of the archive is replaced by the one that was sent again");
                false
            }
            Err(error) => return Err(error),
        };
        // One that is still being made may not be durable.
        if is_intact && archive.is_durable(&path)? {
            return Ok(());
        }
        // `latest/` shares the file: the mode prevents writes by mistake.
        self.file.set_permissions(Permissions::from_mode(0o444))?;
        self.file.sync_data()?;
        archive.place(&self.temporary.0, &path)?;
        if archive.is_large(self.written) {
            archive.keep_list(&path, &Chunks { digest, length: self.written, list: self.list })?;
        }
        Ok(())
    }
}
