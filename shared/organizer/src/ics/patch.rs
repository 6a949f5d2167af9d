//! Changes of a calendar that stands elsewhere. Properties that are not known here, alarms and the answers of those who take part stay as they are.

use super::{
    read,
    write::{Lines, YEARS, properties, stamps, time_zone},
};
use crate::{Entity, FieldGroup, Item, clock::Tz, field_group::occurrence, kind::EntityKind, rule::check_rule};
use chrono::Datelike as _;
use domain::{Code, Error, Timestamp};
use std::collections::BTreeSet;

/// A change of one event of a calendar, or of one of its moved occurrences.
#[derive(Clone, Debug)]
pub struct Patch<'a> {
    /// The moved occurrence, as [`occurrence`] names it; empty for the event itself.
    pub occurrence: &'a str,
    /// The change.
    pub change: Change<'a>,
}

/// A change of an event.
#[derive(Clone, Debug)]
pub enum Change<'a> {
    /// These groups get their values from here; an event that is not there is made whole.
    Put {
        /// The event.
        entity: &'a Entity,
        /// Its times.
        item: &'a Item,
        /// The groups that change.
        groups: &'a BTreeSet<FieldGroup>,
    },
    /// It is taken out.
    Remove,
}

/// The text of a calendar with these changes of the event `uid`. `usual` is the zone of times that name none.
///
/// # Errors
/// `UNPROCESSABLE` for a text that is no calendar.
pub fn patch(text: &str, uid: &str, patches: &[Patch<'_>], usual: Tz, at: Timestamp) -> Result<String, Error> {
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n").replace("\n ", "").replace("\n\t", "");
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let (mut pieces, end) = pieces(&lines)?;
    for Patch { occurrence, change } in patches {
        let place = pieces.iter().position(|piece| piece.is_of(occurrence, &lines, usual));
        match (place, change) {
            (Some(place), Change::Remove) => drop(pieces.remove(place)),
            (None, Change::Remove) => {}
            (Some(place), Change::Put { entity, item, groups }) => {
                if let Some(Piece::Event(event)) = pieces.get_mut(place) {
                    changed(event, entity, item, groups, at);
                }
            }
            (None, Change::Put { entity, item, .. }) => pieces.push(Piece::Event(whole(uid, entity, item, at))),
        }
    }
    let mut out = Lines::default();
    let known = |zone: &str| lines.iter().any(|line| property(line).0 == "TZID" && property(line).1 == zone);
    let mut zones = BTreeSet::new();
    for Patch { change, .. } in patches {
        if let Change::Put { item, .. } = change
            && item.zone != Tz::UTC
            && !item.start.is_day()
            && !known(item.zone.name())
        {
            zones.insert((item.zone.name(), item.start.local(item.zone).year()));
        }
    }
    for (number, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Other(line) => out.line(line),
            Piece::Event(event) => event.iter().for_each(|line| out.line(line)),
        }
        // The first line begins the calendar, and zones stand before events by custom.
        if number == 0 {
            for (zone, year) in std::mem::take(&mut zones) {
                time_zone(&mut out, zone, year - 1, year + YEARS);
            }
        }
    }
    out.line(end);
    Ok(out.0)
}

/// A part of a calendar.
enum Piece {
    /// An event, from its first line to its last.
    Event(Vec<String>),
    /// Another line.
    Other(String),
}

impl Piece {
    fn is_of(&self, wanted: &str, lines: &[&str], usual: Tz) -> bool {
        let Self::Event(event) = self else { return false };
        // Zones of the calendar count for the event, too.
        let mut is_in_zone = false;
        let zones = lines.iter().filter(|line| {
            let marks = |word: &str| line.trim().eq_ignore_ascii_case(word);
            is_in_zone |= marks("BEGIN:VTIMEZONE");
            let counts = is_in_zone || property(line).0 == "X-WR-TIMEZONE";
            is_in_zone &= !marks("END:VTIMEZONE");
            counts
        });
        let alone: Vec<String> = ["BEGIN:VCALENDAR".to_owned()]
            .into_iter()
            .chain(zones.map(|line| (*line).to_owned()))
            .chain(event.iter().cloned())
            .chain(["END:VCALENDAR".to_owned()])
            .collect();
        let Ok(found) = read::read(&alone.join("\n")) else { return false };
        let Some(fields) = found.events.into_iter().next() else { return false };
        let entity = Entity { kind: EntityKind::Event, fields, faults: Vec::new() };
        matches!(Item::of(&entity, usual), Ok(Some(item)) if occurrence(&entity, &item) == wanted)
    }
}

