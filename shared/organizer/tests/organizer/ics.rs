//! Calendars in and out.
#![expect(clippy::unwrap_used, reason = "tests")]

use buildscale_organizer::{
    Entity, EntityKind, Item, Span,
    clock::Tz,
    ics::{self, ExportedEntity},
};
use domain::{Code, Timestamp};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// As Google and Outlook write them.
const GOOGLE: &str = "BEGIN:VCALENDAR\r\nPRODID:-//Google Inc//Google Calendar 70.9054//EN\r\nVERSION:2.0\r\nX-WR-CALNAME:Ada\r\n\
    X-WR-TIMEZONE:Europe/Berlin\r\nBEGIN:VTIMEZONE\r\nTZID:Europe/Berlin\r\nBEGIN:STANDARD\r\nTZOFFSETFROM:+0200\r\nTZOFFSETTO:+0100\r\n\
    DTSTART:19701025T030000\r\nRRULE:FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU\r\nEND:STANDARD\r\nEND:VTIMEZONE\r\n\
    BEGIN:VEVENT\r\nDTSTART;TZID=Europe/Berlin:20260316T090000\r\nDTEND;TZID=Europe/Berlin:20260316T093000\r\n\
    RRULE:FREQ=WEEKLY;BYDAY=MO\r\nEXDATE;TZID=Europe/Berlin:20260323T090000,20260330T090000\r\nUID:weekly@google.com\r\n\
    ATTENDEE;CUTYPE=INDIVIDUAL;CN=\"Lovelace, Ada\":mailto:ada@example.org\r\nCATEGORIES:team,a\\,b\r\n\
    SUMMARY:Team\\, all of it\r\nDESCRIPTION:One\\nTwo with a long line that is folded as long lines are in calend\r\n ars\r\n\
    LOCATION:Room 1\\; left\r\nSTATUS:CONFIRMED\r\nBEGIN:VALARM\r\nACTION:DISPLAY\r\nTRIGGER:-PT10M\r\nEND:VALARM\r\nEND:VEVENT\r\n\
    BEGIN:VEVENT\r\nDTSTART;VALUE=DATE:20261224\r\nDURATION:P2D\r\nSUMMARY:Away\r\nTRANSP:TRANSPARENT\r\nUID:away\r\nEND:VEVENT\r\n\
    BEGIN:VEVENT\r\nRECURRENCE-ID;TZID=Europe/Berlin:20260406T090000\r\nDTSTART:20260407T080000Z\r\nDTEND:20260407T083000Z\r\n\
    SUMMARY:Team\r\nUID:weekly@google.com\r\nEND:VEVENT\r\n\
    BEGIN:VEVENT\r\nDTSTART;TZID=W. Europe Standard Time:20260501T100000\r\nRRULE:FREQ=HOURLY\r\nSUMMARY:Odd\r\nUID:odd\r\nEND:VEVENT\r\n\
    BEGIN:VTODO\r\nUID:todo\r\nSUMMARY:Not an event\r\nEND:VTODO\r\nEND:VCALENDAR\r\n";

fn entity(fields: &Map<String, Value>) -> Entity {
    let text = Entity::create(EntityKind::Event, fields).unwrap();
    let entity = Entity::read(EntityKind::Event, &text, "x");
    assert_eq!(entity.faults, Vec::<String>::new(), "{text}");
    entity
}

fn written(entities: &[Entity]) -> String {
    let usual = Tz::Europe__Berlin;
    let items: Vec<Item> = entities.iter().map(|one| Item::of(one, usual).unwrap().unwrap()).collect();
    let all: Vec<ExportedEntity<'_>> = entities
        .iter()
        .zip(&items)
        .map(|(entity, item)| ExportedEntity {
            entity,
            item,
            id: "id@here",
            updated_at: Timestamp::from_millis(1_700_000_000_000),
        })
        .collect();
    ics::write("Ada; hers", &all)
}

#[test]
fn a_calendar_of_others_is_read_and_what_is_not_taken_over_is_told() {
    let imported = ics::read(GOOGLE).unwrap();
    assert_eq!((imported.name.as_deref(), imported.events.len(), imported.skipped), (Some("Ada"), 4, 1));
    assert_eq!(
        Value::from(imported.events[0].clone()),
        json!({
            "title": "Team, all of it",
            "description": "One\nTwo with a long line that is folded as long lines are in calendars",
            "start": "2026-03-16T09:00:00", "end": "2026-03-16T09:30:00", "time_zone": "Europe/Berlin",
            "rrule": "FREQ=WEEKLY;BYDAY=MO", "except": ["2026-03-23T09:00:00", "2026-03-30T09:00:00"],
            "location": "Room 1; left", "status": "confirmed", "attendees": ["Lovelace, Ada <ada@example.org>"],
            "tags": ["team", "a,b"], "uid": "weekly@google.com",
        })
    );
    let away = &imported.events[1];
    assert_eq!(
        (&away["start"], &away["end"], &away["busy"]),
        (&json!("2026-12-24"), &json!("2026-12-26"), &json!(false))
    );
    let moved = &imported.events[2];
    assert_eq!(
        (&moved["start"], &moved["recurrence_id"]),
        (&json!("2026-04-07T08:00:00Z"), &json!("2026-04-06T07:00:00Z"))
    );
    let odd = &imported.events[3];
    assert_eq!((odd.get("rrule"), &odd["time_zone"]), (None, &json!("Europe/Berlin")));
    assert_eq!(imported.problems.len(), 1, "{:?}", imported.problems);
    assert!(imported.problems[0].contains("FREQ=HOURLY"));
}

