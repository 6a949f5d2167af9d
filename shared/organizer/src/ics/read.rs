//! A calendar as fields of events.

use super::{MAX_BYTES, MAX_EVENTS, windows};
use crate::{
    clock::{Moment, Tz},
    rule::check_rule,
};
use chrono::{Duration, NaiveDate, NaiveDateTime};
use domain::{Code, Error};
use icalendar::parser::{self, Component, Property};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// How deep components nest: an alarm is in an event in a calendar. The parser calls itself for each.
const MAX_DEPTH: usize = 8;
/// The longest line, in bytes.
const MAX_LINE: usize = 512 * 1024;
/// How much of a text of an event is kept, in characters.
const MAX_TEXT: usize = 100_000;
/// How many problems are told.
const MAX_PROBLEMS: usize = 50;

/// The events of a calendar.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Imported {
    /// The name of the calendar, if it has one.
    pub name: Option<String>,
    /// The fields of each event, as the table has them.
    pub events: Vec<Map<String, Value>>,
    /// How many other components there were, such as tasks and journals.
    pub skipped: usize,
    /// Parts of events that could not be taken over, for people.
    pub problems: Vec<String>,
}

/// Reads a calendar.
///
/// # Errors
/// `PAYLOAD_TOO_LARGE` for over 4 MiB or 1,000 events, `UNPROCESSABLE` for a text that is no calendar.
pub fn read(text: &str) -> Result<Imported, Error> {
    if text.len() > MAX_BYTES {
        return Err(Error::new(
            Code::PayloadTooLarge,
            format!("the calendar is {} bytes long; {MAX_BYTES} fit", text.len()),
        ));
    }
    let text = parser::unfold(&text.trim_start_matches('\u{feff}').replace("\r\n", "\n"));
    let no_calendar = |why: &str| {
        Error::new(Code::Unprocessable, format!("this is no iCalendar file: {why}"))
            .hint("it begins with BEGIN:VCALENDAR")
    };
    check_shape(&text).map_err(no_calendar)?;
    let calendar = parser::read_calendar(text.trim()).map_err(|why| {
        no_calendar(&why.lines().take(3).collect::<Vec<_>>().join(" ").chars().take(300).collect::<String>())
    })?;
    let property = |name: &str| {
        let found = calendar.properties.iter().find(|property| property.name.as_str().eq_ignore_ascii_case(name));
        found.map(|property| property.val.as_str().trim().to_owned()).filter(|text| !text.is_empty())
    };
    let usual = property("X-WR-TIMEZONE").and_then(|name| known_zone(&name));
    let zones = zones_of(&calendar.components);
    let mut imported = Imported { name: property("X-WR-CALNAME"), ..Imported::default() };
    for component in &calendar.components {
        match component.name.as_str() {
            "VEVENT" if imported.events.len() >= MAX_EVENTS => {
                let message = format!("the calendar has more than {MAX_EVENTS} events");
                return Err(Error::new(Code::PayloadTooLarge, message).hint("import it in parts"));
            }
            "VEVENT" => {
                let mut event = Event { component, usual: usual.as_deref(), zones: &zones, problems: Vec::new() };
                let fields = event.fields();
                let problems = event.problems.into_iter().take(MAX_PROBLEMS - imported.problems.len());
                imported.problems.extend(problems);
                match fields {
                    Some(fields) => imported.events.push(fields),
                    None => imported.skipped += 1,
                }
            }
            "VTIMEZONE" => {}
            _ => imported.skipped += 1,
        }
    }
    Ok(imported)
}

/// Refuses a text that the parser would call itself too deep for, or would take too long over.
fn check_shape(text: &str) -> Result<(), &'static str> {
    let mut depth = 0_usize;
    for line in text.lines() {
        if line.len() > MAX_LINE {
            return Err("a line is too long");
        }
        let line = line.trim_start();
        let begins = |word: &str| line.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
        if begins("BEGIN:") {
            depth += 1;
        } else if begins("END:") {
            depth = depth.saturating_sub(1);
        }
        if depth > MAX_DEPTH {
            return Err("its components nest too deep");
        }
    }
    match text
        .trim_start()
        .get(.."BEGIN:VCALENDAR".len())
        .is_some_and(|start| start.eq_ignore_ascii_case("BEGIN:VCALENDAR"))
    {
        true => Ok(()),
        false => Err("it does not begin as one"),
    }
}

