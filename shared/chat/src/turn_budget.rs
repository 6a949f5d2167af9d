//! The limits that end a turn.

use crate::state::Turn;
use domain::{StopReason, Timestamp};
use std::time::Duration;

impl Turn {
    /// When its wall time is up; a wait that still lasts counts until `now`.
    pub(crate) fn deadline(&self, now: Timestamp) -> Timestamp {
        let granted_ms = self.limits.max_wall_ms.saturating_add(self.waited_until(now));
        self.started_at.unwrap_or(now) + Duration::from_millis(granted_ms)
    }

    /// The limit that is reached, if one is.
    pub(crate) fn reached(&self, now: Timestamp) -> Option<StopReason> {
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
