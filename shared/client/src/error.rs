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
    /// The URL begins with `https://`, and the server at its address speaks HTTP without TLS.
    #[error("cannot reach the hub at {url}: it speaks http, not https")]
    NoTls {
        /// The address that was tried.
        url: String,
    },
    /// The source of tokens gave none, so nothing was sent.
    #[error("{reason}")]
    NoToken {
        /// The reason.
        reason: String,
        /// Whether it may give one a moment later.
        is_passing: bool,
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
            Self::Unusable(_)
            | Self::Unreachable { .. }
            | Self::Foreign { .. }
            | Self::NoTls { .. }
            | Self::NoToken { .. } => None,
        }
    }

    /// The HTTP status, when there was an answer.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused(refusal) => Some(refusal.status),
            Self::Foreign { status, .. } => *status,
            Self::Unusable(_) | Self::Unreachable { .. } | Self::NoTls { .. } | Self::NoToken { .. } => None,
        }
    }

    /// The pause that the hub asks for.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused(refusal) => refusal.retry_after,
            Self::Unusable(_)
            | Self::Unreachable { .. }
            | Self::Foreign { .. }
            | Self::NoTls { .. }
            | Self::NoToken { .. } => None,
        }
    }

    /// Whether the same request may succeed a moment later: the connection failed, the hub says when to come back, or a proxy says that
    /// the hub is away. The request may have taken effect.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused(refusal) => refusal.retry_after.is_some(),
            Self::Foreign { status, .. } => matches!(status, Some(502..=504)),
            Self::NoToken { is_passing, .. } => *is_passing,
            Self::Unusable(_) | Self::NoTls { .. } => false,
        }
    }
}

/// The innermost cause of an error of the HTTP library, whose own words name the URL once more.
pub fn causes(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "no answer in time".into();
    }
    if is_without_tls(error) {
        return "it speaks http, not https".into();
    }
    let mut inner: &dyn std::error::Error = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}

/// Whether the other end of an HTTPS request answers without TLS.
pub(crate) fn is_without_tls(error: &reqwest::Error) -> bool {
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(one) = next {
        if let Some(rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType)) = one.downcast_ref() {
            return true;
        }
        // An I/O error has its cause inside, and names only the cause's own cause.
        next = match one.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
            Some(inside) => Some(inside as &(dyn std::error::Error + 'static)),
            None => one.source(),
        };
    }
    false
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
            (Error::NoTls { url: "u".into() }, false),
            (Error::NoToken { reason: "r".into(), is_passing: true }, true),
            (Error::NoToken { reason: "r".into(), is_passing: false }, false),
        ] {
            assert_eq!(error.is_passing(), passes, "{error:?}");
        }
    }
}
