//! Budgets: amounts of tokens, money and time. A turn sets a part of its own aside for each agent that works for it, so all of them together
//! stay within the limits of the turn.

use crate::{Limits, Usage};
use serde::{Deserialize, Serialize};

/// An amount of tokens, money and time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Tokens read and written.
    pub tokens: u64,
    /// US dollars.
    pub cost_usd: f64,
    /// Milliseconds. Agents work side by side, so time is not divided among them.
    pub wall_ms: u64,
}

impl Budget {
    /// The tokens and the money that remain after this usage.
    #[must_use]
    pub fn without(self, used: Usage) -> Self {
        let tokens = self.tokens.saturating_sub(used.input_tokens + used.output_tokens);
        Self { tokens, cost_usd: (self.cost_usd - used.cost_usd).max(0.0), ..self }
    }

    /// The tokens and the money that remain after this part is set aside.
    #[must_use]
    pub fn beside(self, aside: Self) -> Self {
        let tokens = self.tokens.saturating_sub(aside.tokens);
        Self { tokens, cost_usd: (self.cost_usd - aside.cost_usd).max(0.0), ..self }
    }

    /// One of so many equal parts of the tokens and the money.
    #[must_use]
    pub fn part_of(self, parts: usize) -> Self {
        let parts = u32::try_from(parts.max(1)).unwrap_or(u32::MAX);
        Self { tokens: self.tokens / u64::from(parts), cost_usd: self.cost_usd / f64::from(parts), ..self }
    }

    /// These limits, narrowed to the budget.
    #[must_use]
    pub fn narrows(&self, limits: Limits) -> Limits {
        let Self { tokens: max_tokens, cost_usd: max_cost_usd, wall_ms: max_wall_ms } = *self;
        Limits { max_tokens, max_cost_usd, max_wall_ms, ..limits }.within(limits)
    }
}
