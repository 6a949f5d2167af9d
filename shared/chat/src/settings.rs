//! How chats are set up on an installation.

use domain::Limits;
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
}

impl Default for Settings {
    fn default() -> Self {
        Self { inactivity: Duration::from_secs(600), context_tokens: 100_000, limits: Limits::default() }
    }
}
