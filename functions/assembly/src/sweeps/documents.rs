//! Documents that wait to be converted for a long time: the process that wrote one died before it sent the message.

use super::{Sweep, SweepStep, due::DuePlace};
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

    /// The cursor is the shard of the index, and the place in it where the last step ended. A second message for a document that is only slow has no
    /// effect.
    async fn sweep_page(&self, from: Option<&str>) -> Result<SweepStep, Error> {
        let mut place = DuePlace::read(from, self.clock.now() - self.patience);
        let cursor = place.cursor.take();
        let (count, next) = self.workspaces.convert_forgotten(place.before, place.shard, AT_ONCE, cursor).await?;
        let next = place.next(next, SHARDS);
        Ok(SweepStep { count, failed: 0, more: next.is_some(), next })
    }
}
