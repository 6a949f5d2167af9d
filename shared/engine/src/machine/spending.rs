//! The state of the budget of a task: a fold of the facts about it. `budget` decides by it.

use domain::{
    Budget, NodeId, TaskId, Usage,
    task::{BudgetChild, BudgetFact, BudgetMessage},
};
use flow::router::{Position, RouteState};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The use of a budget so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spending {
    /// The usage of children that have ended, and of all below them.
    pub below: Usage,
    /// The parts of children that have not ended, by fork.
    pub aside: BTreeMap<NodeId, ForkBudget>,
    /// The children that wait for more, in the order in which they asked.
    pub asking: Vec<BudgetChild>,
    /// Whether the task has asked the one above, and has no answer yet.
    pub asks_above: bool,
    /// The tasks below whose agents told their usage after the task had: each has one such agent at most.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub late: BTreeSet<TaskId>,
}

/// The parts of the children of a fork.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ForkBudget {
    /// The part of each.
    pub each: Budget,
    /// How many there were to be.
    pub children: u32,
    /// The places of those that have ended.
    pub returned: BTreeSet<u32>,
    /// More that some got, by place.
    pub more: BTreeMap<u32, Budget>,
}

impl ForkBudget {
    /// How many have a part: those that were made, or still will be, and have not ended.
    fn live(&self, node: &NodeId, place: &RouteState) -> u32 {
        // One that has ended sends off no more.
        let has_ended = place.position == Position::Ended;
        let made = place.forks.get(node).map(|fork| if has_ended { fork.spawned } else { fork.total });
        let made = made.or_else(|| place.spent.get(node).copied());
        made.unwrap_or(self.children).min(self.children).saturating_sub(self.returned.len() as u32)
    }
}

impl Spending {
    /// Whether nothing was set aside, used or asked for: so it is for tasks without a budget.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn apply(&mut self, fact: &BudgetFact) {
        match fact {
            BudgetFact::SetAside { node, each, children } => {
                let aside = ForkBudget { each: *each, children: *children, ..ForkBudget::default() };
                self.aside.insert(node.clone(), aside);
            }
            BudgetFact::Asked { child } => self.asking.push(child.clone()),
            BudgetFact::Given { child, more } => {
                self.asking.retain(|asking| asking != child);
                if let Some(aside) = self.aside.get_mut(&child.node) {
                    let own = aside.more.entry(child.index).or_insert_with(|| Usage::default().into());
                    *own = own.with(*more);
                }
            }
            BudgetFact::Refused { child } => self.asking.retain(|asking| asking != child),
            BudgetFact::Returned { child, used } => {
                self.asking.retain(|asking| asking != child);
                let Some(aside) = self.aside.get_mut(&child.node) else { return };
                aside.more.remove(&child.index);
                if aside.returned.insert(child.index) {
                    self.below += *used;
                }
            }
            BudgetFact::Late { used, task } => {
                if task.is_none_or(|task| self.late.insert(task)) {
                    self.below += *used;
                }
            }
            // That is the task's own.
            BudgetFact::AgentEnded { .. } => {}
            BudgetFact::AskedAbove => self.asks_above = true,
            BudgetFact::Granted { .. } | BudgetFact::RefusedAbove => self.asks_above = false,
        }
    }

    /// Whether a message tells nothing new. A sender that is resumed sends its last messages again, and the mailbox of a task with many
    /// children has forgotten them by then. An answer from above that was not asked for is such a message, too.
    pub(super) fn knows(&self, told: &BudgetMessage) -> bool {
        match told {
            BudgetMessage::Ask { child } => self.asking.contains(child) || self.has_returned(child),
            BudgetMessage::Return { child, .. } => self.has_returned(child),
            BudgetMessage::Late { task, .. } => task.is_some_and(|task| self.late.contains(&task)),
            BudgetMessage::Grant { .. } | BudgetMessage::Refuse => !self.asks_above,
        }
    }

    /// Whether the usage of a child is known, and that of all below it.
    fn has_returned(&self, child: &BudgetChild) -> bool {
        self.aside.get(&child.node).is_some_and(|aside| aside.returned.contains(&child.index))
    }

    /// How many children have a part.
    pub(super) fn live(&self, place: &RouteState) -> u32 {
        self.aside.iter().map(|(node, aside)| aside.live(node, place)).sum()
    }

    /// The rest of this budget that is neither used by children nor set aside for them.
    pub(super) fn rest_of(&self, budget: Budget, place: &RouteState) -> Budget {
        self.aside.iter().fold(budget.without(self.below), |rest, (node, aside)| {
            let rest = rest.beside(aside.each, aside.live(node, place));
            aside.more.values().fold(rest, |rest, more| rest.beside(*more, 1))
        })
    }
}
