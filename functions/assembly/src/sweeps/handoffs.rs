//! New versions of files that may start flows and were not dealt with: the process that wrote them died before it sent their message.

use super::{Sweep, SweepStep, unreachable};
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

    /// Each gets a new place in the index before its message is sent again, so the due ones are always at the beginning. One whose message is
    /// only slow gets it twice, which is harmless.
    async fn sweep_page(&self, from: Option<&str>) -> Result<SweepStep, Error> {
        let shard = from.and_then(|from| from.parse().ok()).unwrap_or(0);
        let before = self.clock.now() - self.patience;
        let found = self.workspaces.forgotten_handoffs(shard, before, AT_ONCE).await?;
        if !found.is_empty() {
            let messages = found.iter().map(|(workspace, id)| engine::handoff::message(*workspace, *id)).collect();
            self.queue.send(messages).await.map_err(unreachable)?;
        }
        let shard = if found.len() == AT_ONCE { shard } else { shard + 1 };
        let next = (shard < HANDOFF_SHARDS).then(|| shard.to_string());
        Ok(SweepStep { count: found.len() as u64, failed: 0, more: next.is_some(), next })
    }
}
