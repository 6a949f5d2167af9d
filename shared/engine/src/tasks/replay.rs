//! Running a task again, as a new one (spec 002 §10.7). The recorded task is never changed.

use super::{AcceptedTask, Tasks, checked, node_of};
use crate::{error::internal, reruns};
use domain::{
    Budget, Code, Error, NodeId, Principal, Status, TaskConfig, TaskEvent, TaskId, TaskPhase, WorkspaceId,
    task::{ChildEnd, Handoff, Replay, is_stop},
};
use flow::{Flow, draw::NodeVisits, flow::Op};
use std::sync::Arc;

/// The most tasks of a run in which answers to approvals are looked for.
const MOST_LOOKED_AT: usize = 2_000;

/// Options of a re-run.
#[derive(Clone, Debug, Default)]
pub struct RerunOptions {
    /// The budget of the new task; a part that is left out is that of the recorded one.
    pub budget: Budget,
    /// Whether it pauses before each node.
    pub stepping: bool,
    /// Nodes that it pauses before.
    pub breakpoints: Vec<String>,
}

impl Tasks {
    /// Runs a task again that has ended, as a new task. Without `from`, every node runs, with the recorded answers of models,
    /// tools and people; with it, nodes that do not come after that node take their recorded output, and the rest runs for
    /// real.
    ///
    /// # Errors
    /// `NOT_FOUND` when the task, its log or its manifests are not there; `CONFLICT` for a child, and for a task that has not ended;
    /// `INVALID_ARGUMENT` for a node `from` or a breakpoint that there is not; `RATE_LIMITED` as for [`Tasks::create`].
    pub async fn replay(
        &self,
        workspace: WorkspaceId,
        of: TaskId,
        task: TaskId,
        from: Option<&str>,
        options: RerunOptions,
        by: &Principal,
    ) -> Result<AcceptedTask, Error> {
        let (flow, recorded) = self.ended(workspace, of).await?;
        let from = from.map(|name| node_of(&flow, name, "from")).transpose()?;
        self.begin_replay(&flow, &recorded, task, Replay { of, from, retry: false }, options, by).await
    }

    /// The nodes whose approval a re-run from this node takes from the record, and does not ask for. Of a run with more than some thousand clones also
    /// those that were perhaps answered.
    ///
    /// # Errors
    /// `NOT_FOUND` when the task or its manifests are not there; `INVALID_ARGUMENT` for a node `from` that there is not; those of [`Tasks`].
    pub async fn kept_approvals(&self, workspace: WorkspaceId, of: TaskId, from: &str) -> Result<Vec<NodeId>, Error> {
        let view = self.get(workspace, of).await?;
        let flow = self.flows.by_hash(workspace, &view.flow).await?;
        let from = node_of(&flow, from, "from")?;
        let is_kept = |id: &NodeId| *id != from && !flow.graph.reaches(&from, id);
        let kept: Vec<NodeId> = approvals_of(&flow).filter(is_kept).collect();
        if kept.is_empty() {
            return Ok(kept);
        }
        // One that the recorded run did not come to, and one that was stopped, has no record: the re-run asks for it.
        let visits = match self.run_visits(&flow, workspace, of, MOST_LOOKED_AT).await {
            // Its log is lost, and with it the news that a node was not answered.
            Err(error) if error.code == Code::NotFound => return Ok(kept),
            visits => visits?,
        };
        let has_record = |id: &NodeId| visits.get(id).is_some_and(|node| node.status.is_some() || node.more);
        Ok(kept.into_iter().filter(has_record).collect())
    }

    /// The nodes whose approval a retry takes from the record for nodes behind them that run again. Of a run with clones also those that were perhaps
    /// declined in some of them.
    ///
    /// # Errors
    /// `NOT_FOUND` when the task or its manifests are not there; those of [`Tasks`].
    pub async fn approvals_kept_by_retry(&self, workspace: WorkspaceId, of: TaskId) -> Result<Vec<NodeId>, Error> {
        let view = self.get(workspace, of).await?;
        let flow = self.flows.by_hash(workspace, &view.flow).await?;
        let approvals: Vec<NodeId> = approvals_of(&flow).collect();
        if approvals.is_empty() {
            return Ok(approvals);
        }
        let visits = self.run_visits(&flow, workspace, of, MOST_LOOKED_AT).await?;
        // One that was declined is asked for again.
        let is_given = |node: &NodeVisits| match node.status {
            Some(Status::Success | Status::Partial) => true,
            Some(Status::Failure) => node.visits > 1,
            None => false,
        };
        let is_kept = |id: &NodeId| visits.get(id).is_some_and(|node| node.more || is_given(node));
        let runs_again = |id: &NodeId| {
            let fails = |node: &NodeVisits| node.more || matches!(node.status, None | Some(Status::Failure));
            visits.get(id).is_some_and(fails)
        };
        // Of a run that was stopped, nodes that were under way in some clones run again.
        let was_stopped = view.error.as_ref().is_some_and(is_stop);
        let leads_on = |id: &NodeId| {
            let mut behind = flow.graph.nodes().iter().filter(|node| flow.graph.reaches(id, &node.id));
            was_stopped || behind.any(|node| runs_again(&node.id))
        };
        Ok(approvals.into_iter().filter(|id| is_kept(id) && leads_on(id)).collect())
    }