/// The zone that a name stands for: one of the IANA database, also behind the prefix of a program (`/example.org/20250101_1/Europe/Berlin`), or one of
/// Windows.
fn known_zone(name: &str) -> Option<String> {
    let plain = name.trim().trim_start_matches('/');
    let last = |parts: usize| {
        let from = plain.rmatch_indices('/').nth(parts).map_or(0, |(at, _)| at + 1);
        plain.get(from..).filter(|tail| tail.len() < plain.len())
    };
    // A zone has two parts in most cases, and three in some, such as America/Argentina/Salta.
    let ends = [Some(plain), last(2), last(1)];
    let found = ends.into_iter().flatten().find(|name| name.parse::<Tz>().is_ok());
    found.or_else(|| windows::zone(plain)).map(str::to_owned)
}

/// The zones that a calendar declares under other names than those of a database: one that says which it is, and one whose clock never changes.
fn zones_of(components: &[Component<'_>]) -> BTreeMap<String, String> {
    let text = |component: &Component<'_>, name: &str| {
        let found = component.properties.iter().find(|property| property.name.as_str().eq_ignore_ascii_case(name));
        found.map(|property| property.val.as_str().trim().to_owned())
    };
    let mut zones = BTreeMap::new();
    for declared in components.iter().filter(|component| component.name.as_str() == "VTIMEZONE") {
        let Some(name) = text(declared, "TZID") else { continue };
        let says = text(declared, "X-LIC-LOCATION").and_then(|location| known_zone(&location));
        let offsets: Vec<String> =
            declared.components.iter().filter_map(|observance| text(observance, "TZOFFSETTO")).collect();
        let is_fixed = offsets.first().is_some_and(|first| offsets.iter().all(|offset| offset == first));
        let fixed = offsets.first().filter(|_| is_fixed).and_then(|offset| fixed_zone(offset));
        if let Some(zone) = says.or(fixed) {
            zones.insert(name.trim_matches('"').to_owned(), zone);
        }
    }
    zones
}

/// The zone of a clock that is always so many whole hours from UTC: the database counts them in the other direction.
fn fixed_zone(offset: &str) -> Option<String> {
    let (sign, digits) = offset.split_at_checked(1)?;
    let hours: u32 = digits.get(..2)?.parse().ok()?;
    let is_whole = digits.get(2..).is_some_and(|rest| rest.chars().all(|digit| digit == '0'));
    let name = match (sign, hours) {
        (_, 0) => "UTC".to_owned(),
        ("+", hours) => format!("Etc/GMT-{hours}"),
        ("-", hours) => format!("Etc/GMT+{hours}"),
        _ => return None,
    };
    Some(name).filter(|name| is_whole && name.parse::<Tz>().is_ok())
}

/// An event that is read.
struct Event<'a> {
    component: &'a Component<'a>,
    usual: Option<&'a str>,
    /// The zones that the calendar declares under names of its own.
    zones: &'a BTreeMap<String, String>,
    problems: Vec<String>,
}

