//! From a task's log to its artifacts.

use super::{Artifacts, Batch, Owner, Rules, chats::Chats};
use crate::log;
use domain::{Code, Error, TaskConfig};
use flow::flow::Flow;

impl Artifacts {
    /// Keeps the artifacts of a task that has ended, as its flow's `artifacts.yaml` says; how many files that is. To do
    /// it again changes nothing.
    ///
    /// # Errors
    /// The stores'. The log has all of it still, so another try begins anew.
    pub async fn archive(&self, flow: &Flow, config: &TaskConfig) -> Result<u32, Error> {
        let rules = Rules::from(&flow.settings.artifacts);
        if !rules.enabled {
            return Ok(0);
        }
        let (mut batch, mut log) = (Batch::new(rules), log::of(config.workspace, config.task));
        let unread = |error: ports::Error| {
            tracing::warn!(task = %config.task, error = %error.with_causes(), "the log of a task cannot be read");
            Error::new(Code::UpstreamUnavailable, "the log of the task did not answer")
        };
        let mut chats = Chats::default();
        while let Some((_, _, mut event)) = log.next(&*self.table).await.map_err(unread)? {
            chats.complete(&*self.table, config.workspace, &mut event).await.map_err(unread)?;
            batch.take(flow, event);
        }
        let (workspace, task, user, flow) = (config.workspace, config.task, config.user, config.flow.clone());
        self.flush(&Owner { workspace, task, user, flow }, batch).await
    }
}
