//! Ports in memory that are stricter than reality: they do everything that a contract does not forbid, chosen by seed.
//!
//! The same seed, the same calls in the same order: the same faults. With [`Faults::none`] they are plain and quick.

mod blobs;
mod bus;
mod embedder;
mod losing;
mod queue;
mod recording;
mod sandbox;
mod table;

pub use blobs::FakeBlobs;
pub use bus::FakeBus;
pub use embedder::FakeEmbedder;
pub use losing::{LosingQueue, Posting};
pub use queue::FakeQueue;
pub use recording::RecordingTable;
pub use sandbox::{FakeMirror, FakeSandbox, FakeSandboxes};
pub use table::FakeTable;

use crate::Random;
use parking_lot::Mutex;
use ports::{Error, Result};
use std::time::Duration;

/// How often each fault happens: probabilities from 0 to 1 per call.
#[derive(Clone, Debug, PartialEq)]
pub struct Faults {
    /// A call fails as unavailable before it takes effect.
    pub unavailable_before: f64,
    /// A call takes effect and then fails as unavailable.
    pub unavailable_after: f64,
    /// A call lets other tasks run before it takes effect, and again before it returns. Without this a call is one
    /// indivisible step, and tasks never race.
    pub yields: f64,
    /// A call takes some time, up to `latency`.
    pub slow: f64,
    /// The longest such time.
    pub latency: Duration,
    /// The index does not show the newest commits.
    pub index_lag: f64,
    /// A page ends early.
    pub short_pages: f64,
    /// A batch of deliveries is shorter than it could be.
    pub short_batches: f64,
    /// A delivery and those behind it become visible again before their time, while their worker still works: two workers race.
    pub early_timeout: f64,
    /// A message that was acknowledged comes again, some time later.
    pub duplicate: f64,
    /// A receive returns with nothing before its time.
    pub empty_receive: f64,
    /// A bus message is lost for one subscriber.
    pub bus_lost: f64,
    /// A bus message arrives twice.
    pub bus_duplicated: f64,
    /// A bus message arrives behind the next one.
    pub bus_reordered: f64,
}

impl Faults {
    /// None: every call succeeds at once.
    pub fn none() -> Self {
        Self {
            unavailable_before: 0.0,
            unavailable_after: 0.0,
            yields: 0.0,
            slow: 0.0,
            latency: Duration::from_millis(20),
            index_lag: 0.0,
            short_pages: 0.0,
            short_batches: 0.0,
            early_timeout: 0.0,
            duplicate: 0.0,
            empty_receive: 0.0,
            bus_lost: 0.0,
            bus_duplicated: 0.0,
            bus_reordered: 0.0,
        }
    }

    /// All of them, often enough that a short scenario meets some and seldom enough that it ends.
    pub fn some() -> Self {
        Self {
            unavailable_before: 0.02,
            unavailable_after: 0.02,
            yields: 0.5,
            slow: 0.1,
            index_lag: 0.2,
            short_pages: 0.2,
            short_batches: 0.5,
            early_timeout: 0.05,
            duplicate: 0.05,
            empty_receive: 0.02,
            bus_lost: 0.1,
            bus_duplicated: 0.1,
            bus_reordered: 0.1,
            ..Self::none()
        }
    }

    /// Only those that change the order of things: no call fails and nothing is lost or comes twice.
    pub fn interleaving() -> Self {
        Self { yields: 0.5, slow: 0.1, short_batches: 0.5, ..Self::none() }
    }
}

/// The source of a fake's faults.
pub(crate) struct Fate {
    faults: Faults,
    random: Mutex<Random>,
}

impl Fate {
    fn new(seed: u64, faults: Faults) -> Self {
        Self { faults, random: Mutex::new(Random::new(seed)) }
    }

    fn chance(&self, probability: impl Fn(&Faults) -> f64) -> bool {
        let probability = probability(&self.faults);
        probability > 0.0 && self.draw(|random| random.chance(probability))
    }

    fn draw<T>(&self, draw: impl FnOnce(&mut Random) -> T) -> T {
        draw(&mut self.random.lock())
    }

    /// The faults before a call takes effect.
    async fn before(&self, what: &'static str) -> Result<()> {
        self.pause().await;
        self.fail(what, self.chance(|faults| faults.unavailable_before))
    }

    /// The faults of an answer after the call took effect.
    async fn after<T>(&self, what: &'static str, answer: T) -> Result<T> {
        self.pause().await;
        self.fail(what, self.chance(|faults| faults.unavailable_after)).map(|()| answer)
    }

    async fn pause(&self) {
        if self.chance(|faults| faults.slow) {
            let longest = u64::try_from(self.faults.latency.as_micros()).unwrap_or(u64::MAX);
            tokio::time::sleep(Duration::from_micros(self.draw(|random| random.below(longest)))).await;
        } else if self.chance(|faults| faults.yields) {
            tokio::task::yield_now().await;
        }
    }

    fn fail(&self, what: &'static str, fails: bool) -> Result<()> {
        if fails { Err(Error::unavailable(what, "a fault of the fake")) } else { Ok(()) }
    }
}
