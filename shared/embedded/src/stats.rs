//! Counters of a store, for `/metrics` and `/ready`.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The counters of a store since it was opened, and the numbers of its messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Transactions that reached the disk: one sync each.
    pub groups: u64,
    /// Requests that were part of one: commits, sends, redrives. `requests / groups` is how well they share.
    pub requests: u64,
    /// Commits that found another revision than they expected.
    pub conflicts: u64,
    /// Settlements and attempts that rode along.
    pub lazy_writes: u64,
    /// Items and messages removed because their time was over.
    pub swept: u64,
    /// The pages in the write-ahead log after the last commit.
    pub wal_pages: u64,
    /// Messages that wait, the delayed ones included.
    pub waiting: u64,
    /// Messages that were delivered and not settled yet.
    pub in_flight: u64,
    /// Messages that were put aside after too many attempts.
    pub dead: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub groups: AtomicU64,
    pub requests: AtomicU64,
    pub conflicts: AtomicU64,
    pub lazy_writes: AtomicU64,
    pub swept: AtomicU64,
    pub wal_pages: AtomicU64,
    pub dead: AtomicU64,
}

impl Counters {
    pub fn read(&self, (waiting, in_flight): (usize, usize)) -> Stats {
        Stats {
            groups: self.groups.load(Relaxed),
            requests: self.requests.load(Relaxed),
            conflicts: self.conflicts.load(Relaxed),
            lazy_writes: self.lazy_writes.load(Relaxed),
            swept: self.swept.load(Relaxed),
            wal_pages: self.wal_pages.load(Relaxed),
            waiting: waiting as u64,
            in_flight: in_flight as u64,
            dead: self.dead.load(Relaxed),
        }
    }
}

pub(crate) fn add(counter: &AtomicU64, by: usize) {
    counter.fetch_add(by as u64, Relaxed);
}
