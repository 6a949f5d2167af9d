//! Blobs: contents by their SHA-256, in spaces. Modelled on S3.

use crate::Result;
use async_trait::async_trait;
use bytes::Bytes;
use domain::Sha256;
use std::ops::Range;

/// A content-addressable store.
///
/// `space` keeps tenants apart: a workspace's id, or a name that is not a UUID for BuildScale's own use. Lower-case letters,
/// digits, `-` and `_` only.
///
/// Guarantees: a content is durable and whole when `put` returns; it never changes. Putting it again is cheap.
#[async_trait]
pub trait Blobs: Send + Sync {
    /// Stores `content` if it is absent and returns its digest.
    async fn put(&self, space: &str, content: Bytes) -> Result<Sha256>;
    /// The content, or the part of it in `range` (bytes; cut to its end). None when it is absent.
    async fn get(&self, space: &str, digest: Sha256, range: Option<Range<u64>>) -> Result<Option<Bytes>>;
    /// Removes a content; removing none is fine.
    async fn delete(&self, space: &str, digest: Sha256) -> Result<()>;
    /// Removes a space and all in it.
    async fn delete_space(&self, space: &str) -> Result<()>;
}
