//! The budgets of a tree of tasks: tokens, money and time for the agents of a task and of all tasks below it (spec 002 §10.12).
//!
//! A task sets a part aside for each child that it makes, until that child has ended; the unused rest is free again then. A task that has
//! nothing left asks the one above for more.

use super::{NodeId, Origin};
use crate::{Budget, TaskId, Timestamp, Usage};
use serde::{Deserialize, Serialize};

/// Fewer tokens are not worth a call of a model.
pub const LEAST_TOKENS: u64 = 200;

impl Budget {
    /// The same at `now` for a task that was made at `since`: its time is the time that is left.
    #[must_use]
    pub fn at(self, now: Timestamp, since: Timestamp) -> Self {
        let passed = now.since(since).as_millis() as u64;
        Self { max_wall_ms: self.max_wall_ms.map(|own| own.saturating_sub(passed)), ..self }
    }

    /// The part of it that is too small for a call of a model, if one is.
    pub fn exhausted(&self) -> Option<BudgetPart> {
        let tokens = self.max_tokens.filter(|left| *left < LEAST_TOKENS).map(|_| BudgetPart::Tokens);
        let money = self.max_cost_usd.filter(|left| *left <= 0.0).map(|_| BudgetPart::Money);
        let time = self.max_wall_ms.filter(|left| *left == 0).map(|_| BudgetPart::Time);
        time.or(tokens).or(money)
    }
}

/// A part of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetPart {
    /// Tokens.
    Tokens,
    /// Money.
    Money,
    /// Time.
    Time,
}

/// A child in messages and facts about the budget of the task that made it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BudgetChild {
    /// The fork that made it.
    pub node: NodeId,
    /// Its place among its siblings, from 0.
    pub index: u32,
    /// The child.
    pub task: TaskId,
}

impl BudgetChild {
    /// The task `task` of this origin.
    pub fn of(origin: &Origin, task: TaskId) -> Self {
        Self { node: origin.node.clone(), index: origin.index, task }
    }
}

/// A message about a budget between a task and one that it made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "snake_case", deny_unknown_fields)]
pub enum BudgetMessage {
    /// From a child: it needs more.
    Ask {
        /// The child.
        child: BudgetChild,
    },
    /// From a child: it has ended, and what it did not use is free again.
    Return {
        /// The child.
        child: BudgetChild,
        /// Its usage and that of all below it. One below it that still works counts with all that was set aside for it.
        used: Usage,
    },
    /// From a child that has told its usage: an agent that was stopped with a task has told its own since.
    Late {
        /// The usage of the agent.
        used: Usage,
        /// The task of the agent, by which its usage counts once, however often the message comes; none where the sender does not tell it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<TaskId>,
    },
    /// From the task above: so much more.
    Grant {
        /// How much.
        more: Budget,
    },
    /// From the task above: there is no more.
    Refuse,
}

/// A fact about the budget of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "fact", rename_all = "snake_case")]
pub enum BudgetFact {
    /// A part was set aside for each child of a fork.
    SetAside {
        /// The fork.
        node: NodeId,
        /// How much for each.
        each: Budget,
        /// How many there will be.
        children: u32,
    },
    /// A child asked for more.
    Asked {
        /// The child.
        child: BudgetChild,
    },
    /// A child got more.
    Given {
        /// The child.
        child: BudgetChild,
        /// How much.
        more: Budget,
    },
    /// A child asked for more, and there was none.
    Refused {
        /// The child.
        child: BudgetChild,
    },
    /// A child has ended, and the rest of its part is free again.
    Returned {
        /// The child.
        child: BudgetChild,
        /// Its usage and that of all below it.
        used: Usage,
    },
    /// The agent that was at work when the task was stopped has told its usage. A task without a budget notes it, too.
    AgentEnded {
        /// The node.
        node: NodeId,
        /// The usage of the agent.
        used: Usage,
        /// The model that answered, where that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    },
    /// The same of an agent of a task below, whose own usage was told before.
    Late {
        /// The usage of the agent.
        used: Usage,
        /// The task of the agent, as the message has it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<TaskId>,
    },
    /// The task asked the one above it for more.
    AskedAbove,
    /// It got more from there.
    Granted {
        /// How much.
        more: Budget,
    },
    /// It got no more from there.
    RefusedAbove,
}
