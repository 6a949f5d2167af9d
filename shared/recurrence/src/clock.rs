//! Days, times on the clock of a zone, and moments. Zones are those of the IANA database, compiled in.

use chrono::{DateTime, Duration, NaiveDate, NaiveDateTime, NaiveTime, TimeZone as _, Utc};
use domain::{Error, Timestamp};
use std::fmt;

/// A time zone.
pub use chrono_tz::Tz;

/// A value of a field with times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    /// A whole day.
    Day(NaiveDate),
    /// A time on the clock of a zone that stands elsewhere.
    Local(NaiveDateTime),
    /// A moment.
    At(DateTime<Utc>),
}

/// A time from a start, to an end that is not part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct Span {
    /// The start.
    pub start: Timestamp,
    /// The end.
    pub end: Timestamp,
}

impl Span {
    /// Whether they have a moment in common. A span without length has its start in common with spans around it.
    pub fn meets(&self, other: &Self) -> bool {
        let is_in = |at: Timestamp, span: &Self| span.start <= at && at < span.end;
        is_in(self.start, other) || is_in(other.start, self)
    }
}

/// A zone by its name.
///
/// # Errors
/// `INVALID_ARGUMENT` about `field` when there is no such zone.
pub fn zone(field: &str, name: &str) -> Result<Tz, Error> {
    name.parse().map_err(|_| {
        let shown: String = name.chars().take(64).collect();
        Error::invalid(field, format!("there is no time zone {shown:?}"))
            .hint("a name of the IANA database, such as Europe/Berlin")
    })
}

impl Moment {
    /// A text such as `2026-12-01`, `2026-12-01T09:00`, `2026-12-01 09:00:00` or `2026-12-01T09:00:00+01:00`. None for another.
    pub fn parse(text: &str) -> Option<Self> {
        const LOCAL: [&str; 4] = ["%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M"];
        let text = text.trim();
        if text.len() > 40 {
            return None;
        }
        let plain = |at: NaiveDateTime| (1900..=9000).contains(&chrono::Datelike::year(&at)).then_some(at);
        if let Ok(day) = NaiveDate::parse_from_str(text, "%Y-%m-%d") {
            return plain(day.and_time(NaiveTime::MIN)).map(|_| Self::Day(day));
        }
        if let Some(at) = LOCAL.iter().find_map(|form| NaiveDateTime::parse_from_str(text, form).ok()) {
            return plain(at).map(Self::Local);
        }
        let at = DateTime::parse_from_rfc3339(text).ok()?.with_timezone(&Utc);
        plain(at.naive_utc()).map(|_| Self::At(at))
    }

    /// A value of an argument.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` about `field` for a text that is none.
    pub fn argument(field: &str, text: &str) -> Result<Self, Error> {
        Self::parse(text).ok_or_else(|| {
            let shown: String = text.chars().take(64).collect();
            Error::invalid(field, format!("{shown:?} is no day and no time"))
                .hint("such as 2026-12-01, 2026-12-01T09:00 on the clock of the time zone, or 2026-12-01T09:00:00Z")
        })
    }

    /// The moment: a day begins at midnight in the zone, a time is on its clock.
    pub fn instant(self, zone: Tz) -> Timestamp {
        match self {
            Self::Day(day) => on_the_clock(zone, day.and_time(NaiveTime::MIN)),
            Self::Local(at) => on_the_clock(zone, at),
            Self::At(at) => Timestamp::from_millis(at.timestamp_millis()),
        }
    }

    /// The same on the clock of a zone.
    pub fn local(self, zone: Tz) -> NaiveDateTime {
        match self {
            Self::Day(day) => day.and_time(NaiveTime::MIN),
            Self::Local(at) => at,
            Self::At(at) => at.with_timezone(&zone).naive_local(),
        }
    }

    /// Whether it is a whole day.
    pub fn is_day(self) -> bool {
        matches!(self, Self::Day(_))
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Day(day) => write!(f, "{day}"),
            Self::Local(at) => write!(f, "{}", at.format("%Y-%m-%dT%H:%M:%S")),
            Self::At(at) => write!(f, "{}", at.format("%Y-%m-%dT%H:%M:%SZ")),
        }
    }
}

