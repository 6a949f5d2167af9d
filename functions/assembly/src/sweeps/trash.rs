//! The trash: files that have been in it for longer than the retention are removed for good (spec 001 §3A (6)).

use super::{Sweep, SweepStep};
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
        let (shard, cursor) = match from.and_then(|from| from.split_once(' ')) {
            Some((shard, cursor)) => (shard.parse().unwrap_or(0), Some(cursor.to_owned()).filter(|c| !c.is_empty())),
            None => (0, None),
        };
        let before = self.clock.now() - self.kept;
        let (purged, next) = self.workspaces.purge_trashed_before(before, shard, AT_ONCE, cursor).await?;
        let next = match next {
            Some(cursor) => Some(format!("{shard} {cursor}")),
            None => (shard + 1 < TRASH_SHARDS).then(|| format!("{} ", shard + 1)),
        };
        Ok(SweepStep { count: purged, failed: 0, more: next.is_some(), next })
    }
}
