//! Rules by which something comes again (RFC 5545 §3.3.10), and their times.
//!
//! A rule that this takes has a search for its next time that is short: some rules of the specification make a search of seconds, or one
//! without an end, out of a line.

use crate::{
    clock::{self, Moment, Tz},
    minutes::Minutes,
    part::part,
};
use chrono::{Datelike as _, Duration, Months, NaiveDate, NaiveDateTime, NaiveTime};
use domain::Timestamp;
use rrule::RRuleSet;
use std::collections::BTreeSet;

/// The longest rule, in bytes.
const MAX_RULE: usize = 300;
/// How iCalendar writes a time on a clock.
const FORM: &str = "%Y%m%dT%H%M%S";
/// The fault of a rule that ends before its first time.
const ENDS_BEFORE: &str = "UNTIL is before its first time";
/// How long before a moment the search near it begins, in seconds: rules of hours and minutes, which may come twice, and others. Clocks move by three
/// hours at most, but for a few islands that left out a day.
const MARGIN_OF_HOURS: i64 = 3 * 3600;
const MARGIN_OF_DAYS: i64 = 27 * 3600;

/// The rules that are taken, by their use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakenRules {
    /// Those of events and tasks: once a day at most.
    ByCalendars,
    /// Those of schedules: several times a day, too. They have no `COUNT`, since the search for the next time begins at the last one.
    BySchedules,
}

impl TakenRules {
    fn frequencies(self) -> &'static [&'static str] {
        match self {
            Self::ByCalendars => &["DAILY", "WEEKLY", "MONTHLY", "YEARLY"],
            Self::BySchedules => &["MINUTELY", "HOURLY", "DAILY", "WEEKLY", "MONTHLY", "YEARLY"],
        }
    }

    /// The parts that are refused whatever the frequency. Times of the day of events come from their start.
    fn refused(self) -> &'static [&'static str] {
        match self {
            Self::ByCalendars => &["BYHOUR", "BYMINUTE", "BYSECOND"],
            Self::BySchedules => &["COUNT", "BYSECOND"],
        }
    }
}

/// A rule as it is kept: in capitals, without its name.
///
/// # Errors
/// The fault, for people: it is no rule, is too long, or is not one that is taken.
pub fn check(rule: &str, taken: TakenRules) -> Result<String, String> {
    let rule = rule.trim().to_uppercase();
    let rule = rule.strip_prefix("RRULE:").unwrap_or(&rule);
    if rule.is_empty() || rule.len() > MAX_RULE {
        return Err(format!("it has 1 to {MAX_RULE} characters"));
    }
    // No other line of a calendar can stand in it.
    if !rule.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '=' | ';' | ',' | '+' | '-')) {
        return Err("it has letters, digits and =;,+- alone".into());
    }
    let parts: Vec<(&str, &str)> = rule.split(';').map(|part| part.split_once('=').unwrap_or((part, ""))).collect();
    let value = |wanted: &str| parts.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value);
    let often = value("FREQ").unwrap_or_default();
    if !taken.frequencies().contains(&often) {
        return Err(format!("FREQ is one of {}", taken.frequencies().join(", ")));
    }
    // A search minute by minute, or day by day, for a day of the year takes seconds.
    let rare: &[&str] = match often {
        "MINUTELY" | "HOURLY" => &["BYMONTH", "BYMONTHDAY", "BYYEARDAY", "BYWEEKNO", "BYSETPOS"],
        "DAILY" | "WEEKLY" => &["BYMONTHDAY", "BYYEARDAY", "BYWEEKNO"],
        _ => &[],
    };
    for (name, value) in &parts {
        match *name {
            "COUNT" if taken.refused().contains(&"COUNT") => return Err("COUNT is not taken: end it by UNTIL".into()),
            name if taken.refused().contains(&name) => return Err(format!("{name} is not taken here")),
            name if rare.contains(&name) => {
                return Err("days of months go with FREQ=MONTHLY, those of years with FREQ=YEARLY".into());
            }
            // The library takes it, and never comes to an end.
            "INTERVAL" if value.trim_matches('0').is_empty() => return Err("INTERVAL is 1 at least".into()),
            "FREQ" | "INTERVAL" | "COUNT" | "UNTIL" | "BYMONTH" | "BYMONTHDAY" | "BYYEARDAY" | "BYWEEKNO" | "BYDAY"
            | "BYHOUR" | "BYMINUTE" | "BYSECOND" | "BYSETPOS" | "WKST" => {}
            _ => return Err("it has a part that there is not".into()),
        }
    }
    let first = NaiveDate::from_ymd_opt(2026, 1, 1).unwrap_or_default().and_time(NaiveTime::MIN);
    match Times::new(rule, Tz::UTC, first, &[]) {
        Ok(_) => Ok(rule.to_owned()),
        // An end that is before the day of this check is for the start to be compared with.
        Err(why) if why == ENDS_BEFORE => Ok(rule.to_owned()),
        Err(why) => Err(why.chars().take(200).collect()),
    }
}

