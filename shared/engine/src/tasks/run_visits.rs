//! The visits of a run, by node, as drawings of its flow show them.

use super::{TaskFilter, Tasks};
use domain::{Error, NodeId, Status, TaskEvent, TaskId, WorkspaceId, task::is_stop};
use flow::{Flow, draw::RunVisits, graph::GraphNode};
use std::collections::VecDeque;

/// The most children of one task that are chosen from.
const LISTED: usize = 20_000;

impl Tasks {
    /// The visits of a run to each node: its own stages, and those of its clones and subtasks, at most `most` tasks in all. Of
    /// more children than that, failed ones are looked at first, and the nodes that the others may have come to say so.
    ///
    /// # Errors
    /// `NOT_FOUND` when a task of the run with children is not there; those of [`Tasks`].
    pub async fn run_visits(
        &self,
        flow: &Flow,
        workspace: WorkspaceId,
        task: TaskId,
        most: usize,
    ) -> Result<RunVisits, Error> {
        let mut run_visits = RunVisits::new();
        let (mut open, mut seen) = (VecDeque::from([task]), 0);
        while let Some(task) = open.pop_front().filter(|_| seen < most) {
            seen += 1;
            let mut forks: Vec<NodeId> = Vec::new();
            self.each_event(workspace, task, |_, event| match event {
                TaskEvent::NodeStarted { node, .. } => run_visits.entry(node.clone()).or_default().running = true,
                TaskEvent::NodeFinished { node, status, error, metrics, .. } => {
                    let node_visits = run_visits.entry(node.clone()).or_default();
                    node_visits.running = false;
                    node_visits.visits += 1;
                    node_visits.duration_ms += metrics.duration_ms;
                    // A reader looks for one failure among many. A node that was stopped is none.
                    if node_visits.status != Some(Status::Failure) && !error.as_ref().is_some_and(is_stop) {
                        node_visits.status = Some(*status);
                    }
                }
                TaskEvent::Forked { node, .. } => forks.push(node.clone()),
                _ => {}
            })
            .await?;
            if forks.is_empty() {
                continue;
            }
            let (mut failed, mut others, mut cursor) = (Vec::new(), Vec::new(), None);
            loop {
                let page = self.children(workspace, task, &TaskFilter::default(), 200, cursor).await?;
                for child in page.tasks {
                    if child.status == Status::Failure {
                        failed.push(child.task_id)
                    } else {
                        others.push(child.task_id)
                    }
                }
                cursor = page.next_cursor;
                if cursor.is_none() || failed.len() + others.len() >= LISTED {
                    break;
                }
            }
            let room = most.saturating_sub(open.len() + seen);
            if failed.len() + others.len() > room || cursor.is_some() {
                let below = |node: &&GraphNode| node.forks.iter().any(|fork| forks.contains(fork));
                for node in flow.graph.nodes().iter().filter(below) {
                    run_visits.entry(node.id.clone()).or_default().more = true;
                }
            }
            open.extend(failed.into_iter().chain(others).take(room));
        }
        Ok(run_visits)
    }
}
