//! Budgets: amounts of tokens, money and time. A turn or a task sets a part of its own aside for each agent, clone or subtask that works for it, so
//! all of them together stay within its limits.

use crate::{Limits, Usage};
use serde::{Deserialize, Serialize};

/// An amount of tokens, money and time. A part that is left out has no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// Tokens read and written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost_usd: Option<f64>,
    /// Milliseconds, waits of a task included. Agents and tasks work side by side, so time is not divided among them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_wall_ms: Option<u64>,
}

impl Budget {
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

impl From<Usage> for Budget {
    fn from(used: Usage) -> Self {
        Self { max_tokens: Some(used.tokens()), max_cost_usd: Some(used.cost_usd), max_wall_ms: None }
    }
}

/// The form of a budget in the log of a chat: all three parts, by names of their own. For `#[serde(with)]`.
pub mod of_turn {
    use super::Budget;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Parts {
        tokens: u64,
        cost_usd: f64,
        wall_ms: u64,
    }

    /// Writes a budget, a part without a limit as the largest number.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(budget: &Option<Budget>, serializer: S) -> Result<S::Ok, S::Error> {
        let parts = |Budget { max_tokens, max_cost_usd, max_wall_ms }: Budget| Parts {
            tokens: max_tokens.unwrap_or(u64::MAX),
            cost_usd: max_cost_usd.unwrap_or(f64::MAX),
            wall_ms: max_wall_ms.unwrap_or(u64::MAX),
        };
        budget.map(parts).serialize(serializer)
    }

    /// Reads a budget of three parts.
    ///
    /// # Errors
    /// Those of the deserializer.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Budget>, D::Error> {
        let budget = |Parts { tokens, cost_usd, wall_ms }: Parts| Budget {
            max_tokens: Some(tokens),
            max_cost_usd: Some(cost_usd),
            max_wall_ms: Some(wall_ms),
        };
        Ok(Option::<Parts>::deserialize(deserializer)?.map(budget))
    }
}
