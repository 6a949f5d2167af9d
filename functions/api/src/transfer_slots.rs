//! Slots of work that lasts as long as a client wants: exports, imports and uploads. Their number bounds the memory of this process, and a client that
//! reads or sends as slowly as [`crate::transfer_pace`] allows holds a slot for hours. So a person holds at most as many slots as are free for others: of 32 the first person has 16, the next
//! one 8, and so on. Several persons together can still hold all of them.

use domain::UserId;
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;

/// A number of slots for the work of one kind.
pub(crate) struct TransferSlots {
    most: usize,
    /// The number of slots per person, for persons who hold at least one.
    held: Mutex<BTreeMap<UserId, usize>>,
}

/// A slot, until this is dropped.
pub(crate) struct TransferSlot {
    slots: &'static TransferSlots,
    by: UserId,
}

/// A person gets no slot now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoSlot {
    /// How many slots are held.
    pub all: usize,
    /// How many of them this person holds.
    pub own: usize,
}

impl TransferSlots {
    pub(crate) const fn new(most: usize) -> Self {
        Self { most, held: Mutex::new(BTreeMap::new()) }
    }

    fn held(&self) -> MutexGuard<'_, BTreeMap<UserId, usize>> {
        self.held.lock()
    }

    /// A slot for a person.
    ///
    /// # Errors
    /// When none is free, and when the person would hold more than are free for others.
    pub(crate) fn take(&'static self, by: UserId) -> Result<TransferSlot, NoSlot> {
        let mut held = self.held();
        let (all, own) = (held.values().sum::<usize>(), held.get(&by).copied().unwrap_or_default());
        if own >= self.most.saturating_sub(all) {
            return Err(NoSlot { all, own });
        }
        held.insert(by, own + 1);
        drop(held);
        Ok(TransferSlot { slots: self, by })
    }
}

impl Drop for TransferSlot {
    fn drop(&mut self) {
        let mut held = self.slots.held();
        match held.get_mut(&self.by) {
            Some(own) if *own > 1 => *own -= 1,
            _ => drop(held.remove(&self.by)),
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use uuid::Uuid;

    fn person(number: u128) -> UserId {
        UserId(Uuid::from_u128(number))
    }

    /// Takes slots for a person until there is none.
    fn take_all(slots: &'static TransferSlots, by: UserId) -> Vec<TransferSlot> {
        std::iter::from_fn(|| slots.take(by).ok()).collect()
    }

    #[test]
    fn no_person_holds_all_slots() {
        static FOUR: TransferSlots = TransferSlots::new(4);
        let first = take_all(&FOUR, person(1));
        assert_eq!(first.len(), 2);
        assert_eq!(FOUR.take(person(1)).err(), Some(NoSlot { all: 2, own: 2 }));
        let (second, third) = (take_all(&FOUR, person(2)), take_all(&FOUR, person(3)));
        assert_eq!((second.len(), third.len()), (1, 1));
        assert_eq!(FOUR.take(person(4)).err(), Some(NoSlot { all: 4, own: 0 }));

        static MANY: TransferSlots = TransferSlots::new(32);
        let held = [1, 2, 3, 4, 5, 6, 7].map(|number| take_all(&MANY, person(number)));
        assert_eq!(held.each_ref().map(Vec::len), [16, 8, 4, 2, 1, 1, 0]);
    }

    #[test]
    fn a_slot_that_is_given_back_is_anyones() {
        static TWO: TransferSlots = TransferSlots::new(2);
        let (own, other) = (TWO.take(person(1)).unwrap(), TWO.take(person(2)).unwrap());
        assert_eq!(TWO.take(person(3)).err(), Some(NoSlot { all: 2, own: 0 }));
        drop(own);
        drop(TWO.take(person(3)).unwrap());
        drop(other);
        assert!(TWO.held().is_empty());
        assert_eq!(take_all(&TWO, person(1)).len(), 1);
    }
}
