//! Limits on a person's use of agents per minute: requests, and tokens that their turns used.
//!
//! Requests are counted in one item per person, by seconds, with conditional writes: a writer that loses a race reads again. So the count
//! is exact with any number of workers, and in any sixty seconds no more are let in than are allowed; a place is free again 60 to 61
//! seconds after it was taken. A refusal writes nothing.
//!
//! Tokens are not counted a second time: each turn that ended left one record of its usage, in the very commit that ended it, and
//! [`Ledger`] sums those of the last minute. So they cost no write at all, a crash neither loses nor doubles one, and a turn is charged
//! when its usage is known.

use crate::error::{Result, damaged, json, port};
use async_trait::async_trait;
use domain::{Code, Error, Timestamp, UserId, text::counted};
use ports::{Clock, Expect, Key, Table, Write};
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};

/// The window, in seconds.
const WINDOW: i64 = 60;
/// How often a lost race is tried again, at most. With fewer requests allowed than this the window is full before.
const ATTEMPTS: u32 = 256;

/// The limits of a person per minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Requests that put agents to work.
    pub requests: u32,
    /// Tokens, in and out, of turns that ended.
    pub tokens: u64,
}

impl Default for Allowance {
    /// 20 requests and 30,000 tokens.
    fn default() -> Self {
        Self { requests: 20, tokens: 30_000 }
    }
}

/// The usage of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnTokens {
    /// When it ended.
    pub at: Timestamp,
    /// Its tokens, in and out.
    pub tokens: u64,
}

/// Knows the usage of turns.
#[async_trait]
pub trait Ledger: Send + Sync {
    /// The turns of a person that ended at `since` or later, the newest first; no more are needed once they sum up to `enough`
    /// tokens.
    ///
    /// # Errors
    /// `UPSTREAM_UNAVAILABLE` when the records cannot be read. [`Limits::admit`] then lets nobody in, and returns the error.
    async fn spent(&self, user: UserId, since: Timestamp, enough: u64) -> Result<Vec<TurnTokens>>;
}

/// The limits of everybody.
#[derive(Clone)]
pub struct Limits {
    table: Arc<dyn Table>,
    clock: Arc<dyn Clock>,
    ledger: Arc<dyn Ledger>,
    allowance: Allowance,
}

/// How many were let in in each of the last seconds.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Window {
    pub seconds: Vec<(i64, u32)>,
}

impl Window {
    /// Lets one in at second `now`; else says in how many seconds to try again.
    fn admit(&mut self, now: i64, allowed: u32) -> std::result::Result<(), i64> {
        // A clock that is a little ahead of ours wrote the seconds to come: they count. Nonsense does not.
        self.seconds.retain(|(second, _)| (now - second).abs() <= WINDOW);
        let count: u64 = self.seconds.iter().map(|(_, count)| u64::from(*count)).sum();
        if count >= u64::from(allowed) {
            // The oldest that must leave before there is a place.
            let mut over = count - u64::from(allowed);
            let leaves = self.seconds.iter().find(|(_, count)| match over.checked_sub(u64::from(*count)) {
                Some(rest) => {
                    over = rest;
                    false
                }
                None => true,
            });
            return Err(leaves.map_or(WINDOW, |(second, _)| second + WINDOW + 1 - now).clamp(1, WINDOW + 1));
        }
        match self.seconds.iter_mut().find(|(second, _)| *second == now) {
            Some((_, count)) => *count += 1,
            None => {
                self.seconds.push((now, 1));
                self.seconds.sort_unstable();
            }
        }
        Ok(())
    }
}

impl Limits {
    /// Limits that are counted in this table; `ledger` has the usage of turns.
    pub fn new(table: Arc<dyn Table>, clock: Arc<dyn Clock>, ledger: Arc<dyn Ledger>, allowance: Allowance) -> Self {
        Self { table, clock, ledger, allowance }
    }

