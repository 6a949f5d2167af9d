//! A table that tells what was read of it.

use async_trait::async_trait;
use parking_lot::Mutex;
use ports::{IndexQuery, Item, Key, Page, Query, QueueMessage, Result, Table, Write};
use std::sync::Arc;

/// A table that keeps the places of its reads, and otherwise behaves as the one behind it.
pub struct RecordingTable {
    inner: Arc<dyn Table>,
    reads: Mutex<Vec<Key>>,
}

impl RecordingTable {
    /// In front of this one.
    pub fn new(inner: Arc<dyn Table>) -> Self {
        Self { inner, reads: Mutex::default() }
    }

    /// The reads since this was last called, in their order: the key of an item, or the partition of a query with its first sort key.
    pub fn take_reads(&self) -> Vec<Key> {
        std::mem::take(&mut *self.reads.lock())
    }

    fn note(&self, key: Key) {
        self.reads.lock().push(key);
    }

    fn note_query(&self, query: &Query) {
        self.note(Key::new(query.pk.as_str(), query.from.clone().unwrap_or_default()));
    }
}

#[async_trait]
impl Table for RecordingTable {
    fn sends(&self) -> bool {
        self.inner.sends()
    }
    fn max_body(&self) -> usize {
        self.inner.max_body()
    }
    async fn get(&self, key: &Key) -> Result<Option<Item>> {
        self.note(key.clone());
        self.inner.get(key).await
    }
    async fn query(&self, query: &Query) -> Result<Page> {
        self.note_query(query);
        self.inner.query(query).await
    }
    async fn query_index(&self, query: &IndexQuery) -> Result<Page> {
        self.note_query(query);
        self.inner.query_index(query).await
    }
    async fn commit(&self, writes: Vec<Write>) -> Result<()> {
        self.inner.commit(writes).await
    }
    async fn commit_sending(&self, writes: Vec<Write>, messages: Vec<QueueMessage>) -> Result<()> {
        self.inner.commit_sending(writes, messages).await
    }
}
