//! The trace of a run: the steps of a task and all its descendants, in one order that no race changes (spec 002 §6, §10.7).
//!
//! JSON Lines, without ids, times, durations and money. Children come right after the fork that made them, each with all that
//! it did, by their places; the merge that takes them follows. So a trace reads from cause to effect, the first line in which
//! two differ is where two runs part, and one parent at a time is in memory, however many children it has.
//!
//! Chance is left out: attempts, retries, pauses, the progress of a child that was stopped because its result was not needed.
//! Answers from outside show as the outputs of nodes, so that a re-run with recorded answers has the same trace.

use super::{
    line::{NodeExecution, TraceFact, TraceLine},
    stage::Denial,
};
use actor::LogReader;
use domain::{
    NodeId, TaskEvent, TaskId, WorkspaceId,
    task::{ChildKind, ChildName},
};
use engine::{log, machine::TaskState};
use ports::{Result, Table};
use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
};

/// A trace that is read line by line.
pub(super) struct Tracer {
    table: Arc<dyn Table>,
    workspace: WorkspaceId,
    /// The traced task, the child of it that is being read, the child of that one, and so on.
    open: Vec<Open>,
    ready: VecDeque<TraceLine>,
}

impl Tracer {
    /// The trace of this task.
    pub fn new(table: Arc<dyn Table>, workspace: WorkspaceId, task: TaskId) -> Self {
        let open = vec![Open::new(workspace, task, "".into())];
        Self { table, workspace, open, ready: VecDeque::new() }
    }

    /// The next line; none at the end.
    ///
    /// # Errors
    /// Those of [`LogReader::next`], of the log that is read now.
    pub async fn next(&mut self) -> Result<Option<TraceLine>> {
        loop {
            if let Some(line) = self.ready.pop_front() {
                return Ok(Some(line));
            }
            let Some(top) = self.open.last_mut() else { return Ok(None) };
            if let Some(children) = &mut top.children {
                match children.next() {
                    None => top.children = None,
                    Some(name) => {
                        let task = top.task.child(&name);
                        let path: Arc<str> = match &*top.path {
                            "" => name.as_str().into(),
                            above => format!("{above}/{name}").into(),
                        };
                        if log::was_stopped(&*self.table, self.workspace, task).await? {
                            self.ready.push_back(TraceLine { task: path, what: TraceFact::Stopped });
                        } else {
                            self.open.push(Open::new(self.workspace, task, path));
                        }
                    }
                }
                continue;
            }
            match top.log.next(&*self.table).await? {
                Some((_, _, event)) => top.see(event, &mut self.ready),
                None => drop(self.open.pop()),
            }
        }
    }
}

/// A task that is being read.
struct Open {
    task: TaskId,
    path: Arc<str>,
    log: LogReader<TaskEvent>,
    /// Before the event that is seen.
    state: TaskState,
    denied: Vec<Denial>,
    retries: u32,
    /// Children that are still to be read before its log goes on.
    children: Option<Children>,
}

struct Children {
    node: NodeId,
    kind: ChildKind,
    to: Vec<NodeId>,
    total: u32,
    next: u32,
}

impl Children {
    /// The name of the next child.
    fn next(&mut self) -> Option<ChildName> {
        if self.next >= self.total {
            return None;
        }
        let to = self.to.get((self.next as usize).checked_rem(self.to.len())?)?;
        let name = ChildName::of(&self.node, to, self.next, self.kind);
        self.next += 1;
        Some(name)
    }
}

impl Open {
    fn new(workspace: WorkspaceId, task: TaskId, path: Arc<str>) -> Self {
        let log = log::of(workspace, task);
        Self { task, path, log, state: TaskState::default(), denied: Vec::new(), retries: 0, children: None }
    }

    fn see(&mut self, event: TaskEvent, lines: &mut VecDeque<TraceLine>) {
        let applied = event.clone();
        let mut tell = |what| lines.push_back(TraceLine { task: self.path.clone(), what });
        match event {
            TaskEvent::Created { config } => {
                let is_traced = self.path.is_empty();
                let (start, input, files) = (config.start, config.input, config.files);
                let kind = config.origin.map(|origin| origin.kind).filter(|_| !is_traced);
                tell(TraceFact::Began { flow: is_traced.then_some(config.flow), kind, start, input, files });
            }
            TaskEvent::NodeStarted { retry, .. } => self.retries = retry.map_or(0, |retry| retry.number),
            TaskEvent::Denied { what, rule, .. } => {
                // A node that is tried again is refused the same again.
                let denial = Denial { what, rule };
                if !self.denied.contains(&denial) {
                    self.denied.push(denial);
                }
            }
            TaskEvent::NodeFinished { node, status, output, error, metrics, .. } => {
                let (input, denied) = (self.state.place.current.clone(), std::mem::take(&mut self.denied));
                let retries = self.retries;
                let visit = NodeExecution { node, input, output, status, error, denied, metrics, retries };
                tell(TraceFact::Node(Box::new(visit)));
            }
            TaskEvent::Routed { from, to } => tell(TraceFact::Routed { from, to }),
            TaskEvent::Forked { node, kind, to, total } => {
                let children = Children { node: node.clone(), kind, to: to.clone(), total, next: 0 };
                self.children = Some(children);
                tell(TraceFact::Forked { node, kind, to, total });
            }
            TaskEvent::Merged { node, taken, mut failed, mut cancelled, .. } => {
                let taken: BTreeSet<&str> = taken.iter().map(String::as_str).collect();
                for arrived in self.state.place.arrivals.get(&node).into_iter().flat_map(|came| came.values()) {
                    if taken.is_empty() || taken.contains(arrived.child.as_str()) {
                        let (merge, child, from) = (node.clone(), arrived.child.clone(), arrived.from.clone());
                        let (status, output) = (arrived.status, arrived.output.clone());
                        tell(TraceFact::Arrived { merge, child, from, status, output });
                    }
                }
                failed.sort();
                cancelled.sort();
                tell(TraceFact::Merged { node, failed, cancelled });
            }
            TaskEvent::WentUp { merge, .. } => tell(TraceFact::WentUp { merge }),
            TaskEvent::Finished { status, output, exit, error, .. } => {
                tell(TraceFact::Ended { status, output, exit, error });
            }
            TaskEvent::ContextAssembled { .. }
            | TaskEvent::AgentAsked { .. }
            | TaskEvent::AgentReplied { .. }
            | TaskEvent::AgentWaits { .. }
            | TaskEvent::ToolUsed { .. }
            | TaskEvent::PlanStep { .. }
            | TaskEvent::Budget { .. }
            | TaskEvent::OutputRejected { .. }
            | TaskEvent::Asked { .. }
            | TaskEvent::Answered { .. }
            | TaskEvent::Archived { .. }
            | TaskEvent::Prioritized { .. }
            | TaskEvent::Labelled { .. }
            | TaskEvent::Deleted { .. }
            | TaskEvent::Cleared
            | TaskEvent::Waiting { .. }
            | TaskEvent::Caught { .. }
            | TaskEvent::StatusSet { .. }
            | TaskEvent::HeldBack { .. }
            | TaskEvent::Diverged { .. }
            | TaskEvent::Spawned { .. }
            | TaskEvent::ChildArrived { .. }
            | TaskEvent::ChildFinished { .. }
            | TaskEvent::PauseRequested { .. }
            | TaskEvent::PausedBefore { .. }
            | TaskEvent::Continued { .. }
            | TaskEvent::StopRequested { .. }
            | TaskEvent::Parked { .. }
            | TaskEvent::Unparked { .. } => {}
        }
        self.state.apply(&applied);
    }
}