/// The parts of a calendar, and its last line.
fn pieces<'a>(lines: &[&'a str]) -> Result<(Vec<Piece>, &'a str), Error> {
    let wrong = || Error::new(Code::Unprocessable, "this is no iCalendar file").hint("it begins with BEGIN:VCALENDAR");
    let (end, body) = lines.split_last().ok_or_else(wrong)?;
    if !end.trim().eq_ignore_ascii_case("END:VCALENDAR")
        || !body.first().is_some_and(|line| line.trim().eq_ignore_ascii_case("BEGIN:VCALENDAR"))
    {
        return Err(wrong());
    }
    let (mut pieces, mut event): (Vec<Piece>, Option<Vec<String>>) = (Vec::new(), None);
    for line in body {
        let marks = |word: &str| line.trim().eq_ignore_ascii_case(word);
        match &mut event {
            None if marks("BEGIN:VEVENT") => event = Some(vec![(*line).to_owned()]),
            None => pieces.push(Piece::Other((*line).to_owned())),
            Some(open) => {
                open.push((*line).to_owned());
                if marks("END:VEVENT") {
                    pieces.extend(event.take().map(Piece::Event));
                }
            }
        }
    }
    Ok((pieces, end))
}

/// The name of the property of a line, in capitals, and its value.
fn property(line: &str) -> (String, &str) {
    let end = line.find([';', ':']).unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    (name.trim().to_uppercase(), rest.rsplit_once(':').map_or("", |(_, value)| value.trim()))
}

/// The properties of a group.
fn names(group: FieldGroup) -> &'static [&'static str] {
    match group {
        FieldGroup::Title => &["SUMMARY"],
        FieldGroup::Description => &["DESCRIPTION"],
        FieldGroup::Times => &["DTSTART", "DTEND", "DURATION", "RRULE", "EXDATE"],
        FieldGroup::Location => &["LOCATION"],
        FieldGroup::Status => &["STATUS"],
        FieldGroup::Busy => &["TRANSP"],
        FieldGroup::Attendees => &["ATTENDEE"],
        FieldGroup::Tags => &["CATEGORIES"],
    }
}

fn changed(event: &mut Vec<String>, entity: &Entity, item: &Item, groups: &BTreeSet<FieldGroup>, at: Timestamp) {
    let mut new: Vec<String> = properties(entity, item)
        .into_iter()
        .filter(|(group, _)| group.is_some_and(|group| groups.contains(&group)))
        .map(|(_, line)| line)
        .collect();
    let (mut kept, mut depth, mut sequence) = (Vec::new(), 0_usize, 0_u64);
    for line in event.drain(..) {
        let (name, value) = property(&line);
        let is_own = depth == 1;
        match name.as_str() {
            "BEGIN" => depth += 1,
            "END" => depth = depth.saturating_sub(1),
            "SEQUENCE" if is_own => {
                sequence = value.parse().unwrap_or(0);
                continue;
            }
            "DTSTAMP" | "LAST-MODIFIED" if is_own => continue,
            "ATTENDEE" if is_own && groups.contains(&FieldGroup::Attendees) => {
                // One who stays keeps the answer and the role.
                let address = value.to_lowercase();
                let stays = new.iter().position(|line| {
                    property(line).0 == "ATTENDEE" && {
                        property(line).1.to_lowercase().trim_start_matches("mailto:")
                            == address.trim_start_matches("mailto:")
                    }
                });
                match stays {
                    Some(place) => drop(new.remove(place)),
                    None => continue,
                }
            }
            // One that is not taken here, so that the event lacks it.
            "RRULE" if is_own && item.rrule.is_none() && check_rule("rrule", value).is_err() => {}
            name if is_own && groups.iter().any(|group| names(*group).contains(&name)) => continue,
            _ => {}
        }
        kept.push(line);
    }
    let last = kept.pop();
    kept.extend(stamps(at));
    kept.push(format!("SEQUENCE:{}", sequence.saturating_add(1)));
    kept.extend(new);
    kept.extend(last);
    *event = kept;
}

fn whole(uid: &str, entity: &Entity, item: &Item, at: Timestamp) -> Vec<String> {
    let mut lines = vec!["BEGIN:VEVENT".to_owned(), format!("UID:{uid}")];
    lines.extend(stamps(at));
    lines.extend(properties(entity, item).into_iter().map(|(_, line)| line));
    lines.push("END:VEVENT".into());
    lines
}
