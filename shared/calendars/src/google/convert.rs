//! Events as Google has them, from and to the fields of the table. Times and rules go through iCalendar, whose lines Google's `recurrence` has.

use crate::remote::Event;
use organizer::{
    FieldGroup, Moment,
    clock::Tz,
    ics::{self, ExportedEntity},
    rule::check_rule,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// The private property with the identity that an event had before it came to Google, which gives it another one.
pub(super) const UID: &str = "buildscaleUid";

/// An event, its identity, and what was not taken over; none for one whose times make no sense. `main` is the event that an occurrence is of, where the
/// occurrence lacks fields.
pub(super) fn event_of(item: &Value, main: &Value, usual: Tz) -> Option<(String, Event, Vec<String>)> {
    let text =
        |name: &str| item[name].as_str().or_else(|| main[name].as_str()).map(str::trim).filter(|t| !t.is_empty());
    let own = |of: &Value| of["extendedProperties"]["private"][UID].as_str().map(str::to_owned);
    let uid = own(item).or_else(|| own(main)).or_else(|| text("iCalUID").map(str::to_owned))?;
    let original = &item["originalStartTime"];
    let (start, end) = match item["start"].is_object() {
        true => (&item["start"], &item["end"]),
        // One that does not take place has its old time alone.
        false => (original, original),
    };
    let mut lines = vec![format!("DTSTART{}", time(start, main)?)];
    lines.extend(time(end, main).map(|time| format!("DTEND{time}")));
    if original.is_object() {
        lines.push(format!("RECURRENCE-ID{}", time(original, main)?));
    }
    let recurrence = item["recurrence"].as_array();
    let is_line = |line: &&str| !line.contains(['\n', '\r']) && !line.to_uppercase().starts_with("BEGIN");
    lines.extend(recurrence.into_iter().flatten().filter_map(Value::as_str).filter(is_line).map(str::to_owned));
    let calendar = format!("BEGIN:VCALENDAR\nBEGIN:VEVENT\n{}\nEND:VEVENT\nEND:VCALENDAR", lines.join("\n"));
    let imported = ics::read(&calendar).ok()?;
    let mut fields: Map<String, Value> = imported.events.into_iter().next()?;
    fields.insert("title".into(), text("summary").unwrap_or("(no title)").chars().take(200).collect::<String>().into());
    fields.insert("uid".into(), uid.clone().into());
    for (name, most) in [("description", 100_000), ("location", 200)] {
        if let Some(text) = text(name) {
            fields.insert(name.into(), text.chars().take(most).collect::<String>().into());
        }
    }
    let status = item["status"].as_str().filter(|status| ["tentative", "cancelled"].contains(status));
    fields.insert("status".into(), status.unwrap_or("confirmed").into());
    if item["transparency"] == "transparent" {
        fields.insert("busy".into(), false.into());
    }
    let attendees: Vec<Value> =
        item["attendees"].as_array().into_iter().flatten().filter_map(attendee).take(100).collect();
    if !attendees.is_empty() {
        fields.insert("attendees".into(), attendees.into());
    }
    Some((uid, Event::of(fields, usual)?, imported.problems))
}

/// `;TZID=Europe/Berlin:20261201T090000`
fn time(at: &Value, main: &Value) -> Option<String> {
    if let Some(day) = at["date"].as_str() {
        let Some(Moment::Day(day)) = Moment::parse(day) else { return None };
        return Some(format!(";VALUE=DATE:{}", day.format("%Y%m%d")));
    }
    let moment = Moment::parse(at["dateTime"].as_str()?)?;
    let zone = at["timeZone"].as_str().or_else(|| main["start"]["timeZone"].as_str());
    let form = "%Y%m%dT%H%M%S";
    match zone.and_then(|name| name.parse::<Tz>().ok()) {
        Some(zone) if zone != Tz::UTC => Some(format!(";TZID={}:{}", zone.name(), moment.local(zone).format(form))),
        _ => Some(format!(":{}Z", moment.local(Tz::UTC).format(form))),
    }
}

fn attendee(of: &Value) -> Option<Value> {
    let email = of["email"].as_str().filter(|email| email.contains('@'))?;
    Some(match of["displayName"].as_str().map(str::trim).filter(|name| !name.is_empty()) {
        Some(name) => format!("{name} <{email}>").into(),
        None => email.into(),
    })
}

/// The fields of these groups, as a request has them. `before` are those who take part now.
pub(super) fn patch_of(event: &Event, groups: &BTreeSet<FieldGroup>, before: &[Value]) -> Value {
    let mut body = Map::new();
    let text = |name: &str| event.entity.text(name).unwrap_or_default();
    for group in groups {
        match group {
            FieldGroup::Title => _ = body.insert("summary".into(), event.entity.title().into()),
            FieldGroup::Description => _ = body.insert("description".into(), text("description").into()),
            FieldGroup::Location => _ = body.insert("location".into(), text("location").into()),
            FieldGroup::Status => {
                let status = Some(text("status")).filter(|status| !status.is_empty()).unwrap_or("confirmed");
                body.insert("status".into(), status.into());
            }
            FieldGroup::Busy => {
                let is_free = event.entity.fields.get("busy") == Some(&Value::Bool(false));
                body.insert("transparency".into(), if is_free { "transparent" } else { "opaque" }.into());
            }
            FieldGroup::Attendees => _ = body.insert("attendees".into(), attendees(event, before)),
            FieldGroup::Times => {
                body.insert("start".into(), at(event.item.start, event.item.zone));
                body.insert("end".into(), at(event.item.end, event.item.zone));
                // An occurrence has no rule of its own.
                if event.entity.text("recurrence_id").is_none() {
                    body.insert("recurrence".into(), recurrence(event).into());
                }
            }
            FieldGroup::Tags => {}
        }
    }
    Value::Object(body)
}

fn at(moment: Moment, zone: Tz) -> Value {
    match moment {
        Moment::Day(day) => json!({ "date": day.to_string(), "dateTime": null, "timeZone": null }),
        other => {
            let local = other.local(zone).format("%Y-%m-%dT%H:%M:%S").to_string();
            let time = if zone == Tz::UTC { format!("{local}Z") } else { local };
            json!({ "date": null, "dateTime": time, "timeZone": zone.name() })
        }
    }
}

/// The lines of its rule and its exceptions.
fn recurrence(event: &Event) -> Vec<String> {
    let Event { entity, item } = event;
    let text =
        ics::write("", &[ExportedEntity { entity, item, id: "", updated_at: domain::Timestamp::from_millis(0) }]);
    let text = text.replace("\r\n ", "");
    // The rules of zones stand before the event.
    let own = text.split_once("BEGIN:VEVENT").map_or("", |(_, own)| own);
    own.lines().filter(|line| line.starts_with("RRULE:") || line.starts_with("EXDATE")).map(str::to_owned).collect()
}

/// The lines of `recurrence` that an event lacks because they are not taken here: additional dates, and a rule of another kind.
pub(super) fn not_taken(before: &Value, event: &Event) -> Vec<Value> {
    let is_lacking = |line: &str| {
        let rule = line.strip_prefix("RRULE:");
        let is_refused = |rule: &str| event.item.rrule.is_none() && check_rule("rrule", rule).is_err();
        line.starts_with("RDATE") || rule.is_some_and(is_refused)
    };
    let lines = before["recurrence"].as_array().into_iter().flatten();
    lines.filter(|line| line.as_str().is_some_and(is_lacking)).cloned().collect()
}

fn attendees(event: &Event, before: &[Value]) -> Value {
    let texts = event.entity.fields.get("attendees").and_then(Value::as_array);
    let all = texts.into_iter().flatten().filter_map(Value::as_str).filter_map(|text| {
        let (name, email) = match text.split_once('<') {
            Some((name, rest)) => (name.trim(), rest.trim_end_matches('>').trim()),
            None => ("", text.trim()),
        };
        if !email.contains('@') {
            return None;
        }
        let known =
            before.iter().find(|one| one["email"].as_str().is_some_and(|known| known.eq_ignore_ascii_case(email)));
        let new = || match name {
            "" => json!({ "email": email }),
            name => json!({ "email": email, "displayName": name }),
        };
        Some(known.cloned().unwrap_or_else(new))
    });
    all.collect::<Vec<_>>().into()
}

/// The id of an occurrence: that of its event, and the time that the rule gave it.
pub(super) fn instance(main: &str, event: &Event) -> Option<String> {
    if main.is_empty() {
        return None;
    }
    let at = event.entity.text("recurrence_id").and_then(Moment::parse)?;
    Some(match at {
        Moment::Day(day) => format!("{main}_{}", day.format("%Y%m%d")),
        other => {
            let at = Moment::At(event_utc(other, event.item.zone)?);
            format!("{main}_{}Z", at.local(Tz::UTC).format("%Y%m%dT%H%M%S"))
        }
    })
}

fn event_utc(at: Moment, zone: Tz) -> Option<chrono::DateTime<chrono::Utc>> {
    chrono::DateTime::from_timestamp_millis(at.instant(zone).as_millis())
}
