//! The limits that end a turn, and the budgets that it sets aside for its agents: the executors of a plan, or a team.
//!
//! An agent that is begun gets a budget out of what is free. It is set aside until the agent has ended; then its usage counts, and the rest is
//! free again. So a turn and its agents never have more than the limits of the turn, but for the last call of the model of each, which is
//! begun within its budget and may end above it. An agent at the end of its budget ends its turn with what it has; that end is its request
//! for more, and the turn decides.

use crate::state::{ChatState, Turn};
use domain::{Budget, ChatEvent, StopReason, TeamFact, Timestamp, Usage, task::BudgetPart};
use std::time::Duration;

impl Turn {
    /// When its wall time is up; a wait that still lasts counts until `now`. After the clock was set back no work gets more than the whole time.
    pub(crate) fn deadline(&self, now: Timestamp) -> Timestamp {
        let granted_ms = self.limits.max_wall_ms.saturating_add(self.waited_until(now));
        self.started_at.map_or(now, |started| started.min(now)) + Duration::from_millis(granted_ms)
    }

    /// Its usage with that of its agents.
    pub(crate) fn spent(&self) -> Usage {
        let mut spent = self.usage;
        spent += self.agents_usage;
        spent
    }

    /// The limit that is reached, if one is.
    pub(crate) fn reached(&self, now: Timestamp) -> Option<StopReason> {
        let spent = self.spent();
        if self.steps >= self.limits.max_steps {
            Some(StopReason::StepLimit)
        } else if spent.tokens() >= self.limits.max_tokens {
            Some(StopReason::TokenLimit)
        } else if spent.cost_usd >= self.limits.max_cost_usd && spent.cost_usd > 0.0 {
            Some(StopReason::CostLimit)
        } else if now >= self.deadline(now) {
            Some(StopReason::TimeLimit)
        } else {
            None
        }
    }

    /// The limit because of which nothing is begun with this budget, if that is so. A turn that may cost nothing has free models.
    pub(crate) fn exhausts(&self, budget: Budget) -> Option<StopReason> {
        match budget.exhausted()? {
            BudgetPart::Time => Some(StopReason::TimeLimit),
            BudgetPart::Tokens => Some(StopReason::TokenLimit),
            BudgetPart::Money => (self.limits.max_cost_usd > 0.0).then_some(StopReason::CostLimit),
        }
    }

    /// The budget that nobody has: not spent, and not set aside for an agent that works.
    pub(crate) fn free(&self, now: Timestamp) -> Budget {
        let wall_ms = u64::try_from(self.deadline(now).since(now).as_millis()).unwrap_or(u64::MAX);
        let all = Budget {
            max_tokens: Some(self.limits.max_tokens),
            max_cost_usd: Some(self.limits.max_cost_usd),
            max_wall_ms: Some(wall_ms),
        };
        let executors = self.planning.as_ref().and_then(|planning| planning.run.as_ref());
        let aside = executors.into_iter().flat_map(|run| run.budgets());
        let aside = aside.chain(self.team.iter().flat_map(|team| team.budgets()));
        aside.fold(all.without(self.spent()), |left, part| left.beside(part, 1))
    }
}

impl ChatState {
    /// Counts the usage of an agent that has ended: once, by the event that tells its end.
    pub(crate) fn count_agents(&mut self, event: &ChatEvent) {
        let (usage, is_late) = match event {
            ChatEvent::StepEnded { result, .. } => (result.usage, false),
            ChatEvent::Team { fact } => match &**fact {
                TeamFact::MemberEnded { end, .. } => (end.usage, false),
                TeamFact::Late { usage, .. } => (*usage, true),
                TeamFact::Called { .. } | TeamFact::Looked { .. } | TeamFact::Started { .. } => return,
            },
            _ => return,
        };
        self.agents_usage += usage;
        if let Some(turn) = self.turn.as_mut().filter(|_| !is_late) {
            turn.agents_usage += usage;
        }
    }
}
