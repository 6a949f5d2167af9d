//! The trash: files that have been in it for longer than the retention are removed for good (spec 001 §3A (6)).

use super::{Sweep, SweepStep, due::DuePlace};
use async_trait::async_trait;
use domain::Error;
use ports::Clock;
use std::{sync::Arc, time::Duration};
use workspace::{TRASH_SHARDS, Workspaces};

/// Things of one step.
const AT_ONCE: usize = 25;

/// Empties the trash of all workspaces.
pub struct Trash {
    /// The workspaces to go through.
    pub workspaces: Workspaces,
    /// How long things stay.
    pub kept: Duration,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

#[async_trait]
impl Sweep for Trash {
    fn name(&self) -> &'static str {
        "trash"
    }

    /// The cursor is the shard of the index, and the place in it where the last step ended: files that cannot be purged now are passed by.
    async fn sweep_page(&self, from: Option<&str>) -> Result<SweepStep, Error> {
        let mut place = DuePlace::read(from, self.clock.now() - self.kept);
        let cursor = place.cursor.take();
        let (purged, next) = self.workspaces.purge_trashed_before(place.before, place.shard, AT_ONCE, cursor).await?;
        let next = place.next(next, TRASH_SHARDS);
        Ok(SweepStep { count: purged, failed: 0, more: next.is_some(), next })
    }
}
