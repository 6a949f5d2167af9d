//! The handling of a failed node: it is tried again, an edge takes its failure, or the failure stands.
//!
//! One function decides, [`Handling::decide`], from the failure, the node's policy, how often it was tried and for how long. It
//! is pure: a random number comes in from outside, drawn once per step, and the resulting time is in the log.

use domain::{Code, Error, NodeId};
use std::{fmt, str::FromStr, time::Duration};

/// How a node's failures are handled, by its manifest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Handling {
    /// The failures that are tried again.
    pub retry: RetryPolicy,
    /// The failures that go on along an edge of their own; the first that matches counts.
    pub routes: Vec<ErrorRoute>,
}

/// The failures that are tried again, how often and when.
#[derive(Clone, Debug, PartialEq)]
pub struct RetryPolicy {
    /// The maximum number of retries.
    pub times: u32,
    /// The names of these failures.
    pub on: Vec<FailureName>,
    /// How long the first one waits.
    pub backoff: Duration,
    /// By how much each one after it waits longer.
    pub rate: f64,
    /// How long any one waits at most.
    pub longest: Duration,
    /// How much of a wait is drawn: 0 for none of it, 1 for all.
    pub jitter: f64,
    /// How long after the node first began the last one may begin.
    pub within: Option<Duration>,
}

/// An edge that takes failures.
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorRoute {
    /// The names of these failures.
    pub on: Vec<FailureName>,
    /// The node that the edge leads to.
    pub to: NodeId,
}

/// Failures, as manifests name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureName {
    /// All of them.
    Any,
    /// Those that may well not come again: limits of rate, services that do not answer, time that was up, a full disk.
    Passing,
    /// A command that ended with this exit code, or with any but 0. A signal is the code that a shell gives it, 128 and its number.
    Exit(Option<i64>),
    /// Those with this code.
    Code(Code),
}

/// The decision about a failure.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The node is tried again after this long.
    Retry(Duration),
    /// The task goes on there.
    Route(NodeId),
    /// It stands.
    Stands,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            times: 0,
            on: vec![FailureName::Passing],
            backoff: Duration::from_secs(1),
            rate: 2.0,
            longest: Duration::from_secs(60),
            jitter: 0.5,
            within: None,
        }
    }
}

impl Handling {
    /// Decides on a failure of a node that was tried again `retries` times and first began `elapsed` ago. `chance` is a
    /// random number between 0 and 1.
    pub fn decide(&self, error: &Error, retries: u32, elapsed: Duration, chance: f64) -> Verdict {
        let retry = &self.retry;
        if retries < retry.times && retry.on.iter().any(|name| name.names(error)) {
            let after = retry.wait(error, retries, chance);
            if retry.within.is_none_or(|within| elapsed.saturating_add(after) <= within) {
                return Verdict::Retry(after);
            }
        }
        self.route(error)
    }

    /// Decides on a failure that is not tried again.
    pub fn route(&self, error: &Error) -> Verdict {
        let taken = self.routes.iter().find(|route| route.on.iter().any(|name| name.names(error)));
        taken.map_or(Verdict::Stands, |route| Verdict::Route(route.to.clone()))
    }
}

impl RetryPolicy {
    /// How long the next retry waits: longer from time to time, at least as long as the one that refused has asked for, and
    /// some of it drawn, so that those who failed together do not come back together.
    fn wait(&self, error: &Error, retries: u32, chance: f64) -> Duration {
        let exponent = i32::try_from(retries).unwrap_or(i32::MAX);
        let longest = self.longest.as_secs_f64();
        let whole = (self.backoff.as_secs_f64() * self.rate.powi(exponent)).min(longest);
        let drawn = whole * (1.0 - self.jitter * chance.clamp(0.0, 1.0));
        let asked_for = error.details.get(RETRY_AFTER_MS).and_then(serde_json::Value::as_u64).unwrap_or_default();
        let seconds = if drawn.is_finite() { drawn.max(0.0) } else { longest };
        // A time in the log has milliseconds.
        Duration::from_millis((seconds * 1000.0) as u64).max(Duration::from_millis(asked_for))
    }
}

/// The detail of an error that says how long its service asks to be left alone, in milliseconds.
pub const RETRY_AFTER_MS: &str = "retry_after_ms";

/// The detail of an error that says with which code a command ended.
pub const EXIT_CODE: &str = "exit_code";

/// The detail of an error that says which signal ended a command.
pub const SIGNAL: &str = "signal";

