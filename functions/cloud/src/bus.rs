//! Failures of the bus. They end no step, since the log has everything, and watchers only learn of an entry late. So each failure is counted, and an
//! alarm reports a bus that stays unavailable (`infra/watching.yaml`).

use async_trait::async_trait;
use axum::body::Bytes;
use ports::{Bus, Result, Subscription};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

/// A bus whose failures are counted.
pub struct CountedBus {
    /// The bus.
    pub bus: Arc<dyn Bus>,
    /// The number of messages and subscriptions of this process that it did not take.
    pub failures: Arc<AtomicU64>,
}

impl CountedBus {
    fn noting<T>(&self, outcome: Result<T>) -> Result<T> {
        outcome.inspect_err(|_| {
            self.failures.fetch_add(1, Relaxed);
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
