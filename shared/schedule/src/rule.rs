//! The times of a schedule: one moment, or a rule of iCalendar in a time zone.

use chrono::NaiveDateTime;
use domain::Timestamp;
use recurrence::{
    Tz, clock,
    rule::{self, TakenRules},
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How a begin is kept.
const FORM: &str = "%Y%m%dT%H%M%S";
/// The least time between two runs.
const LEAST_GAP: Duration = Duration::from_secs(60);
/// How many times are looked at to find the gap between runs.
const LOOKED_AT: usize = 10;
/// How long ago a rule may begin: the search for its next time begins there.
const OLDEST: Duration = Duration::from_secs(366 * 24 * 3600);
/// The most missed times that are counted.
const MOST_MISSED: u32 = 1_000;

/// The times at which a schedule is due.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Times {
    /// Once.
    Once {
        /// The moment.
        at: Timestamp,
    },
    /// Again and again.
    Rule {
        /// The rule of RFC 5545 §3.3.10 without its name, such as `FREQ=WEEKLY;BYDAY=MO,WE`.
        rrule: String,
        /// The time zone of the IANA database, such as `Europe/Berlin`: a time of the day stays the same on the clock all year.
        time_zone: String,
        /// The first moment that it can be due, on the clock of the zone, as `YYYYMMDDTHHMMSS`. Parts that the rule does not name, such as
        /// the time of the day, come from here.
        begins: String,
    },
}

/// Why times are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimesError {
    /// The rule is not one that is taken.
    #[error("this is no rule of RFC 5545 that a schedule takes: {0}")]
    Rule(String),
    /// There is no such zone.
    #[error("there is no time zone {0:?}")]
    Zone(String),
    /// The begin is no moment on a clock.
    #[error("{0:?} is no date and time like 2026-12-01T08:00:00")]
    Begins(String),
    /// It would be due too often.
    #[error("two runs would be less than a minute apart")]
    TooOften,
    /// It is never due.
    #[error("it is never due after now")]
    Never,
}

/// The next time, and how many were missed before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    /// The next time after the moment that was asked about; none when there is none.
    pub at: Option<Timestamp>,
    /// How many times were between the last one and that moment, 1,000 at most.
    pub missed: u32,
}

impl Times {
    /// A rule whose begin is given as people write it, `2026-12-01T08:00:00`, on the clock of the zone; this minute when none.
    ///
    /// # Errors
    /// For a rule, a zone or a begin that is none, or that is too long or due too often; [`TimesError::Never`] for times that have all passed.
    pub fn rule(rrule: &str, time_zone: &str, begins: Option<&str>, now: Timestamp) -> Result<Self, TimesError> {
        let rrule = rule::check(rrule, TakenRules::BySchedules).map_err(TimesError::Rule)?;
        let zone = zone_of(time_zone)?;
        let begins = match begins {
            Some(text) => on_the_clock(text).ok_or_else(|| TimesError::Begins(text.chars().take(64).collect()))?,
            // This minute.
            None => clock::local(now, zone).format("%Y%m%dT%H%M00").to_string(),
        };
        let times = Self::Rule { rrule, time_zone: time_zone.to_owned(), begins };
        times.checked(now)?;
        Ok(times)
    }

    /// Once, in the future.
    ///
    /// # Errors
    /// [`TimesError::Never`] for a moment that has passed.
    pub fn once(at: Timestamp, now: Timestamp) -> Result<Self, TimesError> {
        if at <= now { Err(TimesError::Never) } else { Ok(Self::Once { at }) }
    }

    /// Whether a schedule can have these times from now on.
    fn checked(&self, now: Timestamp) -> Result<(), TimesError> {
        let Self::Rule { rrule, time_zone, begins } = self else { return Ok(()) };
        let zone = zone_of(time_zone)?;
        let first = parse_begin(begins).ok_or_else(|| TimesError::Begins(begins.clone()))?;
        if first < clock::local(now - OLDEST, zone) {
            return Err(TimesError::Rule("it begins more than a year ago".into()));
        }
        let times = rule::Times::new(rrule, zone, first, &[])
            .map_err(|why| TimesError::Rule(why.chars().take(200).collect()))?;
        let mut last: Option<Timestamp> = None;
        for at in times.iter().take(LOOKED_AT) {
            if last.is_some_and(|last| at.since(last) < LEAST_GAP) {
                return Err(TimesError::TooOften);
            }
            last = Some(at);
        }
        self.next(None, now).at.map(|_| ()).ok_or(TimesError::Never)
    }

