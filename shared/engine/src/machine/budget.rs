//! The budget of a task and of all tasks below it (spec 002 §10.12).
//!
//! A task sets an equal part of what is free aside for each child of a fork, until that child has ended. A node whose agent has nothing left
//! waits, and so does a child that asks for more: until another child gives back its rest, or the task above gives more. Once all that
//! could give something back waits itself, the ones that wait are refused, and their nodes fail. So no two tasks wait for each other.
//!
//! The sum of all usages stays within the budget of the root, but for the last call of a model of each agent, which is begun within
//! its part and may end above it, and for the turn of an agent whose task is stopped: the task gives back the rest of its part at once, and
//! tells the usage of that turn when it is known.

use super::{
    Mode, TaskMachine, TaskState, actor_id,
    step::{NodeStart, Step},
};
use actor::OutboxMessage;
use domain::{
    Budget, Code, Error, Limits, NodeId, TaskCommand, TaskConfig, TaskEvent, TaskId, Timestamp, Usage,
    task::{AgentAnswer, BudgetChild, BudgetFact, BudgetMessage, BudgetPart, Wait},
};
use serde_json::json;

/// The words for an agent that has used up its part and got more.
const GO_ON: &str = "You had reached the end of your budget, and have more of it now. Go on from where you stopped, and give your whole answer.";

impl TaskState {
    /// The rest of the task's budget at `now`, for itself and for children that ask for more; none where it has no budget, and for a run
    /// on recorded answers, which uses nothing.
    pub(super) fn free(&self, now: Timestamp) -> Option<Budget> {
        let config = self.config.as_ref().filter(|config| !config.budget.is_none() && !config.repeats())?;
        let rest = self.spending.rest_of(config.budget.without(self.usage), &self.place);
        Some(rest.at(now, config.created_at))
    }
}

/// Whether the task and all below it have ended, so that what they used is known.
pub(super) fn is_settled(state: &TaskState) -> bool {
    state.finished.is_some() && state.spending.live(&state.place) == 0
}

/// Of a task that has ended: refuses the children that ask, and tells the task above what was used once all below it have ended, too. It is done at the end
/// of each step, so that no way to an end can forget it.
pub(super) fn close(was_settled: bool, step: &mut actor::Step<TaskMachine>, config: &TaskConfig) {
    if step.state().finished.is_none() || config.budget.is_none() || config.repeats() {
        return;
    }
    while let Some(child) = step.state().spending.asking.first().cloned() {
        send(step, config, child.task, BudgetMessage::Refuse);
        step.push(TaskEvent::Budget { fact: Box::new(BudgetFact::Refused { child }) });
    }
    let state = step.state();
    if let Some(origin) = config.origin.as_ref().filter(|_| !was_settled && is_settled(state)) {
        let mut used = state.usage;
        used += state.spending.below;
        let told = BudgetMessage::Return { child: BudgetChild::of(origin, config.task), used };
        send(step, config, origin.parent, told);
    }
}

/// The agent of a task that was stopped while it worked has come to the end of its turn, too: its usage counts, and for the tasks above.
pub(super) fn agent_ended(step: &mut actor::Step<TaskMachine>, answer: AgentAnswer) {
    let state = step.state();
    let Some((stopped, config)) = state.stopped_agent.clone().zip(state.config.clone()) else { return };
    if (stopped.chat, stopped.round) != (answer.chat, answer.round) {
        return;
    }
    // Else the message about the usage of the task is still to come, and has it.
    let was_settled = is_settled(state);
    let (node, used, model) = (stopped.node, answer.usage, answer.model);
    step.push(TaskEvent::Budget { fact: Box::new(BudgetFact::AgentEnded { node, used, model }) });
    if was_settled {
        tell_late(step, &config, used, Some(config.task));
    }
}

/// Tells the task above that the agent of `task`, this one or one below, has used so much.
fn tell_late(step: &mut actor::Step<TaskMachine>, config: &TaskConfig, used: Usage, task: Option<TaskId>) {
    let has_budget = !config.budget.is_none() && !config.repeats();
    if let Some(origin) = config.origin.as_ref().filter(|_| has_budget && !used.is_none()) {
        send(step, config, origin.parent, BudgetMessage::Late { used, task });
    }
}

