//! The limits of a turn.

use serde::{Deserialize, Serialize};

/// The limits of one turn; reaching one ends the turn with a stop reason and keeps the results so far.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Model calls.
    pub max_steps: u32,
    /// Tokens read and written, all model calls together.
    pub max_tokens: u64,
    /// Milliseconds since the turn started, without the time that it waited for people.
    pub max_wall_ms: u64,
    /// US dollars.
    pub max_cost_usd: f64,
}

impl Limits {
    /// A limit of the steps alone: within other limits it narrows nothing else.
    pub fn of_steps(max_steps: u32) -> Self {
        let most = i64::MAX.unsigned_abs();
        Self { max_steps, max_tokens: most, max_wall_ms: most, max_cost_usd: f64::from(u32::MAX) }
    }

    /// The narrower of both, each by itself.
    #[must_use]
    pub fn within(self, outer: Self) -> Self {
        Self {
            max_steps: self.max_steps.min(outer.max_steps),
            max_tokens: self.max_tokens.min(outer.max_tokens),
            max_wall_ms: self.max_wall_ms.min(outer.max_wall_ms),
            max_cost_usd: self.max_cost_usd.min(outer.max_cost_usd),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_steps: 200, max_tokens: 5_000_000, max_wall_ms: 3_600_000, max_cost_usd: 20.0 }
    }
}
