//! Rules of minutes: steps on a clock that never changes, of which the named days, hours and minutes stay.
//!
//! The library moves such a rule on by whole hours to the next named hour. So it loses the phase of an `INTERVAL` that is no part of an hour, which RFC 5545
//! §3.3.10 counts from the first time on.

use crate::part::part;
use chrono::{DateTime, Duration, NaiveDateTime, Timelike as _};

/// The days of the week, as rules name them.
const DAYS: [&str; 7] = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"];
const MINUTES_OF_A_DAY: i64 = 24 * 60;
/// The steps after which the phase within the week is the same again, whatever the interval: none of them is in the rule if so many in a row are not.
const MOST_LEFT_OUT: u32 = 7 * 24 * 60;

/// A rule of minutes, from its first time on.
#[derive(Clone, Debug)]
pub(crate) struct Minutes {
    first: NaiveDateTime,
    interval: i64,
    /// The days of the week by their bits from Monday on, the hours, and the minutes; all of them where the rule names none.
    days: u64,
    hours: u64,
    minutes: u64,
}

impl Minutes {
    /// None for a rule of another frequency. The rule is one that the library has taken.
    pub fn of(rule: &str, first: NaiveDateTime) -> Option<Self> {
        if part(rule, "FREQ") != Some("MINUTELY") {
            return None;
        }
        let interval = part(rule, "INTERVAL").and_then(|interval| interval.parse().ok()).unwrap_or(1);
        let number = |text: &str| text.parse::<u32>().ok();
        // A number before the day has no meaning here (RFC 5545 §3.3.10).
        let day = |text: &str| DAYS.iter().position(|day| text.ends_with(*day)).and_then(|bit| u32::try_from(bit).ok());
        Some(Self {
            first,
            interval,
            days: named(rule, "BYDAY", day),
            hours: named(rule, "BYHOUR", number),
            minutes: named(rule, "BYMINUTE", number),
        })
    }

    /// The times on the clock, in order. They end where the calendar does, and at once where no step is on a named day, hour and minute.
    pub fn iter(&self) -> impl Iterator<Item = NaiveDateTime> + '_ {
        let start = self.first.and_utc().timestamp().div_euclid(60);
        let (mut next, mut left_out) = (Some(start), 0);
        std::iter::from_fn(move || {
            loop {
                let minute = next?;
                next = minute.checked_add(self.interval).filter(|_| self.interval > 0);
                if self.has(minute) {
                    left_out = 0;
                    let at = DateTime::from_timestamp(minute.checked_mul(60)?, 0)?.naive_utc();
                    return at.checked_add_signed(Duration::seconds(i64::from(self.first.second())));
                }
                left_out += 1;
                if left_out > MOST_LEFT_OUT {
                    next = None;
                }
            }
        })
    }

    /// Whether a minute since 1970-01-01T00:00, which was a Thursday, is on a named day, hour and minute.
    fn has(&self, minute: i64) -> bool {
        let day = (minute.div_euclid(MINUTES_OF_A_DAY) + 3).rem_euclid(7);
        let of_day = minute.rem_euclid(MINUTES_OF_A_DAY);
        let is_named = |set: u64, bit: i64| set & (1 << bit) != 0;
        is_named(self.days, day) && is_named(self.hours, of_day / 60) && is_named(self.minutes, of_day % 60)
    }
}

/// The bits of the values of a part; all where the rule has no such part.
fn named(rule: &str, name: &str, bit: impl Fn(&str) -> Option<u32>) -> u64 {
    let Some(values) = part(rule, name) else { return u64::MAX };
    values.split(',').filter_map(bit).filter(|bit| *bit < 64).fold(0, |set, bit| set | (1 << bit))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn at(text: &str) -> NaiveDateTime {
        NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S").unwrap()
    }

    fn first_of(rule: &str, first: &str, count: usize) -> Vec<String> {
        let minutes = Minutes::of(rule, at(first)).unwrap();
        minutes.iter().take(count).map(|at| at.format("%dT%H:%M:%S").to_string()).collect()
    }

    /// As RFC 5545 expands them: every time is a whole number of intervals after the first one. 1 March 2027 is a Monday.
    #[test]
    fn an_interval_keeps_its_phase_over_hours_and_days_that_are_left_out() {
        for (rule, wanted) in [
            ("FREQ=MINUTELY;INTERVAL=25;BYHOUR=9", ["01T09:00:07", "01T09:25:07", "01T09:50:07", "02T09:10:07"]),
            ("FREQ=MINUTELY;INTERVAL=50;BYHOUR=9,11", ["01T09:00:07", "01T09:50:07", "01T11:30:07", "02T09:10:07"]),
            ("FREQ=MINUTELY;INTERVAL=7;BYMINUTE=0", ["01T09:00:07", "01T16:00:07", "01T23:00:07", "02T06:00:07"]),
            ("FREQ=MINUTELY;INTERVAL=420;BYDAY=MO", ["01T09:00:07", "01T16:00:07", "01T23:00:07", "08T02:00:07"]),
            ("FREQ=MINUTELY;INTERVAL=1440;BYDAY=TU,FR", ["02T09:00:07", "05T09:00:07", "09T09:00:07", "12T09:00:07"]),
            ("FREQ=MINUTELY;BYHOUR=9;BYMINUTE=30,31", ["01T09:30:07", "01T09:31:07", "02T09:30:07", "02T09:31:07"]),
        ] {
            assert_eq!(first_of(rule, "2027-03-01T09:00:07", 4), wanted, "{rule}");
        }
    }

    #[test]
    fn a_rule_that_never_comes_ends_and_other_frequencies_are_of_the_library() {
        assert_eq!(first_of("FREQ=MINUTELY;INTERVAL=1440;BYHOUR=9", "2027-03-01T08:00:00", 1), [""; 0]);
        assert_eq!(first_of("FREQ=MINUTELY;INTERVAL=0", "2027-03-01T08:00:00", 9).len(), 1);
        assert!(Minutes::of("FREQ=HOURLY;BYHOUR=9", at("2027-03-01T08:00:00")).is_none());
    }
}
