//! New versions of files that may start flows and were not dealt with: the process that wrote them died before it sent their message.

use super::{Sweep, SweepStep, due::DuePlace, unreachable};
use async_trait::async_trait;
use domain::Error;
use ports::{Clock, QueueSender};
use std::{sync::Arc, time::Duration};
use workspace::{HANDOFF_SHARDS, Workspaces};

/// Things of one step.
const AT_ONCE: usize = 50;

/// Sends the messages of versions that wait once more.
pub struct Handoffs {
    /// The files.
    pub workspaces: Workspaces,
    /// The queue that the messages go to.
    pub queue: Arc<dyn QueueSender>,
    /// How long a message may well wait for a worker.
    pub patience: Duration,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

#[async_trait]
impl Sweep for Handoffs {
    fn name(&self) -> &'static str {
        "handoffs"
    }

    /// The cursor is the shard of the index, and the place in it where the last step ended. The message of a version is sent before the version gets
    /// its next place in the index, so a death in between loses no message. A version whose message is only slow gets it twice, which is harmless.
    async fn sweep_page(&self, from: Option<&str>) -> Result<SweepStep, Error> {
        let mut place = DuePlace::read(from, self.clock.now() - self.patience);
        let cursor = place.cursor.take();
        let (found, next) = self.workspaces.forgotten_handoffs(place.shard, place.before, AT_ONCE, cursor).await?;
        let count = found.len() as u64;
        if count > 0 {
            let messages = found.iter().map(|one| engine::handoff::message(one.workspace, one.id)).collect();
            self.queue.send(messages).await.map_err(unreachable)?;
            self.workspaces.postpone_handoffs(found).await?;
        }
        let next = place.next(next, HANDOFF_SHARDS);
        Ok(SweepStep { count, failed: 0, more: next.is_some(), next })
    }
}
