//! `[planner]`: the contexts of sessions of the planner chat, the limits of their executors, and their pace.

use crate::{Config, SetupError};
use chat::SessionSettings;
use domain::{ExecutorLimits, session::SessionBudget};
use identity::Allowance;
use ports::Clock;
use serde::Deserialize;
use std::sync::Arc;

/// `[planner]`
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Planner {
    /// The context budget of a new session, in tokens; that of `ai.context_tokens` where it is smaller.
    pub context_tokens: u64,
    /// Tokens of the conversation that the analysis of a message reads.
    pub conversation_tokens: u32,
    /// Tokens of the location, such as a project with its tasks, in the system text of a session.
    pub location_tokens: u32,
    /// Tokens of the profile of the person, `/users/<id>/profile.md`, in the system text of a session.
    pub profile_tokens: u32,
    /// Tokens of the task of an executor, and of the goal of it with its constraints.
    pub task_tokens: u32,
    /// Tokens of the results of other steps that an executor is given.
    pub data_tokens: u32,
    /// Tokens of the result of a tool in a session, and of the results of a plan together.
    pub result_tokens: u32,
    /// Tokens of the declarations of tools in a session. Tools beyond it are declared shortly, or named and shown on demand; at most a quarter of
    /// `context_tokens` counts.
    pub tools_tokens: u32,
    /// The same for an executor.
    pub executor_tools_tokens: u32,
    /// How many executors of a plan run at once.
    pub executors_at_once: u32,
    /// How many calls of tools an executor may make.
    pub executor_calls: u32,
    /// How often an executor may repeat a call that failed.
    pub executor_retries: u32,
    /// How long an executor may take, in seconds.
    pub executor_seconds: u64,
    /// How many tokens an executor may use, in all its calls of the model.
    pub executor_tokens: u64,
    /// How many messages per minute a person may send to the planner chat; 0 for any number. Where people have accounts,
    /// `auth.requests_per_minute` counts them among all requests.
    pub requests_per_minute: u32,
    /// How many tokens per minute the sessions of a person may use, with their executors; 0 for any number. Where people have accounts,
    /// `auth.tokens_per_minute` counts them among those of all turns.
    pub tokens_per_minute: u64,
}

impl Config {
    /// Whether every caller of a hub needs a credential; see [`crate::Auth::is_guarded`].
    pub fn is_guarded(&self) -> bool {
        self.auth.is_guarded(self.server.auth_token.as_ref())
    }

    /// The door of a hub, with the pace of its people.
    ///
    /// # Errors
    /// Those of [`crate::Auth::door`].
    pub fn door(&self, clock: Arc<dyn Clock>) -> Result<api::Auth, SetupError> {
        let door = self.auth.door(self.server.auth_token.as_ref(), clock)?;
        Ok(match self.planner.allowance() {
            Some(allowance) => door.limiting_sessions(allowance),
            None => door,
        })
    }
}

impl Default for Planner {
    fn default() -> Self {
        Self {
            context_tokens: 10_000,
            conversation_tokens: 2_500,
            location_tokens: 1_000,
            profile_tokens: 300,
            task_tokens: 200,
            data_tokens: 400,
            result_tokens: 1_700,
            tools_tokens: 1_500,
            executor_tools_tokens: 400,
            executors_at_once: 3,
            executor_calls: 10,
            executor_retries: 2,
            executor_seconds: 60,
            executor_tokens: 30_000,
            requests_per_minute: 20,
            tokens_per_minute: 30_000,
        }
    }
}

