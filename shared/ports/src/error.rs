//! The errors of ports.

use domain::Code;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The result of a port's call.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of a port.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A write's expectation did not hold; nothing was written. A lost race is normal: reload and decide anew.
    #[error("the write at position {write} found another revision than it expected")]
    Conflict {
        /// The position of the first such write in the commit.
        write: usize,
    },
    /// The caller asked for something that no retry can make right (too many writes, a broken cursor).
    #[error("{0}")]
    Invalid(String),
    /// Stored data differs from the data that was written.
    #[error("stored data is damaged: {0}")]
    Damaged(String),
    /// The content that holds a stored body is not there, or is another one.
    #[error("{place} {damage}")]
    Lost {
        /// The place of the body, in words.
        place: String,
        /// The kind of damage.
        damage: Damage,
    },
    /// The store did not answer. The call may or may not have taken effect.
    #[error("{what} is unavailable")]
    Unavailable {
        /// The name of the store.
        what: &'static str,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// The kinds of damage of a content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Damage {
    /// It is not there.
    Missing,
    /// Something else is there.
    Altered,
}

impl Damage {
    /// The error for clients about what is stored at `place`: `CONTENT_MISSING` or `CONTENT_DAMAGED`, with the place.
    pub fn refusal(self, place: &str) -> domain::Error {
        let code = match self {
            Self::Missing => Code::ContentMissing,
            Self::Altered => Code::ContentDamaged,
        };
        domain::Error::new(code, format!("{place} {self}")).detail("place", place)
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "is missing",
            Self::Altered => "is damaged",
        })
    }
}

/// The ways to handle an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// Try again, or reload and decide anew.
    Retry,
    /// Tell the caller: it asked for something impossible.
    Reject,
    /// Ours: log it, keep the data, look into it.
    Bug,
}

impl Error {
    /// The port `what` did not answer, because of `source`.
    pub fn unavailable(what: &'static str, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Unavailable { what, source: source.into() }
    }

    /// The port `what` has no room for a write, which took no effect. Reads go on, and the same write succeeds once there is room.
    pub fn full(what: &'static str) -> Self {
        Self::unavailable(what, StoreFull)
    }

    /// Whether there was no room for it: on the disk, or within a quota.
    pub fn is_full(&self) -> bool {
        is_full(self)
    }

    /// Whether stored data cannot be read: it is damaged, or lost. A second try reads no more.
    pub fn is_damage(&self) -> bool {
        self.kind() == ErrorKind::Bug
    }

    /// The error for clients where stored data is lost ([`Damage::refusal`]); none for every other error.
    pub fn lost(&self) -> Option<domain::Error> {
        let Self::Lost { place, damage } = self else { return None };
        Some(damage.refusal(place))
    }

    /// The text for the log, with the causes.
    pub fn with_causes(&self) -> String {
        with_causes(self)
    }

    /// How to handle it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Conflict { .. } | Self::Unavailable { .. } => ErrorKind::Retry,
            Self::Invalid(_) => ErrorKind::Reject,
            Self::Damaged(_) | Self::Lost { .. } => ErrorKind::Bug,
        }
    }
}

/// Whether `error`, or a cause of it, says that there is no room: on a disk, or within a quota.
pub fn is_full(error: &(dyn std::error::Error + 'static)) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    std::iter::successors(Some(error), |error| error.source()).any(|error| {
        let of_disk = error.downcast_ref::<std::io::Error>();
        error.is::<StoreFull>() || of_disk.is_some_and(|error| matches!(error.kind(), StorageFull | QuotaExceeded))
    })
}

/// The text of an error for a log, or for the person at the machine: its own, and those of its causes that are not in it. Clients read no causes:
/// these name addresses and paths.
pub fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut last = error.to_string();
    let (mut told, mut next) = (last.clone(), error.source());
    while let Some(cause) = next {
        let words = cause.to_string();
        // The cause of an error of SQLite is its number, and the same words behind it.
        if !told.contains(&words) && !words.ends_with(&last) {
            told = format!("{told}: {words}");
        }
        (last, next) = (words, cause.source());
    }
    told
}

/// Why a store did not take a write.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("there is no room left on its disk")]
struct StoreFull;

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("the disk is slow")]
    struct Slow(#[source] std::io::Error);

    #[test]
    fn the_log_has_each_cause_once() {
        assert_eq!(with_causes(&Slow(std::io::Error::other("error 10: the disk is slow"))), "the disk is slow");
        let cause = Error::unavailable("the connection", std::io::Error::other("the peer is gone"));
        let error = Error::unavailable("the table", cause);
        assert_eq!(error.to_string(), "the table is unavailable");
        assert_eq!(error.with_causes(), "the table is unavailable: the connection is unavailable: the peer is gone");
        assert_eq!(
            Error::unavailable("the table", "the table is unavailable").with_causes(),
            "the table is unavailable"
        );
        assert_eq!(Error::Damaged("an item".into()).with_causes(), "stored data is damaged: an item");
    }

    #[test]
    fn clients_read_where_stored_data_is_lost() {
        for (damage, code) in [(Damage::Missing, Code::ContentMissing), (Damage::Altered, Code::ContentDamaged)] {
            let error = Error::Lost { place: "the body of a row".into(), damage };
            let told = error.lost().map(|told| (told.code, told.details["place"].clone(), told.message));
            assert_eq!(told, Some((code, "the body of a row".into(), error.to_string())));
            assert!(error.is_damage() && !error.is_full());
        }
        assert_eq!(Error::Damaged("a row".into()).lost(), None);
    }

    #[test]
    fn a_full_store_is_told_from_one_that_does_not_answer() {
        let disk = |kind| Error::unavailable("the archive", std::io::Error::from(kind));
        assert!(Error::full("the store").is_full());
        assert!(disk(std::io::ErrorKind::StorageFull).is_full());
        assert!(disk(std::io::ErrorKind::QuotaExceeded).is_full());
        assert!(!disk(std::io::ErrorKind::TimedOut).is_full());
        assert!(!Error::Damaged("a body".into()).is_full());
        assert_eq!(Error::full("the store").kind(), ErrorKind::Retry);
    }
}
