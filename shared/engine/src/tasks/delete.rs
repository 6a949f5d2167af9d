//! The priority of a task, and its deletion.

use super::{Tasks, check_priority};
use crate::{
    error::internal,
    machine::{actor_id, view_key},
};
use actor::ended;
use domain::{Code, CommandId, Error, Principal, StopId, TaskCommand, TaskId, TaskPhase, WorkspaceId};
use flow::manifest::QueuePolicy;
use ports::{Expect, Write};

impl Tasks {
    /// Gives a task, and all below it, another priority where they wait: for a worker, for slots and for places of commands. An agent
    /// that is asked gets it, too.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a priority beyond -100 to 100; `NOT_FOUND` when the task or its manifests are not there; `CONFLICT` when it
    /// has ended, or its flow takes tasks in their order.
    pub async fn prioritize(
        &self,
        workspace: WorkspaceId,
        task: TaskId,
        priority: i8,
        command: CommandId,
        by: &Principal,
    ) -> Result<(), Error> {
        check_priority(priority)?;
        let view = self.alive(workspace, task).await?;
        let flow = self.flows.by_hash(workspace, &view.flow).await?;
        if flow.settings.queue_policy == QueuePolicy::Fifo {
            return Err(Error::new(Code::Conflict, "tasks of this flow go in the order in which they were made")
                .hint("its execution.yaml says `queue_policy: fifo`; with `priority` tasks made since have one"));
        }
        self.send(workspace, task, command, by, TaskCommand::Prioritize { priority }).await
    }

    /// Takes a task off the list, with its clones and subtasks; one that runs is stopped first. Its artifacts go into the trash and off the
    /// lists, the chats of its agents go as chats do, and its memory is removed; the logs stay for as long as the artifacts are in the trash.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such task; `CONFLICT` for a clone or subtask: it goes with the task that made it.
    pub async fn delete(
        &self,
        workspace: WorkspaceId,
        task: TaskId,
        command: CommandId,
        by: &Principal,
    ) -> Result<(), Error> {
        let view = self.get(workspace, task).await?;
        if view.origin.is_some() {
            return Err(Error::new(Code::Conflict, format!("this task belongs to the task {}", view.root()))
                .hint("delete that one; all below it go with it"));
        }
        // The command first, so that running work gives way to a deletion that does come.
        self.send(workspace, task, command, by, TaskCommand::Delete).await?;
        if view.phase != TaskPhase::Finished {
            self.stop_tree(&view, StopId(command.0), "deleted").await?;
        }
        // At once, for lists; a step that was under way may write it again, until the deletion removes it for good.
        let place = view_key(workspace, task);
        let noted = ended::noting(&actor_id(workspace, task), &place, self.clock.now());
        let removed = Write::delete(place, Expect::Any);
        self.table.commit([removed].into_iter().chain(noted).collect()).await.map_err(internal)
    }
}
