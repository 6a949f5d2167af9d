//! Changes of a task that was made: its labels, and its priority.

use super::Tasks;
use domain::{CommandId, Error, LabelChanges, Principal, TaskCommand, TaskId, WorkspaceId};

/// Changes of a task; none leaves a value as it is.
#[derive(Clone, Debug, Default)]
pub struct TaskChanges {
    /// Another priority.
    pub priority: Option<i8>,
    /// Labels to set and to remove.
    pub labels: LabelChanges,
}

impl Tasks {
    /// Changes a task. The labels of one that has ended change, too. The same id again has no further effect.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such task; `INVALID_ARGUMENT` about `labels`; for another priority those of [`Tasks::prioritize`]. Nothing is
    /// changed then.
    pub async fn change(
        &self,
        workspace: WorkspaceId,
        task: TaskId,
        changes: TaskChanges,
        command: CommandId,
        by: &Principal,
    ) -> Result<(), Error> {
        let TaskChanges { priority, labels } = changes;
        self.get(workspace, task).await?.labels.changed("labels", labels.clone())?;
        if let Some(priority) = priority {
            self.prioritize(workspace, task, priority, command, by).await?;
        }
        if labels.is_empty() {
            return Ok(());
        }
        let command = CommandId::from_key(&command.to_string(), "labels");
        self.send(workspace, task, command, by, TaskCommand::Label { changes: labels }).await
    }
}
