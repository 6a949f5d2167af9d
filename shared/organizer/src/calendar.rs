//! Entities with times: events, and tasks that stand in a calendar; and their occurrences in a span of time (RFC 5545 §3.8.5).

use crate::{
    Entity, Kind,
    clock::{self, Moment, Span, Tz, local},
};
use chrono::Duration;
use domain::{Error, Timestamp};
use rrule::RRuleSet;
use serde_json::Value;

/// The longest rule, in bytes.
const MAX_RULE: usize = 300;
/// Occurrences that are looked at before the span: sixty years of days.
const LOOKED_AT: usize = 22_000;
/// The length of an event that has a start alone, and of a task without a duration, in minutes.
const USUAL_MINUTES: i64 = 60;

/// A thing with times.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// The first start.
    pub start: Moment,
    /// The first end.
    pub end: Moment,
    /// The zone of both.
    pub zone: Tz,
    /// When it comes again.
    pub rrule: Option<String>,
    /// Starts of the rule that do not take place.
    pub except: Vec<Moment>,
}

/// One of its times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// The time.
    pub span: Span,
    /// Whether it is whole days.
    pub all_day: bool,
}

impl Item {
    /// The times of an entity; none for one that stands in no calendar. `usual` is the zone of times that name none.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` about a field that is not as the table says, and about an end before the start.
    pub fn of(entity: &Entity, usual: Tz) -> Result<Option<Self>, Error> {
        let (start_field, end_field) = match entity.kind {
            Kind::Event => ("start", "end"),
            Kind::Task => ("scheduled_start", "scheduled_end"),
            Kind::Project | Kind::Note | Kind::BrainDump | Kind::Document => return Ok(None),
        };
        let Some(start) = entity.text(start_field) else { return Ok(None) };
        let start = Moment::argument(start_field, start)?;
        let zone = entity.text("time_zone").map_or(Ok(usual), |name| clock::zone("time_zone", name))?;
        let end = match entity.text(end_field) {
            Some(end) => Moment::argument(end_field, end)?,
            None => usual_end(start, entity.fields.get("duration_minutes").and_then(Value::as_u64)),
        };
        let item = Self { start, end, zone, rrule: rule_of(entity)?, except: excepted(entity)? };
        match item.length() < 0 {
            true => Err(Error::invalid(end_field, format!("{end} is before the start, {start}"))),
            false => Ok(Some(item)),
        }
    }

    /// How long it lasts on the clock, in milliseconds.
    fn length(&self) -> i64 {
        self.end.instant(self.zone).as_millis() - self.start.instant(self.zone).as_millis()
    }

    /// An occurrence from a start on the clock. Whole days end at midnight, however long the days are.
    fn from(&self, start: chrono::NaiveDateTime) -> Occurrence {
        let all_day = self.start.is_day();
        let length = self.end.local(self.zone) - self.start.local(self.zone);
        let begins = clock::on_the_clock(self.zone, start);
        let ends = match all_day {
            true => clock::on_the_clock(self.zone, start + length.max(Duration::days(1))),
            false => Timestamp::from_millis(begins.as_millis() + self.length()),
        };
        Occurrence { span: Span { start: begins, end: ends.max(begins) }, all_day }
    }

    /// Its times that meet a span, in order, `most` at most; and whether these are all.
    pub fn occurrences(&self, window: Span, most: usize) -> (Vec<Occurrence>, bool) {
        let first = self.start.local(self.zone);
        let Some(rule) = &self.rrule else {
            let only = self.from(first);
            return (if only.span.meets(&window) { vec![only] } else { Vec::new() }, true);
        };
        // A rule that was written by hand and is none stands for its first time.
        let Ok(set) = set_of(rule, self.zone, first, &self.except) else {
            let only = self.from(first);
            return (if only.span.meets(&window) { vec![only] } else { Vec::new() }, true);
        };
        let mut found = Vec::new();
        for (seen, date) in set.into_iter().enumerate() {
            let at = Timestamp::from_millis(date.timestamp_millis());
            if at >= window.end {
                return (found, true);
            }
            if found.len() >= most || seen >= LOOKED_AT {
                return (found, false);
            }
            let one = self.from(local(at, self.zone));
            if one.span.meets(&window) {
                found.push(one);
            }
        }
        (found, true)
    }
}

/// The end of something that has none.
fn usual_end(start: Moment, minutes: Option<u64>) -> Moment {
    let length = minutes.and_then(|minutes| i64::try_from(minutes).ok()).unwrap_or(USUAL_MINUTES);
    let later = |at: chrono::NaiveDateTime| at.checked_add_signed(Duration::minutes(length)).unwrap_or(at);
    match start {
        Moment::Day(day) => Moment::Day(day.succ_opt().unwrap_or(day)),
        Moment::Local(at) => Moment::Local(later(at)),
        Moment::At(at) => Moment::At(later(at.naive_utc()).and_utc()),
    }
}

