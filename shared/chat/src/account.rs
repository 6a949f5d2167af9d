//! The usage of a turn, and the limits that end it.

use crate::state::Turn;
use domain::{Limits, StopReason, Timestamp, TurnId, Usage};
use std::time::Duration;

/// The usage of a turn beside its limits.
#[derive(Clone)]
pub(crate) struct Account {
    pub id: TurnId,
    pub limits: Limits,
    pub steps: u32,
    pub usage: Usage,
    pub started_at: Option<Timestamp>,
    pub waited_ms: u64,
}

impl Account {
    pub fn of(turn: &Turn) -> Self {
        Self {
            id: turn.id,
            limits: turn.limits,
            steps: turn.steps,
            usage: turn.usage,
            started_at: turn.started_at,
            waited_ms: turn.waited_ms,
        }
    }

    /// Counts the time that ends now, in which the turn waited for a person or for slots.
    pub fn waited(&mut self, turn: &Turn, now: Timestamp) {
        self.waited_ms = turn.waited_until(now);
    }

    pub fn deadline(&self, now: Timestamp) -> Timestamp {
        self.started_at.unwrap_or(now) + Duration::from_millis(self.limits.max_wall_ms.saturating_add(self.waited_ms))
    }

    /// The limit that is reached, if one is.
    pub fn reached(&self, now: Timestamp) -> Option<StopReason> {
        if self.steps >= self.limits.max_steps {
            Some(StopReason::StepLimit)
        } else if self.usage.input_tokens + self.usage.output_tokens >= self.limits.max_tokens {
            Some(StopReason::TokenLimit)
        } else if self.usage.cost_usd >= self.limits.max_cost_usd && self.usage.cost_usd > 0.0 {
            Some(StopReason::CostLimit)
        } else if now >= self.deadline(now) {
            Some(StopReason::TimeLimit)
        } else {
            None
        }
    }
}