impl FailureName {
    /// Whether it names this failure. A task that is stopped did not fail.
    pub fn names(self, error: &Error) -> bool {
        let number = |detail: &str| error.details.get(detail).and_then(serde_json::Value::as_i64);
        let exit_code = || number(EXIT_CODE).or_else(|| Some(128 + number(SIGNAL)?));
        match self {
            _ if error.code == Code::Cancelled => false,
            Self::Any => true,
            Self::Passing => is_passing(error.code),
            Self::Exit(None) => exit_code().is_some(),
            Self::Exit(Some(code)) => exit_code() == Some(code),
            Self::Code(code) => error.code == code,
        }
    }

    /// Whether it names each failure that the other one names.
    pub(crate) fn covers(self, other: Self) -> bool {
        self == other
            || match (self, other) {
                (Self::Any, _) | (Self::Exit(None), Self::Exit(_)) => true,
                (Self::Passing, Self::Code(code)) => is_passing(code),
                (Self::Passing | Self::Exit(_) | Self::Code(_), _) => false,
            }
    }
}

/// Whether the same may well succeed when it is tried again. An unknown outcome is no such failure: the interrupted work may
/// have taken effect. A full disk is one: nothing was stored, and a person may free room.
fn is_passing(code: Code) -> bool {
    matches!(code, Code::RateLimited | Code::UpstreamUnavailable | Code::Timeout | Code::NotBegun | Code::StorageFull)
}

impl FromStr for FailureName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let code = |text: &str| serde_json::from_value(serde_json::Value::String(text.to_owned())).ok();
        match text {
            "any" => return Ok(Self::Any),
            "passing" => return Ok(Self::Passing),
            "exit" => return Ok(Self::Exit(None)),
            _ => {}
        }
        if let Some(number) = text.strip_prefix("exit:") {
            return match number.trim().parse() {
                Ok(0) | Err(_) => Err(format!("`{number}` is no exit code of a failure")),
                Ok(number) => Ok(Self::Exit(Some(number))),
            };
        }
        code(text).map(Self::Code).ok_or_else(|| format!("there is no failure `{text}`"))
    }
}

impl fmt::Display for FailureName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any"),
            Self::Passing => f.write_str("passing"),
            Self::Exit(None) => f.write_str("exit"),
            Self::Exit(Some(code)) => write!(f, "exit:{code}"),
            Self::Code(code) => write!(f, "{code}"),
        }
    }
}

