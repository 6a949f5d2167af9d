//! Actors kept in memory between deliveries, so that an active chat is not read again for each message.
//!
//! Spec 000 §3: an actor that gets no command for the inactivity time-out is shut down, its state flushed. Here that means:
//! its snapshot is written and the memory freed. Nothing depends on it; the next command rehydrates the actor.

use crate::{ActorId, Machine, load::Loaded};
use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

pub(crate) struct Warm<M: Machine> {
    /// In order, so that they are flushed in the same one whenever they are the same.
    actors: Mutex<BTreeMap<ActorId, (Instant, Loaded<M>)>>,
    most: usize,
}

impl<M: Machine> Warm<M> {
    pub fn new(most: usize) -> Self {
        Self { actors: Mutex::new(BTreeMap::new()), most }
    }

    /// Takes an actor out, to be driven.
    pub fn take(&self, actor: &ActorId) -> Option<Loaded<M>> {
        self.actors.lock().unwrap_or_else(PoisonError::into_inner).remove(actor).map(|(_, loaded)| loaded)
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