    /// The next time after `after`, where `last` is the last one that was due: the search begins there, so its cost grows neither with the age of the
    /// schedule nor with how long nothing ran.
    pub fn next(&self, last: Option<Timestamp>, after: Timestamp) -> Next {
        match self {
            Self::Once { at } => Next { at: (last.is_none() && *at > after).then_some(*at), missed: 0 },
            Self::Rule { rrule, time_zone, begins } => {
                let none = Next { at: None, missed: 0 };
                let (Ok(zone), Some(begins)) = (zone_of(time_zone), parse_begin(begins)) else { return none };
                // In the phase of the begin: the last time may be one that the clock had moved.
                let times_near = |near: Timestamp| rule::Times::near(rrule, zone, begins, near).ok();
                let from = last.unwrap_or_default();
                let Some(times) = times_near(from) else { return none };
                let mut missed = 0;
                for at in times.iter().filter(|at| last.is_none_or(|last| *at > last)) {
                    if at > after {
                        return Next { at: Some(at), missed };
                    }
                    missed += 1;
                    if missed == MOST_MISSED {
                        // No more are counted, so the search goes on where the next one is.
                        let at = times_near(after).and_then(|times| times.iter().find(|at| *at > after));
                        return Next { at, missed };
                    }
                }
                Next { at: None, missed }
            }
        }
    }
}

fn zone_of(name: &str) -> Result<Tz, TimesError> {
    name.parse().map_err(|_| TimesError::Zone(name.chars().take(64).collect()))
}

/// `2026-12-01T08:00:00`, with or without seconds, as iCalendar writes it.
fn on_the_clock(text: &str) -> Option<String> {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    let digits = match shape.as_str() {
        "0000-00-00T00:00:00" | "0000-00-00 00:00:00" => digits,
        "0000-00-00T00:00" | "0000-00-00 00:00" => format!("{digits}00"),
        _ => return None,
    };
    let (date, time) = digits.split_at_checked(8)?;
    Some(format!("{date}T{time}"))
}

