//! Time and randomness: they reach the machines only through here.

use domain::{Stamp, Timestamp};
use uuid::Uuid;

/// A clock that also draws ids.
pub trait Clock: Send + Sync {
    /// The time now.
    fn now(&self) -> Timestamp;
    /// A fresh version 7 UUID.
    fn id(&self) -> Uuid;
    /// Both, for one step of a machine.
    fn stamp(&self) -> Stamp {
        Stamp { at: self.now(), id: self.id() }
    }
}

/// The machine's own clock and randomness.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        #[expect(clippy::disallowed_methods, reason = "the only read of the time")]
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    fn id(&self) -> Uuid {
        Uuid::now_v7()
    }
}
