//! The counters of the locations that sessions have in their system texts.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The uses of the locations of sessions in this process: a location that is kept stands for files that are not read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LocationCounts {
    /// Messages whose session kept its location.
    pub hits: u64,
    /// Locations that were read again for their age.
    pub misses: u64,
    /// Locations that were read again because a file had changed.
    pub outdated: u64,
}

/// The state of a location before a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Location {
    /// Of files that are as they were.
    Fresh,
    /// Read too long ago.
    Old,
    /// Of files of which one has changed.
    Outdated,
}

#[derive(Debug, Default)]
pub(crate) struct LocationUses {
    fresh: AtomicU64,
    old: AtomicU64,
    outdated: AtomicU64,
}

impl LocationUses {
    pub(crate) fn count(&self, location: Location) {
        let counter = match location {
            Location::Fresh => &self.fresh,
            Location::Old => &self.old,
            Location::Outdated => &self.outdated,
        };
        counter.fetch_add(1, Relaxed);
    }

    pub(crate) fn counts(&self) -> LocationCounts {
        let Self { fresh, old, outdated } = self;
        LocationCounts { hits: fresh.load(Relaxed), misses: old.load(Relaxed), outdated: outdated.load(Relaxed) }
    }
}
