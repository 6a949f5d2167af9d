//! The history of a task, rebuilt from its log (spec 002 §2.1, §6): inputs are not written twice, so they come from the same
//! fold that the router decides by, and are exact because of it.

use super::stage::{
    AnswerGiven, Denial, Forked, HistoryPage, Merge, Pause, QuestionAsked, Rejection, RetryMade, Round, Stage,
};
use domain::{
    NodeId, Status, TaskEvent, TaskId, WorkspaceId,
    task::{Arrival, ChildEnd, ChildName},
};
use engine::{log, machine::TaskState};
use flow::Flow;
use ports::{Result, Table};
use std::{collections::BTreeMap, sync::Arc};

/// The stages of a task numbered above `after`, at most `limit` (at least 1) of them.
pub(super) async fn read(
    table: &dyn Table,
    flow: Option<&Flow>,
    workspace: WorkspaceId,
    task: TaskId,
    after: u64,
    limit: usize,
) -> Result<HistoryPage> {
    let mut log = log::of(workspace, task);
    let mut history = History::new(flow, after, limit);
    while !history.is_complete() {
        match log.next(table).await? {
            Some((_, _, event)) => history.see(&event),
            None => break,
        }
    }
    Ok(history.into_page())
}

/// The history of a task whose events are seen one after the other.
pub(super) struct History<'a> {
    flow: Option<&'a Flow>,
    after: u64,
    last: u64,
    /// Before the event that is seen.
    state: TaskState,
    /// Stages that have begun.
    begun: u64,
    /// The node of the stage that has begun last and not ended.
    open: Option<NodeId>,
    stages: Vec<Stage>,
    /// Answers to questions that are not asked yet.
    early: BTreeMap<NodeId, AnswerGiven>,
    /// Events that belong to the stage that begins next.
    pauses: Vec<Pause>,
    merge: Option<(NodeId, Merge)>,
}

impl<'a> History<'a> {
    pub fn new(flow: Option<&'a Flow>, after: u64, limit: usize) -> Self {
        Self {
            flow,
            after,
            last: after.saturating_add(limit.max(1) as u64),
            state: TaskState::default(),
            begun: 0,
            open: None,
            stages: Vec::new(),
            early: BTreeMap::new(),
            pauses: Vec::new(),
            merge: None,
        }
    }

    /// Whether nothing that follows can change the page.
    fn is_complete(&self) -> bool {
        self.begun > self.last && self.stages.iter().filter_map(|stage| stage.fork.as_ref()).all(Forked::is_settled)
    }

    pub fn into_page(self) -> HistoryPage {
        let next_cursor = (self.begun > self.last).then(|| self.last.to_string());
        HistoryPage { stages: self.stages, next_cursor }
    }