/// The times of a rule.
///
/// A rule is searched on a clock that never changes, and each of its times is then looked up on the clock of the zone. So no time is lost or moved for
/// good where a clock leaves times out or has them twice, not even at midnight.
#[derive(Clone, Debug)]
pub struct Times {
    dates: RRuleSet,
    /// The search of a rule of minutes, in the place of that of the library.
    minutes: Option<Minutes>,
    zone: Tz,
    /// The last moment that is in it.
    until: Option<Timestamp>,
    /// The moments that are left out, in seconds.
    except: BTreeSet<i64>,
    /// Whether times that the clock has twice come twice.
    repeats: bool,
}

impl Times {
    /// From a first one on, which is a time on the clock of the zone, without these starts.
    ///
    /// # Errors
    /// The fault of the rule, for people.
    pub fn new(rule: &str, zone: Tz, first: NaiveDateTime, except: &[Moment]) -> Result<Self, String> {
        // The end is a moment, and the search knows a clock alone.
        let endless: Vec<&str> = rule.split(';').filter(|part| !part.starts_with("UNTIL=")).collect();
        let text = format!("DTSTART:{}Z\nRRULE:{}", first.format(FORM), endless.join(";"));
        let dates = text.parse::<RRuleSet>().map_err(|error| error.to_string())?;
        let until = part(rule, "UNTIL").map(|until| last_moment(until, zone)).transpose()?;
        if until.is_some_and(|until| until < clock::on_the_clock(zone, first)) {
            return Err(ENDS_BEFORE.into());
        }
        let starts = except.iter().map(|moment| match moment {
            // A day takes away the occurrence of that day.
            Moment::Day(day) => clock::on_the_clock(zone, day.and_time(first.time())),
            other => other.instant(zone),
        });
        let except = starts.map(seconds).collect();
        // An hour of the day that is named is meant once.
        let repeats = matches!(part(rule, "FREQ"), Some("HOURLY" | "MINUTELY")) && part(rule, "BYHOUR").is_none();
        Ok(Self { dates, minutes: Minutes::of(rule, first), zone, until, except, repeats })
    }

    /// The same from shortly before `near` on, in the phase of its first time: so a search costs the same however old the rule is. A rule that counts
    /// its times begins at the first one.
    ///
    /// # Errors
    /// The fault of the rule, for people.
    pub fn near(rule: &str, zone: Tz, first: NaiveDateTime, near: Timestamp) -> Result<Self, String> {
        let first = match part(rule, "COUNT") {
            Some(_) => first,
            None => in_phase(rule, first, clock::local(near, zone)),
        };
        Self::new(rule, zone, first, &[])
    }

    /// The times, each later than the one before. They may have no end. A time that the clock leaves out is as long after midnight as it says. One that
    /// the clock has twice is the first of both; a rule of hours or minutes that names no hour has both.
    pub fn iter(&self) -> impl Iterator<Item = Timestamp> + '_ {
        let dates: Box<dyn Iterator<Item = NaiveDateTime> + '_> = match &self.minutes {
            Some(minutes) => Box::new(minutes.iter()),
            None => Box::new((&self.dates).into_iter().map(|date| date.naive_utc())),
        };
        Instants { times: self, dates, found: BTreeSet::new(), certain: None, is_over: false, last: None }
    }
}

