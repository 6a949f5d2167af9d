//! The interface between a worker and a runtime of any machine: so that one worker drives chats and tasks alike.

use crate::{
    Machine, Runtime, Settlement,
    actor_cache::{CacheCounts, CacheSize},
};
use async_trait::async_trait;
use ports::Delivery;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Drives the actors of one kind. [`Runtime`] implements it. The methods that have a body are for a kind that keeps no actor in memory.
#[async_trait]
pub trait ActorDriver: Send + Sync {
    /// The first part of its actors' ids, such as `chat`.
    fn name(&self) -> &'static str;

    /// Drives the actor that `deliveries` are for, all of one group and in its order, until it rests or `cut` says that time
    /// is up; the actor then tells itself to continue. The caller keeps the deliveries invisible meanwhile, and settles
    /// them by the result.
    async fn deliver(&self, deliveries: &[Delivery], cut: &CancellationToken) -> Settlement;

    /// Shuts the actors down that have rested for the inactivity time-out. Returns when to call it again.
    async fn flush_idle(&self) -> Instant {
        Instant::now() + Duration::from_secs(3600)
    }

    /// Flushes and forgets all actors in memory: the process is about to end.
    async fn flush_all(&self) {}

    /// How many actors are in memory at rest.
    fn warm_actors(&self) -> usize {
        0
    }

    /// How often the memory had the actor that a delivery was for.
    fn cache_counts(&self) -> CacheCounts {
        CacheCounts::default()
    }

    /// How much is kept of actors that were shut down.
    fn cache_size(&self) -> CacheSize {
        CacheSize::default()
    }
}

#[async_trait]
impl<M: Machine> ActorDriver for Runtime<M> {
    fn name(&self) -> &'static str {
        M::KIND
    }
    async fn deliver(&self, deliveries: &[Delivery], cut: &CancellationToken) -> Settlement {
        Self::deliver(self, deliveries, cut).await
    }
    async fn flush_idle(&self) -> Instant {
        Self::flush_idle(self).await
    }
    async fn flush_all(&self) {
        Self::flush_all(self).await;
    }
    fn warm_actors(&self) -> usize {
        Self::warm_actors(self)
    }
    fn cache_counts(&self) -> CacheCounts {
        Self::cache_counts(self)
    }
    fn cache_size(&self) -> CacheSize {
        Self::cache_size(self)
    }
}
