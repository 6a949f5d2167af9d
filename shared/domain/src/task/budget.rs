//! The budgets of a tree of tasks: tokens, money and time for the agents of a task and of all tasks below it (spec 002 §10.12).
//!
//! A task sets a part aside for each child that it makes, until that child has ended; the unused rest is free again then. A task that has
//! nothing left asks the one above for more.

use super::{NodeId, Origin};
use crate::{Limits, TaskId, Timestamp, Usage};
use serde::{Deserialize, Serialize};

/// Fewer tokens are not worth a call of a model.
pub const LEAST_TOKENS: u64 = 200;

/// An amount of tokens, money and time. A part that is left out has no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TaskBudget {
    /// Tokens read and written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost_usd: Option<f64>,
    /// Milliseconds since the task was made, waits included. Tasks work side by side, so time is not divided among them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_wall_ms: Option<u64>,
}

impl TaskBudget {
    /// Whether no part of it has a limit.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// These parts, and those of `other` where there are none.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            max_tokens: self.max_tokens.or(other.max_tokens),
            max_cost_usd: self.max_cost_usd.or(other.max_cost_usd),
            max_wall_ms: self.max_wall_ms.or(other.max_wall_ms),
        }
    }

    /// The tokens and the money together with those of `more`; a part without a limit keeps none.
    #[must_use]
    pub fn with(self, more: Self) -> Self {
        let (tokens, cost_usd) = (more.max_tokens.unwrap_or_default(), more.max_cost_usd.unwrap_or_default());
        Self {
            max_tokens: self.max_tokens.map(|own| own.saturating_add(tokens)),
            max_cost_usd: self.max_cost_usd.map(|own| own + cost_usd),
            ..self
        }
    }

    /// The tokens and the money that remain after so many times `aside` is set aside.
    #[must_use]
    pub fn beside(self, aside: Self, times: u32) -> Self {
        let tokens = aside.max_tokens.unwrap_or_default().saturating_mul(u64::from(times));
        let cost_usd = aside.max_cost_usd.unwrap_or_default() * f64::from(times);
        Self {
            max_tokens: self.max_tokens.map(|own| own.saturating_sub(tokens)),
            max_cost_usd: self.max_cost_usd.map(|own| (own - cost_usd).max(0.0)),
            ..self
        }
    }

    /// The tokens and the money that remain after this usage.
    #[must_use]
    pub fn without(self, used: Usage) -> Self {
        self.beside(used.into(), 1)
    }

    /// The same at `now` for a task that was made at `since`: its time is the time that is left.
    #[must_use]
    pub fn at(self, now: Timestamp, since: Timestamp) -> Self {
        let passed = now.since(since).as_millis() as u64;
        Self { max_wall_ms: self.max_wall_ms.map(|own| own.saturating_sub(passed)), ..self }
    }

    /// One of so many equal parts of the tokens and the money.
    #[must_use]
    pub fn part_of(self, parts: u32) -> Self {
        let parts = parts.max(1);
        Self {
            max_tokens: self.max_tokens.map(|own| own / u64::from(parts)),
            max_cost_usd: self.max_cost_usd.map(|own| own / f64::from(parts)),
            ..self
        }
    }

    /// The part of it that is too small for a call of a model, if one is.
    pub fn exhausted(&self) -> Option<BudgetPart> {
        let tokens = self.max_tokens.filter(|left| *left < LEAST_TOKENS).map(|_| BudgetPart::Tokens);
        let money = self.max_cost_usd.filter(|left| *left <= 0.0).map(|_| BudgetPart::Money);
        let time = self.max_wall_ms.filter(|left| *left == 0).map(|_| BudgetPart::Time);
        time.or(tokens).or(money)
    }

    /// These limits of a conversation, narrowed to the budget.
    #[must_use]
    pub fn narrows(&self, limits: Limits) -> Limits {
        Limits {
            max_tokens: self.max_tokens.unwrap_or(u64::MAX),
            max_cost_usd: self.max_cost_usd.unwrap_or(f64::MAX),
            max_wall_ms: self.max_wall_ms.unwrap_or(u64::MAX),
            ..limits
        }
        .within(limits)
    }
}

impl From<Usage> for TaskBudget {
    fn from(used: Usage) -> Self {
        Self {
            max_tokens: Some(used.input_tokens + used.output_tokens),
            max_cost_usd: Some(used.cost_usd),
            max_wall_ms: None,
        }
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
    /// From the task above: so much more.
    Grant {
        /// How much.
        more: TaskBudget,
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
        each: TaskBudget,
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
        more: TaskBudget,
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
    /// The task asked the one above it for more.
    AskedAbove,
    /// It got more from there.
    Granted {
        /// How much.
        more: TaskBudget,
    },
    /// It got no more from there.
    RefusedAbove,
}
