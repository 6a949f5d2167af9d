//! Blobs in memory.

use super::{Fate, Faults};
use async_trait::async_trait;
use bytes::Bytes;
use domain::Sha256;
use parking_lot::{Mutex, MutexGuard};
use ports::{Blobs, Error, Incoming, Result, validate};
use std::{collections::BTreeMap, ops::Range, sync::Arc};

const WHAT: &str = "the fake blobs";

/// Blobs in memory, whose calls may fail before or after taking effect.
pub struct FakeBlobs {
    fate: Fate,
    contents: Arc<Mutex<Contents>>,
}

type Contents = BTreeMap<(String, Sha256), Stored>;

#[derive(Clone)]
struct Stored {
    content: Bytes,
    /// Whether it has the digest in its key; found when it is stored, since a long content is read in many ranges.
    is_intact: bool,
}

impl Stored {
    const fn intact(content: Bytes) -> Self {
        Self { content, is_intact: true }
    }
}

impl FakeBlobs {
    /// Empty.
    pub fn new(seed: u64, faults: Faults) -> Self {
        Self { fate: Fate::new(seed, faults), contents: Arc::default() }
    }

    /// The digests in a space, in order.
    pub fn digests(&self, space: &str) -> Vec<Sha256> {
        self.lock().keys().filter(|(at, _)| at == space).map(|(_, digest)| *digest).collect()
    }

    /// Puts other bytes in the place of a content, as a bad disk would.
    pub fn damage(&self, space: &str, digest: Sha256, bytes: impl Into<Bytes>) {
        let content: Bytes = bytes.into();
        let is_intact = Sha256::of(&content) == digest;
        self.lock().insert((space.to_owned(), digest), Stored { content, is_intact });
    }

    /// Loses a content.
    pub fn lose(&self, space: &str, digest: Sha256) {
        self.lock().remove(&(space.to_owned(), digest));
    }

    fn lock(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock()
    }
}

#[async_trait]
impl Blobs for FakeBlobs {
    async fn put(&self, space: &str, content: Bytes) -> Result<Sha256> {
        validate::space(space)?;
        self.fate.before(WHAT).await?;
        let digest = Sha256::of(&content);
        self.lock().insert((space.to_owned(), digest), Stored::intact(content));
        self.fate.after(WHAT, digest).await
    }

    async fn get(&self, space: &str, digest: Sha256, range: Option<Range<u64>>) -> Result<Option<Bytes>> {
        validate::space(space)?;
        self.fate.before(WHAT).await?;
        let found = self.lock().get(&(space.to_owned(), digest)).cloned();
        if found.as_ref().is_some_and(|stored| !stored.is_intact) {
            return Err(Error::Damaged(format!("the content {digest} of {space}")));
        }
        let cut = found.map(|Stored { content, .. }| match range {
            None => content,
            Some(range) => {
                let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(content.len());
                let (start, end) = (place(range.start), place(range.end));
                content.slice(start..end.max(start))
            }
        });
        self.fate.after(WHAT, cut).await
    }

    async fn incoming(&self, space: &str, digest: Sha256, length: u64) -> Result<Option<Box<dyn Incoming>>> {
        validate::space(space)?;
        self.fate.before(WHAT).await?;
        let coming = Coming {
            contents: self.contents.clone(),
            key: (space.to_owned(), digest),
            length,
            content: Some(Vec::new()),
        };
        Ok(Some(Box::new(coming)))
    }

    async fn delete(&self, space: &str, digest: Sha256) -> Result<()> {
        validate::space(space)?;
        self.fate.before(WHAT).await?;
        self.lock().remove(&(space.to_owned(), digest));
        self.fate.after(WHAT, ()).await
    }

    async fn delete_space(&self, space: &str) -> Result<()> {
        validate::space(space)?;
        self.fate.before(WHAT).await?;
        self.lock().retain(|(at, _), _| at != space);
        self.fate.after(WHAT, ()).await
    }
}

/// A content on its way in.
struct Coming {
    contents: Arc<Mutex<Contents>>,
    key: (String, Sha256),
    length: u64,
    /// None after a failure.
    content: Option<Vec<u8>>,
}

#[async_trait]
impl Incoming for Coming {
    async fn write(&mut self, bytes: Bytes) -> Result<()> {
        let mut content = self.content.take().ok_or_else(|| Error::Invalid("it failed before".into()))?;
        content.extend_from_slice(&bytes);
        if content.len() as u64 > self.length {
            return Err(Error::Invalid("the content is longer than announced".into()));
        }
        self.content = Some(content);
        Ok(())
    }

    async fn finish(self: Box<Self>) -> Result<()> {
        let content = self.content.filter(|content| content.len() as u64 == self.length);
        let content = content.filter(|content| Sha256::of(content) == self.key.1);
        let content = content.ok_or_else(|| Error::Invalid("the content is another than announced".into()))?;
        self.contents.lock().insert(self.key, Stored::intact(content.into()));
        Ok(())
    }
}