    /// Lets one request of a person in and counts it.
    ///
    /// # Errors
    /// `RATE_LIMITED`, with `limit` and `retry_after_s`, when the requests or the tokens of the last minute are used up;
    /// `UPSTREAM_UNAVAILABLE` when the table does not answer, `STORAGE_FULL` when it has no room, and `INTERNAL` when the counter is
    /// damaged; those of [`Ledger::spent`].
    pub async fn admit(&self, user: UserId) -> Result<()> {
        self.check_tokens(user).await?;
        let place = Key::new(format!("rate/{user}"), "requests");
        for _ in 0..ATTEMPTS {
            let now = self.clock.now();
            let item = self.table.get(&place).await.map_err(port)?;
            let (mut window, expect) = match &item {
                Some(item) => (serde_json::from_str(&item.body).map_err(damaged)?, Expect::Rev(item.rev)),
                None => (Window::default(), Expect::Absent),
            };
            if let Err(seconds) = window.admit(now.as_millis().div_euclid(1000), self.allowance.requests) {
                let what = format!("the limit is {} a minute", counted(self.allowance.requests, "request"));
                return Err(limited(&what, "requests", seconds));
            }
            let expires = now + Duration::from_secs(2 * WINDOW.unsigned_abs());
            let write = Write::put(place.clone(), json(&window)?, expect).expiring(expires);
            match self.table.commit(vec![write]).await {
                Ok(()) => return Ok(()),
                // Somebody else was let in. That can happen only so often before the window is full.
                Err(ports::Error::Conflict { .. }) => {}
                Err(error) => return Err(port(error)),
            }
        }
        Err(limited("too many requests came at once", "requests", 1))
    }

    async fn check_tokens(&self, user: UserId) -> Result<()> {
        let now = self.clock.now();
        let window = WINDOW * 1000;
        let since = Timestamp::from_millis(now.as_millis().saturating_sub(window));
        let mut sum = 0_u64;
        for spent in self.ledger.spent(user, since, self.allowance.tokens).await? {
            sum = sum.saturating_add(spent.tokens);
            if sum >= self.allowance.tokens {
                // When this one leaves the window, the newer ones are within the limit again.
                let left = spent.at.as_millis().saturating_add(window) - now.as_millis();
                let what = format!("the limit is {} a minute", counted(self.allowance.tokens, "token"));
                let seconds = left.div_euclid(1000) + i64::from(left.rem_euclid(1000) > 0);
                return Err(limited(&what, "tokens", seconds.clamp(1, WINDOW)));
            }
        }
        Ok(())
    }
}

fn limited(what: &str, limit: &str, seconds: i64) -> Error {
    Error::new(Code::RateLimited, format!("{what}, and they are used up"))
        .hint(format!("try again in {seconds} s"))
        .detail("limit", limit)
        .detail("retry_after_s", seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// With any arrival times: in no sixty seconds more are let in than allowed, no request is refused while the last 61 seconds have a
        /// place, and a request that returns at the time it was told is let in if none came before.
        #[test]
        fn a_window_lets_in_exactly_as_many_as_allowed(
            waits in prop::collection::vec(0_i64..20_000, 1..200),
            allowed in 1_u32..8,
        ) {
            let (mut window, mut now, mut admitted) = (Window::default(), 1_800_000_000_000_i64, Vec::new());
            for wait in waits {
                now += wait;
                let second = now / 1000;
                match window.admit(second, allowed) {
                    Ok(()) => admitted.push(now),
                    Err(wait) => {
                        let recent = admitted.iter().filter(|at| second - **at / 1000 <= WINDOW).count();
                        prop_assert!(recent >= allowed as usize, "refused with {recent} of {allowed}");
                        let mut later = Window { seconds: window.seconds.clone() };
                        prop_assert_eq!(later.admit(second + wait, allowed), Ok(()));
                        if wait > 1 {
                            let mut sooner = Window { seconds: window.seconds.clone() };
                            prop_assert!(sooner.admit(second + wait - 1, allowed).is_err());
                        }
                    }
                }
                prop_assert!(window.seconds.len() <= 61);
            }
            for at in &admitted {
                let within = admitted.iter().filter(|other| (*at..at + WINDOW * 1000).contains(other)).count();
                prop_assert!(within <= allowed as usize, "{within} in the minute from {at}");
            }
        }
    }

    #[test]
    fn a_clock_that_is_ahead_neither_frees_nor_locks() {
        let mut window = Window { seconds: vec![(1_010, 2)] };
        assert_eq!(window.admit(1_000, 2), Err(61), "a request from a clock that is ahead counts");
        let mut nonsense = Window { seconds: vec![(9_000, 2)] };
        assert_eq!(nonsense.admit(1_000, 2), Ok(()), "an hour ahead is no clock");
    }
}