fn rule_of(entity: &Entity) -> Result<Option<String>, Error> {
    entity.text("rrule").map(|rule| check_rule("rrule", rule)).transpose()
}

fn excepted(entity: &Entity) -> Result<Vec<Moment>, Error> {
    let texts = entity.fields.get("except").and_then(Value::as_array);
    texts.into_iter().flatten().filter_map(Value::as_str).map(|text| Moment::argument("except", text)).collect()
}

/// A rule as it is kept: in capitals, without its name.
///
/// # Errors
/// `INVALID_ARGUMENT` about `field` for a rule that is none, is too long, or comes more often than once a day.
pub fn check_rule(field: &str, rule: &str) -> Result<String, Error> {
    let wrong = |why: String| {
        Err(Error::invalid(field, format!("this is no rule of a calendar: {why}"))
            .hint("a rule of RFC 5545, such as FREQ=WEEKLY;BYDAY=MO,WE or FREQ=MONTHLY;BYMONTHDAY=1;COUNT=12"))
    };
    let rule = rule.trim().to_uppercase();
    let rule = rule.strip_prefix("RRULE:").unwrap_or(&rule);
    if rule.is_empty() || rule.len() > MAX_RULE {
        return wrong(format!("it has 1 to {MAX_RULE} characters"));
    }
    // No other line of a calendar can stand in it.
    if !rule.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '=' | ';' | ',' | '+' | '-')) {
        return wrong("it has letters, digits and =;,+- alone".into());
    }
    let often = rule.split(';').find_map(|part| part.strip_prefix("FREQ="));
    if !matches!(often, Some("DAILY" | "WEEKLY" | "MONTHLY" | "YEARLY")) {
        return wrong("FREQ is DAILY, WEEKLY, MONTHLY or YEARLY".into());
    }
    // Times of the day come from the start, and a search day by day for a day of the year takes seconds.
    let rare: &[&str] = match often {
        Some("DAILY" | "WEEKLY") => &["BYHOUR", "BYMINUTE", "BYSECOND", "BYMONTHDAY", "BYYEARDAY", "BYWEEKNO"],
        _ => &["BYHOUR", "BYMINUTE", "BYSECOND"],
    };
    if let Some(part) = rule.split(';').find(|part| rare.iter().any(|name| part.split('=').next() == Some(name))) {
        return wrong(format!("{part} is not taken here"));
    }
    // The library takes it, and never comes to an end.
    if rule.split(';').any(|part| part.strip_prefix("INTERVAL=").is_some_and(|every| every.trim_matches('0').is_empty())) {
        return wrong("INTERVAL is 1 at least".into());
    }
    let first = chrono::NaiveDate::from_ymd_opt(2026, 1, 1).unwrap_or_default().and_time(chrono::NaiveTime::MIN);
    match set_of(rule, Tz::UTC, first, &[]) {
        Ok(_) => Ok(rule.to_owned()),
        // An end that is before the day of this check is for the start to be compared with.
        Err(error) if rule.contains("UNTIL=") && error.to_lowercase().contains("until") => Ok(rule.to_owned()),
        Err(error) => wrong(error.chars().take(200).collect()),
    }
}

/// The times of a rule from a first one on.
fn set_of(rule: &str, zone: Tz, first: chrono::NaiveDateTime, except: &[Moment]) -> Result<RRuleSet, String> {
    let form = "%Y%m%dT%H%M%S";
    // A rule in a zone ends at a moment in UTC (RFC 5545 §3.3.10); one with a day or a time on the clock means that of its zone.
    let rule = until_in_utc(rule, zone);
    let mut text = format!("DTSTART;TZID={}:{}\nRRULE:{rule}", zone.name(), first.format(form));
    for moment in except {
        let at = match moment {
            // A day takes away the occurrence of that day.
            Moment::Day(day) => day.and_time(first.time()),
            other => other.local(zone),
        };
        text.push_str(&format!("\nEXDATE;TZID={}:{}", zone.name(), at.format(form)));
    }
    text.parse::<RRuleSet>().map_err(|error| error.to_string())
}

