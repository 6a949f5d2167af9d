//! Rules by which something comes again (RFC 5545 §3.3.10), and their times.
//!
//! A rule that this takes has a search for its next time that is short: some rules of the specification make a search of seconds, or one
//! without an end, out of a line.

use crate::clock::{self, Moment, Tz, local};
use chrono::{NaiveDate, NaiveDateTime, NaiveTime};
use domain::Timestamp;
use rrule::RRuleSet;

/// The longest rule, in bytes.
const MAX_RULE: usize = 300;
/// How iCalendar writes a time on a clock.
const FORM: &str = "%Y%m%dT%H%M%S";

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
        Err(why) if rule.contains("UNTIL=") && why.to_lowercase().contains("until") => Ok(rule.to_owned()),
        Err(why) => Err(why.chars().take(200).collect()),
    }
}

/// The times of a rule.
#[derive(Clone, Debug)]
pub struct Times(RRuleSet);

impl Times {
    /// From a first one on, which is a time on the clock of the zone, without these starts.
    ///
    /// # Errors
    /// The fault of the rule, for people.
    pub fn new(rule: &str, zone: Tz, first: NaiveDateTime, except: &[Moment]) -> Result<Self, String> {
        // A rule in a zone ends at a moment in UTC (RFC 5545 §3.3.10); one with a day or a time on the clock means that of its zone.
        let rule = until_in_utc(rule, zone);
        let mut text = format!("DTSTART;TZID={}:{}\nRRULE:{rule}", zone.name(), first.format(FORM));
        for moment in except {
            let at = match moment {
                // A day takes away the occurrence of that day.
                Moment::Day(day) => day.and_time(first.time()),
                other => other.local(zone),
            };
            text.push_str(&format!("\nEXDATE;TZID={}:{}", zone.name(), at.format(FORM)));
        }
        text.parse::<RRuleSet>().map(Self).map_err(|error| error.to_string())
    }

    /// The times, in order. They may have no end.
    pub fn iter(&self) -> impl Iterator<Item = Timestamp> + '_ {
        (&self.0).into_iter().map(|date| Timestamp::from_millis(date.timestamp_millis()))
    }
}

/// A rule whose end is a moment in UTC.
fn until_in_utc(rule: &str, zone: Tz) -> String {
    let part = |part: &str| {
        let Some(until) = part.strip_prefix("UNTIL=").filter(|until| !until.ends_with('Z')) else {
            return part.to_owned();
        };
        let at = match NaiveDate::parse_from_str(until, "%Y%m%d") {
            // The whole day is in it.
            Ok(day) => day.and_hms_opt(23, 59, 59),
            Err(_) => NaiveDateTime::parse_from_str(until, FORM).ok(),
        };
        match at {
            Some(at) => {
                let utc = local(clock::on_the_clock(zone, at), Tz::UTC);
                format!("UNTIL={}Z", utc.format(FORM))
            }
            None => part.to_owned(),
        }
    };
    rule.split(';').map(part).collect::<Vec<_>>().join(";")
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
}
