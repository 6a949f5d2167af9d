//! Events and scheduled tasks as a calendar.

use crate::{
    Entity, EntityKind, FieldGroup, Item,
    clock::{Moment, Tz, local, on_the_clock},
    table::css_color,
};
use chrono::{Datelike as _, Duration, NaiveDateTime, Offset as _, TimeZone as _, Utc};
use domain::Timestamp;
use recurrence::rule::with_plain_end;
use serde_json::Value;
use std::collections::BTreeSet;

/// The longest line, in bytes without its end (RFC 5545 §3.1).
const LINE: usize = 75;
/// How long after the last start changes of clocks are told: rules without an end go on.
pub(super) const YEARS: i32 = 10;

/// An entity that goes out.
#[derive(Clone, Copy, Debug)]
pub struct ExportedEntity<'a> {
    /// It.
    pub entity: &'a Entity,
    /// Its times.
    pub item: &'a Item,
    /// Its identity when it has none of another calendar.
    pub id: &'a str,
    /// When it was changed last.
    pub updated_at: Timestamp,
}

/// A calendar of this name, or without one for an empty text. The same entities give the same text.
pub fn write(name: &str, all: &[ExportedEntity<'_>]) -> String {
    let mut out = Lines::default();
    for line in ["BEGIN:VCALENDAR", "VERSION:2.0", super::PRODUCT, "CALSCALE:GREGORIAN"] {
        out.line(line);
    }
    if !name.is_empty() {
        out.text("X-WR-CALNAME", name);
    }
    let mut zones: BTreeSet<&'static str> = BTreeSet::new();
    let is_on_a_clock = |item: &Item| item.zone != Tz::UTC && !item.start.is_day();
    zones.extend(all.iter().filter(|one| is_on_a_clock(one.item)).map(|one| one.item.zone.name()));
    let years = || all.iter().map(|one| one.item.start.local(one.item.zone).year());
    for zone in zones {
        let (first, last) = (years().min().unwrap_or(2026), years().max().unwrap_or(2026));
        time_zone(&mut out, zone, first - 1, last + YEARS);
    }
    for one in all {
        event(&mut out, *one);
    }
    out.line("END:VCALENDAR");
    out.0
}

fn event(out: &mut Lines, one: ExportedEntity<'_>) {
    let ExportedEntity { entity, item, id, updated_at } = one;
    out.line("BEGIN:VEVENT");
    out.text("UID", entity.text("uid").unwrap_or(id));
    for line in stamps(updated_at) {
        out.line(&line);
    }
    for (_, line) in properties(entity, item) {
        out.line(&line);
    }
    out.line("END:VEVENT");
}

/// The lines that tell when an event was changed.
pub(super) fn stamps(at: Timestamp) -> [String; 2] {
    let stamp = local(at, Tz::UTC).format("%Y%m%dT%H%M%SZ");
    [format!("DTSTAMP:{stamp}"), format!("LAST-MODIFIED:{stamp}")]
}

/// The properties of an event, each a line that is not folded yet, by their groups; none for the identity of a moved occurrence, and for the colour, which
/// calendars that are kept the same do not share.
pub(super) fn properties(entity: &Entity, item: &Item) -> Vec<(Option<FieldGroup>, String)> {
    let mut lines = Vec::new();
    let mut put = |group: FieldGroup, line: String| lines.push((Some(group), line));
    put(FieldGroup::Times, time("DTSTART", item.start, item.zone));
    put(FieldGroup::Times, time("DTEND", item.end, item.zone));
    if let Some(rule) = &item.rrule {
        put(FieldGroup::Times, format!("RRULE:{}", with_plain_end(rule, item.zone, item.start.is_day())));
    }
    for except in &item.except {
        // An exception has the form of the start.
        let at = match (except, item.start) {
            (Moment::Day(day), start) if !start.is_day() => Moment::Local(day.and_time(start.local(item.zone).time())),
            (other, _) => *other,
        };
        put(FieldGroup::Times, time("EXDATE", at, item.zone));
    }
    put(FieldGroup::Title, format!("SUMMARY:{}", escaped(entity.title())));
    for (name, field, group) in
        [("DESCRIPTION", "description", FieldGroup::Description), ("LOCATION", "location", FieldGroup::Location)]
    {
        if let Some(text) = entity.text(field) {
            put(group, format!("{name}:{}", escaped(text)));
        }
    }
    match (entity.kind, entity.text("status")) {
        (EntityKind::Event, Some(status)) if ["confirmed", "tentative", "cancelled"].contains(&status) => {
            put(FieldGroup::Status, format!("STATUS:{}", status.to_uppercase()));
        }
        _ => {}
    }
    if entity.fields.get("busy") == Some(&Value::Bool(false)) {
        put(FieldGroup::Busy, "TRANSP:TRANSPARENT".into());
    }
    let texts = |field: &str| entity.fields.get(field).and_then(Value::as_array).cloned().unwrap_or_default();
    for line in texts("attendees").iter().filter_map(Value::as_str).filter_map(attendee) {
        put(FieldGroup::Attendees, line);
    }
    let tags: Vec<String> = texts("tags").iter().filter_map(Value::as_str).map(escaped).collect();
    if !tags.is_empty() {
        put(FieldGroup::Tags, format!("CATEGORIES:{}", tags.join(",")));
    }
    if let Some(color) = entity.text("calendar_color_id").and_then(css_color) {
        lines.push((None, format!("COLOR:{color}")));
    }
    if let Some(moved) = entity.text("recurrence_id").and_then(Moment::parse) {
        lines.insert(2, (None, time("RECURRENCE-ID", moved, item.zone)));
    }
    lines
}

/// A line with a date or a time: on the clock of its zone, so that rules follow it.
fn time(name: &str, at: Moment, zone: Tz) -> String {
    let form = "%Y%m%dT%H%M%S";
    match at {
        Moment::Day(day) => format!("{name};VALUE=DATE:{}", day.format("%Y%m%d")),
        Moment::At(at) if zone == Tz::UTC => format!("{name}:{}Z", at.format(form)),
        Moment::Local(at) if zone == Tz::UTC => format!("{name}:{}Z", at.format(form)),
        other => format!("{name};TZID={}:{}", zone.name(), other.local(zone).format(form)),
    }
}

/// Only addresses: other values are no URI.
fn attendee(text: &str) -> Option<String> {
    let (name, address) = match text.split_once('<') {
        Some((name, rest)) => (name.trim(), rest.trim_end_matches('>').trim()),
        None => ("", text.trim()),
    };
    if !address.contains('@') || address.contains(char::is_whitespace) {
        return None;
    }
    let name: String = name.chars().filter(|c| !c.is_control() && *c != '"').collect();
    let cn = if name.is_empty() { String::new() } else { format!(";CN=\"{name}\"") };
    let address: String = address.chars().filter(|c| !c.is_control()).collect();
    Some(format!("ATTENDEE{cn}:mailto:{address}"))
}

/// The changes of the clocks of a zone between two years.
pub(super) fn time_zone(out: &mut Lines, name: &str, first: i32, last: i32) {
    let Ok(zone) = name.parse::<Tz>() else { return };
    let begin =
        |year: i32| chrono::NaiveDate::from_ymd_opt(year, 1, 1).unwrap_or_default().and_time(chrono::NaiveTime::MIN);
    let offset = |at: NaiveDateTime| zone.offset_from_utc_datetime(&at).fix().local_minus_utc();
    out.line("BEGIN:VTIMEZONE");
    out.line(&format!("TZID:{name}"));
    let (mut at, end) = (begin(first), begin(last));
    let standard = offset(at).min(offset(at + Duration::days(182)));
    observance(out, offset(at) > standard, local(on_the_clock(zone, at), zone), offset(at), offset(at));
    while at < end {
        let next = at + Duration::days(7);
        if offset(next) != offset(at) {
            // The minute of the change, in UTC.
            let (mut before, mut after) = (at, next);
            while after - before > Duration::minutes(1) {
                let middle = before + (after - before) / 2;
                if offset(middle) == offset(at) { before = middle } else { after = middle }
            }
            let minute = after - Duration::seconds(i64::from(chrono::Timelike::second(&after)));
            let (from, to) = (offset(at), offset(next));
            let clock = Utc.from_utc_datetime(&minute).naive_utc() + Duration::seconds(i64::from(from));
            observance(out, to > from, clock, from, to);
        }
        at = next;
    }
    out.line("END:VTIMEZONE");
}

fn observance(out: &mut Lines, is_daylight: bool, at: NaiveDateTime, from: i32, to: i32) {
    let kind = if is_daylight { "DAYLIGHT" } else { "STANDARD" };
    let told = |seconds: i32| {
        let (sign, minutes) = (if seconds < 0 { '-' } else { '+' }, seconds.abs() / 60);
        format!("{sign}{:02}{:02}", minutes / 60, minutes % 60)
    };
    for line in [
        format!("BEGIN:{kind}"),
        format!("DTSTART:{}", at.format("%Y%m%dT%H%M%S")),
        format!("TZOFFSETFROM:{}", told(from)),
        format!("TZOFFSETTO:{}", told(to)),
        format!("END:{kind}"),
    ] {
        out.line(&line);
    }
}

/// Lines, folded.
#[derive(Default)]
pub(super) struct Lines(pub String);

impl Lines {
    pub fn line(&mut self, line: &str) {
        let mut length = 0;
        for character in line.chars().filter(|c| !c.is_control() || *c == '\t') {
            if length + character.len_utf8() > LINE {
                self.0.push_str("\r\n ");
                length = 1;
            }
            self.0.push(character);
            length += character.len_utf8();
        }
        self.0.push_str("\r\n");
    }

    fn text(&mut self, name: &str, text: &str) {
        self.line(&format!("{name}:{}", escaped(text)));
    }
}

/// A text of RFC 5545 §3.3.11.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.replace("\r\n", "\n").chars() {
        match character {
            '\n' => escaped.push_str("\\n"),
            ',' | ';' | '\\' => escaped.extend(['\\', character]),
            other => escaped.push(other),
        }
    }
    escaped
}