/// A rule whose end is a moment in UTC.
fn until_in_utc(rule: &str, zone: Tz) -> String {
    let part = |part: &str| {
        let Some(until) = part.strip_prefix("UNTIL=").filter(|until| !until.ends_with('Z')) else { return part.to_owned() };
        let at = match chrono::NaiveDate::parse_from_str(until, "%Y%m%d") {
            // The whole day is in it.
            Ok(day) => day.and_hms_opt(23, 59, 59),
            Err(_) => chrono::NaiveDateTime::parse_from_str(until, "%Y%m%dT%H%M%S").ok(),
        };
        match at {
            Some(at) => {
                let utc = local(clock::on_the_clock(zone, at), Tz::UTC);
                format!("UNTIL={}Z", utc.format("%Y%m%dT%H%M%S"))
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

    fn item(text: &str) -> Item {
        Item::of(&Entity::read(Kind::Event, text, "x"), Tz::UTC).unwrap().unwrap()
    }

    fn window(start: &str, end: &str) -> Span {
        Span { start: start.parse().unwrap(), end: end.parse().unwrap() }
    }

    fn starts(item: &Item, from: &str, to: &str) -> Vec<String> {
        let (found, all) = item.occurrences(window(from, to), 1000);
        assert!(all);
        found.iter().map(|one| one.span.start.to_string().chars().take(16).collect()).collect()
    }

    #[test]
    fn a_weekly_event_stays_at_its_time_of_the_day_and_leaves_out_exceptions() {
        let weekly = item(
            "---\ntitle: Team\nstart: 2026-03-16T09:00\nend: 2026-03-16T09:30\ntime_zone: Europe/Berlin\nrrule: FREQ=WEEKLY;COUNT=5\n\
             except: [2026-03-23]\n---\n",
        );
        assert_eq!(
            starts(&weekly, "2026-03-01T00:00:00Z", "2026-12-01T00:00:00Z"),
            ["2026-03-16T08:00", "2026-03-30T07:00", "2026-04-06T07:00", "2026-04-13T07:00"]
        );
    }

    #[test]
    fn an_occurrence_that_has_begun_before_the_span_is_in_it_and_whole_days_end_at_midnight() {
        let night = item("---\ntitle: Night\nstart: 2026-03-01T22:00\nend: 2026-03-02T06:00\nrrule: FREQ=DAILY\n---\n");
        assert_eq!(
            starts(&night, "2026-03-05T00:00:00Z", "2026-03-06T00:00:00Z"),
            ["2026-03-04T22:00", "2026-03-05T22:00"]
        );
        let day = item("---\ntitle: Fair\nstart: 2026-03-29\nend: 2026-03-30\ntime_zone: Europe/Berlin\n---\n");
        let (found, _) = day.occurrences(window("2026-03-28T00:00:00Z", "2026-04-01T00:00:00Z"), 10);
        let [one] = found.as_slice() else { panic!("{found:?}") };
        assert!(one.all_day);
        assert_eq!(one.span, window("2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"), "a day of 23 hours");
    }

    #[test]
    fn the_last_day_of_a_rule_is_in_it() {
        let daily = item("---\ntitle: X\nstart: 2026-03-01T20:00\ntime_zone: America/New_York\nrrule: FREQ=DAILY;UNTIL=20260303\n---\n");
        assert_eq!(starts(&daily, "2026-02-01T00:00:00Z", "2026-12-01T00:00:00Z").len(), 3);
    }

    #[test]
    fn the_number_of_occurrences_and_of_steps_to_them_is_bounded() {
        let daily = item("---\ntitle: X\nstart: 1900-01-01T08:00\nrrule: FREQ=DAILY\n---\n");
        let (found, all) = daily.occurrences(window("2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"), 10);
        assert!(found.is_empty() && !all);
        let (found, all) = daily.occurrences(window("1901-01-01T00:00:00Z", "2027-01-01T00:00:00Z"), 10);
        assert!(found.len() == 10 && !all);
    }

    #[test]
    fn rules_that_are_none_are_refused() {
        assert_eq!(check_rule("rrule", "rrule:freq=weekly;byday=mo").unwrap(), "FREQ=WEEKLY;BYDAY=MO");
        assert!(check_rule("rrule", "FREQ=DAILY;UNTIL=20200101").is_ok());
        for wrong in [
            "",
            "FREQ=SECONDLY",
            "FREQ=HOURLY",
            "FREQ=DAILY;BYDAY=XX",
            "FREQ=DAILY;INTERVAL=0",
            "BYDAY=MO",
            "FREQ=DAILY;BYHOUR=1",
            "FREQ=WEEKLY;BYMONTHDAY=3",
            "FREQ=DAILY\nEXDATE:20261201T080000",
            "FREQ=DAILY;EVER=1",
        ] {
            assert!(check_rule("rrule", wrong).is_err(), "{wrong:?}");
        }
    }
}
