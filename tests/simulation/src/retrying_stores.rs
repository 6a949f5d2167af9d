//! Stores that are asked again until they answer: for the time before and after a run, which is not under test.

use async_trait::async_trait;
use bytes::Bytes;
use domain::Sha256;
use ports::{Blobs, Error, IndexQuery, Item, Key, Page, Query, Result, Table, Write};
use std::{ops::Range, sync::Arc};

/// A store that always answers.
pub(crate) struct RetryingStore<P: ?Sized>(pub Arc<P>);

async fn answered<T, R: Future<Output = Result<T>>>(call: impl Fn() -> R) -> Result<T> {
    loop {
        match call().await {
            Err(Error::Unavailable { .. }) => {}
            answer => return answer,
        }
    }
}

#[async_trait]
impl Table for RetryingStore<dyn Table> {
    async fn get(&self, key: &Key) -> Result<Option<Item>> {
        answered(|| self.0.get(key)).await
    }
    async fn query(&self, query: &Query) -> Result<Page> {
        answered(|| self.0.query(query)).await
    }
    async fn query_index(&self, query: &IndexQuery) -> Result<Page> {
        answered(|| self.0.query_index(query)).await
    }
    async fn commit(&self, writes: Vec<Write>) -> Result<()> {
        answered(|| self.0.commit(writes.clone())).await
    }
}

#[async_trait]
impl Blobs for RetryingStore<dyn Blobs> {
    async fn put(&self, space: &str, content: Bytes) -> Result<Sha256> {
        answered(|| self.0.put(space, content.clone())).await
    }
    async fn get(&self, space: &str, digest: Sha256, range: Option<Range<u64>>) -> Result<Option<Bytes>> {
        answered(|| self.0.get(space, digest, range.clone())).await
    }
    async fn delete(&self, space: &str, digest: Sha256) -> Result<()> {
        answered(|| self.0.delete(space, digest)).await
    }
    async fn delete_space(&self, space: &str) -> Result<()> {
        answered(|| self.0.delete_space(space)).await
    }
}
