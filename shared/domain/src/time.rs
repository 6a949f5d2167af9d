//! Time as the machines see it: milliseconds since 1970, RFC 3339 in UTC on the wire.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::{fmt, str::FromStr, time::Duration};
use uuid::Uuid;

/// A moment, in whole milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    /// From milliseconds since 1970.
    pub const fn from_millis(ms: i64) -> Self {
        Self(ms)
    }
    /// Milliseconds since 1970.
    pub const fn as_millis(self) -> i64 {
        self.0
    }
    /// The lowest version 7 UUID of this moment: it is below every one drawn then or later (RFC 9562 §5.7: its first 48 bits are
    /// milliseconds).
    pub fn first_id(self) -> Uuid {
        Uuid::from_u128(u128::from(u64::try_from(self.0).unwrap_or(0)) << 80)
    }
    /// The moment at which a version 7 UUID was drawn: its first 48 bits, in milliseconds (RFC 9562 §5.7).
    pub fn of_id(id: Uuid) -> Self {
        Self(i64::try_from(id.as_u128() >> 80).unwrap_or(i64::MAX))
    }
    /// The same for an UUID of any version; none for one that is no version 7, which has no time.
    pub fn of_any_id(id: Uuid) -> Option<Self> {
        (id.get_version_num() == 7).then(|| Self::of_id(id))
    }
    /// How long after `earlier` this is; zero when it is not after it.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
    /// Whether less than `span` lies between this moment and `other`, whichever of the two is first. A moment far ahead was taken before the clock was set
    /// back: what counts for a while after it would count until the clock comes there again.
    pub fn is_within(self, span: Duration, other: Self) -> bool {
        self.since(other) < span && other.since(self) < span
    }
}

impl std::ops::Add<Duration> for Timestamp {
    type Output = Self;
    fn add(self, by: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)))
    }
}

/// No moment is before 1970: a machine subtracts bounds of time, and `Duration::MAX` stands for none.
impl std::ops::Sub<Duration> for Timestamp {
    type Output = Self;
    fn sub(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)).max(0))
    }
}

/// A moment that no text can name is the nearest one that has a text: read again, it is on the same side of every other one.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nearest = if self.0 < 0 { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX };
        let moment = jiff::Timestamp::from_millisecond(self.0).unwrap_or(nearest);
        write!(f, "{moment:.3}")
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Timestamp {
    type Err = jiff::Error;
    fn from_str(text: &str) -> Result<Self, jiff::Error> {
        text.parse::<jiff::Timestamp>().map(|moment| Self(moment.as_millisecond()))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

/// The time and the randomness of one step, drawn before the step and recorded in what it commits, so that a machine
/// stays pure: the same state, input and stamp give the same decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// When the step began.
    pub at: Timestamp,
    /// A fresh version 7 UUID.
    pub id: Uuid,
}

impl Stamp {
    /// The `n`th id of this step. Different for each `n`; still a version 7 UUID of the same moment.
    pub fn id(&self, n: u32) -> Uuid {
        let mut bytes = *self.id.as_bytes();
        for (byte, flip) in bytes[12..].iter_mut().zip(n.to_be_bytes()) {
            *byte ^= flip;
        }
        Uuid::from_bytes(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rfc_3339_utc_with_milliseconds() {
        let moment = Timestamp::from_millis(1_700_000_000_042);
        assert_eq!(moment.to_string(), "2023-11-14T22:13:20.042Z");
        assert_eq!("2023-11-14T23:13:20.042+01:00".parse::<Timestamp>().ok(), Some(moment));
        assert_eq!(Timestamp::from_millis(0).to_string(), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn a_moment_behind_the_last_one_that_has_a_text_is_told_as_that_and_not_as_1970() {
        let now = Timestamp::from_millis(1_700_000_000_042);
        let year_10_000 = Timestamp::from_millis(253_402_300_800_000);
        for far in [now + Duration::MAX, Timestamp::from_millis(i64::MAX / 2), year_10_000] {
            let text = far.to_string();
            assert!(text.starts_with("9999-12-30T22:00:00"), "{text}");
            assert!(text.parse::<Timestamp>().is_ok_and(|read| now < read), "{text}");
        }
        let long_ago = Timestamp::from_millis(i64::MIN).to_string();
        assert!(long_ago.parse::<Timestamp>().is_ok_and(|read| read < Timestamp::default()), "{long_ago}");
    }

    #[test]
    fn subtraction_ends_at_1970() {
        let moment = Timestamp::from_millis(42);
        assert_eq!(moment - Duration::from_millis(2), Timestamp::from_millis(40));
        assert_eq!(moment - Duration::MAX, Timestamp::default());
    }

    #[test]
    fn moments_are_within_a_span_in_either_order() {
        let (moment, span) = (Timestamp::from_millis(100), Duration::from_millis(10));
        let is_within = |ms| moment.is_within(span, Timestamp::from_millis(ms));
        assert_eq!([90, 91, 100, 109, 110].map(is_within), [false, true, true, true, false]);
    }

    #[test]
    fn the_first_id_of_a_moment_is_below_all_ids_from_then_on() {
        let (id, at) =
            (Uuid::from_u128(0x019b_f537_f228_7cd3_aa1c_3da8_af30_2e12), Timestamp::from_millis(0x019b_f537_f228));
        assert!(at.first_id() < id);
        assert!((at + Duration::from_millis(1)).first_id() > id);
    }

    #[test]
    fn derived_ids_differ_and_stay_version_7() {
        let stamp = Stamp { at: Timestamp::default(), id: Uuid::now_v7() };
        let ids: std::collections::BTreeSet<_> = (0..100).map(|n| stamp.id(n)).collect();
        assert_eq!(ids.len(), 100);
        assert!(ids.iter().all(|id| id.get_version_num() == 7));
    }
}