/// The names, for people.
pub const NAMES: &str = "`passing`, `any`, `exit`, `exit:22`, or codes such as TIMEOUT, RATE_LIMITED, UPSTREAM_UNAVAILABLE, \
                         OUTCOME_UNKNOWN, UNPROCESSABLE, FORBIDDEN, LIMIT_REACHED";

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(times: u32, on: &[&str]) -> Handling {
        let on = on.iter().map(|name| name.parse().expect(name)).collect();
        Handling { retry: RetryPolicy { times, on, ..RetryPolicy::default() }, routes: Vec::new() }
    }

    fn exit(code: i64) -> Error {
        Error::new(Code::Unprocessable, "it failed").detail(EXIT_CODE, code)
    }

    fn killed(signal: i64) -> Error {
        Error::new(Code::Unprocessable, "it failed").detail(SIGNAL, signal)
    }

    #[test]
    fn a_failure_is_tried_again_where_its_name_is_listed() {
        let of = |code| Error::new(code, "it failed");
        for (names, error, again) in [
            (&["passing"][..], of(Code::Timeout), true),
            (&["passing"], of(Code::RateLimited), true),
            (&["passing"], of(Code::UpstreamUnavailable), true),
            (&["passing"], of(Code::NotBegun), true),
            (&["passing"], of(Code::StorageFull), true),
            (&["passing"], of(Code::UpstreamRefused), false),
            (&["passing"], of(Code::OutcomeUnknown), false),
            (&["passing"], exit(22), false),
            (&["OUTCOME_UNKNOWN"], of(Code::OutcomeUnknown), true),
            (&["exit"], exit(22), true),
            (&["exit"], of(Code::Unprocessable), false),
            (&["exit:22", "exit:75"], exit(75), true),
            (&["exit:22"], exit(1), false),
            (&["exit"], killed(9), true),
            (&["exit:137"], killed(9), true),
            (&["exit:9"], killed(9), false),
            (&["UNPROCESSABLE"], exit(1), true),
            (&["any"], of(Code::Internal), true),
            (&["any"], of(Code::Cancelled), false),
        ] {
            let verdict = policy(1, names).decide(&error, 0, Duration::ZERO, 0.0);
            assert_eq!(matches!(verdict, Verdict::Retry(_)), again, "{names:?} of {error:?}");
        }
    }

    #[test]
    fn retries_end_after_their_number_and_their_time() {
        let error = Error::new(Code::Timeout, "slow");
        let twice = policy(2, &["passing"]);
        let ms = Duration::from_millis;
        assert_eq!(twice.decide(&error, 0, ms(0), 0.0), Verdict::Retry(ms(1_000)));
        assert_eq!(twice.decide(&error, 1, ms(0), 0.0), Verdict::Retry(ms(2_000)));
        assert_eq!(twice.decide(&error, 2, ms(0), 0.0), Verdict::Stands);
        let mut soon = policy(9, &["passing"]);
        soon.retry.within = Some(ms(5_000));
        assert_eq!(soon.decide(&error, 1, ms(3_000), 0.0), Verdict::Retry(ms(2_000)));
        assert_eq!(soon.decide(&error, 1, ms(3_001), 0.0), Verdict::Stands);
    }

    #[test]
    fn waits_grow_to_their_limit_and_half_of_each_is_drawn() {
        let error = Error::new(Code::Timeout, "slow");
        let policy = policy(1_000, &["passing"]);
        let after = |retries, chance| match policy.decide(&error, retries, Duration::ZERO, chance) {
            Verdict::Retry(after) => after.as_millis(),
            other => panic!("{other:?}"),
        };
        assert_eq!(
            [0, 1, 2, 5, 6, 900].map(|retries| after(retries, 0.0)),
            [1_000, 2_000, 4_000, 32_000, 60_000, 60_000]
        );
        assert_eq!([0.0, 0.5, 1.0].map(|chance| after(1, chance)), [2_000, 1_500, 1_000]);
        let asks = Error::new(Code::RateLimited, "busy").detail(RETRY_AFTER_MS, 90_000);
        assert_eq!(policy.decide(&asks, 0, Duration::ZERO, 0.0), Verdict::Retry(Duration::from_secs(90)));
    }

    #[test]
    fn a_failure_that_is_not_tried_again_takes_the_first_edge_that_names_it() {
        let route = |on: &str, to: &str| ErrorRoute { on: vec![on.parse().expect(on)], to: to.into() };
        let mut handling = policy(1, &["TIMEOUT"]);
        handling.routes = vec![route("TIMEOUT", "late"), route("any", "broken")];
        let (late, broken) = (Error::new(Code::Timeout, "slow"), Error::new(Code::Internal, "no"));
        let decide = |error: &Error, retries| handling.decide(error, retries, Duration::ZERO, 0.0);
        assert!(matches!(decide(&late, 0), Verdict::Retry(_)));
        assert_eq!(decide(&late, 1), Verdict::Route("late".into()));
        assert_eq!(decide(&broken, 0), Verdict::Route("broken".into()));
    }

    #[test]
    fn a_name_covers_those_that_name_nothing_else() {
        let covers = |wider: &str, other: &str| match (wider.parse::<FailureName>(), other.parse::<FailureName>()) {
            (Ok(wider), Ok(other)) => wider.covers(other),
            names => panic!("{names:?}"),
        };
        for (wider, other) in [
            ("any", "exit"),
            ("any", "INTERNAL"),
            ("exit", "exit:22"),
            ("passing", "TIMEOUT"),
            ("TIMEOUT", "TIMEOUT"),
            ("exit:1", "exit:1"),
        ] {
            assert!(covers(wider, other), "{wider} {other}");
            assert!(wider == other || !covers(other, wider), "{other} {wider}");
        }
        for (wider, other) in
            [("passing", "OUTCOME_UNKNOWN"), ("passing", "exit"), ("exit:1", "exit:2"), ("exit", "TIMEOUT")]
        {
            assert!(!covers(wider, other), "{wider} {other}");
        }
    }

    #[test]
    fn names_are_read_and_written() {
        for name in ["any", "passing", "exit", "exit:22", "TIMEOUT", "OUTCOME_UNKNOWN"] {
            assert_eq!(name.parse::<FailureName>().map(|name| name.to_string()), Ok(name.to_owned()));
        }
        for name in ["", "timeout", "exit:0", "exit:x", "SLOW"] {
            assert!(name.parse::<FailureName>().is_err(), "{name}");
        }
    }
}
