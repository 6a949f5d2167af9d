//! Tasks that end before their first node: a version of a file asked for a task that may not run (spec 001 §6). People see why in the lists, and
//! hear of it as they hear of every task.

use super::{Tasks, first_view, start::Start};
use crate::{
    error::internal,
    machine::{actor_id, view_index, view_key},
};
use actor::ended;
use domain::{
    Budget, Error, Labels, NodeId, Principal, TaskCommand, TaskConfig, TaskId, WorkspaceId,
    task::{FlowRef, Handoff, start_command},
};
use ports::{Error as PortError, Expect, Write};
use serde_json::Value;

impl Tasks {
    /// Makes a task that ends at once with `why`, whether or not its flow loads. The same ids again have no further effect.
    ///
    /// # Errors
    /// Those of [`Tasks`].
    #[expect(clippy::too_many_arguments, reason = "the parts of a task that has no flow to take them from")]
    pub async fn refuse(
        &self,
        workspace: WorkspaceId,
        task: TaskId,
        flow: FlowRef,
        start: NodeId,
        (input, handoff): (Value, Handoff),
        why: Error,
        by: &Principal,
    ) -> Result<(), Error> {
        let config = TaskConfig {
            workspace,
            task,
            flow,
            user: by.user(),
            input,
            start,
            origin: None,
            files: Vec::new(),
            priority: 0,
            stepping: false,
            breakpoints: Vec::new(),
            replay: None,
            keep_outputs: false,
            keep_artifacts: false,
            counted: false,
            trace: None,
            handoff: Some(Box::new(handoff)),
            budget: Budget::default(),
            refused: Some(Box::new(why)),
            labels: Labels::default(),
            created_at: self.clock.now(),
        };
        let view = serde_json::to_string(&first_view(&config)).map_err(internal)?;
        let view = Write::put(view_key(workspace, task), view, Expect::Absent).indexed(view_index(&config));
        let command = TaskCommand::Start { config: Box::new(config.clone()) };
        let message = self.message(workspace, task, start_command(task), by, command)?;
        let begun = Start { at: config.created_at, message: message.clone() };
        let mut writes = vec![view, begun.write(&config).map_err(internal)?];
        writes.extend(ended::absent(&actor_id(workspace, task)));
        match self.table.commit(writes).await {
            Ok(()) | Err(PortError::Conflict { .. }) => {}
            Err(error) => return Err(internal(error)),
        }
        self.mailbox.send(message).await.map_err(internal)
    }
}
