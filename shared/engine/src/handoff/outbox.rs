//! The observer of commits that marks new versions by the triggers of flows.

use super::message;
use crate::Triggers;
use async_trait::async_trait;
use domain::{Error, FilePath, WorkspaceId};
use flow::trigger::Trigger;
use ports::QueueSender;
use std::sync::Arc;
use uuid::Uuid;
use workspace::{HandoffObserver, Workspace};

/// The folder whose files start nothing.
const SYSTEM: &str = "/system/";

/// Marks new versions that may start flows, and sends their messages.
pub struct Outbox {
    /// The queue that the messages go to.
    pub queue: Arc<dyn QueueSender>,
    /// The triggers of flows.
    pub triggers: Triggers,
}

#[async_trait]
impl HandoffObserver for Outbox {
    async fn concerns(&self, workspace: &Workspace, path: &FilePath) -> Result<bool, Error> {
        if path.as_str().starts_with(SYSTEM) {
            return Ok(false);
        }
        let flows = self.triggers.of(workspace).await?;
        let concerns = |trigger: &Trigger| trigger.concerns(path, true) || trigger.concerns(path, false);
        Ok(flows.values().any(|triggers| triggers.iter().any(concerns)))
    }

    async fn committed(&self, workspace: WorkspaceId, id: Uuid) {
        if let Err(error) = self.queue.send(vec![message(workspace, id)]).await {
            tracing::warn!(%workspace, %id, error = %error.with_causes(), "a sweep has this version start its flows");
        }
    }
}
