//! Actors kept in memory between deliveries, so that an active chat is not read again for each message.
//!
//! Spec 000 §3: an actor that gets no command for the inactivity time-out is shut down, its state flushed. Here that means:
//! its snapshot is written, and it leaves those at rest. Nothing depends on it; the next command rehydrates the actor.
//!
//! Spec 003 §14 (4): the context of a chat is cached for an hour. The context is the state, so the cache is the states of actors that were shut
//! down, bounded by their bytes. A state is of use as long as its log has not grown, which is checked as for an actor at rest.

use crate::{ActorId, Machine, load::Loaded};
use parking_lot::{Mutex, MutexGuard};
use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};
use tokio::time::Instant;

/// The bounds of the states that are kept of actors that were shut down (spec 003 §14). The default keeps none.
#[derive(Clone, Copy, Debug, Default)]
pub struct CacheLimits {
    /// How long a state is kept, since its actor came to rest.
    pub time: Duration,
    /// How much is kept, by the sizes of snapshots.
    pub bytes: usize,
}

/// How often actors were found in memory, since the process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// Times that the memory had the actor as its log has it.
    pub hits: u64,
    /// Times that the actor was read from its snapshot and log.
    pub misses: u64,
    /// Times that the memory was behind the log, since another worker had driven the actor: it was forgotten, and read.
    pub outdated: u64,
    /// Times that the memory had an actor that was shut down before, as its log has it or behind it.
    pub cached: u64,
}

/// The states that are kept of actors that were shut down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheSize {
    /// Their number.
    pub states: u64,
    /// Their size, by their snapshots.
    pub bytes: u64,
}

impl std::ops::AddAssign for CacheSize {
    fn add_assign(&mut self, other: Self) {
        self.states += other.states;
        self.bytes += other.bytes;
    }
}

impl std::ops::AddAssign for CacheCounts {
    fn add_assign(&mut self, other: Self) {
        self.hits += other.hits;
        self.misses += other.misses;
        self.outdated += other.outdated;
        self.cached += other.cached;
    }
}

/// The memory that a state takes beside its bytes, and the least that one counts.
const OVERHEAD: usize = 4 * 1024;

/// An actor in memory that nothing drives.
pub(crate) struct RestingActor<M: Machine> {
    pub actor: ActorId,
    /// When it came to rest.
    since: Instant,
    pub loaded: Loaded<M>,
}

struct Actors<M: Machine> {
    /// In order, so that they are flushed in the same one whenever they are the same.
    resting: BTreeMap<ActorId, (Instant, Loaded<M>)>,
    /// Those that were shut down, with their sizes. None of them is at rest, too.
    cached: BTreeMap<ActorId, (Instant, usize, Loaded<M>)>,
    cached_bytes: usize,
}

impl<M: Machine> Actors<M> {
    fn take_cached(&mut self, actor: &ActorId) -> Option<Loaded<M>> {
        let (_, bytes, loaded) = self.cached.remove(actor)?;
        self.cached_bytes -= bytes;
        Some(loaded)
    }

    /// Forgets what was kept for long enough.
    fn expire(&mut self, now: Instant, time: Duration) {
        let bytes = &mut self.cached_bytes;
        self.cached.retain(|_, (since, size, _)| {
            let stays = now.duration_since(*since) < time;
            *bytes -= if stays { 0 } else { *size };
            stays
        });
    }
}

pub(crate) struct ActorCache<M: Machine> {
    actors: Mutex<Actors<M>>,
    most: usize,
    limits: CacheLimits,
    found: AtomicU64,
    misses: AtomicU64,
    outdated: AtomicU64,
    cached: AtomicU64,
}

impl<M: Machine> ActorCache<M> {
    pub fn new(most: usize, limits: CacheLimits) -> Self {
        let (found, misses, outdated, cached) = Default::default();
        let actors = Actors { resting: BTreeMap::new(), cached: BTreeMap::new(), cached_bytes: 0 };
        Self { actors: Mutex::new(actors), most, limits, found, misses, outdated, cached }
    }

