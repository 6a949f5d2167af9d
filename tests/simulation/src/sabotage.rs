//! Takes one safeguard out, to see that the simulator finds out: an invariant that cannot fail proves nothing.

use async_trait::async_trait;
use ports::{Expect, IndexQuery, Item, Key, Page, Query, Result, Table, Write};
use std::sync::Arc;
use testkit::{
    Queue,
    fakes::{LosingQueue, Posting},
};

/// A safeguard that can be taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Safeguard {
    /// A log entry is written on the condition that there is none.
    Fence,
    /// The messages in the outbox of an entry are sent.
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
    if without != Some(Safeguard::Outbox) {
        return inner;
    }
    let queue = LosingQueue::new(inner);
    queue.decide(|message| if message.deliver_at.is_some() { Posting::IsLost } else { Posting::Comes });
    Arc::new(queue)
}

/// Its commits and the messages that they cause are two calls, so that the queue without [`Safeguard::Outbox`] has the messages.
struct Without {
    without: Option<Safeguard>,
    inner: Arc<dyn Table>,
}

#[async_trait]
impl Table for Without {
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
