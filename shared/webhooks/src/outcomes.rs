//! The outcomes of attempts in this process, for its operator: a receiver that fails is a matter of its workspace, many that fail are one of the host.

use crate::webhook::AttemptResult;
use domain::WorkspaceId;
use parking_lot::Mutex;
use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};
use uuid::Uuid;

/// The most webhooks that are remembered as failing.
const MOST: usize = 10_000;

/// The outcomes of attempts.
#[derive(Debug, Default)]
pub struct Outcomes {
    delivered: AtomicU64,
    failed: AtomicU64,
    disabled: AtomicU64,
    failing: Mutex<BTreeSet<(WorkspaceId, Uuid)>>,
}

/// The counts of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutcomeCounts {
    /// Attempts that receivers took.
    pub delivered: u64,
    /// Attempts that they did not.
    pub failed: u64,
    /// Webhooks that were disabled, since their receivers are gone or failed for days.
    pub disabled: u64,
    /// Webhooks whose last attempt in this process failed.
    pub failing: u64,
}

impl Outcomes {
    /// Takes in an attempt.
    pub(crate) fn heard(&self, workspace: WorkspaceId, webhook: Uuid, heard: AttemptResult) {
        let mut failing = self.failing.lock();
        match heard {
            AttemptResult::Success => {
                self.delivered.fetch_add(1, Relaxed);
                failing.remove(&(workspace, webhook));
            }
            AttemptResult::Failure | AttemptResult::Gone => {
                self.failed.fetch_add(1, Relaxed);
                if failing.len() < MOST {
                    failing.insert((workspace, webhook));
                }
            }
        }
    }

    /// Whether the last attempt of a webhook in this process failed.
    pub(crate) fn is_failing(&self, workspace: WorkspaceId, webhook: Uuid) -> bool {
        self.failing.lock().contains(&(workspace, webhook))
    }

    /// A webhook is told nothing more, so it fails no more.
    pub(crate) fn ended(&self, workspace: WorkspaceId, webhook: Uuid, is_fault: bool) {
        self.failing.lock().remove(&(workspace, webhook));
        self.disabled.fetch_add(u64::from(is_fault), Relaxed);
    }

    /// The counts so far.
    pub fn counts(&self) -> OutcomeCounts {
        let failing = self.failing.lock().len() as u64;
        let (delivered, failed) = (self.delivered.load(Relaxed), self.failed.load(Relaxed));
        OutcomeCounts { delivered, failed, disabled: self.disabled.load(Relaxed), failing }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_webhook_fails_until_it_is_taken_or_ends() {
        let (outcomes, workspace) = (Outcomes::default(), WorkspaceId(Uuid::from_u128(1)));
        let [one, other] = [2, 3].map(Uuid::from_u128);
        for hook in [one, one, other] {
            outcomes.heard(workspace, hook, AttemptResult::Failure);
        }
        assert_eq!(outcomes.counts(), OutcomeCounts { failed: 3, failing: 2, ..OutcomeCounts::default() });
        outcomes.heard(workspace, one, AttemptResult::Success);
        outcomes.ended(workspace, other, true);
        assert_eq!(outcomes.counts(), OutcomeCounts { delivered: 1, failed: 3, disabled: 1, failing: 0 });
    }
}
