//! The wakers of the subscriptions that wait for a feed to move: one slot per subscription, reused.
//!
//! A `tokio::sync::Notify` would do the same with a larger node in each waiting future; here a waiting subscription costs
//! one waker (16 bytes) and never a second one, however often it is polled.

use std::task::Waker;

/// The slots of a feed.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    slots: Vec<Option<Waker>>,
    free: Vec<u32>,
}

impl Waiters {
    /// A slot of its own for a subscription.
    pub(crate) fn claim(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
        })
    }

    /// Gives a slot back, and with it the hold on the task that waited there.
    pub(crate) fn release(&mut self, slot: u32) -> Option<Waker> {
        self.free.push(slot);
        self.slots.get_mut(slot as usize).and_then(Option::take)
    }

    /// Wakes `waker` at the next change.
    pub(crate) fn park(&mut self, slot: u32, waker: &Waker) {
        match self.slots.get_mut(slot as usize) {
            Some(Some(parked)) => parked.clone_from(waker),
            Some(empty) => *empty = Some(waker.clone()),
            None => {}
        }
    }

    /// Removes and returns all wakers; to be woken once the lock is released.
    pub(crate) fn take(&mut self) -> Vec<Waker> {
        self.slots.iter_mut().filter_map(Option::take).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_reused_and_a_released_one_is_not_woken() {
        let mut waiters = Waiters::default();
        let (first, second) = (waiters.claim(), waiters.claim());
        waiters.park(first, Waker::noop());
        waiters.park(first, Waker::noop());
        waiters.park(second, Waker::noop());
        assert!(waiters.release(first).is_some());
        assert_eq!(waiters.take().len(), 1);
        assert_eq!(waiters.take().len(), 0, "each is woken once");
        assert_eq!(waiters.claim(), first);
    }
}
