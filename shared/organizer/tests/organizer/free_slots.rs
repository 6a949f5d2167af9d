//! Free slots, held against a search minute by minute.
#![expect(clippy::unwrap_used, reason = "tests")]

use buildscale_organizer::{
    clock::{Span, Tz, local},
    free_slots::{Hours, slots},
};
use chrono::{Datelike as _, NaiveTime, Weekday};
use domain::Timestamp;
use proptest::prelude::*;

const MINUTE: i64 = 60_000;

fn span(start: i64, minutes: i64) -> Span {
    Span { start: Timestamp::from_millis(start), end: Timestamp::from_millis(start + minutes * MINUTE) }
}

/// Around the change of clocks of a zone.
fn zones() -> impl Strategy<Value = (Tz, i64)> {
    let at = |text: &str| text.parse::<Timestamp>().unwrap().as_millis();
    prop_oneof![
        Just((Tz::Europe__Berlin, at("2026-03-28T20:00:00Z"))),
        Just((Tz::Europe__Berlin, at("2026-10-24T20:00:00Z"))),
        Just((Tz::America__Sao_Paulo, at("2018-11-03T20:00:00Z"))),
        Just((Tz::Asia__Kolkata, at("2026-06-05T10:00:00Z"))),
        Just((Tz::UTC, at("2026-06-05T10:00:00Z"))),
    ]
}

fn hours(zone: Tz) -> impl Strategy<Value = Hours> {
    (0_u32..20, 1_u32..24, prop::collection::vec(0_u8..7, 0..7)).prop_map(move |(from, length, days)| {
        let until = (from + length).min(24) % 24;
        let time = |hour| NaiveTime::from_hms_opt(hour, 0, 0).unwrap();
        let days = days.into_iter().map(|day| Weekday::try_from(day).unwrap()).collect();
        Hours { zone, days, from: time(from), until: time(until) }
    })
}

/// Whether a minute is within the working hours by the clock on the wall.
fn is_open(hours: &Hours, at: Timestamp) -> bool {
    let clock = local(at, hours.zone);
    hours.days.contains(&clock.weekday())
        && clock.time() >= hours.from
        && (hours.until == NaiveTime::MIN || clock.time() < hours.until)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn slots_are_the_free_minutes_within_working_hours(
        (hours, begin) in zones().prop_flat_map(|(zone, at)| (hours(zone), Just(at))),
        busy in prop::collection::vec((0_i64..4_000, 0_i64..600), 0..12),
        length in 1_i64..4_000,
        least in 1_u32..180,
    ) {
        let busy: Vec<Span> = busy.into_iter().map(|(at, minutes)| span(begin + at * MINUTE, minutes)).collect();
        let window = span(begin, length);
        let found = slots(&busy, window, &hours, least);
        for pair in found.windows(2) {
            prop_assert!(pair[0].end <= pair[1].start, "in order, and apart: {:?}", found);
        }
        for slot in &found {
            prop_assert!(slot.start >= window.start && slot.end <= window.end);
            prop_assert!(slot.end.as_millis() - slot.start.as_millis() >= i64::from(least) * MINUTE);
            prop_assert!(busy.iter().all(|taken| taken.end <= taken.start || !taken.meets(slot)), "{slot:?} {busy:?}");
        }
        // Hours at which clocks change are left to the tests of the clock: there a time of the day is twice, or not at all.
        let changes = |at: Timestamp| {
            let offset = |at: Timestamp| local(at, hours.zone).and_utc().timestamp_millis() - at.as_millis();
            let (before, after) = (at.as_millis() - 86_400_000, at.as_millis() + 86_400_000);
            offset(Timestamp::from_millis(before)) != offset(Timestamp::from_millis(after))
        };
        let mut run = 0;
        for minute in 0..length {
            let at = Timestamp::from_millis(begin + minute * MINUTE);
            let one = span(at.as_millis(), 1);
            let in_slot = found.iter().any(|slot| slot.start <= at && at < slot.end);
            let free = is_open(&hours, at) && busy.iter().all(|taken| taken.end <= taken.start || !taken.meets(&one));
            if in_slot && !changes(at) {
                prop_assert!(free, "{at} is in a slot and is not free");
            }
            run = if free && !in_slot && !changes(at) { run + 1 } else { 0 };
            prop_assert!(run < i64::from(least), "{at}: {run} free minutes are in no slot: {found:?}");
        }
    }
}

#[test]
fn the_usual_hours_have_a_gap_between_two_meetings() {
    let at = |text: &str| text.parse::<Timestamp>().unwrap();
    let hours = Hours::usual(Tz::Europe__Berlin);
    let busy = [
        Span { start: at("2026-12-01T08:00:00Z"), end: at("2026-12-01T10:00:00Z") },
        Span { start: at("2026-12-01T09:00:00Z"), end: at("2026-12-01T09:30:00Z") },
        Span { start: at("2026-12-01T11:00:00Z"), end: at("2026-12-01T16:00:00Z") },
    ];
    let window = Span { start: at("2026-12-01T00:00:00Z"), end: at("2026-12-02T00:00:00Z") };
    let found = slots(&busy, window, &hours, 30);
    assert_eq!(found, [Span { start: at("2026-12-01T10:00:00Z"), end: at("2026-12-01T11:00:00Z") }]);
    let early = hours.clone().with(Some("07:30"), Some("24:00"), Some(&["tue".into()])).unwrap();
    assert_eq!(slots(&busy, window, &early, 30).len(), 3);
    for (from, until, days) in [(Some("25:00"), None, None), (Some("18:00"), None, None), (None, None, Some("x"))] {
        let days = days.map(|day: &str| vec![day.to_owned()]);
        assert!(Hours::usual(Tz::UTC).with(from, until, days.as_deref()).is_err());
    }
}