impl Planner {
    /// A key whose value makes no sense beside the others, and why.
    pub(super) fn fault(&self) -> Option<(&'static str, String)> {
        let parts =
            [self.conversation_tokens, self.location_tokens, self.profile_tokens].map(u64::from).iter().sum::<u64>();
        if parts > self.context_tokens {
            let context = self.context_tokens;
            let words = format!(
                "a session has {context} tokens, and its conversation, location and profile {parts}; raise it, or lower these"
            );
            return Some(("context_tokens", words));
        }
        let counts = [
            ("conversation_tokens", u64::from(self.conversation_tokens)),
            ("task_tokens", self.task_tokens.into()),
            ("executors_at_once", self.executors_at_once.into()),
            ("executor_calls", self.executor_calls.into()),
            ("executor_seconds", self.executor_seconds),
            ("executor_tokens", self.executor_tokens),
            ("result_tokens", self.result_tokens.into()),
            ("tools_tokens", self.tools_tokens.into()),
            ("executor_tools_tokens", self.executor_tools_tokens.into()),
        ];
        let (key, _) = counts.into_iter().find(|(_, count)| *count == 0)?;
        Some((key, "0 would let no plan be made or carried out; write 1 or more".to_owned()))
    }

    /// The limits of a person's messages where requests have none; none for any number of both.
    fn allowance(&self) -> Option<Allowance> {
        let (requests, tokens) = (Some(self.requests_per_minute), Some(self.tokens_per_minute));
        let (requests, tokens) = (requests.filter(|most| *most > 0), tokens.filter(|most| *most > 0));
        (requests.is_some() || tokens.is_some())
            .then(|| Allowance { requests: requests.unwrap_or(u32::MAX), tokens: tokens.unwrap_or(u64::MAX) })
    }

    /// How sessions are set up.
    pub(super) fn sessions(&self) -> SessionSettings {
        SessionSettings {
            context_tokens: self.context_tokens,
            budgets: SessionBudget {
                conversation: self.conversation_tokens,
                location: self.location_tokens,
                profile: self.profile_tokens,
                task: self.task_tokens,
                data: self.data_tokens,
                results: self.result_tokens,
                tools: self.tools_tokens,
                executor_tools: self.executor_tools_tokens,
            },
            executors: ExecutorLimits {
                at_once: self.executors_at_once,
                max_calls: self.executor_calls,
                max_retries: self.executor_retries,
                max_wall_ms: self.executor_seconds.saturating_mul(1_000),
                max_tokens: self.executor_tokens,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_chats() {
        let (ours, theirs) = (Planner::default().sessions(), SessionSettings::default());
        assert_eq!(
            (ours.context_tokens, ours.budgets, ours.executors),
            (theirs.context_tokens, theirs.budgets, theirs.executors)
        );
        assert_eq!(Planner::default().fault(), None);
    }

    #[test]
    fn messages_have_a_pace_unless_somebody_says_no() {
        let pace = |requests_per_minute, tokens_per_minute| {
            let planner = Planner { requests_per_minute, tokens_per_minute, ..Planner::default() };
            planner.allowance().map(|allowance| (allowance.requests, allowance.tokens))
        };
        assert_eq!(Planner::default().allowance(), Some(Allowance::default()));
        assert_eq!(pace(5, 0), Some((5, u64::MAX)));
        assert_eq!(pace(0, 7), Some((u32::MAX, 7)));
        assert_eq!(pace(0, 0), None);
    }

    #[test]
    fn parts_that_are_more_than_the_whole_and_counts_of_nothing_are_refused() {
        let key = |planner: Planner| planner.fault().map(|(key, _)| key);
        assert_eq!(key(Planner { context_tokens: 3_799, ..Planner::default() }), Some("context_tokens"));
        assert_eq!(key(Planner { context_tokens: 3_800, ..Planner::default() }), None);
        assert_eq!(key(Planner { executor_calls: 0, ..Planner::default() }), Some("executor_calls"));
        assert_eq!(key(Planner { executor_tokens: 0, ..Planner::default() }), Some("executor_tokens"));
        assert_eq!(key(Planner { tools_tokens: 0, ..Planner::default() }), Some("tools_tokens"));
        assert_eq!(key(Planner { executor_retries: 0, data_tokens: 0, ..Planner::default() }), None);
    }
}
