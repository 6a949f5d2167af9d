//! Deletions of workspaces that broke off: the process died, or a store did not answer. The rest of the workspace goes, its memberships with it.

use super::{Sweep, SweepStep, due::DuePlace};
use async_trait::async_trait;
use domain::Error;
use ports::Clock;
use std::{sync::Arc, time::Duration};
use workspace::Workspaces;

/// Workspaces of one step: each may have many files.
const AT_ONCE: usize = 5;

/// Completes them.
pub struct Deletions {
    /// The workspaces.
    pub workspaces: Workspaces,
    /// How long a deletion may well run.
    pub patience: Duration,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

#[async_trait]
impl Sweep for Deletions {
    fn name(&self) -> &'static str {
        "deletions"
    }

    /// The cursor is the place in the index: a deletion that cannot be completed now is passed by.
    async fn sweep_page(&self, from: Option<&str>) -> Result<SweepStep, Error> {
        let mut place = DuePlace::read(from, self.clock.now() - self.patience);
        let found = self.workspaces.complete_deletions(place.before, AT_ONCE, place.cursor.take()).await?;
        let (gone, failed, next) = found;
        let next = place.next(next, 1);
        Ok(SweepStep { count: gone.len() as u64, failed, more: next.is_some(), next })
    }
}
