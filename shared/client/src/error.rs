//! The failure of a request.

use serde::Deserialize;
use serde_json::{Map, Value};
use std::time::Duration;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The URL or the token cannot be one, so nothing was sent.
    #[error("{0}")]
    Unusable(String),
    /// The hub refused.
    #[error("{}", .0.message)]
    Refused(Box<Refusal>),
    /// No hub answers at the address, or its answer broke off.
    #[error("cannot reach the hub at {url}: {reason}")]
    Unreachable {
        /// The address that was tried.
        url: String,
        /// The reason.
        reason: String,
    },
    /// Something answers that is not a hub, or not one of this version.
    #[error("{url} does not answer like a BuildScale hub: {reason}")]
    Foreign {
        /// The address that answered.
        url: String,
        /// The odd part of the answer.
        reason: String,
        /// The HTTP status, where the whole answer is odd.
        status: Option<u16>,
    },
}

/// The hub's error body. Its code stays text: a newer hub may have codes that this program does not know.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Refusal {
    /// The HTTP status.
    #[serde(skip)]
    pub status: u16,
    /// The pause that the hub asks for before the next request (`Retry-After`). Rate limits and stores that do not answer have one.
    #[serde(skip)]
    pub retry_after: Option<Duration>,
    /// Stable, for programs.
    pub code: String,
    /// For people.
    pub message: String,
    /// The remedy.
    #[serde(default)]
    pub hint: Option<String>,
    /// To find it in the hub's log.
    #[serde(default)]
    pub request_id: Option<String>,
    /// More facts.
    #[serde(default)]
    pub details: Map<String, Value>,
}

impl Error {
    /// The stable code of a refusal.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Refused(refusal) => Some(&refusal.code),
            Self::Unusable(_) | Self::Unreachable { .. } | Self::Foreign { .. } => None,
        }
    }

    /// The HTTP status, when there was an answer.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused(refusal) => Some(refusal.status),
            Self::Foreign { status, .. } => *status,
            Self::Unusable(_) | Self::Unreachable { .. } => None,
        }
    }

    /// The pause that the hub asks for.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused(refusal) => refusal.retry_after,
            Self::Unusable(_) | Self::Unreachable { .. } | Self::Foreign { .. } => None,
        }
    }

    /// Whether the same request may succeed a moment later: the connection failed, the hub says when to come back, or a proxy says that
    /// the hub is away. The request may have taken effect.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused(refusal) => refusal.retry_after.is_some(),
            Self::Foreign { status, .. } => matches!(status, Some(502..=504)),
            Self::Unusable(_) => false,
        }
    }
}

/// The innermost cause of an error of the HTTP library, whose own words name the URL once more.
pub fn causes(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "no answer in time".into();
    }
    let mut inner: &dyn std::error::Error = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_that_pass() {
        let refused =
            |status, retry_after| Error::Refused(Refusal { status, retry_after, ..Refusal::default() }.into());
        let foreign = |status| Error::Foreign { url: "u".into(), reason: "r".into(), status };
        let second = Some(Duration::from_secs(1));
        for (error, passes) in [
            (refused(429, second), true),
            (refused(503, second), true),
            (refused(500, None), false),
            (refused(502, None), false),
            (foreign(Some(502)), true),
            (foreign(Some(500)), false),
            (foreign(None), false),
            (Error::Unreachable { url: "u".into(), reason: "r".into() }, true),
            (Error::Unusable("x".into()), false),
        ] {
            assert_eq!(error.is_passing(), passes, "{error:?}");
        }
    }
}