fn parse_begin(begins: &str) -> Option<NaiveDateTime> {
    NaiveDateTime::parse_from_str(begins, FORM).ok()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    const NOW: &str = "2026-11-24T12:00:00Z";

    fn rule(rrule: &str, zone: &str, begins: &str) -> Result<Times, TimesError> {
        Times::rule(rrule, zone, Some(begins), at(NOW))
    }

    fn next_times(times: &Times, count: usize) -> Vec<String> {
        let mut last = None;
        let mut found = Vec::new();
        while found.len() < count
            && let Some(next) = times.next(last, last.unwrap_or_else(|| at(NOW))).at
        {
            found.push(next.to_string());
            last = Some(next);
        }
        found
    }

    #[test]
    fn a_time_of_the_day_stays_the_same_on_the_clock_when_the_zone_changes() {
        let times = rule("FREQ=DAILY", "Europe/Berlin", "2026-03-27T08:00:00").unwrap();
        let found = Next { at: Some(at("2026-03-28T07:00:00Z")), missed: 1 };
        assert_eq!(times.next(None, at("2026-03-27T08:00:00Z")), found);
        let found = times.next(Some(at("2026-03-28T07:00:00Z")), at("2026-03-28T07:00:00Z"));
        assert_eq!(found, Next { at: Some(at("2026-03-29T06:00:00Z")), missed: 0 });
    }

    #[test]
    fn every_second_week_keeps_its_phase_from_its_last_time_on() {
        let times = rule("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,FR", "UTC", "2026-11-23T09:00").unwrap();
        let found = next_times(&times, 5);
        let wanted = ["2026-11-27", "2026-12-07", "2026-12-11", "2026-12-21", "2026-12-25"];
        assert_eq!(found, wanted.map(|day| format!("{day}T09:00:00.000Z")));
    }

    /// As RFC 5545 §3.3.10 counts: 25 minutes again and again, of which those from 9 to 10 o'clock are due.
    #[test]
    fn minutes_keep_their_phase_over_the_hours_that_a_rule_leaves_out() {
        let times = rule("FREQ=MINUTELY;INTERVAL=25;BYHOUR=9", "Europe/Berlin", "2027-03-27T09:00:00").unwrap();
        let wanted = ["27T08:00", "27T08:25", "27T08:50", "28T07:10", "28T07:35", "29T07:20", "29T07:45", "30T07:05"];
        assert_eq!(next_times(&times, 8), wanted.map(|minute| format!("2027-03-{minute}:00.000Z")));
        let never = rule("FREQ=MINUTELY;INTERVAL=1440;BYHOUR=9", "UTC", "2026-12-01T08:00:00");
        assert_eq!(never, Err(TimesError::Never));
    }

    #[test]
    fn times_that_passed_meanwhile_are_counted_and_not_given() {
        let times = rule("FREQ=HOURLY", "UTC", "2026-11-24T12:30:00").unwrap();
        let next = times.next(Some(at("2026-11-24T12:30:00Z")), at("2026-11-24T16:00:00Z"));
        assert_eq!(next, Next { at: Some(at("2026-11-24T16:30:00Z")), missed: 3 });
        let ended = rule("FREQ=DAILY;UNTIL=20261126T090000Z", "UTC", "2026-11-24T09:00:00").unwrap();
        assert_eq!(next_times(&ended, 9).len(), 2);
    }

    #[test]
    fn once_is_once() {
        let times = Times::once(at("2026-11-24T13:00:00Z"), at(NOW)).unwrap();
        assert_eq!(next_times(&times, 3), ["2026-11-24T13:00:00.000Z"]);
        assert_eq!(Times::once(at("2026-11-24T11:00:00Z"), at(NOW)), Err(TimesError::Never));
    }

    #[test]
    fn hours_that_come_twice_or_not_at_all_neither_stop_nor_move_a_schedule() {
        for begins in ["2027-10-31T00:30:00", "2027-03-28T00:30:00"] {
            let times = rule("FREQ=HOURLY", "Europe/Berlin", begins).unwrap();
            let mut last = times.next(None, at(NOW)).at.unwrap();
            for _ in 0..8 {
                let next = times.next(Some(last), last).at.unwrap();
                assert_eq!(next.since(last), Duration::from_secs(3600), "{last} {next}");
                last = next;
            }
        }
        let times = rule("FREQ=DAILY", "Europe/Berlin", "2027-03-27T02:30:00").unwrap();
        let wanted = ["2027-03-27T01:30", "2027-03-28T01:30", "2027-03-29T00:30", "2027-03-30T00:30"];
        assert_eq!(next_times(&times, 4), wanted.map(|minute| format!("{minute}:00.000Z")));
        // One whose last time an earlier version had moved comes back to its own.
        let moved = at("2027-03-31T01:30:00Z");
        assert_eq!(times.next(Some(moved), moved).at, Some(at("2027-04-01T00:30:00Z")));
        // It may be made for, or in, an hour that comes twice.
        assert!(rule("FREQ=DAILY", "Europe/Berlin", "2027-10-31T02:30:00").is_ok());
        assert!(Times::rule("FREQ=HOURLY", "Europe/Berlin", None, at("2026-10-25T01:15:00Z")).is_ok());
        assert!(Times::rule("FREQ=HOURLY", "Europe/Berlin", None, at("2027-03-27T20:00:00Z")).is_ok());
    }

    #[test]
    fn a_schedule_at_midnight_runs_where_midnight_is_left_out() {
        let times = rule("FREQ=DAILY", "Africa/Cairo", "2027-04-29T00:00:00").unwrap();
        let wanted = ["2027-04-28T22:00", "2027-04-29T22:00", "2027-04-30T21:00"];
        assert_eq!(next_times(&times, 3), wanted.map(|minute| format!("{minute}:00.000Z")));
    }

    #[test]
    fn a_schedule_that_rested_for_years_finds_its_next_time_and_counts_a_thousand() {
        let times = rule("FREQ=MINUTELY;INTERVAL=7", "Europe/Berlin", "2026-11-24T13:00:00").unwrap();
        let last = at("2026-11-24T12:00:00Z");
        let after = last + Duration::from_secs(10 * 365 * 24 * 3600);
        let next = times.next(Some(last), after);
        let gap = next.at.map(|at| (at.since(after), at.since(last).as_secs() % (7 * 60)));
        assert_eq!(next.missed, MOST_MISSED);
        assert!(gap.is_some_and(|(gap, phase)| gap <= Duration::from_secs(7 * 60) && phase == 0), "{next:?}");
    }

    #[test]
    fn rules_that_make_no_sense_are_refused() {
        for (rrule, zone, begins) in [
            ("", "UTC", "2026-12-01T08:00:00"),
            ("FREQ=SECONDLY", "UTC", "2026-12-01T08:00:00"),
            ("FREQ=DAILY;COUNT=3", "UTC", "2026-12-01T08:00:00"),
            ("FREQ=DAILY\nEXDATE:20261201T080000", "UTC", "2026-12-01T08:00:00"),
            ("FREQ=DAILY;BYDAY=XX", "UTC", "2026-12-01T08:00:00"),
            ("FREQ=DAILY;INTERVAL=0", "UTC", "2026-12-01T08:00:00"),
            ("BYDAY=MO", "UTC", "2026-12-01T08:00:00"),
            ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", "UTC", "2026-12-01T08:00:00"),
            ("FREQ=MINUTELY;BYMONTH=2;BYMONTHDAY=30", "UTC", "2026-12-01T08:00:00"),
            ("FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30", "UTC", "2026-12-01T08:00:00"),
            ("FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=31", "UTC", "2026-12-01T08:00:00"),
            ("FREQ=MINUTELY;BYHOUR=25", "UTC", "2026-12-01T08:00:00"),
            ("FREQ=MINUTELY", "UTC", "1999-12-01T08:00:00"),
            ("FREQ=DAILY", "Europe/Atlantis", "2026-12-01T08:00:00"),
            ("FREQ=DAILY", "UTC:20261201T080000\nRRULE", "2026-12-01T08:00:00"),
            ("FREQ=DAILY", "UTC", "tomorrow"),
            ("FREQ=DAILY", "UTC", "2026-13-41T08:00:00"),
            ("FREQ=DAILY;UNTIL=20200101T000000Z", "UTC", "2019-12-01T08:00:00"),
        ] {
            assert!(rule(rrule, zone, begins).is_err(), "{rrule:?} {zone:?} {begins:?}");
        }
    }
}
