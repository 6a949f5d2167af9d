//! Counters of the stream server, for `/metrics`.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The live counters. Each stands alone: nothing orders one against another.
#[derive(Debug, Default)]
pub struct Metrics {
    pub(crate) connections: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) subscriptions: AtomicU64,
    pub(crate) subscribed: AtomicU64,
    pub(crate) feeds: AtomicU64,
    pub(crate) deliveries: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) resets: AtomicU64,
    pub(crate) stalled_closed: AtomicU64,
    pub(crate) healed_gaps: AtomicU64,
    pub(crate) log_reads: AtomicU64,
}

/// The counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Open connections, of every kind.
    pub connections: u64,
    /// Connections refused so far because all places, or all of their client, were taken.
    pub refused: u64,
    /// Open event streams.
    pub subscriptions: u64,
    /// Event streams opened so far.
    pub subscribed: u64,
    /// Feeds in memory.
    pub feeds: u64,
    /// Events delivered so far, counted once per stream.
    pub deliveries: u64,
    /// Bytes of event streams so far, comments included.
    pub bytes: u64,
    /// Cursors answered with `reset` so far.
    pub resets: u64,
    /// Connections closed so far because the peer took nothing.
    pub stalled_closed: u64,
    /// Times so far that the bus had lost something and the log had it.
    pub healed_gaps: u64,
    /// Blocks read from the log so far for readers behind the window.
    pub log_reads: u64,
}

impl Metrics {
    /// The counters now.
    pub fn counts(&self) -> Counts {
        Counts {
            connections: self.connections.load(Relaxed),
            refused: self.refused.load(Relaxed),
            subscriptions: self.subscriptions.load(Relaxed),
            subscribed: self.subscribed.load(Relaxed),
            feeds: self.feeds.load(Relaxed),
            deliveries: self.deliveries.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            resets: self.resets.load(Relaxed),
            stalled_closed: self.stalled_closed.load(Relaxed),
            healed_gaps: self.healed_gaps.load(Relaxed),
            log_reads: self.log_reads.load(Relaxed),
        }
    }
}

/// Adds one, and gives the number that was there before.
pub(crate) fn count(counter: &AtomicU64) -> u64 {
    counter.fetch_add(1, Relaxed)
}

/// Takes one away.
pub(crate) fn uncount(counter: &AtomicU64) {
    counter.fetch_sub(1, Relaxed);
}
