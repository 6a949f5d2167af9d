//! Limits by name on what runs at once: of a flow, a node, a provider.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Slots by name, such as `provider/openai`. Clones share them.
///
/// Whoever waits for a name gets its slot in the order of asking. A name costs nothing while nobody has or wants a slot of
/// it. What this does not promise: anything between processes. Two workers with a limit of 4 run 8 at once, so a limit that
/// the outside enforces has to be divided by the number of workers, and answers of "too many" are to be expected all the same.
#[derive(Clone, Default)]
pub struct Slots(Arc<Mutex<HashMap<String, Arc<Semaphore>>>>);

impl Slots {
    /// None taken.
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits for one of `limit` slots (at least 1) of this name, which is free again when the guard is dropped. Dropping the
    /// call gives its place up. While a name is in use its limit is the one that it was first asked for with.
    pub async fn acquire(&self, name: &str, limit: usize) -> Slot {
        let semaphore = {
            let mut names = self.lock();
            let known = names.entry(name.to_owned());
            known.or_insert_with(|| Arc::new(Semaphore::new(limit.clamp(1, Semaphore::MAX_PERMITS)))).clone()
        };
        let mut slot = Slot { slots: self.clone(), name: name.to_owned(), semaphore: semaphore.clone(), permit: None };
        // It is never closed, so this is always a permit.
        slot.permit = semaphore.acquire_owned().await.ok();
        slot
    }

    /// How many names are in use.
    pub fn names(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Semaphore>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One slot of a name, or the wait for one.
#[must_use = "the slot is free again when this is dropped"]
pub struct Slot {
    slots: Slots,
    name: String,
    semaphore: Arc<Semaphore>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut names = self.slots.lock();
        drop(self.permit.take());
        // The map's and this one's: nobody else has it or waits for it.
        if Arc::strong_count(&self.semaphore) == 2 {
            names.remove(&self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[tokio::test]
    async fn slots_are_given_in_the_order_of_asking_and_names_are_forgotten() {
        let slots = Slots::new();
        let (one, two) = (slots.acquire("a", 2).await, slots.acquire("a", 2).await);
        let (mut third, mut fourth) = (Box::pin(slots.acquire("a", 2)), Box::pin(slots.acquire("a", 2)));
        assert!(third.as_mut().now_or_never().is_none() && fourth.as_mut().now_or_never().is_none());
        drop(slots.acquire("b", 2).await);
        assert_eq!(slots.names(), 1, "another name does not wait, and is gone");
        drop(two);
        assert!(fourth.as_mut().now_or_never().is_none(), "it asked last");
        let three = third.as_mut().now_or_never();
        assert!(three.is_some());
        drop(one);
        drop(fourth);
        drop(three);
        assert_eq!(slots.names(), 0);
    }
}
