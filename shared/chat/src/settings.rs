//! How chats are set up on an installation.

use domain::{ExecutorLimits, Limits, session::SessionBudget};
use std::time::Duration;

/// How chats are set up.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// An idle chat can be told to stop for this long (spec 000 §3A, §6D).
    pub inactivity: Duration,
    /// The context budget of new chats, in tokens.
    pub context_tokens: u64,
    /// Limits of each turn of a new chat.
    pub limits: Limits,
    /// How sessions of the planner chat are set up.
    pub sessions: SessionSettings,
}

/// How sessions of the planner chat are set up.
#[derive(Clone, Copy, Debug)]
pub struct SessionSettings {
    /// The context budget of a new session, in tokens (spec 003 §3); that of chats where it is smaller.
    pub context_tokens: u64,
    /// The budgets of the parts of its contexts.
    pub budgets: SessionBudget,
    /// The limits of its executors.
    pub executors: ExecutorLimits,
}

impl Default for SessionSettings {
    fn default() -> Self {
        Self { context_tokens: 10_000, budgets: SessionBudget::default(), executors: ExecutorLimits::default() }
    }
}

impl Default for Settings {
    fn default() -> Self {
        let (inactivity, context_tokens) = (Duration::from_secs(600), 100_000);
        Self { inactivity, context_tokens, limits: Limits::default(), sessions: SessionSettings::default() }
    }
}
