//! Records of a task that has ended: its artifacts and its memory (spec 002 §10.1, §10.10).

use crate::perform::{TaskEffects, memory_scope};
use domain::{Code, TaskConfig};

impl TaskEffects {
    /// Stores the artifacts of a task; how many there are. A failure is logged: the task's log has all of it still.
    pub(super) async fn archive(&self, config: &TaskConfig) -> u32 {
        if config.origin.is_none()
            && let Err(error) = self.memory.keep_snapshot(&memory_scope(config), config.task, self.clock.now()).await
            && !self.is_gone(config).await
        {
            tracing::warn!(task = %config.task, %error, "the snapshot of the task's memory was not kept");
        }
        let Some(flow) = self.flows.cached(&config.flow) else { return 0 };
        match self.artifacts.archive(&flow, config).await {
            Ok(files) => files,
            // Of a workspace that is removed nothing is to be kept, such as that of a case of an evaluation that passed.
            Err(error) if self.is_gone(config).await => {
                tracing::debug!(task = %config.task, %error, "the workspace of the task is gone, and its artifacts with it");
                0
            }
            Err(error) => {
                tracing::warn!(task = %config.task, %error, "the artifacts of the task were not stored");
                0
            }
        }
    }

    /// Whether the task's workspace is removed.
    async fn is_gone(&self, config: &TaskConfig) -> bool {
        self.workspaces.get(config.workspace).await.is_err_and(|error| error.code == Code::NotFound)
    }
}
