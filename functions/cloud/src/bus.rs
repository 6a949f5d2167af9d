//! Failures of the bus. They end no step, since the log has everything: watchers hear of it late. So each is counted, and an alarm tells of a bus that
//! stays away (`infra/watching.yaml`).

use async_trait::async_trait;
use axum::body::Bytes;
use ports::{Bus, Result, Subscription};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

/// How many messages and subscriptions the bus did not take in this process.
#[derive(Debug, Default)]
pub struct BusFailures(AtomicU64);

impl BusFailures {
    /// The count, as a line for [`assembly::Emf`].
    pub fn counters(self: &Arc<Self>) -> api::Counters {
        let failures = self.clone();
        Box::new(move |out| out.push_str(&format!("buildscale_bus_failures_total {}\n", failures.0.load(Relaxed))))
    }
}

/// A bus whose failures are counted.
pub struct CountedBus {
    /// The bus.
    pub bus: Arc<dyn Bus>,
    /// The count.
    pub failures: Arc<BusFailures>,
}

impl CountedBus {
    fn noting<T>(&self, outcome: Result<T>) -> Result<T> {
        outcome.inspect_err(|_| {
            self.failures.0.fetch_add(1, Relaxed);
        })
    }
}

#[async_trait]
impl Bus for CountedBus {
    async fn publish(&self, channel: &str, message: Bytes) -> Result<()> {
        self.noting(self.bus.publish(channel, message).await)
    }

    async fn subscribe(&self, channel: &str) -> Result<Subscription> {
        self.noting(self.bus.subscribe(channel).await)
    }
}