    /// Takes in the next event.
    pub fn see(&mut self, event: &TaskEvent) {
        match event {
            TaskEvent::NodeStarted { node, attempt, retry, at, .. } => {
                // The same node again while it executes: a crash, or a retry. One that only waited until now has no stage yet.
                if self.open.as_ref() == Some(node) {
                    self.on(node, |stage| {
                        stage.attempt = *attempt;
                        match retry {
                            Some(retry) => {
                                let (number, error) = (retry.number, retry.error.clone());
                                stage.retries.push(RetryMade { number, error, at: *at });
                            }
                            None => stage.crashes += 1,
                        }
                    });
                } else {
                    self.begin(node);
                    self.on(node, |stage| {
                        stage.attempt = *attempt;
                        stage.started_at = Some(*at);
                    });
                }
            }
            TaskEvent::ContextAssembled { node, context } => {
                self.on(node, |stage| stage.context = Some((**context).clone()));
            }
            TaskEvent::Denied { node, what, rule } => {
                self.on(node, |stage| stage.denials.push(Denial { what: what.clone(), rule: rule.clone() }));
            }
            TaskEvent::AgentAsked { node, chat, round, prompt } => self.on(node, |stage| {
                let (chat, round, prompt) = (*chat, *round, prompt.clone());
                stage.conversation.push(Round { chat, round, prompt, reply: None });
            }),
            TaskEvent::AgentReplied { node, answer } => self.on(node, |stage| {
                let asked = |round: &&mut Round| round.chat == answer.chat && round.round == answer.round;
                match stage.conversation.iter_mut().find(asked) {
                    Some(round) => round.reply = Some((**answer).clone()),
                    None => {
                        let (chat, round) = (answer.chat, answer.round);
                        let (prompt, reply) = (String::new(), Some((**answer).clone()));
                        stage.conversation.push(Round { chat, round, prompt, reply });
                    }
                }
            }),
            TaskEvent::ToolUsed { node, used } => self.on(node, |stage| stage.tools.push((**used).clone())),
            TaskEvent::OutputRejected { node, round, errors } => {
                self.on(node, |stage| stage.rejected.push(Rejection { round: *round, errors: errors.clone() }));
            }
            TaskEvent::Asked { node, question_id, questions, at, expires_at } => {
                let (question_id, questions) = (*question_id, questions.clone());
                let asked = QuestionAsked { question_id, questions, at: *at, expires_at: *expires_at, answer: None };
                self.on(node, |stage| stage.questions.push(asked));
            }
            TaskEvent::Answered { node, answers, by, at } => {
                self.answered(node, AnswerGiven { answers: answers.clone(), by: by.clone(), at: *at });
            }
            TaskEvent::NodeFinished { node, attempt, status, output, error, metrics, at } => {
                self.open = None;
                if let Some(early) = self.early.remove(node) {
                    self.on(node, |stage| {
                        if let Some(asked) = stage.questions.last_mut().filter(|asked| asked.answer.is_none()) {
                            asked.answer = Some(early);
                        }
                    });
                }
                self.on(node, |stage| {
                    stage.attempt = *attempt;
                    stage.status = Some(*status);
                    stage.output = output.clone();
                    stage.error.clone_from(error);
                    stage.metrics = Some(metrics.clone());
                    stage.finished_at = Some(*at);
                });
            }
            TaskEvent::Routed { from, to } => {
                if self.merge.as_ref().is_some_and(|(merge, _)| merge == from) {
                    // The merge failed, and the task goes on past it: its node never began.
                    self.begin(from);
                    self.on(from, |stage| stage.status = Some(Status::Failure));
                }
                self.on(from, |stage| stage.routed_to = Some(to.clone()));
            }
            TaskEvent::Forked { node, kind, to, total } => self.on(node, |stage| {
                let (kind, to, total) = (*kind, to.clone(), *total);
                let counts = Forked { kind, to, total, spawned: 0, succeeded: 0, failed: 0, partial: 0, merged: 0 };
                stage.fork = Some(counts);
            }),
            TaskEvent::Spawned { node, until } => self.on(node, |stage| {
                if let Some(fork) = &mut stage.fork {
                    fork.spawned = *until;
                }
            }),
            TaskEvent::ChildArrived { arrival } => self.arrived(arrival),
            TaskEvent::ChildFinished { child, end } => self.ended(child, end),
            TaskEvent::Merged { node, taken, failed, cancelled, .. } => {
                let came = self.state.place.arrivals.get(node).into_iter().flatten();
                let came = came.map(|(_, arrived)| &arrived.child);
                let taken = came.filter(|child| taken.is_empty() || taken.contains(child)).cloned().collect();
                let merge = Merge { taken, failed: failed.clone(), cancelled: cancelled.clone() };
                self.merge = Some((node.clone(), merge));
            }
            TaskEvent::PausedBefore { at, .. } => self.pauses.push(Pause { at: *at, continued_at: None }),
            TaskEvent::Continued { at, .. } => {
                if let Some(pause) = self.pauses.last_mut().filter(|pause| pause.continued_at.is_none()) {
                    pause.continued_at = Some(*at);
                }
            }
            TaskEvent::Created { .. }
            | TaskEvent::AgentWaits { .. }
            | TaskEvent::Archived { .. }
            | TaskEvent::Prioritized { .. }
            | TaskEvent::Labelled { .. }
            | TaskEvent::Deleted { .. }
            | TaskEvent::Cleared
            | TaskEvent::PlanStep { .. }
            | TaskEvent::Budget { .. }
            | TaskEvent::Waiting { .. }
            | TaskEvent::Caught { .. }
            | TaskEvent::StatusSet { .. }
            | TaskEvent::HeldBack { .. }
            | TaskEvent::Diverged { .. }
            | TaskEvent::WentUp { .. }
            | TaskEvent::PauseRequested { .. }
            | TaskEvent::StopRequested { .. }
            | TaskEvent::Finished { .. }
            | TaskEvent::Parked { .. }
            | TaskEvent::Unparked { .. } => {}
        }
        self.state.apply(event);
    }

    /// A stage begins, on the current output of the task, or on the arrivals at its merge.
    fn begin(&mut self, node: &NodeId) {
        self.begun += 1;
        self.open = Some(node.clone());
        let pauses = std::mem::take(&mut self.pauses);
        let merge = self.merge.take_if(|(merge, _)| merge == node).map(|(_, merge)| merge);
        if self.begun > self.after && self.begun <= self.last {
            let input = Arc::clone(&self.state.place.current);
            self.stages.push(Stage { pauses, merge, ..Stage::new(self.begun, node, self.flow, input) });
        }
    }

    /// Changes the newest stage of this node, if it is in the page.
    fn on(&mut self, node: &NodeId, change: impl FnOnce(&mut Stage)) {
        if let Some(stage) = self.stages.iter_mut().rev().find(|stage| stage.node == *node) {
            change(stage);
        }
    }

    fn answered(&mut self, node: &NodeId, given: AnswerGiven) {
        let open = self.stages.iter_mut().rev().find(|stage| stage.node == *node && stage.status.is_none());
        match open.and_then(|stage| stage.questions.last_mut()) {
            Some(asked) if asked.answer.is_none() => asked.answer = Some(given),
            // Of two that came before the question the later one counts.
            _ => {
                self.early.insert(node.clone(), given);
            }
        }
    }

    /// A child of this very task that came to a merge has ended with it; of those further down their parents tell.
    fn arrived(&mut self, arrival: &Arrival) {
        if arrival.place.len() == 1 {
            let child = ChildName(arrival.child.as_str().into());
            self.on_fork_of(&child, |fork| fork.merged += 1);
        }
    }

    fn ended(&mut self, child: &ChildName, end: &ChildEnd) {
        self.on_fork_of(child, |fork| {
            let count = match (end.merged, end.status) {
                (true, _) => &mut fork.merged,
                (false, Status::Success) => &mut fork.succeeded,
                (false, Status::Partial) => &mut fork.partial,
                (false, Status::Failure) => &mut fork.failed,
            };
            *count += 1;
        });
    }

    fn on_fork_of(&mut self, child: &ChildName, change: impl FnOnce(&mut Forked)) {
        let made = |node: &NodeId| child.as_str().strip_prefix(node.as_str()).is_some_and(|rest| rest.starts_with('/'));
        let forks = self.stages.iter_mut().filter(|stage| stage.fork.is_some() && made(&stage.node));
        // A node's name may begin like that of another.
        if let Some(stage) = forks.max_by_key(|stage| stage.node.as_str().len())
            && let Some(fork) = &mut stage.fork
        {
            change(fork);
        }
    }
}
