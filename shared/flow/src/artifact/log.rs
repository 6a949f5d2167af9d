//! From a task's log to its artifacts.

use super::{Artifacts, Batch, Owner, Rules};
use crate::{flow::Flow, machine::actor_id};
use domain::{Code, Error, TaskConfig, TaskEvent};

/// Entries that are read at once.
const PAGE: usize = 64;

impl Artifacts {
    /// Keeps what a task that has ended leaves behind, as its flow's `artifacts.yaml` says; how many files that is. To do
    /// it again changes nothing.
    ///
    /// # Errors
    /// The stores'. The log has all of it still, so another try begins anew.
    pub async fn archive(&self, flow: &Flow, config: &TaskConfig) -> Result<u32, Error> {
        let rules = Rules::from(&flow.settings.artifacts);
        if !rules.enabled {
            return Ok(0);
        }
        let actor = actor_id(config.workspace, config.task);
        let (mut batch, mut after) = (Batch::new(rules), 0);
        loop {
            let page = actor::read_after::<TaskEvent>(&*self.table, &actor, after, PAGE).await.map_err(|error| {
                tracing::warn!(task = %config.task, %error, "the log of a task cannot be read");
                Error::new(Code::UpstreamUnavailable, "the log of the task did not answer")
            })?;
            let Some(last) = page.entries.last() else { break };
            after = last.next.saturating_sub(1).max(after);
            page.entries.into_iter().flat_map(|entry| entry.events).for_each(|event| batch.take(flow, event));
            if !page.more {
                break;
            }
        }
        let (workspace, task, user, flow) = (config.workspace, config.task, config.user, config.flow.clone());
        self.flush(&Owner { workspace, task, user, flow }, batch).await
    }
}