#[test]
fn an_exported_calendar_comes_back_the_same_and_lines_are_short() {
    let entities: Vec<Entity> = ics::read(GOOGLE).unwrap().events.iter().map(entity).collect();
    let text = written(&entities);
    assert!(text.split("\r\n").all(|line| line.len() <= 75), "{text}");
    assert!(text.contains("BEGIN:VTIMEZONE\r\nTZID:Europe/Berlin\r\n"), "{text}");
    assert!(
        text.contains("BEGIN:DAYLIGHT\r\nDTSTART:20260329T020000\r\nTZOFFSETFROM:+0100\r\nTZOFFSETTO:+0200\r\n"),
        "{text}"
    );
    let back = ics::read(&text).unwrap();
    assert_eq!((back.name.as_deref(), back.problems.len(), back.events.len()), (Some("Ada; hers"), 0, 4));
    let again: Vec<Entity> = back.events.iter().map(entity).collect();
    let window = Span { start: "2026-01-01T00:00:00Z".parse().unwrap(), end: "2027-01-01T00:00:00Z".parse().unwrap() };
    let times = |one: &Entity| Item::of(one, Tz::Europe__Berlin).unwrap().unwrap().occurrences(window, 100);
    for (before, after) in entities.iter().zip(&again) {
        assert_eq!(times(before), times(after), "{before:?}");
        for name in ["title", "description", "location", "attendees", "uid", "status", "busy"] {
            assert_eq!(before.fields.get(name), after.fields.get(name), "{name}");
        }
    }
    assert_eq!(written(&again), text);
}

/// RFC 5545 §3.3.10: the end of a rule has the type of the start, and is in UTC beside a time of a zone.
#[test]
fn a_rule_ends_in_an_exported_calendar_where_it_ends_here() {
    for (times, wanted) in [
        ("start: 2026-12-01T20:00\nrrule: FREQ=DAILY;UNTIL=20261203", "RRULE:FREQ=DAILY;UNTIL=20261203T225959Z\r\n"),
        ("start: 2026-12-01\nrrule: FREQ=DAILY;UNTIL=20261203T120000Z", "RRULE:FREQ=DAILY;UNTIL=20261203\r\n"),
        ("start: 2026-12-01\nend: 2026-12-01", "DTEND;VALUE=DATE:20261202\r\n"),
    ] {
        let one = Entity::read(EntityKind::Event, &format!("---\ntitle: X\n{times}\n---\n"), "x");
        let text = written(std::slice::from_ref(&one));
        assert!(text.contains(wanted), "{text}");
    }
}

#[test]
fn texts_that_are_no_calendar_and_calendars_that_are_too_much_are_refused() {
    let deep = format!("BEGIN:VCALENDAR\n{}", "BEGIN:A\n".repeat(100_000));
    let many = format!(
        "BEGIN:VCALENDAR\n{}END:VCALENDAR\n",
        "BEGIN:VEVENT\nDTSTART:20261201T090000Z\nEND:VEVENT\n".repeat(1_001)
    );
    for (text, code) in [
        ("", Code::Unprocessable),
        ("# Notes", Code::Unprocessable),
        ("BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY", Code::Unprocessable),
        (&deep, Code::Unprocessable),
        (&many, Code::PayloadTooLarge),
        (&"x".repeat(ics::MAX_BYTES + 1), Code::PayloadTooLarge),
    ] {
        assert_eq!(ics::read(text).unwrap_err().code, code, "{}", text.chars().take(40).collect::<String>());
    }
}

proptest! {
    #[test]
    fn no_text_is_too_odd_to_go_out_and_come_back(title in "\\PC{1,80}", text in "[\\PC\n]{0,300}", room in "\\PC{0,60}") {
        prop_assume!(!title.trim().is_empty());
        let fields = json!({ "title": title.trim(), "start": "2026-12-01T09:00", "description": text.trim(), "location": room.trim() });
        let one = entity(fields.as_object().unwrap());
        let back = ics::read(&written(std::slice::from_ref(&one))).unwrap();
        let shown = |text: Option<&str>| text.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" ")).unwrap_or_default();
        for name in ["title", "description", "location"] {
            prop_assert_eq!(shown(back.events[0].get(name).and_then(Value::as_str)), shown(one.text(name)), "{}", name);
        }
    }

    #[test]
    fn reading_never_panics(text in "(BEGIN|END|DTSTART|RRULE|EXDATE|:|;|=|VEVENT|VCALENDAR|20261201|T|Z|\n|,|\"|\\PC){0,60}") {
        let _ = ics::read(&format!("BEGIN:VCALENDAR\n{text}"));
    }
}