impl<'a> Event<'a> {
    fn all(&self, name: &'static str) -> impl Iterator<Item = &'a Property<'a>> + use<'a> {
        self.component.properties.iter().filter(move |property| property.name.as_str().eq_ignore_ascii_case(name))
    }

    /// A text of at most so many characters; none when it is not there or empty.
    fn text(&self, name: &'static str, most: usize) -> Option<String> {
        let text: String = self.all(name).next()?.val.as_str().trim().chars().take(most).collect();
        (!text.is_empty()).then_some(text)
    }

    fn problem(&mut self, what: &str) {
        let title = self.text("SUMMARY", 60).unwrap_or_default();
        self.problems.push(format!("{title:?}: {what}"));
    }

    /// Its fields; none for an event without a start.
    fn fields(&mut self) -> Option<Map<String, Value>> {
        let Some((start, zone)) = self.all("DTSTART").next().and_then(|property| self.moment(property)) else {
            self.problem("it has no start, and was left out");
            return None;
        };
        // A rule that begins at a moment goes by the clock of UTC, and not by that of the reader.
        let is_in_utc = matches!(start, Moment::At(_)) && self.all("RRULE").next().is_some();
        let zone = zone.or_else(|| is_in_utc.then(|| "UTC".to_owned()));
        let mut fields = Map::new();
        let title = self.text("SUMMARY", 200).unwrap_or_else(|| "(no title)".into());
        let mut put = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                fields.insert(name.to_owned(), value);
            }
        };
        put("title", Some(title.into()));
        put("description", self.text("DESCRIPTION", MAX_TEXT).map(Value::from));
        put("start", Some(start.to_string().into()));
        put("end", self.end(start, zone.as_deref()).map(|end| end.to_string().into()));
        put("time_zone", zone.clone().map(Value::from));
        put("rrule", self.rule().map(Value::from));
        let except: Vec<Value> = self.excepted(zone.as_deref()).iter().map(|at| at.to_string().into()).collect();
        put("except", (!except.is_empty()).then_some(except.into()));
        put("location", self.text("LOCATION", 200).map(Value::from));
        let status = self.text("STATUS", 20).map(|status| status.to_lowercase());
        let status = status.filter(|status| ["tentative", "cancelled"].contains(&status.as_str()));
        put("status", Some(status.map_or("confirmed".into(), Value::from)));
        put("busy", (self.text("TRANSP", 20).as_deref() == Some("TRANSPARENT")).then_some(false.into()));
        let attendees: Vec<Value> = self.all("ATTENDEE").filter_map(attendee).take(100).map(Value::from).collect();
        put("attendees", (!attendees.is_empty()).then_some(attendees.into()));
        put("tags", self.tags());
        put("uid", self.text("UID", 500).map(Value::from));
        let moved = self.all("RECURRENCE-ID").next().and_then(|property| self.moment(property));
        put("recurrence_id", moved.map(|(at, of)| as_in(at, of.as_deref(), zone.as_deref()).to_string().into()));
        if self.all("RDATE").next().is_some() {
            self.problem("its additional dates (RDATE) were left out");
        }
        Some(fields)
    }

    /// A date or time, and the zone of a time on a clock.
    fn moment(&mut self, property: &Property<'_>) -> Option<(Moment, Option<String>)> {
        let text = property.val.as_str().trim();
        let named = property.params.iter().find(|param| param.key.as_str().eq_ignore_ascii_case("TZID"));
        let named = named.and_then(|param| Some(param.val.as_ref()?.as_str().trim_matches('"').trim().to_owned()));
        let zone = match named {
            Some(name) if known_zone(&name).is_some() => known_zone(&name),
            Some(name) if self.zones.contains_key(&name) => self.zones.get(&name).cloned(),
            Some(name) => {
                let usual = self.usual.unwrap_or("this calendar");
                self.problem(&format!("there is no time zone {name:?}, so its times are those of {usual}"));
                self.usual.map(str::to_owned)
            }
            None => self.usual.map(str::to_owned),
        };
        let moment = parse_moment(text)?;
        let zone = zone.filter(|_| !matches!(moment, Moment::At(_)));
        Some((moment, zone))
    }

    fn end(&mut self, start: Moment, zone: Option<&str>) -> Option<Moment> {
        if let Some(property) = self.all("DTEND").next() {
            let (end, of) = self.moment(property)?;
            return Some(as_in(end, of.as_deref(), zone));
        }
        let length = duration(&self.text("DURATION", 40)?)?;
        match start {
            Moment::Day(day) => Some(Moment::Day(day.checked_add_signed(length)?)),
            Moment::Local(at) => Some(Moment::Local(at.checked_add_signed(length)?)),
            Moment::At(at) => Some(Moment::At(at.checked_add_signed(length)?)),
        }
    }

    fn rule(&mut self) -> Option<String> {
        let rule = self.text("RRULE", 1_000)?;
        match check_rule("rrule", &rule) {
            Ok(rule) => Some(rule),
            Err(error) => {
                self.problem(&format!("its rule {rule:?} was left out, so it takes place once: {}", error.message));
                None
            }
        }
    }

    fn excepted(&mut self, zone: Option<&str>) -> Vec<Moment> {
        let mut found = Vec::new();
        for property in self.all("EXDATE") {
            for text in property.val.as_str().split(',') {
                let one = Property {
                    name: property.name.clone(),
                    val: text.to_owned().into(),
                    params: property.params.clone(),
                };
                found.extend(self.moment(&one).map(|(at, of)| as_in(at, of.as_deref(), zone)));
            }
        }
        if found.len() > 100 {
            self.problem("only the first 100 of its exceptions were taken over");
            found.truncate(100);
        }
        found
    }

    fn tags(&self) -> Option<Value> {
        let all = self.all("CATEGORIES").flat_map(|property| texts(property.val.as_str()));
        let tags: Vec<Value> = all
            .map(|tag| tag.trim().chars().take(100).collect::<String>())
            .filter(|tag| !tag.is_empty())
            .take(50)
            .map(Value::from)
            .collect();
        (!tags.is_empty()).then_some(tags.into())
    }
}

