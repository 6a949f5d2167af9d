//! Entities with times: events, and tasks that stand in a calendar; and their occurrences in a span of time (RFC 5545 §3.8.5).

use crate::{
    Entity, EntityKind,
    clock::{self, Moment, Span, Tz, local},
    rule::check_rule,
};
use chrono::{Duration, NaiveTime};
use domain::{Error, Timestamp};
use recurrence::rule::Times;
use serde_json::Value;

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
            EntityKind::Event => ("start", "end"),
            EntityKind::Task => ("scheduled_start", "scheduled_end"),
            EntityKind::Project | EntityKind::Note | EntityKind::BrainDump | EntityKind::Document => return Ok(None),
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
            true => {
                Err(Error::invalid(end_field, format!("{end} is before the start, {start}")).hint("give a later end"))
            }
            false => Ok(Some(item.with_matching_end())),
        }
    }

    /// The same with an end of the kind of its start, as iCalendar has them (RFC 5545 §3.6.1): whole days are one day at least, and an event that begins at a
    /// time and ends on a day ends at its midnight.
    fn with_matching_end(self) -> Self {
        let end = match (self.start, self.end) {
            (Moment::Day(first), end) => {
                let last = end.local(self.zone);
                let is_midnight = last.time() == NaiveTime::MIN;
                let after = if is_midnight { Some(last.date()) } else { last.date().succ_opt() };
                let least = first.succ_opt().unwrap_or(first);
                Moment::Day(after.map_or(least, |after| after.max(least)))
            }
            (_, Moment::Day(day)) => Moment::Local(day.and_time(NaiveTime::MIN)),
            (_, end) => end,
        };
        Self { end, ..self }
    }

    /// How long it lasts on the clock, in milliseconds.
    fn length(&self) -> i64 {
        self.end.instant(self.zone).as_millis() - self.start.instant(self.zone).as_millis()
    }

    /// An occurrence from this moment on. Whole days begin and end at midnight, however long the days are. Where the clock leaves midnight out, they begin
    /// with the first moment of the day, and end at midnight all the same.
    fn from(&self, begins: Timestamp) -> Occurrence {
        let all_day = self.start.is_day();
        let ends = match all_day {
            true => {
                let midnight = local(begins, self.zone).date().and_time(NaiveTime::MIN);
                let length = self.end.local(self.zone) - self.start.local(self.zone);
                clock::on_the_clock(self.zone, midnight + length)
            }
            false => Timestamp::from_millis(begins.as_millis() + self.length()),
        };
        Occurrence { span: Span { start: begins, end: ends.max(begins) }, all_day }
    }

    /// Its times that meet a span, in order, `most` at most; and whether these are all.
    pub fn occurrences(&self, window: Span, most: usize) -> (Vec<Occurrence>, bool) {
        let first = self.start.local(self.zone);
        let times = self.rrule.as_ref().map(|rule| Times::new(rule, self.zone, first, &self.except));
        // A rule that was written by hand and is none stands for its first time.
        let Some(Ok(times)) = times else {
            let only = self.from(self.start.instant(self.zone));
            return (if only.span.meets(&window) { vec![only] } else { Vec::new() }, true);
        };
        let mut found = Vec::new();
        for (seen, at) in times.iter().enumerate() {
            if at >= window.end {
                return (found, true);
            }
            if found.len() >= most || seen >= LOOKED_AT {
                return (found, false);
            }
            let one = self.from(at);
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

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn item(text: &str) -> Item {
        Item::of(&Entity::read(EntityKind::Event, text, "x"), Tz::UTC).unwrap().unwrap()
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
    fn whole_days_end_at_midnight_also_after_a_midnight_that_the_clock_leaves_out() {
        for (zone, first, moments) in [
            ("America/Sao_Paulo", "2018-11-03", ["2018-11-03T03:00", "2018-11-04T03:00", "2018-11-05T02:00"]),
            ("Africa/Cairo", "2027-04-29", ["2027-04-28T22:00", "2027-04-29T22:00", "2027-04-30T21:00"]),
            ("Asia/Beirut", "2027-03-27", ["2027-03-26T22:00", "2027-03-27T22:00", "2027-03-28T21:00"]),
        ] {
            let daily = item(&format!("---\ntitle: X\nstart: {first}\ntime_zone: {zone}\nrrule: FREQ=DAILY\n---\n"));
            let (found, _) = daily.occurrences(window("2018-01-01T00:00:00Z", "2028-01-01T00:00:00Z"), 2);
            let spans: Vec<Span> = found.iter().map(|one| one.span).collect();
            let [begin, middle, end] = moments.map(|at| format!("{at}:00Z"));
            assert_eq!(spans, [window(&begin, &middle), window(&middle, &end)], "{zone}");
            // The day itself, without a rule.
            let (_, day) = first.rsplit_once('-').unwrap();
            let next = format!("{}{:02}", first.trim_end_matches(day), day.parse::<u32>().unwrap() + 1);
            let once = item(&format!("---\ntitle: X\nstart: {next}\ntime_zone: {zone}\n---\n"));
            let (found, _) = once.occurrences(window("2018-01-01T00:00:00Z", "2028-01-01T00:00:00Z"), 2);
            assert_eq!(found.first().map(|one| one.span), Some(window(&middle, &end)), "{zone} {next}");
        }
    }

    #[test]
    fn an_event_at_a_time_that_the_clock_has_twice_is_at_the_moment_that_it_names() {
        let second = item("---\ntitle: X\nstart: 2026-10-25T01:30:00Z\ntime_zone: Europe/Berlin\n---\n");
        assert_eq!(starts(&second, "2026-10-01T00:00:00Z", "2026-11-01T00:00:00Z"), ["2026-10-25T01:30"]);
    }

    #[test]
    fn an_end_has_the_kind_of_its_start() {
        for (start, end, wanted) in [
            ("2026-12-01", "2026-12-01", "2026-12-02"),
            ("2026-12-01", "2026-12-03", "2026-12-03"),
            ("2026-12-01", "2026-12-02T12:00", "2026-12-03"),
            ("2026-12-01T09:00", "2026-12-02", "2026-12-02T00:00:00"),
            ("2026-12-01T09:00", "2026-12-01T09:00", "2026-12-01T09:00:00"),
        ] {
            let one = item(&format!("---\ntitle: X\nstart: {start}\nend: {end}\n---\n"));
            assert_eq!(one.end.to_string(), wanted, "{start} {end}");
        }
    }

    #[test]
    fn the_last_day_of_a_rule_is_in_it() {
        let daily = item(
            "---\ntitle: X\nstart: 2026-03-01T20:00\ntime_zone: America/New_York\nrrule: FREQ=DAILY;UNTIL=20260303\n---\n",
        );
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
}
