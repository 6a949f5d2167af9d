//! Calendars of programs that write them in their own ways, in and out, and changed where they stand.
#![expect(clippy::unwrap_used, reason = "tests")]

use buildscale_organizer::{
    Entity, EntityKind, FieldGroup, Item, Span,
    clock::Tz,
    field_group::occurrence,
    ics::{self, Change, ExportedEntity, Patch},
};
use domain::Timestamp;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

const BERLIN: Tz = Tz::Europe__Berlin;
const AT: Timestamp = Timestamp::from_millis(1_796_000_000_000);

fn calendar(events: &str) -> String {
    format!("BEGIN:VCALENDAR\r\nVERSION:2.0\r\n{events}END:VCALENDAR\r\n")
}

fn read(text: &str) -> Vec<Entity> {
    let imported = ics::read(text).unwrap();
    imported.events.into_iter().map(entity).collect()
}

fn entity(fields: Map<String, Value>) -> Entity {
    Entity::read(EntityKind::Event, &Entity::create(EntityKind::Event, &fields).unwrap(), "x")
}

fn item(entity: &Entity) -> Item {
    Item::of(entity, BERLIN).unwrap().unwrap()
}

fn starts(entity: &Entity) -> Vec<String> {
    let year = Span { start: "2026-01-01T00:00:00Z".parse().unwrap(), end: "2027-01-01T00:00:00Z".parse().unwrap() };
    item(entity).occurrences(year, 20).0.iter().map(|one| one.span.start.to_string()).collect()
}

#[test]
fn zones_have_many_names() {
    let zone = "BEGIN:VTIMEZONE\r\nTZID:Our time\r\nX-LIC-LOCATION:Asia/Tokyo\r\nBEGIN:STANDARD\r\nTZOFFSETTO:+0900\r\nEND:STANDARD\r\n\
                END:VTIMEZONE\r\nBEGIN:VTIMEZONE\r\nTZID:Customized Time Zone\r\nBEGIN:STANDARD\r\nTZOFFSETTO:+0530\r\nEND:STANDARD\r\n\
                END:VTIMEZONE\r\nBEGIN:VTIMEZONE\r\nTZID:Fixed\r\nBEGIN:STANDARD\r\nTZOFFSETTO:-0300\r\nEND:STANDARD\r\nBEGIN:DAYLIGHT\r\n\
                TZOFFSETTO:-0300\r\nEND:DAYLIGHT\r\nEND:VTIMEZONE\r\n";
    for (name, start) in [
        ("Europe/Berlin", "2026-06-01T07:00:00.000Z"),
        ("W. Europe Standard Time", "2026-06-01T07:00:00.000Z"),
        ("\"Pacific Standard Time\"", "2026-06-01T16:00:00.000Z"),
        ("/freeassociation.sourceforge.net/Europe/London", "2026-06-01T08:00:00.000Z"),
        ("/mozilla.org/20050126_1/America/Argentina/Salta", "2026-06-01T12:00:00.000Z"),
        ("Our time", "2026-06-01T00:00:00.000Z"),
        ("Fixed", "2026-06-01T12:00:00.000Z"),
        // Nobody knows it: the time on the clock is that of the person, and this is told.
        ("Customized Time Zone", "2026-06-01T07:00:00.000Z"),
    ] {
        let text = calendar(&format!(
            "{zone}BEGIN:VEVENT\r\nUID:1\r\nSUMMARY:X\r\nDTSTART;TZID={name}:20260601T090000\r\nEND:VEVENT\r\n"
        ));
        assert_eq!(starts(&read(&text)[0]), [start], "{name}");
        let told = ics::read(&text).unwrap().problems.len();
        assert_eq!(told, usize::from(name.starts_with("Custom")), "{name}");
    }
}

#[test]
fn floating_times_whole_days_and_exceptions_come_back_as_they_were() {
    let text = calendar(
        "BEGIN:VEVENT\r\nUID:floating\r\nSUMMARY:Wake up\r\nDTSTART:20260601T070000\r\nDURATION:PT15M\r\nEND:VEVENT\r\n\
         BEGIN:VEVENT\r\nUID:day\r\nSUMMARY:Fair\r\nDTSTART;VALUE=DATE:20260328\r\nDTEND;VALUE=DATE:20260331\r\nEND:VEVENT\r\n\
         BEGIN:VEVENT\r\nUID:days\r\nSUMMARY:Every\r\n  sunday\r\nDTSTART;VALUE=DATE:20260301\r\nRRULE:FREQ=WEEKLY;COUNT=4\r\n\
         EXDATE;VALUE=DATE:20260308\r\nEND:VEVENT\r\n\
         BEGIN:VEVENT\r\nUID:week\r\nSUMMARY:Team\r\nDTSTART;TZID=W. Europe Standard Time:20260316T090000\r\nDTEND;TZID=W. Europe \r\n\
         \u{20}Standard Time:20260316T093000\r\nRRULE:FREQ=WEEKLY;UNTIL=20260413T070000Z\r\nEXDATE:20260323T080000Z\r\nEND:VEVENT\r\n\
         BEGIN:VEVENT\r\nUID:week\r\nSUMMARY:Team\\, late\r\nRECURRENCE-ID;TZID=W. Europe Standard Time:20260330T090000\r\n\
         DTSTART;TZID=W. Europe Standard Time:20260330T150000\r\nEND:VEVENT\r\n",
    );
    let before = read(&text);
    assert_eq!(starts(&before[0]), ["2026-06-01T05:00:00.000Z"], "a floating time is on the clock of the person");
    assert_eq!(before[2].title(), "Every sunday");
    assert_eq!(starts(&before[2]).len(), 3);
    assert_eq!(
        starts(&before[3]),
        ["2026-03-16T08:00", "2026-03-30T07:00", "2026-04-06T07:00", "2026-04-13T07:00"]
            .map(|at| format!("{at}:00.000Z"))
    );
    assert_eq!(occurrence(&before[4], &item(&before[4])), "2026-03-30T09:00:00");

    let items: Vec<Item> = before.iter().map(item).collect();
    let exported: Vec<ExportedEntity<'_>> = before
        .iter()
        .zip(&items)
        .map(|(entity, item)| ExportedEntity { entity, item, id: "x", updated_at: AT })
        .collect();
    let out = ics::write("", &exported);
    assert!(out.split("\r\n").all(|line| line.len() <= 75), "{out}");
    let after = read(&out);
    for (one, other) in before.iter().zip(&after) {
        for group in FieldGroup::ALL {
            assert_eq!(group.value(one, &item(one)), group.value(other, &item(other)), "{group:?} {}", one.title());
        }
        assert_eq!(one.text("uid"), other.text("uid"));
        assert_eq!(occurrence(one, &item(one)), occurrence(other, &item(other)));
    }
}

