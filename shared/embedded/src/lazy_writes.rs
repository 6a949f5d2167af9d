//! The changes that no caller waits for, until a transaction makes them.
//!
//! Rows of messages that were sent together lie together. So settlements wait for one another: many of them in one transaction free whole pages,
//! which SQLite does not write, and few of them write a page each time. A message whose settlement waits comes again after the end of the
//! process, and its receiver knows it. Any other change goes with the next transaction.

use crate::messages::DeferredWrite;
use ports::MAX_BATCH;
use std::{collections::BTreeMap, time::Duration};
use tokio::time::Instant;

/// How many settlements wait for no more. An actor remembers the commands of two batches, so it knows all that come again of a group with this
/// many settlements and a batch in flight.
const ENOUGH: usize = MAX_BATCH;
/// How many changes one transaction makes beside those above [`MOST`], so that requests do not wait for all of them.
const AT_ONCE: usize = 256;
/// How many are left to wait at most.
const MOST: usize = 4096;
/// How long a settlement waits for others.
const SETTLEMENT_WAIT: Duration = Duration::from_millis(100);
/// How long any other change waits for a transaction to ride along with.
const WAIT: Duration = Duration::from_millis(5);
/// How long they wait for the next attempt after a transaction failed: a full disk is not asked a hundred times a second.
const RETRY: Duration = Duration::from_secs(1);

/// The newest change of each message.
#[derive(Debug, Default)]
pub(crate) struct LazyWrites {
    changes: BTreeMap<i64, DeferredWrite>,
    /// When they are made without a request to ride along with; none while there is no change.
    due: Option<Instant>,
    /// They are not due before, as a transaction with some of them has failed.
    retry: Option<Instant>,
}

impl LazyWrites {
    pub fn add(&mut self, changes: impl IntoIterator<Item = (i64, DeferredWrite)>, now: Instant) {
        for (seq, change) in changes {
            self.changes.insert(seq, change);
            let due = now + if change == DeferredWrite::Settled { SETTLEMENT_WAIT } else { WAIT };
            let due = self.retry.map_or(due, |retry| retry.max(due));
            self.due = Some(self.due.map_or(due, |before| before.min(due)));
        }
    }

    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// When they are made at the latest.
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Whether they are worth a transaction of their own.
    pub fn is_due(&self, now: Instant) -> bool {
        let has_come = |at: Instant| at <= now;
        self.due.is_some_and(has_come) || (self.changes.len() > MOST && self.retry.is_none_or(has_come))
    }

    /// Whether the next transaction takes them along.
    pub fn rides_along(&self, now: Instant) -> bool {
        let is_other = |change: &DeferredWrite| *change != DeferredWrite::Settled;
        self.is_due(now) || self.changes.len() >= ENOUGH || self.changes.values().any(is_other)
    }

    /// Takes out those of one transaction, the oldest messages first.
    pub fn take_some(&mut self) -> BTreeMap<i64, DeferredWrite> {
        let count = AT_ONCE.max(self.changes.len().saturating_sub(MOST));
        let first_left = self.changes.keys().nth(count).copied();
        let left = first_left.map(|seq| self.changes.split_off(&seq)).unwrap_or_default();
        let taken = std::mem::replace(&mut self.changes, left);
        if self.changes.is_empty() {
            self.due = None;
        }
        taken
    }

    /// Takes out all of them.
    pub fn take_all(&mut self) -> BTreeMap<i64, DeferredWrite> {
        std::mem::take(self).changes
    }

    /// Puts those back whose transaction failed.
    pub fn put_back(&mut self, changes: BTreeMap<i64, DeferredWrite>, now: Instant) {
        if !changes.is_empty() {
            let newer = std::mem::replace(&mut self.changes, changes);
            self.changes.extend(newer);
            self.due = Some(now + RETRY);
            self.retry = self.due;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(seqs: std::ops::Range<usize>) -> impl Iterator<Item = (i64, DeferredWrite)> {
        seqs.map(|seq| (seq as i64, DeferredWrite::Settled))
    }

    #[test]
    fn settlements_wait_until_they_are_a_batch_or_a_moment_has_passed() {
        let (now, mut lazy) = (Instant::now(), LazyWrites::default());
        assert!(!lazy.rides_along(now) && lazy.due().is_none());
        lazy.add(settled(0..ENOUGH - 1), now);
        lazy.add(settled(0..1), now + SETTLEMENT_WAIT / 2);
        let later = now + SETTLEMENT_WAIT;
        assert_eq!((lazy.rides_along(now), lazy.is_due(now), lazy.due()), (false, false, Some(later)));
        assert!(lazy.rides_along(later) && lazy.is_due(later), "an idle store writes the few that there are");
        lazy.add(settled(ENOUGH..ENOUGH + 1), now);
        assert_eq!((lazy.rides_along(now), lazy.is_due(now)), (true, false), "with a request, and not alone");
        assert_eq!(lazy.take_some().len(), ENOUGH);
        assert_eq!((lazy.is_empty(), lazy.due()), (true, None));
    }

    #[test]
    fn other_changes_go_with_the_next_transaction_and_take_settlements_along() {
        let (now, mut lazy) = (Instant::now(), LazyWrites::default());
        lazy.add(settled(0..1), now);
        lazy.add([(7, DeferredWrite::Attempts(2))], now);
        assert_eq!((lazy.rides_along(now), lazy.due()), (true, Some(now + WAIT)));
        assert_eq!(lazy.take_some().into_keys().collect::<Vec<_>>(), [0, 7]);
    }

    #[test]
    fn one_transaction_makes_some_and_the_rest_stays_due_also_after_a_failure() {
        let (now, mut lazy) = (Instant::now(), LazyWrites::default());
        lazy.add(settled(0..AT_ONCE + 1), now);
        let taken = lazy.take_some();
        assert_eq!((taken.len(), lazy.due()), (AT_ONCE, Some(now + SETTLEMENT_WAIT)));
        lazy.put_back(taken, now);
        assert_eq!((lazy.is_due(now + RETRY / 2), lazy.is_due(now + RETRY)), (false, true));
        lazy.put_back(BTreeMap::new(), now + RETRY);
        assert_eq!((lazy.take_all().len(), lazy.is_empty(), lazy.due()), (AT_ONCE + 1, true, None));
    }

    #[test]
    fn more_of_them_do_not_hurry_a_store_that_has_failed() {
        let (now, mut lazy) = (Instant::now(), LazyWrites::default());
        lazy.put_back(settled(0..1).collect(), now);
        lazy.add(settled(1..2).chain([(0, DeferredWrite::Attempts(2))]), now);
        lazy.add(settled(2..MOST + 1), now);
        lazy.put_back(settled(0..1).collect(), now);
        assert_eq!(lazy.changes.get(&0), Some(&DeferredWrite::Attempts(2)), "the newest one wins");
        assert_eq!((lazy.due(), lazy.is_due(now)), (Some(now + RETRY), false));
        assert!(lazy.is_due(now + RETRY));
        lazy.add(settled(MOST + 1..MOST + 2), now + RETRY);
        assert_eq!(lazy.due(), Some(now + RETRY));
    }

    #[test]
    fn no_more_than_most_of_them_wait() {
        let (now, mut lazy) = (Instant::now(), LazyWrites::default());
        lazy.add(settled(0..3 * MOST), now);
        assert_eq!((lazy.is_due(now), lazy.take_some().len()), (true, 2 * MOST));
        assert_eq!((lazy.is_due(now), lazy.take_some().len()), (false, AT_ONCE));
    }
}