    fn lock(&self) -> MutexGuard<'_, Actors<M>> {
        self.actors.lock()
    }

    /// Takes an actor out, to be driven.
    pub fn take(&self, actor: &ActorId) -> Option<Loaded<M>> {
        let mut actors = self.lock();
        let resting = actors.resting.remove(actor).map(|(_, loaded)| loaded);
        let taken = resting.or_else(|| {
            let cached = actors.take_cached(actor)?;
            self.cached.fetch_add(1, Relaxed);
            Some(cached)
        });
        let counter = if taken.is_some() { &self.found } else { &self.misses };
        counter.fetch_add(1, Relaxed);
        taken
    }

    /// One that was taken is behind its log, and is of no use.
    pub fn count_outdated(&self) {
        self.outdated.fetch_add(1, Relaxed);
    }

    pub fn counts(&self) -> CacheCounts {
        let (found, misses, outdated, cached) = (
            self.found.load(Relaxed),
            self.misses.load(Relaxed),
            self.outdated.load(Relaxed),
            self.cached.load(Relaxed),
        );
        CacheCounts { hits: found.saturating_sub(outdated), misses, outdated, cached }
    }

    /// Puts an actor back at rest. Returns the one that had to make room.
    pub fn put(&self, actor: ActorId, loaded: Loaded<M>) -> Option<(ActorId, Loaded<M>)> {
        let mut actors = self.lock();
        // While it was flushed, its next command may have been driven.
        drop(actors.take_cached(&actor));
        let resting = &mut actors.resting;
        resting.insert(actor, (Instant::now(), loaded));
        if resting.len() <= self.most {
            return None;
        }
        let oldest = resting.iter().min_by_key(|(_, (since, _))| *since).map(|(actor, _)| actor.clone())?;
        resting.remove(&oldest).map(|(_, loaded)| (oldest, loaded))
    }

    /// Takes out the actors that have rested for `timeout`, and tells when the next one will have. States that were kept for long enough are forgotten.
    pub fn take_idle(&self, timeout: Duration) -> (Vec<RestingActor<M>>, Option<Instant>) {
        let now = Instant::now();
        let mut actors = self.lock();
        actors.expire(now, self.limits.time);
        let resting = &mut actors.resting;
        let idle: Vec<ActorId> = resting
            .iter()
            .filter(|(_, (since, _))| now.duration_since(*since) >= timeout)
            .map(|(id, _)| id.clone())
            .collect();
        let taken = idle.into_iter().filter_map(|actor| {
            let (since, loaded) = resting.remove(&actor)?;
            Some(RestingActor { actor, since, loaded })
        });
        let taken = taken.collect();
        (taken, resting.values().map(|(since, _)| *since + timeout).min())
    }

    /// Keeps the states of actors that were shut down, for as long as they are new enough and fit. The oldest ones give way.
    pub fn insert_flushed(&self, flushed: Vec<RestingActor<M>>) {
        let now = Instant::now();
        let mut actors = self.lock();
        for RestingActor { actor, since, loaded } in flushed {
            let bytes = loaded.bytes() + OVERHEAD;
            let is_new = now.duration_since(since) < self.limits.time;
            // One that came back to rest meanwhile is newer.
            if !is_new || bytes > self.limits.bytes || actors.resting.contains_key(&actor) {
                continue;
            }
            drop(actors.take_cached(&actor));
            actors.cached_bytes += bytes;
            actors.cached.insert(actor, (since, bytes, loaded));
        }
        if actors.cached_bytes <= self.limits.bytes {
            return;
        }
        let mut by_age: Vec<_> = actors.cached.iter().map(|(actor, (since, ..))| (*since, actor.clone())).collect();
        by_age.sort_unstable();
        for (_, oldest) in by_age {
            drop(actors.take_cached(&oldest));
            if actors.cached_bytes <= self.limits.bytes {
                return;
            }
        }
    }

    /// How many are at rest.
    pub fn len(&self) -> usize {
        self.lock().resting.len()
    }

    /// How much is kept of those that were shut down.
    pub fn cache_size(&self) -> CacheSize {
        let actors = self.lock();
        CacheSize { states: actors.cached.len() as u64, bytes: actors.cached_bytes as u64 }
    }
}
