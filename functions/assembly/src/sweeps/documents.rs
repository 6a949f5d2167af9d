//! Documents that wait to be converted for a long time: the process that wrote one died before it sent the message.

use super::{Sweep, SweepStep};
use async_trait::async_trait;
use domain::Error;
use ports::Clock;
use std::{sync::Arc, time::Duration};
use workspace::{Workspaces, documents::SHARDS};

/// Things of one step.
const AT_ONCE: usize = 50;

/// Sends their messages again.
pub struct Unconverted {
    /// The workspaces to go through.
    pub workspaces: Workspaces,
    /// How long a message may well wait for a worker.
    pub patience: Duration,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

#[async_trait]
impl Sweep for Unconverted {
    fn name(&self) -> &'static str {
        "documents"
    }

    /// The cursor is the shard of the index, and the place in it where the last step ended: a document that is only slow is told twice, which does
    /// nothing.
    async fn sweep_page(&self, from: Option<&str>) -> Result<SweepStep, Error> {
        let (shard, cursor) = match from.and_then(|from| from.split_once(' ')) {
            Some((shard, cursor)) => (shard.parse().unwrap_or(0), Some(cursor.to_owned()).filter(|c| !c.is_empty())),
            None => (0, None),
        };
        let before = self.clock.now() - self.patience;
        let (count, next) = self.workspaces.convert_forgotten(before, shard, AT_ONCE, cursor).await?;
        let next = match next {
            Some(cursor) => Some(format!("{shard} {cursor}")),
            None => (shard + 1 < SHARDS).then(|| format!("{} ", shard + 1)),
        };
        Ok(SweepStep { count, failed: 0, more: next.is_some(), next })
    }
}