/// The times of a rule, one by one.
struct Instants<'a> {
    times: &'a Times,
    /// The times on the clock, in its order.
    dates: Box<dyn Iterator<Item = NaiveDateTime> + 'a>,
    /// The moments that were found and not given yet. A time that the clock leaves out is a later moment than some of the times after it, and so is the
    /// second moment of a time that the clock has twice.
    found: BTreeSet<Timestamp>,
    /// No moment up to this one is found later.
    certain: Option<Timestamp>,
    is_over: bool,
    last: Option<Timestamp>,
}

impl Instants<'_> {
    fn earliest(&mut self) -> Option<Timestamp> {
        let Times { zone, repeats, .. } = *self.times;
        loop {
            let is_certain = |first: &Timestamp| self.certain.is_some_and(|certain| *first <= certain);
            if self.is_over || self.found.first().is_some_and(is_certain) {
                return self.found.pop_first();
            }
            let Some(at) = self.dates.next() else {
                self.is_over = true;
                continue;
            };
            let moment = clock::on_the_clock(zone, at);
            self.found.insert(moment);
            if repeats {
                self.found.extend(clock::again_on_the_clock(zone, at));
            }
            // After a time that the clock leaves out, only moments of the same gap are earlier. A rule may name such times alone: 2:30 on the last
            // Sunday of March.
            let is_on_the_clock = clock::local(moment, zone) == at;
            let gap = if is_on_the_clock { 0 } else { MARGIN_OF_DAYS * 1000 };
            self.certain = self.certain.max(Some(Timestamp::from_millis(moment.as_millis() - gap)));
        }
    }
}

impl Iterator for Instants<'_> {
    type Item = Timestamp;

    fn next(&mut self) -> Option<Timestamp> {
        loop {
            let at = self.earliest()?;
            if self.times.until.is_some_and(|until| at > until) {
                return None;
            }
            // Where the clock leaves an hour out, its times and those of the next hour may be the same moments.
            let is_later = self.last.is_none_or(|last| at > last);
            if is_later && !self.times.except.contains(&seconds(at)) {
                self.last = Some(at);
                return Some(at);
            }
        }
    }
}

fn seconds(at: Timestamp) -> i64 {
    at.as_millis().div_euclid(1000)
}

/// A rule with its end in the form that iCalendar has beside its start (RFC 5545 §3.3.10): a day beside a start of whole days, else a moment in UTC. So
/// two ways to say the same end are the same text, and other calendars end the rule where this one does. A rule without an end, or with one that is
/// none, stays as it is.
pub fn with_plain_end(rule: &str, zone: Tz, is_whole_days: bool) -> String {
    let Some(until) = part(rule, "UNTIL") else { return rule.to_owned() };
    let Ok(last) = last_moment(until, zone) else { return rule.to_owned() };
    let plain = match is_whole_days {
        true => clock::local(last, zone).format("%Y%m%d").to_string(),
        false => format!("{}Z", clock::local(last, Tz::UTC).format(FORM)),
    };
    let parts = rule.split(';').map(|one| match one.starts_with("UNTIL=") {
        true => format!("UNTIL={plain}"),
        false => one.to_owned(),
    });
    parts.collect::<Vec<_>>().join(";")
}

/// The last moment of a rule that ends so: a moment in UTC (RFC 5545 §3.3.10), or a day or a time on the clock of the zone.
fn last_moment(until: &str, zone: Tz) -> Result<Timestamp, String> {
    if let Some(utc) = until.strip_suffix('Z')
        && let Ok(at) = NaiveDateTime::parse_from_str(utc, FORM)
    {
        return Ok(clock::on_the_clock(Tz::UTC, at));
    }
    let at = match NaiveDate::parse_from_str(until, "%Y%m%d") {
        // The whole day is in it.
        Ok(day) => day.and_hms_opt(23, 59, 59),
        Err(_) => NaiveDateTime::parse_from_str(until, FORM).ok(),
    };
    let at = at.ok_or("UNTIL is a day such as 20261201, or a time such as 20261201T080000Z")?;
    Ok(clock::on_the_clock(zone, at))
}

