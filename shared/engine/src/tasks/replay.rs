//! Running a task again, as a new one (spec 002 §10.7). The recorded task is never changed.

use super::{AcceptedTask, Tasks, checked, node_of};
use domain::{
    Budget, Code, Error, NodeId, Principal, Status, TaskConfig, TaskEvent, TaskId, TaskPhase, WorkspaceId,
    task::{ChildEnd, Handoff, Replay, is_stop},
};
use flow::{Flow, flow::Op};
use std::sync::Arc;

impl Tasks {
    /// Runs a task again that has ended, as a new task. Without `from`, every node runs, with the recorded answers of models,
    /// tools and people; with it, nodes that do not come after that node take their recorded output, and the rest runs for
    /// real.
    ///
    /// # Errors
    /// `NOT_FOUND` when the task, its log or its manifests are not there; `CONFLICT` for a child, and for a task that has not ended;
    /// `INVALID_ARGUMENT` for a node `from` that there is not; `RATE_LIMITED` as for [`Tasks::create`].
    pub async fn replay(
        &self,
        workspace: WorkspaceId,
        of: TaskId,
        task: TaskId,
        from: Option<&str>,
        budget: Budget,
        by: &Principal,
    ) -> Result<AcceptedTask, Error> {
        let (flow, recorded) = self.ended(workspace, of).await?;
        let from = from.map(|name| node_of(&flow, name, "from")).transpose()?;
        self.begin_replay(&flow, &recorded, task, Replay { of, from, retry: false }, budget, by).await
    }

    /// The nodes whose approval a re-run from this node takes from the record, and does not ask for.
    ///
    /// # Errors
    /// `NOT_FOUND` when the task or its manifests are not there; `INVALID_ARGUMENT` for a node `from` that there is not.
    pub async fn kept_approvals(&self, workspace: WorkspaceId, of: TaskId, from: &str) -> Result<Vec<NodeId>, Error> {
        let view = self.get(workspace, of).await?;
        let flow = self.flows.by_hash(workspace, &view.flow).await?;
        let from = node_of(&flow, from, "from")?;
        let is_kept = |id: &NodeId| {
            let op = flow.nodes.get(id).map(|node| &node.op);
            let asks = matches!(op, Some(Op::Ask(rule)) if rule.approve.is_some());
            asks && *id != from && !flow.graph.reaches(&from, id)
        };
        Ok(flow.graph.nodes().iter().map(|node| node.id.clone()).filter(is_kept).collect())
    }

    /// Runs the failed nodes of a task again, as a new task. Successful nodes keep their recorded output, in this task and in
    /// all below it, unless their input changes because of nodes that run now.
    ///
    /// # Errors
    /// As [`Tasks::replay`]; `CONFLICT` when no node of the task failed.
    pub async fn retry(
        &self,
        workspace: WorkspaceId,
        of: TaskId,
        task: TaskId,
        budget: Budget,
        by: &Principal,
    ) -> Result<AcceptedTask, Error> {
        let (flow, recorded) = self.ended(workspace, of).await?;
        let mut failed = false;
        self.each_event(workspace, of, |_, event| failed |= tells_of_a_failure(event)).await?;
        if !failed {
            return Err(Error::new(Code::Conflict, "no node of this task failed").hint("replay it instead"));
        }
        self.begin_replay(&flow, &recorded, task, Replay { of, from: None, retry: true }, budget, by).await
    }

    /// A root task that has ended, with its flow.
    async fn ended(&self, workspace: WorkspaceId, of: TaskId) -> Result<(Arc<Flow>, Arc<TaskConfig>), Error> {
        let view = self.get(workspace, of).await?;
        if view.origin.is_some() {
            return Err(Error::new(Code::Conflict, "a child runs again with the task that made it")
                .hint("replay the root task from the node that you mean, or retry it"));
        }
        if view.phase != TaskPhase::Finished {
            return Err(Error::new(Code::Conflict, "only a task that has ended can run again").hint("stop it first"));
        }
        let Some(config) = self.state(workspace, of).await?.config else {
            return Err(Error::new(Code::NotFound, "the task has no log"));
        };
        Ok((self.flows.by_hash(workspace, &config.flow).await?, config))
    }

    async fn begin_replay(
        &self,
        flow: &Arc<Flow>,
        recorded: &TaskConfig,
        task: TaskId,
        replay: Replay,
        budget: Budget,
        by: &Principal,
    ) -> Result<AcceptedTask, Error> {
        let config = TaskConfig {
            task,
            user: by.user(),
            replay: Some(replay),
            // More than the recorded run had, where that was not enough.
            budget: checked(budget)?.or(recorded.budget),
            stepping: false,
            breakpoints: Vec::new(),
            // That of the request for the recorded run is another one.
            trace: None,
            // A person begins a new chain, also with a version that was refused.
            handoff: recorded.handoff.clone().map(|handoff| Box::new(Handoff { chain: Vec::new(), ..*handoff })),
            refused: None,
            created_at: self.clock.now(),
            ..recorded.clone()
        };
        self.begin(flow, config, by).await
    }
}

/// Whether a node failed, of the task itself or of one below it. A node that was stopped did not, nor did a child that was stopped as not needed.
fn tells_of_a_failure(event: &TaskEvent) -> bool {
    match event {
        TaskEvent::NodeFinished { status, error, .. } => {
            *status == Status::Failure && !error.as_ref().is_some_and(is_stop)
        }
        TaskEvent::ChildArrived { arrival } => arrival.status != Status::Success,
        TaskEvent::ChildFinished { end, .. } => end.status != Status::Success && !was_cancelled(end),
        _ => false,
    }
}

fn was_cancelled(end: &ChildEnd) -> bool {
    end.error.as_ref().is_some_and(|error| error.code == Code::Cancelled)
}
