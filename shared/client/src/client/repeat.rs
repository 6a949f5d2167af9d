//! Requests that are sent again: while a hub restarts, and when it says when to come back.

use crate::{Client, Error};
use std::{future::Future, time::Duration};
use tokio::time::Instant;

/// The pause after the first failure; it doubles with each.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The failures after which a request is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// All that pass: it may take effect twice without harm, since it only reads, or has an idempotency key.
    Safe,
    /// A rate limit alone, because then it did not begin.
    Unbegun,
}

impl Client {
    /// Makes attempts until one succeeds, fails for good, or the client's patience is over.
    pub(crate) async fn repeat<T, F>(&self, repeat: Repeat, attempt: impl Fn() -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let give_up = Instant::now() + self.patience;
        let mut failures = 0;
        loop {
            let error = match attempt().await {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            let pause = pause(failures, error.retry_after());
            if !is_worth_it(repeat, &error, self.has_met()) || Instant::now() + pause > give_up {
                return Err(error);
            }
            tokio::time::sleep(pause).await;
            failures += 1;
        }
    }
}

/// A hub that never answered is not waited for: more likely the address is wrong, or nobody started it.
fn is_worth_it(repeat: Repeat, error: &Error, met: bool) -> bool {
    match repeat {
        Repeat::Unbegun => error.status() == Some(429) && error.is_passing(),
        Repeat::Safe => error.is_passing() && (met || !matches!(error, Error::Unreachable { .. })),
    }
}

/// The pause after so many failures before: the hub's own, if that is longer.
pub(crate) fn pause(failures: u32, asked: Option<Duration>) -> Duration {
    let ours = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(failures)).min(LONGEST_PAUSE);
    ours.max(asked.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Refusal;

    #[test]
    fn pauses_grow_and_the_hub_may_ask_for_longer_ones() {
        let millis: Vec<u128> = (0..6).map(|failures| pause(failures, None).as_millis()).collect();
        assert_eq!(millis, [100, 200, 400, 800, 1000, 1000]);
        assert_eq!(pause(u32::MAX, None), LONGEST_PAUSE);
        assert_eq!(pause(0, Some(Duration::from_secs(7))), Duration::from_secs(7));
    }

    #[test]
    fn requests_without_a_key_are_repeated_only_when_they_did_not_begin() {
        let refused = |status| {
            let retry_after = Some(Duration::ZERO);
            Error::Refused(Refusal { status, retry_after, ..Refusal::default() }.into())
        };
        let gone = || Error::Unreachable { url: "u".into(), reason: "r".into() };
        for (error, met, safe, unbegun) in [
            (refused(429), true, true, true),
            (refused(503), true, true, false),
            (refused(503), false, true, false),
            (gone(), true, true, false),
            (gone(), false, false, false),
        ] {
            let worth = [Repeat::Safe, Repeat::Unbegun].map(|repeat| is_worth_it(repeat, &error, met));
            assert_eq!(worth, [safe, unbegun], "{error:?}, met: {met}");
        }
    }
}