/// The first time moved on by whole intervals of the rule, to a time more than a day before `near`, or three hours for rules of hours and minutes. The
/// first time itself where that is later.
fn in_phase(rule: &str, first: NaiveDateTime, near: NaiveDateTime) -> NaiveDateTime {
    let interval: u32 = part(rule, "INTERVAL").map_or(Some(1), |interval| interval.parse().ok()).unwrap_or(1).max(1);
    let moved = match part(rule, "FREQ") {
        Some("MINUTELY") => by_seconds(first, near, 60, MARGIN_OF_HOURS, interval),
        Some("HOURLY") => by_seconds(first, near, 3600, MARGIN_OF_HOURS, interval),
        Some("DAILY") => by_seconds(first, near, 24 * 3600, MARGIN_OF_DAYS, interval),
        Some("WEEKLY") => by_seconds(first, near, 7 * 24 * 3600, MARGIN_OF_DAYS, interval),
        Some("MONTHLY") => by_months(first, near, interval),
        Some("YEARLY") => by_months(first, near, interval.saturating_mul(12)),
        Some(_) | None => None,
    };
    moved.unwrap_or(first)
}

fn by_seconds(
    first: NaiveDateTime,
    near: NaiveDateTime,
    unit: i64,
    margin: i64,
    interval: u32,
) -> Option<NaiveDateTime> {
    let period = unit.checked_mul(i64::from(interval))?;
    let periods = (near - first).num_seconds().checked_sub(margin)?.div_euclid(period);
    if periods <= 0 {
        return None;
    }
    first.checked_add_signed(Duration::try_seconds(periods.checked_mul(period)?)?)
}

