//! Blobs: contents by their SHA-256, in spaces. Modelled on S3.

use crate::{Part, Presigned, Progress, Result, ResumableUpload, Transfer};
use async_trait::async_trait;
use bytes::Bytes;
use domain::{Sha256, Timestamp};
use std::{ops::Range, path::Path, time::Duration};

/// Contents above this many bytes are *large*: they come in as a stream or past the process, and are read in ranges. No process
/// holds a large content whole in memory.
pub const LARGE: u64 = 32 * 1024 * 1024;

/// How long the parts of an unfinished upload are kept after the last one came.
pub const UNFINISHED: Duration = Duration::from_secs(2 * 24 * 60 * 60);
/// How many unfinished uploads a space may have.
pub const MOST_UNFINISHED: usize = 32;

/// A content on its way into a store. Dropping it before [`Incoming::finish`] leaves nothing behind.
#[async_trait]
pub trait Incoming: Send {
    /// Takes the next bytes.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) when they are more than was announced; a full store says so.
    async fn write(&mut self, bytes: Bytes) -> Result<()>;
    /// Makes the content durable under its digest.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) when its length or its digest is not the announced one; nothing is left then.
    async fn finish(self: Box<Self>) -> Result<()>;
}

/// A content-addressable store.
///
/// `space` keeps tenants apart: a workspace's id, or a name that is not a UUID for BuildScale's own use. Lower-case letters,
/// digits, `-` and `_` only.
///
/// Guarantees:
/// - A content is durable and whole when `put` returns; it never changes.
/// - Every byte that is read belongs to the content with that digest. A store whose bytes have another digest says
///   [`Error::Damaged`](crate::Error::Damaged), never a wrong byte; a content that is not there is none.
/// - Putting a content again is cheap if it is intact, and replaces it if it is damaged: an entry under its name does not prove that it is
///   stored.
///
/// # Errors
/// Of every method: [`Error::Invalid`](crate::Error::Invalid) for a space with other characters or longer than 64
/// ([`crate::validate::space`]), and [`Error::Unavailable`](crate::Error::Unavailable) when the store does not answer.
#[async_trait]
pub trait Blobs: Send + Sync {
    /// Stores `content` if it is absent or damaged, and returns its digest.
    ///
    /// # Errors
    /// Those of [`Blobs`]. A store without room gives an error that [is full](crate::Error::is_full).
    async fn put(&self, space: &str, content: Bytes) -> Result<Sha256>;
    /// The same for a content whose digest the caller has computed: a store need not compute it again. One that is stored under another digest is
    /// found damaged by the next read.
    ///
    /// # Errors
    /// As [`Blobs::put`]; [`Error::Damaged`](crate::Error::Damaged) when the store has computed another digest.
    async fn put_as(&self, space: &str, digest: Sha256, content: Bytes) -> Result<()> {
        match self.put(space, content).await? {
            put if put == digest => Ok(()),
            put => Err(crate::Error::Damaged(format!("{digest} was stored as {put}"))),
        }
    }
    /// The content, or the part of it in `range` (bytes; cut to its end). None when it is absent.
    ///
    /// # Errors
    /// [`Error::Damaged`](crate::Error::Damaged) when the stored bytes have another digest.
    async fn get(&self, space: &str, digest: Sha256, range: Option<Range<u64>>) -> Result<Option<Bytes>>;
    /// Whether the content is there and intact in `range` (all of it when none): as far as the store can say without handing it
    /// over, and at the least price. A store may check more than the range.
    ///
    /// # Errors
    /// As [`Blobs::get`].
    async fn verify(&self, space: &str, digest: Sha256, range: Option<Range<u64>>) -> Result<bool> {
        Ok(self.get(space, digest, range).await?.is_some())
    }
    /// The length of a content in bytes, at the least price. None when it is absent.
    ///
    /// # Errors
    /// [`Error::Damaged`](crate::Error::Damaged) when the store knows without reading that something else lies there.
    async fn length(&self, space: &str, digest: Sha256) -> Result<Option<u64>> {
        Ok(self.get(space, digest, None).await?.map(|content| content.len() as u64))
    }
    /// Begins to take a content of `length` bytes as a stream; an intact content stays, a damaged one is replaced. None if the store takes
    /// contents by presigned requests instead.
    ///
    /// # Errors
    /// A store without room for that many bytes says so at once.
    async fn incoming(&self, _space: &str, _digest: Sha256, _length: u64) -> Result<Option<Box<dyn Incoming>>> {
        Ok(None)
    }
    /// How far an upload in parts has come. One that is new begins, and one whose parts are all there becomes durable under its digest. Parts stay when
    /// processes end, and are removed some time after the last one came ([`Blobs::forget_unfinished`]). A presigned request of the answer is good for `valid_for`. None if the
    /// store takes contents whole only.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) when the parts are not the announced content, which removes them, and for too many unfinished uploads
    /// of the space. A store without room for the missing bytes says so at once.
    async fn resume(&self, _space: &str, _upload: &ResumableUpload, _valid_for: Duration) -> Result<Option<Progress>> {
        Ok(None)
    }
    /// Begins to take a part of an upload that [began](Blobs::resume), as a stream; [`Incoming::finish`] makes the part durable. None if the store takes
    /// parts by presigned requests instead.
    ///
    /// # Errors
    /// [`Error::Conflict`](crate::Error::Conflict) when no such upload began, or it was completed or removed since.
    async fn incoming_part(&self, _space: &str, _digest: Sha256, _part: Part) -> Result<Option<Box<dyn Incoming>>> {
        Ok(None)
    }
    /// Removes the parts of unfinished uploads to which nothing came since `before`, and gives the number of these uploads. A store that removes them by
    /// itself has none.
    ///
    /// # Errors
    /// Those of [`Blobs`].
    async fn forget_unfinished(&self, _before: Timestamp) -> Result<u64> {
        Ok(0)
    }
    /// Makes a content appear at the free path `path` without copying it: a hard link, so it must not be written to. False if the store is
    /// not on the same file system, or has no such content.
    ///
    /// # Errors
    /// Those of [`Blobs`].
    async fn link(&self, _space: &str, _digest: Sha256, _path: &Path) -> Result<bool> {
        Ok(false)
    }
    /// A request with which a client without credentials reads or writes this content, and no other, for at most seven days. None if the
    /// store takes contents from its own process only.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) for a length or a time that the store cannot sign; those of [`Blobs`].
    async fn presigned(
        &self,
        _space: &str,
        _digest: Sha256,
        _to: Transfer,
        _valid_for: Duration,
    ) -> Result<Option<Presigned>> {
        Ok(None)
    }
    /// Removes a content; removing none is fine.
    ///
    /// # Errors
    /// Those of [`Blobs`].
    async fn delete(&self, space: &str, digest: Sha256) -> Result<()>;
    /// Removes a space and all in it.
    ///
    /// # Errors
    /// Those of [`Blobs`]. Contents that are removed by then stay removed.
    async fn delete_space(&self, space: &str) -> Result<()>;
}