/// The moment of a time on the clock of a zone. A time that comes twice is the first of both; one that the clock leaves out is as long after midnight as
/// it says.
pub fn on_the_clock(zone: Tz, at: NaiveDateTime) -> Timestamp {
    let found = zone.from_local_datetime(&at).earliest();
    // Clocks leave out three hours at most, but for a few islands that left out a day.
    let before = || {
        [3, 27].into_iter().find_map(|hours| {
            let earlier = zone.from_local_datetime(&(at - Duration::hours(hours))).earliest()?;
            Some(earlier + Duration::hours(hours))
        })
    };
    let utc = found.or_else(before).map_or_else(|| Utc.from_utc_datetime(&at), |at| at.with_timezone(&Utc));
    Timestamp::from_millis(utc.timestamp_millis())
}

/// The second moment of a time that the clock of a zone has twice; none of any other time.
pub fn again_on_the_clock(zone: Tz, at: NaiveDateTime) -> Option<Timestamp> {
    let first = zone.from_local_datetime(&at).earliest()?.timestamp_millis();
    let last = zone.from_local_datetime(&at).latest()?.timestamp_millis();
    (first != last).then(|| Timestamp::from_millis(last))
}

/// A moment on the clock of a zone.
pub fn local(at: Timestamp, zone: Tz) -> NaiveDateTime {
    let utc = DateTime::from_timestamp_millis(at.as_millis()).unwrap_or_default();
    utc.with_timezone(&zone).naive_local()
}

/// A moment as people of a zone read it, with its offset: `2026-12-01T09:00:00+01:00`.
pub fn local_text(at: Timestamp, zone: Tz) -> String {
    let utc = DateTime::from_timestamp_millis(at.as_millis()).unwrap_or_default();
    utc.with_timezone(&zone).format("%Y-%m-%dT%H:%M:%S%:z").to_string()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn instant(text: &str, name: &str) -> String {
        Moment::parse(text).unwrap().instant(zone("time_zone", name).unwrap()).to_string()
    }

    #[test]
    fn a_text_is_a_day_a_time_on_a_clock_or_a_moment() {
        assert_eq!(instant("2026-12-01", "Europe/Berlin"), "2026-11-30T23:00:00.000Z");
        assert_eq!(instant("2026-12-01T09:00", "Europe/Berlin"), "2026-12-01T08:00:00.000Z");
        assert_eq!(instant("2026-12-01 09:00:30", "UTC"), "2026-12-01T09:00:30.000Z");
        assert_eq!(instant("2026-12-01T09:00:00+05:00", "UTC"), "2026-12-01T04:00:00.000Z");
        for wrong in ["", "tomorrow", "2026-13-01", "2026-12-01T25:00", "09:00", "999999-01-01", "0001-01-01"] {
            assert_eq!(Moment::parse(wrong), None, "{wrong}");
        }
        for text in ["2026-12-01", "2026-12-01T09:00:00", "2026-12-01T09:00:00Z"] {
            assert_eq!(Moment::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_time_that_the_clock_leaves_out_or_has_twice_is_a_moment_all_the_same() {
        assert_eq!(instant("2026-03-29T02:30", "Europe/Berlin"), "2026-03-29T01:30:00.000Z");
        assert_eq!(instant("2026-10-25T02:30", "Europe/Berlin"), "2026-10-25T00:30:00.000Z");
        assert_eq!(instant("2011-12-30T12:00", "Pacific/Apia"), "2011-12-30T22:00:00.000Z");
        assert!(zone("time_zone", "Europe/Atlantis").is_err());
        let berlin = zone("time_zone", "Europe/Berlin").unwrap();
        assert_eq!(local_text("2026-12-01T08:00:00Z".parse().unwrap(), berlin), "2026-12-01T09:00:00+01:00");
        let again = |text: &str| again_on_the_clock(berlin, Moment::parse(text).unwrap().local(berlin));
        assert_eq!(again("2026-10-25T02:30"), Some("2026-10-25T01:30:00Z".parse().unwrap()));
        assert_eq!((again("2026-03-29T02:30"), again("2026-12-01T02:30")), (None, None));
    }
}
