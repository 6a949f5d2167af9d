//! One suite per port: the trait's documentation, as checks that every adapter passes.
//!
//! A suite takes an [`Env`] and a function that makes a fresh, empty adapter, and panics at the first sentence that does not hold. Waits
//! are waits on conditions; in a runtime with paused time they cost nothing.

mod blobs;
mod bus;
mod converter;
mod embedder;
mod queue;
mod sandbox;
mod search;
mod table;

pub use blobs::{blobs, large_blobs, uploads};
pub use bus::bus;
pub use converter::converter;
pub use embedder::embedder;
pub use queue::{queue, queue_in_turn, queue_races, sending};
pub use sandbox::{Bench, sandbox, sandboxes};
pub use search::search_indexes;
pub use table::table;

use domain::Timestamp;
use ports::Clock;
use std::{sync::Arc, time::Duration};

/// The time that an adapter lives in.
#[derive(Clone)]
pub struct Env {
    /// The clock that the adapter uses.
    pub clock: Arc<dyn Clock>,
    /// The visibility and the delays that the suite asks for: longer than an adapter in this time ever takes for a few calls.
    pub unit: Duration,
    /// Whether time is skipped, so that minutes may be waited for.
    pub skips_time: bool,
    /// Whether a queue orders by arrival, and looks at a message only at a receive, as SQS does: a delayed message is behind the waiting
    /// ones of its group when it is due, and one that has used up its attempts is put aside at the next receive.
    pub is_lazy: bool,
    /// How many messages are published while a subscriber of a bus reads none of them: more than an adapter holds for a subscriber.
    pub unread: u32,
}

impl Env {
    /// A runtime with paused time, and a clock that follows it.
    pub fn paused(clock: Arc<dyn Clock>) -> Self {
        Self { clock, unit: Duration::from_secs(30), skips_time: true, is_lazy: false, unread: 10_000 }
    }

    /// Real time, for adapters that reach across a network: whole seconds, and nothing that takes minutes.
    pub fn real(clock: Arc<dyn Clock>) -> Self {
        Self { clock, unit: Duration::from_secs(3), skips_time: false, is_lazy: false, unread: 10_000 }
    }

    /// Waits until the clock shows `at`.
    async fn until(&self, at: Timestamp) {
        while self.clock.now() < at {
            // A millisecond more, because timestamps are cut to whole ones.
            tokio::time::sleep(at.since(self.clock.now()) + Duration::from_millis(1)).await;
        }
    }

    fn later(&self) -> Timestamp {
        self.clock.now() + self.unit
    }
}
