//! The archive: every content that was ever current, by its SHA-256.
//!
//! A small text goes into the table, in the very commit that makes it current, so that such a write costs one sync instead
//! of three (a blob's file, its folder, the commit). Everything else is a blob, durable before the commit that names it.
//! A reader need not know which: by its size it may be in the table, else it is a blob, which a sandbox may have at hand.

use crate::{Result, error, keys::Keys, workspaces::Shared};
use bytes::Bytes;
use domain::Sha256;
use ports::{Blobs, Expect, Table, Write};
use std::sync::{Arc, Weak};

/// Texts up to this length, in bytes, are kept in the table. Most source files, plans and notes are below; a DynamoDB item
/// of this size costs about what two requests to S3 do.
const SMALL: u64 = 16 * 1024;
/// Contents over this length, in bytes, are hashed off the executor's threads.
const LONG_TO_HASH: usize = 256 * 1024;

/// Whether a content of this length is a blob whatever it is; a shorter one is a blob when it is no text.
pub(crate) fn is_blob(size: u64) -> bool {
    size > SMALL
}

pub(crate) struct Archive {
    pub table: Arc<dyn Table>,
    pub blobs: Arc<dyn Blobs>,
    pub keys: Keys,
    pub shared: Weak<Shared>,
}

impl Archive {
    /// Makes `content` durable, or gives the write that does so when it is committed.
    pub async fn put(&self, digest: Sha256, content: &Bytes) -> Result<Option<Write>> {
        if !is_blob(content.len() as u64)
            && let Ok(text) = std::str::from_utf8(content)
        {
            return Ok(Some(Write::put(self.keys.text(digest), error::json(&text)?, Expect::Any)));
        }
        let put = self.blobs.put(&self.keys.0.to_string(), content.clone()).await.map_err(error::port)?;
        if put != digest {
            return Err(error::port(ports::Error::Damaged(format!("{digest} was stored as {put}"))));
        }
        Ok(None)
    }

    /// A content of `size` bytes; none when it was never put.
    pub async fn get(&self, digest: Sha256, size: u64) -> Result<Option<Bytes>> {
        if let Some(text) = self.text(digest, size).await? {
            return Ok(Some(text));
        }
        let nearby = self.shared.upgrade().and_then(|shared| shared.nearby.get().cloned());
        // Nobody but the archive has what is not current: where the size is not known that is likely.
        if let Some(nearby) = nearby.filter(|_| is_blob(size))
            && let Some(content) = nearby.content(self.keys.0, digest).await
        {
            return Ok(Some(content));
        }
        self.blob(digest).await
    }

    /// The same, from nowhere but the stores: for a sandbox, which is to be given what it has not got.
    pub async fn get_far(&self, digest: Sha256, size: u64) -> Result<Option<Bytes>> {
        match self.text(digest, size).await? {
            Some(text) => Ok(Some(text)),
            None => self.blob(digest).await,
        }
    }

    async fn text(&self, digest: Sha256, size: u64) -> Result<Option<Bytes>> {
        if is_blob(size) {
            return Ok(None);
        }
        let item = self.table.get(&self.keys.text(digest)).await.map_err(error::port)?;
        item.map(|item| Ok(Bytes::from(error::parse::<String>(&item.body)?))).transpose()
    }

    async fn blob(&self, digest: Sha256) -> Result<Option<Bytes>> {
        self.blobs.get(&self.keys.0.to_string(), digest, None).await.map_err(error::port)
    }

    /// The same when its size is not known.
    pub async fn find(&self, digest: Sha256) -> Result<Option<Bytes>> {
        self.get(digest, 0).await
    }
}

/// The digest of a content of any length.
pub(crate) async fn digest(content: &Bytes) -> Result<Sha256> {
    if content.len() <= LONG_TO_HASH {
        return Ok(Sha256::of(content));
    }
    let content = content.clone();
    tokio::task::spawn_blocking(move || Sha256::of(&content)).await.map_err(error::task)
}
