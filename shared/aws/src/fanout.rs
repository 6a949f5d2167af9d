//! Subscribers of this process to channels that come in by one connection.

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use parking_lot::{Mutex, MutexGuard};
use ports::Subscription;
use std::{
    collections::HashMap,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
};
use tokio::sync::mpsc;

/// The bound of messages that wait for a subscriber that does not read.
const MOST_MESSAGES: usize = 512;

/// Tells that messages may have been missed: a follower of a log reads it at a message that is no entry.
pub(crate) const GAP: Bytes = Bytes::new();

/// The channels with subscribers. Each costs its waiting messages.
pub(crate) struct Fanout {
    channels: Mutex<HashMap<String, Vec<Subscriber>>>,
    /// Hears of each channel whose last subscriber left.
    abandoned: mpsc::UnboundedSender<String>,
}

struct Subscriber {
    to: mpsc::Sender<Bytes>,
    /// It had no room for a message, and does not know yet.
    missed: Arc<AtomicBool>,
}

impl Fanout {
    /// None yet. The receiver hears of each channel whose last subscriber left.
    pub(crate) fn new() -> (Arc<Self>, mpsc::UnboundedReceiver<String>) {
        let (abandoned, hear) = mpsc::unbounded_channel();
        (Arc::new(Self { channels: Mutex::default(), abandoned }), hear)
    }

    /// Another subscriber of `channel`.
    pub(crate) fn join(self: &Arc<Self>, channel: &str) -> Subscription {
        let (to, mut from) = mpsc::channel(MOST_MESSAGES);
        let missed = Arc::new(AtomicBool::new(false));
        let subscriber = Subscriber { to, missed: missed.clone() };
        self.lock().entry(channel.to_owned()).or_default().push(subscriber);
        let leave = Leave { channel: channel.to_owned(), whose: missed.clone(), fanout: Arc::downgrade(self) };
        stream::poll_fn(move |context| {
            let _whole = &leave;
            match from.poll_recv(context) {
                // The last messages were dropped, so no later message may show the gap. (A task that did much is told to wait although
                // there is more.)
                Poll::Pending if from.is_empty() && missed.swap(false, Ordering::AcqRel) => Poll::Ready(Some(GAP)),
                other => other,
            }
        })
        .boxed()
    }

    /// Gives `message` to the subscribers of `channel`. It waits for none: one without room misses it, and gets a gap.
    pub(crate) fn deliver(&self, channel: &str, message: &Bytes) {
        if let Some(subscribers) = self.lock().get(channel) {
            subscribers.iter().for_each(|subscriber| subscriber.give(message));
        }
    }

    /// Tells the subscribers of these channels that they may have missed something.
    pub(crate) fn gap(&self, of: impl Fn(&str) -> bool) {
        let channels = self.lock();
        let concerned = channels.iter().filter(|(channel, _)| of(channel)).flat_map(|(_, subscribers)| subscribers);
        concerned.for_each(|subscriber| subscriber.give(&GAP));
    }

    /// The channels with subscribers.
    #[cfg(any(feature = "redis", test))]
    pub(crate) fn channels(&self) -> Vec<String> {
        self.lock()
            .iter()
            .filter(|(_, subscribers)| !subscribers.is_empty())
            .map(|(channel, _)| channel.clone())
            .collect()
    }

    #[cfg(any(feature = "redis", test))]
    pub(crate) fn has(&self, channel: &str) -> bool {
        self.lock().contains_key(channel)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Vec<Subscriber>>> {
        self.channels.lock()
    }
}

impl Subscriber {
    fn give(&self, message: &Bytes) {
        if let Err(mpsc::error::TrySendError::Full(_)) = self.to.try_send(message.clone()) {
            self.missed.store(true, Ordering::Release);
        }
    }
}

/// Takes a subscriber out when its stream is dropped.
struct Leave {
    channel: String,
    /// The subscriber's own.
    whose: Arc<AtomicBool>,
    fanout: Weak<Fanout>,
}

impl Drop for Leave {
    fn drop(&mut self) {
        let Some(fanout) = self.fanout.upgrade() else { return };
        let mut channels = fanout.lock();
        if let Some(subscribers) = channels.get_mut(&self.channel) {
            subscribers.retain(|subscriber| !Arc::ptr_eq(&subscriber.missed, &self.whose));
            if subscribers.is_empty() {
                channels.remove(&self.channel);
                _ = fanout.abandoned.send(std::mem::take(&mut self.channel));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    fn waiting(subscription: &mut Subscription) -> Vec<Bytes> {
        std::iter::from_fn(|| tokio::task::unconstrained(subscription.next()).now_or_never().flatten()).collect()
    }

    #[tokio::test]
    async fn a_slow_subscriber_blocks_no_other_and_hears_of_the_gap() {
        let (fanout, _) = Fanout::new();
        let mut slow = fanout.join("c");
        for n in 0..2000_u32 {
            fanout.deliver("c", &Bytes::from(n.to_string()));
        }
        let got = waiting(&mut slow);
        assert_eq!(got.len(), MOST_MESSAGES + 1);
        assert_eq!(got.last(), Some(&GAP), "after the messages that it got");
        fanout.deliver("c", &Bytes::from_static(b"next"));
        assert_eq!(waiting(&mut slow), ["next"]);
    }

    #[tokio::test]
    async fn a_channel_is_abandoned_by_its_last_subscriber() {
        let (fanout, mut abandoned) = Fanout::new();
        let (one, mut other, elsewhere) = (fanout.join("c"), fanout.join("c"), fanout.join("d"));
        drop(one);
        fanout.deliver("c", &Bytes::from_static(b"still"));
        fanout.gap(|channel| channel == "d");
        fanout.gap(|channel| channel == "c");
        assert_eq!(waiting(&mut other), [Bytes::from_static(b"still"), GAP]);
        assert!(abandoned.try_recv().is_err());
        drop(other);
        assert_eq!(abandoned.try_recv().as_deref(), Ok("c"));
        assert_eq!((fanout.has("c"), fanout.channels()), (false, vec!["d".to_owned()]));
        drop(elsewhere);
        assert!(fanout.channels().is_empty());
    }
}