    /// Runs the nodes of a task again that failed or were stopped, as a new task. Successful nodes keep their recorded output, in this task and in
    /// all below it, unless their input changes because of nodes that run now.
    ///
    /// # Errors
    /// As [`Tasks::replay`]; `CONFLICT` when no node of the task failed, and it was not stopped.
    pub async fn retry(
        &self,
        workspace: WorkspaceId,
        of: TaskId,
        task: TaskId,
        options: RerunOptions,
        by: &Principal,
    ) -> Result<AcceptedTask, Error> {
        let (flow, recorded) = self.ended(workspace, of).await?;
        let mut has_more = false;
        self.each_event(workspace, of, |_, event| has_more |= tells_of_a_failure(event)).await?;
        if !has_more {
            return Err(Error::new(Code::Conflict, "no node of this task failed").hint("replay it instead"));
        }
        self.begin_replay(&flow, &recorded, task, Replay { of, from: None, retry: true }, options, by).await
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
        options: RerunOptions,
        by: &Principal,
    ) -> Result<AcceptedTask, Error> {
        let RerunOptions { budget, stepping, breakpoints } = options;
        let breakpoints = breakpoints.iter().map(|name| node_of(flow, name, "breakpoints"));
        let config = TaskConfig {
            task,
            user: by.user(),
            replay: Some(replay),
            // More than the recorded run had, where that was not enough.
            budget: checked(budget)?.or(recorded.budget),
            stepping,
            breakpoints: breakpoints.collect::<Result<_, _>>()?,
            // That of the request for the recorded run is another one.
            trace: None,
            // A person begins a new chain, also with a version that was refused.
            handoff: recorded.handoff.clone().map(|handoff| Box::new(Handoff { chain: Vec::new(), ..*handoff })),
            refused: None,
            created_at: self.clock.now(),
            ..recorded.clone()
        };
        self.table.commit(vec![reruns::noting(config.workspace, task)]).await.map_err(internal)?;
        self.begin(flow, config, by).await
    }
}

/// The nodes that ask for an approval, in the order of the flow.
fn approvals_of(flow: &Flow) -> impl Iterator<Item = NodeId> + '_ {
    let asks = move |id: &NodeId| {
        let op = flow.nodes.get(id).map(|node| &node.op);
        matches!(op, Some(Op::Ask(rule)) if rule.approve.is_some())
    };
    flow.graph.nodes().iter().map(|node| node.id.clone()).filter(asks)
}

/// Whether a node failed or was stopped, of the task itself or of one below it, or the task was. A child that was stopped as not needed did not fail.
fn tells_of_a_failure(event: &TaskEvent) -> bool {
    match event {
        TaskEvent::NodeFinished { status, .. } => *status == Status::Failure,
        TaskEvent::ChildArrived { arrival } => arrival.status != Status::Success,
        TaskEvent::ChildFinished { end, .. } => end.status != Status::Success && !was_cancelled(end),
        TaskEvent::Finished { error: Some(error), .. } => error.code == Code::Cancelled,
        _ => false,
    }
}

fn was_cancelled(end: &ChildEnd) -> bool {
    end.error.as_ref().is_some_and(|error| error.code == Code::Cancelled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::{
        Timestamp,
        task::{NodeMetrics, stopped},
    };
    use serde_json::Value;

    #[test]
    fn a_retry_has_work_after_an_agent_that_was_stopped_and_that_the_flow_went_past() {
        let ended = |status, error| TaskEvent::NodeFinished {
            node: "write".into(),
            attempt: 1,
            status,
            output: Value::Null,
            error,
            metrics: NodeMetrics::default(),
            at: Timestamp::default(),
        };
        assert!(tells_of_a_failure(&ended(Status::Failure, Some(stopped("its agent was stopped")))));
        assert!(!tells_of_a_failure(&ended(Status::Partial, None)));
    }
}
