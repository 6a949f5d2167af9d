//! The counters of a worker.

use actor::Settlement;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counters of a worker, since it began.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Actors that are driven now.
    pub running: AtomicU64,
    /// Deliveries that were acknowledged.
    pub acknowledged: AtomicU64,
    /// Deliveries that were given back.
    pub retried: AtomicU64,
    /// Actors that a deadline or a shutdown found at work: they go on elsewhere.
    pub checkpointed: AtomicU64,
}

impl Metrics {
    pub(crate) fn begin(&self) -> Running<'_> {
        self.running.fetch_add(1, Relaxed);
        Running(self)
    }

    pub(crate) fn ended(&self, deliveries: usize, verdict: Settlement) {
        self.acknowledged.fetch_add(verdict.done as u64, Relaxed);
        self.retried.fetch_add(deliveries.saturating_sub(verdict.done) as u64, Relaxed);
    }
}

/// Counts an actor as running while it lives, also when its task is aborted.
pub(crate) struct Running<'a>(&'a Metrics);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Relaxed);
    }
}