/// A rule may take the day of the month from its first time, so only months that have this day are gone to.
fn by_months(first: NaiveDateTime, near: NaiveDateTime, step: u32) -> Option<NaiveDateTime> {
    let month_of = |at: NaiveDateTime| i64::from(at.year()) * 12 + i64::from(at.month0());
    let steps = u32::try_from((month_of(near) - month_of(first)) / i64::from(step) - 1).ok()?;
    let moved = |steps: u32| first.checked_add_months(Months::new(steps.checked_mul(step)?));
    (1..=steps).rev().filter_map(moved).find(|at| at.day() == first.day())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn rules_that_are_none_are_refused_by_both() {
        for taken in [TakenRules::ByCalendars, TakenRules::BySchedules] {
            assert_eq!(check("rrule:freq=weekly;byday=mo", taken).unwrap(), "FREQ=WEEKLY;BYDAY=MO");
            assert!(check("FREQ=DAILY;UNTIL=20200101", taken).is_ok());
            for wrong in [
                "",
                "FREQ=SECONDLY",
                "FREQ=DAILY;BYDAY=XX",
                "FREQ=DAILY;INTERVAL=0",
                "BYDAY=MO",
                "FREQ=DAILY;BYSECOND=1",
                "FREQ=WEEKLY;BYMONTHDAY=3",
                "FREQ=DAILY\nEXDATE:20261201T080000",
                "FREQ=DAILY;EVER=1",
                "FREQ=DAILY;UNTIL=TOMORROW",
                "FREQ=DAILY;BYDAY=XX;UNTIL=20200101",
            ] {
                assert!(check(wrong, taken).is_err(), "{wrong:?}");
            }
        }
    }

    #[test]
    fn calendars_and_schedules_take_different_rules() {
        for (rule, by_calendars, by_schedules) in [
            ("FREQ=HOURLY", false, true),
            ("FREQ=DAILY;BYHOUR=8,20", false, true),
            ("FREQ=DAILY;COUNT=3", true, false),
            ("FREQ=MINUTELY;BYMONTH=2", false, false),
        ] {
            assert_eq!(check(rule, TakenRules::ByCalendars).is_ok(), by_calendars, "{rule}");
            assert_eq!(check(rule, TakenRules::BySchedules).is_ok(), by_schedules, "{rule}");
        }
    }

    fn times(rule: &str, zone: &str, first: &str) -> Times {
        Times::new(rule, clock::zone("zone", zone).unwrap(), parsed(first), &[]).unwrap()
    }

    fn parsed(text: &str) -> NaiveDateTime {
        NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M").unwrap()
    }

    fn first_of(times: &Times, count: usize) -> Vec<String> {
        times.iter().take(count).map(|at| at.to_string().chars().take(16).collect()).collect()
    }

    #[test]
    fn a_time_that_a_clock_leaves_out_or_has_twice_comes_on_each_day() {
        // Half past two is left out on 28 March 2027.
        let spring = times("FREQ=DAILY", "Europe/Berlin", "2027-03-27T02:30");
        assert_eq!(first_of(&spring, 3), ["2027-03-27T01:30", "2027-03-28T01:30", "2027-03-29T00:30"]);
        let autumn = times("FREQ=DAILY", "Europe/Berlin", "2027-10-30T02:30");
        assert_eq!(first_of(&autumn, 3), ["2027-10-30T00:30", "2027-10-31T00:30", "2027-11-01T01:30"]);
        // The first time itself may be one of these.
        assert_eq!(first_of(&times("FREQ=DAILY", "Europe/Berlin", "2027-03-28T02:30"), 1), ["2027-03-28T01:30"]);
        assert_eq!(first_of(&times("FREQ=DAILY", "Europe/Berlin", "2027-10-31T02:30"), 1), ["2027-10-31T00:30"]);
        // In Cairo midnight is left out on 30 April 2027. In the Azores it comes twice on 31 October.
        let cairo = times("FREQ=DAILY", "Africa/Cairo", "2027-04-29T00:00");
        assert_eq!(first_of(&cairo, 3), ["2027-04-28T22:00", "2027-04-29T22:00", "2027-04-30T21:00"]);
        let azores = times("FREQ=DAILY", "Atlantic/Azores", "2027-10-30T00:00");
        assert_eq!(first_of(&azores, 3), ["2027-10-30T00:00", "2027-10-31T00:00", "2027-11-01T01:00"]);
    }

    #[test]
    fn hours_and_minutes_go_on_through_an_hour_that_comes_twice_and_one_that_is_left_out() {
        for (rule, gap) in [("FREQ=HOURLY", 3600), ("FREQ=MINUTELY;INTERVAL=20", 1200)] {
            for first in ["2027-03-28T00:00", "2027-10-31T00:00"] {
                let found: Vec<Timestamp> = times(rule, "Europe/Berlin", first).iter().take(18).collect();
                let is_even = found.windows(2).all(|two| two[1].since(two[0]).as_secs() == gap);
                assert!(is_even, "{rule} {first}: {found:?}");
            }
        }
        let named = times("FREQ=DAILY;BYHOUR=2,3", "Europe/Berlin", "2027-10-31T02:00");
        assert_eq!(first_of(&named, 3), ["2027-10-31T00:00", "2027-10-31T02:00", "2027-11-01T01:00"]);
    }

    /// The clock skips from 2:00 to 3:00 on 28 March 2027: 2:20 is 3:20 on that day, and 3:00 comes before it.
    #[test]
    fn times_after_a_time_that_the_clock_leaves_out_are_not_lost() {
        let named = times("FREQ=MINUTELY;INTERVAL=40;BYHOUR=1,2,3", "Europe/Berlin", "2027-03-28T01:00");
        let wanted = ["00:00", "00:40", "01:00", "01:20", "01:40"].map(|time| format!("2027-03-28T{time}"));
        assert_eq!(first_of(&named, 5), wanted);
        let all = times("FREQ=MINUTELY;INTERVAL=40", "Europe/Berlin", "2027-03-28T01:00");
        assert_eq!(first_of(&all, 5), wanted);
        let each = times("FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU", "Europe/Berlin", "2027-03-28T02:30");
        assert_eq!(first_of(&each, 2), ["2027-03-28T01:30", "2028-03-26T01:30"], "each of them is left out");
    }

    #[test]
    fn an_end_is_a_day_beside_whole_days_and_a_moment_beside_times() {
        let new_york = clock::zone("zone", "America/New_York").unwrap();
        for (until, day, moment) in [
            ("20260303", "20260303", "20260304T045959Z"),
            ("20260303T200000", "20260303", "20260304T010000Z"),
            ("20260304T010000Z", "20260303", "20260304T010000Z"),
        ] {
            let of = |is_whole_days| {
                with_plain_end(&format!("FREQ=DAILY;UNTIL={until};INTERVAL=2"), new_york, is_whole_days)
            };
            assert_eq!(of(true), format!("FREQ=DAILY;UNTIL={day};INTERVAL=2"), "{until}");
            assert_eq!(of(false), format!("FREQ=DAILY;UNTIL={moment};INTERVAL=2"), "{until}");
        }
        for same in ["FREQ=DAILY", "FREQ=DAILY;COUNT=3", "FREQ=DAILY;UNTIL=tomorrow"] {
            assert_eq!(with_plain_end(same, new_york, false), same);
        }
    }

    #[test]
    fn an_end_is_a_moment_a_day_or_a_time_on_the_clock_and_exceptions_are_moments() {
        for (until, count) in
            [("20270329T003000Z", 3), ("20270329T002959Z", 2), ("20270328", 2), ("20270328T023000", 2)]
        {
            let rule = format!("FREQ=DAILY;UNTIL={until}");
            assert_eq!(times(&rule, "Europe/Berlin", "2027-03-27T02:30").iter().count(), count, "{until}");
        }
        let berlin = clock::zone("zone", "Europe/Berlin").unwrap();
        let of = |rule: &str, except: &[&str]| {
            let except: Vec<Moment> = except.iter().map(|text| Moment::parse(text).unwrap()).collect();
            Times::new(rule, berlin, parsed("2027-03-27T02:30"), &except)
        };
        for end in ["FREQ=DAILY;UNTIL=20270327T000000Z", "FREQ=DAILY;UNTIL=tomorrow", "FREQ=DAILY;UNTIL=20271341"] {
            assert!(of(end, &[]).is_err(), "{end}");
        }
        for except in ["2027-03-28", "2027-03-28T02:30", "2027-03-28T01:30:00Z"] {
            let found = of("FREQ=DAILY;COUNT=3", &[except]).unwrap();
            assert_eq!(first_of(&found, 9), ["2027-03-27T01:30", "2027-03-29T00:30"], "{except}");
        }
    }

    #[test]
    fn a_search_near_a_moment_finds_the_times_that_a_search_from_the_first_one_finds() {
        let berlin = clock::zone("zone", "Europe/Berlin").unwrap();
        for (rule, first) in [
            ("FREQ=MINUTELY;INTERVAL=45", "2026-10-24T23:50"),
            ("FREQ=MINUTELY;INTERVAL=7;BYHOUR=2,9", "2026-03-27T01:00"),
            ("FREQ=HOURLY;INTERVAL=5;BYMINUTE=10,40", "2026-03-28T22:40"),
            ("FREQ=DAILY;INTERVAL=3", "2026-01-02T02:30"),
            ("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,FR;BYHOUR=2,20", "2026-01-04T02:30"),
            ("FREQ=MONTHLY", "2026-01-31T02:30"),
            ("FREQ=MONTHLY;INTERVAL=2;BYDAY=-1SU", "2026-01-31T02:30"),
            ("FREQ=YEARLY", "2024-02-29T02:30"),
            ("FREQ=DAILY;COUNT=9", "2026-01-02T02:30"),
        ] {
            let first = parsed(first);
            let all: Vec<Timestamp> = Times::new(rule, berlin, first, &[]).unwrap().iter().take(600).collect();
            for place in (0..all.len().saturating_sub(1)).step_by(all.len() / 150 + 1) {
                let (near, next) = (all[place], all[place + 1]);
                let found = Times::near(rule, berlin, first, near).unwrap();
                assert_eq!(found.iter().find(|at| *at > near), Some(next), "{rule} after {near}");
            }
        }
    }
}
