//! A bus between the tasks of one process.

use async_trait::async_trait;
use bytes::Bytes;
use futures::{Stream, StreamExt as _, task::AtomicWaker};
use parking_lot::{Mutex, MutexGuard, RwLock};
use ports::{Bus, Result, Subscription};
use std::{
    collections::{HashMap, VecDeque},
    pin::Pin,
    sync::{Arc, Weak},
    task::{Context, Poll},
};

/// The bounds of the queue of a subscriber that does not read.
const MOST_MESSAGES: usize = 512;
const MOST_BYTES: usize = 1024 * 1024;

/// A bus in memory.
///
/// A channel exists while it has subscribers, and costs only its waiting messages: nothing is allocated ahead. A subscriber that does not
/// keep up loses its oldest messages, so that the next one it reads shows it the gap.
#[derive(Default)]
pub struct LocalBus(Arc<Channels>);

#[derive(Default)]
struct Channels(RwLock<HashMap<String, Vec<Arc<Mailslot>>>>);

#[derive(Default)]
struct Mailslot {
    waiting: Mutex<PendingMessages>,
    reader: AtomicWaker,
}

#[derive(Default)]
struct PendingMessages {
    messages: VecDeque<Bytes>,
    bytes: usize,
    closed: bool,
}

impl LocalBus {
    /// A bus without channels.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many channels have subscribers.
    pub fn channels(&self) -> usize {
        self.0.0.read().len()
    }
}

impl Drop for LocalBus {
    fn drop(&mut self) {
        for slot in self.0.0.read().values().flatten() {
            slot.lock().closed = true;
            slot.reader.wake();
        }
    }
}

#[async_trait]
impl Bus for LocalBus {
    async fn publish(&self, channel: &str, message: Bytes) -> Result<()> {
        if let Some(slots) = self.0.0.read().get(channel) {
            slots.iter().for_each(|slot| slot.push(message.clone()));
        }
        Ok(())
    }

    async fn subscribe(&self, channel: &str) -> Result<Subscription> {
        let slot = Arc::new(Mailslot::default());
        let mut channels = self.0.0.write();
        channels.entry(channel.to_owned()).or_default().push(slot.clone());
        drop(channels);
        Ok(Reader { slot, channel: channel.to_owned(), channels: Arc::downgrade(&self.0) }.boxed())
    }
}

impl Mailslot {
    fn lock(&self) -> MutexGuard<'_, PendingMessages> {
        self.waiting.lock()
    }

    fn push(&self, message: Bytes) {
        let mut waiting = self.lock();
        waiting.bytes += message.len();
        waiting.messages.push_back(message);
        while waiting.messages.len() > MOST_MESSAGES || (waiting.bytes > MOST_BYTES && waiting.messages.len() > 1) {
            let lost = waiting.messages.pop_front().map_or(0, |lost| lost.len());
            waiting.bytes -= lost;
        }
        drop(waiting);
        self.reader.wake();
    }
}

struct Reader {
    slot: Arc<Mailslot>,
    channel: String,
    channels: Weak<Channels>,
}

impl Stream for Reader {
    type Item = Bytes;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        // Before looking: a message that comes in between wakes.
        self.slot.reader.register(context.waker());
        let mut waiting = self.slot.lock();
        match waiting.messages.pop_front() {
            Some(message) => {
                waiting.bytes -= message.len();
                Poll::Ready(Some(message))
            }
            None if waiting.closed => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let Some(channels) = self.channels.upgrade() else { return };
        let mut channels = channels.0.write();
        if let Some(slots) = channels.get_mut(&self.channel) {
            slots.retain(|slot| !Arc::ptr_eq(slot, &self.slot));
            if slots.is_empty() {
                channels.remove(&self.channel);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use futures::FutureExt as _;

    #[tokio::test]
    async fn a_slow_subscriber_keeps_the_newest_and_holds_up_no_other() {
        let bus = LocalBus::new();
        let mut slow = bus.subscribe("c").await.unwrap();
        for n in 0..2000_u32 {
            bus.publish("c", Bytes::from(n.to_string())).await.unwrap();
        }
        let kept: Vec<_> = std::iter::from_fn(|| slow.next().now_or_never().flatten()).collect();
        assert_eq!(kept.len(), MOST_MESSAGES);
        assert_eq!(kept.last().unwrap(), "1999");
    }

    #[tokio::test]
    async fn a_channel_vanishes_with_its_last_subscriber_and_a_subscription_with_its_bus() {
        let bus = LocalBus::new();
        let (one, mut other) = (bus.subscribe("c").await.unwrap(), bus.subscribe("c").await.unwrap());
        drop(one);
        assert_eq!(bus.channels(), 1);
        bus.publish("c", Bytes::from_static(b"last")).await.unwrap();
        drop(bus);
        assert_eq!(other.next().await.unwrap(), "last");
        assert_eq!(other.next().await, None);
        let bus = LocalBus::new();
        drop(bus.subscribe("c").await.unwrap());
        assert_eq!(bus.channels(), 0);
    }
}