/// A message about the budget of a task that has ended.
pub(super) fn told_late(step: &mut actor::Step<TaskMachine>, told: BudgetMessage) {
    let Some(config) = step.state().config.clone().filter(|_| !step.state().spending.knows(&told)) else { return };
    let was_settled = is_settled(step.state());
    match told {
        BudgetMessage::Ask { child } => send(step, &config, child.task, BudgetMessage::Refuse),
        BudgetMessage::Return { child, used } => {
            step.push(TaskEvent::Budget { fact: Box::new(BudgetFact::Returned { child, used }) });
        }
        BudgetMessage::Late { used, task } => {
            step.push(TaskEvent::Budget { fact: Box::new(BudgetFact::Late { used, task }) });
            if was_settled {
                tell_late(step, &config, used, task);
            }
        }
        BudgetMessage::Grant { .. } | BudgetMessage::Refuse => {}
    }
    close(was_settled, step, &config);
}

fn send(step: &mut actor::Step<TaskMachine>, config: &TaskConfig, to: TaskId, told: BudgetMessage) {
    if let Ok(command) = serde_json::to_value(TaskCommand::Budget { told: Box::new(told) }) {
        step.send(OutboxMessage::now(actor_id(config.workspace, to), command, config.priority));
    }
}

impl Step<'_> {
    fn note(&mut self, fact: BudgetFact) {
        self.push(TaskEvent::Budget { fact: Box::new(fact) });
    }

    fn tell_of_budget(&mut self, task: TaskId, told: BudgetMessage) {
        self.tell(task, &TaskCommand::Budget { told: Box::new(told) });
    }

    /// The part of each child of a fork, set aside when the first of them are made. A child has no part where the task has no budget.
    pub(super) fn part_of_each(&mut self, node: &NodeId, children: u32) -> Budget {
        if let Some(aside) = self.state().spending.aside.get(node) {
            return aside.each;
        }
        let Some(free) = self.state().free(self.stamp.at) else { return self.config.budget };
        let each = free.part_of(children);
        self.note(BudgetFact::SetAside { node: node.clone(), each, children });
        each
    }

    /// The limits of the next round of an agent, narrowed to what is free; none if nothing is, and the node waits or has failed.
    pub(super) fn limits_of_round(&mut self, limits: Limits, round: u32) -> Option<Limits> {
        let Some(free) = self.state().free(self.stamp.at) else { return Some(limits) };
        if free.exhausted().is_none() {
            return Some(free.narrows(limits));
        }
        self.wait_for_budget(round);
        None
    }

    /// Whether a round of a conversation ended at its part of the budget, and not at a limit of its own. A limit is that of one round.
    pub(super) fn is_end_of_budget(&self, answer: &AgentAnswer, limits: Limits) -> bool {
        let Some(free) = self.state().free(self.stamp.at) else { return false };
        let used = answer.usage;
        match answer.stop_reason.as_str() {
            "token_limit" => self.config.budget.max_tokens.is_some() && used.tokens() < limits.max_tokens,
            "cost_limit" => self.config.budget.max_cost_usd.is_some() && used.cost_usd < limits.max_cost_usd,
            "time_limit" => free.exhausted() == Some(BudgetPart::Time),
            _ => false,
        }
    }

    /// The node that executes waits for more.
    pub(super) fn wait_for_budget(&mut self, round: u32) {
        let Some(execution) = &self.state().execution else { return };
        let (node, attempt, at) = (execution.node.clone(), execution.attempt, self.stamp.at);
        self.push(TaskEvent::Waiting { node, attempt, wait: Wait::Budget { round }, at });
        self.share();
    }

    /// Takes in a message about the budget.
    pub(super) fn budget_told(&mut self, told: BudgetMessage) {
        if self.state().finished.is_some() || self.state().free(self.stamp.at).is_none() {
            return;
        }
        if self.state().spending.knows(&told) {
            return self.share();
        }
        match told {
            BudgetMessage::Ask { child } => self.note(BudgetFact::Asked { child }),
            BudgetMessage::Return { child, used } => self.note(BudgetFact::Returned { child, used }),
            BudgetMessage::Late { used, task } => self.note(BudgetFact::Late { used, task }),
            BudgetMessage::Grant { more } => self.note(BudgetFact::Granted { more }),
            BudgetMessage::Refuse => {
                self.note(BudgetFact::RefusedAbove);
                return self.refuse_all();
            }
        }
        self.share();
    }

    /// The rounds of the agent of the node that waits for more, if one does and the task is not paused.
    fn waiting_round(&self) -> Option<u32> {
        let state = self.state();
        match state.execution.as_ref().filter(|_| state.inspector.paused_at.is_none())?.mode {
            Mode::Waiting { wait: Wait::Budget { round } } => Some(round),
            _ => None,
        }
    }

    /// Gives what is free to those that wait for it, children first; asks the task above, or refuses, where nothing can become free.
    pub(super) fn share(&mut self) {
        loop {
            let (own, asking) = (self.waiting_round(), self.state().spending.asking.len() as u32);
            // An agent at work may use all that is free.
            let works = matches!(self.state().execution.as_ref().map(|it| &it.mode), Some(Mode::Agent { .. }));
            let Some(free) = self.state().free(self.stamp.at).filter(|_| !works && (own.is_some() || asking > 0))
            else {
                return;
            };
            match free.exhausted() {
                None => match self.state().spending.asking.first().cloned() {
                    Some(child) => {
                        let part = free.part_of(asking + u32::from(own.is_some()));
                        let more = if part.exhausted().is_none() { part } else { free };
                        self.tell_of_budget(child.task, BudgetMessage::Grant { more });
                        self.note(BudgetFact::Given { child, more });
                    }
                    None => return self.go_on_within_budget(),
                },
                Some(BudgetPart::Time) => return self.refuse_all(),
                Some(BudgetPart::Tokens | BudgetPart::Money) => {
                    let spending = &self.state().spending;
                    let others_work = spending.live(&self.state().place) > asking;
                    match self.config.origin.clone() {
                        _ if others_work || spending.asks_above => {}
                        Some(origin) => {
                            self.note(BudgetFact::AskedAbove);
                            let child = BudgetChild::of(&origin, self.config.task);
                            self.tell_of_budget(origin.parent, BudgetMessage::Ask { child });
                        }
                        None => self.refuse_all(),
                    }
                    return;
                }
            }
        }
    }

    /// The node that waits for more goes on, if there is more and the task is not to pause.
    pub(super) fn go_on_within_budget(&mut self) {
        let (Some(round), Some(execution)) = (self.waiting_round(), &self.state().execution) else { return };
        let (node, attempt) = (execution.node.clone(), execution.attempt);
        if self.is_held_back(&node) {
            return;
        }
        if round == 0 {
            let begins = NodeStart::first(node, self.state().place.current.clone(), 0);
            return self.begin_node(NodeStart { attempt: attempt + 1, ..begins });
        }
        self.ask_again(&node, round, GO_ON.into());
    }

    /// There is no more for those that wait.
    fn refuse_all(&mut self) {
        while let Some(child) = self.state().spending.asking.first().cloned() {
            self.tell_of_budget(child.task, BudgetMessage::Refuse);
            self.note(BudgetFact::Refused { child });
        }
        if self.waiting_round().is_some() {
            let part = self.state().free(self.stamp.at).and_then(|free| free.exhausted());
            self.fail(used_up(part.unwrap_or(BudgetPart::Tokens)));
        }
    }
}

fn used_up(part: BudgetPart) -> Error {
    let text = match part {
        BudgetPart::Tokens => "the tokens of the task's budget are used up",
        BudgetPart::Money => "the money of the task's budget is used up",
        BudgetPart::Time => "the time of the task's budget is up",
    };
    let hint = "what has been done is kept: retry the task with a larger `budget`, or raise that in execution.yaml for later tasks";
    Error::new(Code::LimitReached, text).hint(hint).detail("budget", json!(part))
}