/// A list of texts with commas between them (RFC 5545 §3.3.11).
fn texts(list: &str) -> Vec<String> {
    let (mut all, mut one, mut characters) = (Vec::new(), String::new(), list.chars());
    while let Some(character) = characters.next() {
        match character {
            ',' => all.push(std::mem::take(&mut one)),
            '\\' => one.extend(characters.next().map(|next| if matches!(next, 'n' | 'N') { ' ' } else { next })),
            other => one.push(other),
        }
    }
    all.push(one);
    all
}

/// A date or time of iCalendar.
fn parse_moment(text: &str) -> Option<Moment> {
    if let Ok(day) = NaiveDate::parse_from_str(text, "%Y%m%d") {
        return Moment::parse(&day.to_string());
    }
    let (plain, is_utc) = text.strip_suffix('Z').map_or((text, false), |plain| (plain, true));
    let at = NaiveDateTime::parse_from_str(plain, "%Y%m%dT%H%M%S").ok()?;
    Moment::parse(&format!("{}{}", at.format("%Y-%m-%dT%H:%M:%S"), if is_utc { "Z" } else { "" }))
}

/// A time on the clock of one zone, so that it stands in an event of another.
fn as_in(at: Moment, of: Option<&str>, zone: Option<&str>) -> Moment {
    match (at, of.and_then(|name| name.parse::<Tz>().ok())) {
        (Moment::Local(_), Some(own)) if of != zone => {
            let millis = at.instant(own).as_millis();
            chrono::DateTime::from_timestamp_millis(millis).map_or(at, Moment::At)
        }
        _ => at,
    }
}

/// `P1W`, `P1DT2H30M`, `PT15M` (RFC 5545 §3.3.6).
fn duration(text: &str) -> Option<Duration> {
    let (mut seconds, mut number, mut in_time) = (0_i64, 0_i64, false);
    for character in text.trim_start_matches('+').strip_prefix('P')?.chars() {
        let unit = match (character, in_time) {
            ('0'..='9', _) => {
                number = number.checked_mul(10)?.checked_add(i64::from(character.to_digit(10)?))?;
                continue;
            }
            ('T', false) => {
                in_time = true;
                continue;
            }
            ('W', false) => 7 * 86_400,
            ('D', false) => 86_400,
            ('H', true) => 3_600,
            ('M', true) => 60,
            ('S', true) => 1,
            _ => return None,
        };
        seconds = seconds.checked_add(number.checked_mul(unit)?)?;
        number = 0;
    }
    Duration::try_seconds(seconds)
}

/// `Ada <ada@example.org>`, or the address alone.
pub(super) fn attendee(property: &Property<'_>) -> Option<String> {
    let value = property.val.as_str();
    let address =
        value.get(..7).filter(|start| start.eq_ignore_ascii_case("mailto:")).map_or(value, |_| &value[7..]).trim();
    let name = property.params.iter().find(|param| param.key.as_str().eq_ignore_ascii_case("CN"));
    let name = name.and_then(|param| Some(param.val.as_ref()?.as_str().trim_matches('"').trim().to_owned()));
    let text = match name.filter(|name| !name.is_empty() && name != address) {
        Some(name) => format!("{name} <{address}>"),
        None => address.to_owned(),
    };
    let text: String = text.chars().take(300).collect();
    (!text.is_empty()).then_some(text)
}