const SHARED: &str = "BEGIN:VEVENT\r\nUID:a\r\nSUMMARY:Old\r\nSEQUENCE:4\r\nX-COLOR:red\r\nDTSTART;TZID=Europe/Berlin:20260316T090000\r\n\
    DTEND;TZID=Europe/Berlin:20260316T093000\r\nRRULE:FREQ=HOURLY\r\nORGANIZER:mailto:boss@example.org\r\n\
    ATTENDEE;PARTSTAT=ACCEPTED;CN=Ada:mailto:ada@example.org\r\nATTENDEE;PARTSTAT=DECLINED:mailto:bob@example.org\r\n\
    BEGIN:VALARM\r\nACTION:DISPLAY\r\nSUMMARY:An alarm\r\nTRIGGER:-PT5M\r\nEND:VALARM\r\nEND:VEVENT\r\n";

fn put<'a>(entity: &'a Entity, item: &'a Item, groups: &'a BTreeSet<FieldGroup>) -> Change<'a> {
    Change::Put { entity, item, groups }
}

fn patched(text: &str, occurrence: &str, change: Change<'_>) -> String {
    ics::patch(text, "a", &[Patch { occurrence, change }], BERLIN, AT).unwrap()
}

#[test]
fn a_change_leaves_what_is_not_known_here_as_it_was() {
    let text = calendar(SHARED);
    let mut fields = ics::read(&text).unwrap().events.remove(0);
    fields.insert("title".into(), "New, and longer than a line of a calendar can be, so that it is folded once".into());
    fields.insert("attendees".into(), json!(["Ada <ADA@example.org>", "cleo@example.org"]));
    let changed = entity(fields);
    let groups = BTreeSet::from([FieldGroup::Title, FieldGroup::Attendees]);
    let out = patched(&text, "", Change::Put { entity: &changed, item: &item(&changed), groups: &groups });
    for kept in [
        "X-COLOR:red\r\n",
        "RRULE:FREQ=HOURLY\r\n",
        "ORGANIZER:mailto:boss@example.org\r\n",
        "ATTENDEE;PARTSTAT=ACCEPTED;CN=Ada:mailto:ada@example.org\r\n",
        "BEGIN:VALARM\r\nACTION:DISPLAY\r\nSUMMARY:An alarm\r\n",
        "ATTENDEE:mailto:cleo@example.org\r\n",
        "SEQUENCE:5\r\n",
        "DTSTART;TZID=Europe/Berlin:20260316T090000\r\n",
    ] {
        assert!(out.contains(kept), "{kept} {out}");
    }
    for gone in ["SUMMARY:Old", "bob@example.org", "SEQUENCE:4"] {
        assert!(!out.contains(gone), "{gone} {out}");
    }
    assert_eq!(read(&out)[0].title(), changed.title());
}

#[test]
fn an_occurrence_is_moved_changed_and_taken_out_beside_its_event() {
    let text = calendar(&SHARED.replace("FREQ=HOURLY", "FREQ=WEEKLY"));
    let moved = json!({ "title": "Moved", "start": "2026-03-24T11:00", "time_zone": "Europe/Berlin", "recurrence_id": "2026-03-23T09:00", "uid": "a" });
    let moved = entity(moved.as_object().unwrap().clone());
    let all = FieldGroup::ALL.into();
    let at = occurrence(&moved, &item(&moved));
    let out = patched(&text, &at, put(&moved, &item(&moved), &all));
    let both = read(&out);
    assert_eq!((both.len(), both[1].title(), both[1].text("recurrence_id")), (2, "Moved", Some("2026-03-23T09:00:00")));
    assert!(out.contains("BEGIN:VTIMEZONE\r\nTZID:Europe/Berlin\r\n"), "{out}");

    let mut again = moved.clone();
    again.fields.insert("title".into(), "Moved again".into());
    let out = patched(&out, &at, put(&again, &item(&again), &all));
    assert_eq!(read(&out).iter().map(Entity::title).collect::<Vec<_>>(), ["Old", "Moved again"]);
    assert_eq!(out.matches("BEGIN:VTIMEZONE").count(), 1, "{out}");

    let out = patched(&out, &at, Change::Remove);
    assert_eq!(read(&out).len(), 1);
    assert!(ics::patch("no calendar", "a", &[], BERLIN, AT).is_err());
}
