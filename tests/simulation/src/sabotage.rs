//! Takes one safeguard out, to see that the simulator finds out: an invariant that cannot fail proves nothing.

use async_trait::async_trait;
use ports::{
    DeadLetter, Delivery, Expect, IndexQuery, Item, Key, Outgoing, Page, Query, Queue, Receipt, Result, Table, Write,
};
use std::{sync::Arc, time::Duration};

/// A safeguard that can be taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Safeguard {
    /// A log entry is written on the condition that there is none.
    Fence,
    /// What an entry says is to be sent later is sent.
    Outbox,
    /// A request to stop everything is kept for the worker to find.
    Stop,
    /// A tool call leaves a record in the commit that it makes.
    CallRecord,
}

/// `table` without it.
pub(crate) fn table(inner: Arc<dyn Table>, without: Option<Safeguard>) -> Arc<dyn Table> {
    if without.is_none() { inner } else { Arc::new(Without { inner, without }) }
}

/// `queue` without it.
pub(crate) fn queue(inner: Arc<dyn Queue>, without: Option<Safeguard>) -> Arc<dyn Queue> {
    if without.is_none() { inner } else { Arc::new(Without { inner, without }) }
}

struct Without<P: ?Sized> {
    without: Option<Safeguard>,
    inner: Arc<P>,
}

#[async_trait]
impl Table for Without<dyn Table> {
    async fn get(&self, key: &Key) -> Result<Option<Item>> {
        self.inner.get(key).await
    }
    async fn query(&self, query: &Query) -> Result<Page> {
        self.inner.query(query).await
    }
    async fn query_index(&self, query: &IndexQuery) -> Result<Page> {
        self.inner.query_index(query).await
    }
    async fn commit(&self, mut writes: Vec<Write>) -> Result<()> {
        if self.without == Some(Safeguard::CallRecord) {
            writes.retain(|write| !write.key().pk.ends_with("/calls"));
        }
        if self.without == Some(Safeguard::Stop) {
            writes.retain(|write| !write.key().sk.ends_with("/everything"));
        }
        for write in &mut writes {
            if let Write::Put { key, expect, .. } = write
                && self.without == Some(Safeguard::Fence)
                && key.sk.starts_with("log/")
            {
                *expect = Expect::Any;
            }
        }
        if writes.is_empty() { Ok(()) } else { self.inner.commit(writes).await }
    }
}

#[async_trait]
impl Queue for Without<dyn Queue> {
    async fn send(&self, mut messages: Vec<Outgoing>) -> Result<()> {
        messages.retain(|message| self.without != Some(Safeguard::Outbox) || message.deliver_at.is_none());
        if messages.is_empty() { Ok(()) } else { self.inner.send(messages).await }
    }
    async fn receive(&self, max: usize, visibility: Duration) -> Result<Vec<Delivery>> {
        self.inner.receive(max, visibility).await
    }
    async fn ack(&self, receipts: &[Receipt]) -> Result<bool> {
        self.inner.ack(receipts).await
    }
    async fn extend(&self, receipts: &[Receipt], visibility: Duration) -> Result<bool> {
        self.inner.extend(receipts, visibility).await
    }
    async fn reject(&self, receipts: &[Receipt], delay: Duration) -> Result<bool> {
        self.inner.reject(receipts, delay).await
    }
    async fn waiting(&self, lane: &str) -> Result<usize> {
        self.inner.waiting(lane).await
    }
    async fn dead_letters(&self, limit: usize) -> Result<Vec<DeadLetter>> {
        self.inner.dead_letters(limit).await
    }
    async fn redrive(&self, group: &str) -> Result<usize> {
        self.inner.redrive(group).await
    }
}
