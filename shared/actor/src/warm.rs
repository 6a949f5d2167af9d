//! Actors kept in memory between deliveries, so that an active chat is not read again for each message.
//!
//! Spec 000 §3: an actor that gets no command for the inactivity time-out is shut down, its state flushed. Here that means:
//! its snapshot is written and the memory freed. Nothing depends on it; the next command rehydrates the actor.

use crate::{ActorId, Machine, load::Loaded};
use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::time::Instant;

/// How often actors were found in memory, since the process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WarmCounts {
    /// Times that the memory had the actor as its log has it.
    pub hits: u64,
    /// Times that the actor was read from its snapshot and log.
    pub misses: u64,
    /// Times that the memory was behind the log, since another worker had driven the actor: it was forgotten, and read.
    pub outdated: u64,
}

impl std::ops::AddAssign for WarmCounts {
    fn add_assign(&mut self, other: Self) {
        self.hits += other.hits;
        self.misses += other.misses;
        self.outdated += other.outdated;
    }
}

pub(crate) struct Warm<M: Machine> {
    /// In order, so that they are flushed in the same one whenever they are the same.
    actors: Mutex<BTreeMap<ActorId, (Instant, Loaded<M>)>>,
    most: usize,
    found: AtomicU64,
    misses: AtomicU64,
    outdated: AtomicU64,
}

impl<M: Machine> Warm<M> {
    pub fn new(most: usize) -> Self {
        let (found, misses, outdated) = Default::default();
        Self { actors: Mutex::new(BTreeMap::new()), most, found, misses, outdated }
    }

    /// Takes an actor out, to be driven.
    pub fn take(&self, actor: &ActorId) -> Option<Loaded<M>> {
        let taken = self.actors.lock().unwrap_or_else(PoisonError::into_inner).remove(actor).map(|(_, loaded)| loaded);
        let counter = if taken.is_some() { &self.found } else { &self.misses };
        counter.fetch_add(1, Relaxed);
        taken
    }

    /// One that was taken is behind its log, and is of no use.
    pub fn outdated(&self) {
        self.outdated.fetch_add(1, Relaxed);
    }

    pub fn counts(&self) -> WarmCounts {
        let (found, misses, outdated) =
            (self.found.load(Relaxed), self.misses.load(Relaxed), self.outdated.load(Relaxed));
        WarmCounts { hits: found.saturating_sub(outdated), misses, outdated }
    }

    /// Puts an actor back at rest. Returns the one that had to make room.
    pub fn put(&self, actor: ActorId, loaded: Loaded<M>) -> Option<(ActorId, Loaded<M>)> {
        let mut actors = self.actors.lock().unwrap_or_else(PoisonError::into_inner);
        actors.insert(actor, (Instant::now(), loaded));
        if actors.len() <= self.most {
            return None;
        }
        let oldest = actors.iter().min_by_key(|(_, (since, _))| *since).map(|(actor, _)| actor.clone())?;
        actors.remove(&oldest).map(|(_, loaded)| (oldest, loaded))
    }

    /// Takes out the actors that have rested for `timeout`, and tells when the next one will have.
    pub fn take_idle(&self, timeout: Duration) -> (Vec<(ActorId, Loaded<M>)>, Option<Instant>) {
        let now = Instant::now();
        let mut actors = self.actors.lock().unwrap_or_else(PoisonError::into_inner);
        let idle: Vec<ActorId> = actors
            .iter()
            .filter(|(_, (since, _))| now.duration_since(*since) >= timeout)
            .map(|(id, _)| id.clone())
            .collect();
        let taken = idle.into_iter().filter_map(|id| actors.remove(&id).map(|(_, loaded)| (id, loaded))).collect();
        (taken, actors.values().map(|(since, _)| *since + timeout).min())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.actors.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}
