//! The archive: every content that was ever current, by its SHA-256.
//!
//! A small text goes into the table, in the very commit that makes it current, so that such a write costs one sync instead
//! of three (a blob's file, its folder, the commit). Everything else is a blob, durable before the commit that names it.
//! A reader need not know which: by its size it may be in the table, else it is a blob, which a sandbox may have at hand.
//!
//! Every read compares the content with its digest, from any store; [`crate::damage`] handles a mismatch.

use crate::{
    Damage, FileContent, Result,
    contents::{is_blob, is_large, too_large},
    error,
    handle::Archive,
};
use bytes::Bytes;
use domain::Sha256;
use ports::{Expect, Write};

impl Archive {
    /// Makes `content` durable, or gives the write that does so when it is committed.
    ///
    /// # Errors
    /// `INTERNAL` when the blobs stored it under another digest; else those of [`Archive`].
    pub async fn put(&self, digest: Sha256, content: &Bytes) -> Result<Option<Write>> {
        if !is_blob(content.len() as u64)
            && let Ok(text) = std::str::from_utf8(content)
        {
            return Ok(Some(Write::put(self.keys.text(digest), error::json(&text)?, Expect::Any)));
        }
        self.blobs.put_as(&self.keys.0.to_string(), digest, content.clone()).await.map_err(error::port)?;
        Ok(None)
    }

    /// A content of `size` bytes, that was put. One that the stores have not got as it was written is repaired from any good copy.
    ///
    /// # Errors
    /// `CONTENT_MISSING` and `CONTENT_DAMAGED` when there is none; `PAYLOAD_TOO_LARGE` for a large one, which is read in parts.
    pub async fn get(&self, digest: Sha256, size: u64) -> Result<Bytes> {
        if is_large(size) {
            return Err(too_large(size));
        }
        let text = self.text(digest, size).await?;
        if let Some(Ok(text)) = text {
            return Ok(text);
        }
        let sandbox_mirror = self.shared.upgrade().and_then(|shared| shared.sandbox_mirror.get().cloned());
        // Only the archive has contents that are not current, and a content of unknown size is probably one of those.
        if let Some(sandbox_mirror) = sandbox_mirror.filter(|_| is_blob(size))
            && let Some(content) = sandbox_mirror.content(self.keys.0, digest).await
        {
            return Ok(content);
        }
        match self.blob_unless(text, digest).await? {
            Ok(content) => Ok(content),
            Err(damage) => self.recover(digest, size, damage).await,
        }
    }

    /// The same, from the stores only: for a sandbox that lacks the content.
    ///
    /// # Errors
    /// Those of [`Archive::get`].
    pub async fn get_far(&self, digest: Sha256, size: u64) -> Result<Bytes> {
        if is_large(size) {
            return Err(too_large(size));
        }
        match self.stored(digest, size).await? {
            Ok(content) => Ok(content),
            Err(damage) => self.recover(digest, size, damage).await,
        }
    }

    /// Reads a content that may never have been stored; none when the stores lack it.
    ///
    /// # Errors
    /// Those of [`Archive`]. A content that is damaged counts as missing.
    pub async fn find(&self, digest: Sha256) -> Result<Option<FileContent>> {
        let text = self.text(digest, 0).await?;
        if text.is_none() {
            match self.blobs.length(&self.keys.0.to_string(), digest).await {
                Ok(Some(size)) if is_large(size) => return Ok(Some(FileContent::Large { sha256: digest, size })),
                Ok(_) | Err(ports::Error::Damaged(_)) => {}
                Err(error) => return Err(error::port(error)),
            }
        }
        Ok(self.blob_unless(text, digest).await?.ok().map(FileContent::Bytes))
    }

    /// Reads a content from the stores and compares it with its digest; a `size` of 0 means unknown.
    ///
    /// # Errors
    /// Those of [`Archive`]. Damage of the content is no error but part of the answer.
    pub async fn stored(&self, digest: Sha256, size: u64) -> Result<std::result::Result<Bytes, Damage>> {
        let text = self.text(digest, size).await?;
        self.blob_unless(text, digest).await
    }

    async fn blob_unless(
        &self,
        text: Option<std::result::Result<Bytes, Damage>>,
        digest: Sha256,
    ) -> Result<std::result::Result<Bytes, Damage>> {
        if let Some(text) = text {
            return Ok(text);
        }
        match self.blobs.get(&self.keys.0.to_string(), digest, None).await {
            Ok(Some(content)) => Ok(Ok(content)),
            Ok(None) => Ok(Err(Damage::Missing)),
            Err(ports::Error::Damaged(what)) => {
                tracing::error!(%what, "stored data is damaged");
                Ok(Err(Damage::Altered))
            }
            Err(error) => Err(error::port(error)),
        }
    }

    /// Reads a content from the table and compares it with its digest; none when the table lacks it.
    ///
    /// # Errors
    /// Those of [`Archive`]. Damage of the text is no error but part of the answer.
    pub async fn text(&self, digest: Sha256, size: u64) -> Result<Option<std::result::Result<Bytes, Damage>>> {
        if is_blob(size) {
            return Ok(None);
        }
        let item = match self.table.get(&self.keys.text(digest)).await {
            Err(ports::Error::Lost { damage, .. }) => return Ok(Some(Err(damage))),
            item => item.map_err(error::port)?,
        };
        Ok(item.map(|item| match serde_json::from_str::<String>(&item.body) {
            Ok(text) if Sha256::of(text.as_bytes()) == digest => Ok(Bytes::from(text)),
            Ok(_) | Err(_) => {
                tracing::error!(key = ?item.key, "stored data is damaged");
                Err(Damage::Altered)
            }
        }))
    }
}
