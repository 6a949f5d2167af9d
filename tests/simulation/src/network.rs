//! The line between a process and the world, which can be cut for a while. A process that comes back does not know that it
//! was away: it is the zombie of docs/architecture/runtime.md.

use async_trait::async_trait;
use bytes::Bytes;
use domain::Sha256;
use parking_lot::Mutex;
use ports::{
    Blobs, Bus, DeadLetter, DeadLetterQueue, Delivery, IndexQuery, Item, Key, Page, Query, QueueMessage, QueueReceiver,
    QueueSender, Receipt, Result, Subscription, Table, Write,
};
use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};
use testkit::Queue;
use tokio::{sync::Notify, time::Instant};

/// The line of one process. Clones are of the same one.
#[derive(Clone)]
pub struct Link(Arc<State>);

struct State {
    /// The number of the call at which it is cut, from 1, and the length of the cut.
    cut: Option<(u64, Duration)>,
    calls: AtomicU64,
    until: Mutex<Option<Instant>>,
    bell: Notify,
}

impl Link {
    /// A line that is never cut.
    pub fn whole() -> Self {
        Self::new(None)
    }

    /// A line that is cut in front of the process's call number `call`, beginning with 1, for `away`. That call, and all
    /// others meanwhile, reach the world when it is over.
    pub fn cut_at(call: u64, away: Duration) -> Self {
        Self::new(Some((call, away)))
    }

    fn new(cut: Option<(u64, Duration)>) -> Self {
        Self(Arc::new(State { cut, calls: AtomicU64::new(0), until: Mutex::default(), bell: Notify::new() }))
    }

    /// Waits until it is cut.
    pub async fn was_cut(&self) {
        let bell = self.0.bell.notified();
        if self.until().is_none() {
            bell.await;
        }
    }

    fn until(&self) -> Option<Instant> {
        *self.0.until.lock()
    }

    async fn pass(&self) {
        let call = self.0.calls.fetch_add(1, SeqCst) + 1;
        if let Some((_, away)) = self.0.cut.filter(|(at, _)| *at == call) {
            *self.0.until.lock() = Some(Instant::now() + away);
            self.0.bell.notify_waiters();
        }
        if let Some(until) = self.until() {
            tokio::time::sleep_until(until).await;
        }
    }

    /// The table over this line.
    pub fn table(&self, inner: Arc<dyn Table>) -> Arc<dyn Table> {
        Arc::new(LinkedPort { inner, link: self.clone() })
    }
    /// The queue over this line.
    pub fn queue(&self, inner: Arc<dyn Queue>) -> Arc<dyn Queue> {
        Arc::new(LinkedPort { inner, link: self.clone() })
    }
    /// The bus over this line.
    pub fn bus(&self, inner: Arc<dyn Bus>) -> Arc<dyn Bus> {
        Arc::new(LinkedPort { inner, link: self.clone() })
    }
    /// The blobs over this line.
    pub fn blobs(&self, inner: Arc<dyn Blobs>) -> Arc<dyn Blobs> {
        Arc::new(LinkedPort { inner, link: self.clone() })
    }
}

struct LinkedPort<P: ?Sized> {
    link: Link,
    inner: Arc<P>,
}

#[async_trait]
impl Table for LinkedPort<dyn Table> {
    fn sends(&self) -> bool {
        self.inner.sends()
    }
    async fn get(&self, key: &Key) -> Result<Option<Item>> {
        self.link.pass().await;
        self.inner.get(key).await
    }
    async fn query(&self, query: &Query) -> Result<Page> {
        self.link.pass().await;
        self.inner.query(query).await
    }
    async fn query_index(&self, query: &IndexQuery) -> Result<Page> {
        self.link.pass().await;
        self.inner.query_index(query).await
    }
    async fn commit(&self, writes: Vec<Write>) -> Result<()> {
        self.link.pass().await;
        self.inner.commit(writes).await
    }
    async fn commit_sending(&self, writes: Vec<Write>, messages: Vec<QueueMessage>) -> Result<()> {
        self.link.pass().await;
        self.inner.commit_sending(writes, messages).await
    }
}

#[async_trait]
impl QueueSender for LinkedPort<dyn Queue> {
    async fn send(&self, messages: Vec<QueueMessage>) -> Result<()> {
        self.link.pass().await;
        self.inner.send(messages).await
    }
    async fn waiting(&self, lane: &str) -> Result<usize> {
        self.link.pass().await;
        self.inner.waiting(lane).await
    }
}

#[async_trait]
impl QueueReceiver for LinkedPort<dyn Queue> {
    async fn receive(&self, max: usize, visibility: Duration) -> Result<Vec<Delivery>> {
        self.link.pass().await;
        self.inner.receive(max, visibility).await
    }
    async fn ack(&self, receipts: &[Receipt]) -> Result<bool> {
        self.link.pass().await;
        self.inner.ack(receipts).await
    }
    async fn extend(&self, receipts: &[Receipt], visibility: Duration) -> Result<bool> {
        self.link.pass().await;
        self.inner.extend(receipts, visibility).await
    }
    async fn reject(&self, receipts: &[Receipt], delay: Duration) -> Result<bool> {
        self.link.pass().await;
        self.inner.reject(receipts, delay).await
    }
}

#[async_trait]
impl DeadLetterQueue for LinkedPort<dyn Queue> {
    async fn dead_letters(&self, limit: usize) -> Result<Vec<DeadLetter>> {
        self.link.pass().await;
        self.inner.dead_letters(limit).await
    }
    async fn redrive(&self, group: &str) -> Result<usize> {
        self.link.pass().await;
        self.inner.redrive(group).await
    }
}

#[async_trait]
impl Bus for LinkedPort<dyn Bus> {
    async fn publish(&self, channel: &str, message: Bytes) -> Result<()> {
        self.link.pass().await;
        self.inner.publish(channel, message).await
    }
    async fn subscribe(&self, channel: &str) -> Result<Subscription> {
        self.link.pass().await;
        self.inner.subscribe(channel).await
    }
}

#[async_trait]
impl Blobs for LinkedPort<dyn Blobs> {
    async fn put(&self, space: &str, content: Bytes) -> Result<Sha256> {
        self.link.pass().await;
        self.inner.put(space, content).await
    }
    async fn get(&self, space: &str, digest: Sha256, range: Option<Range<u64>>) -> Result<Option<Bytes>> {
        self.link.pass().await;
        self.inner.get(space, digest, range).await
    }
    async fn delete(&self, space: &str, digest: Sha256) -> Result<()> {
        self.link.pass().await;
        self.inner.delete(space, digest).await
    }
    async fn delete_space(&self, space: &str) -> Result<()> {
        self.link.pass().await;
        self.inner.delete_space(space).await
    }
}
