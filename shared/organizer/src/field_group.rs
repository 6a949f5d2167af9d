//! The parts of an event that change together: two calendars that are kept the same are compared, merged and written by them.

use crate::{Entity, Item, clock::Tz};
use chrono::NaiveTime;
use recurrence::{Moment, rule::with_plain_end};
use serde_json::{Value, json};

/// Fields of an event that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FieldGroup {
    /// Its title.
    Title,
    /// Its text.
    Description,
    /// Its start, its end, their zone, and when it comes again. A start of one calendar and an end of another one make no event.
    Times,
    /// Where it is.
    Location,
    /// Whether it takes place.
    Status,
    /// Whether the time is taken.
    Busy,
    /// The people that take part.
    Attendees,
    /// Its tags.
    Tags,
}

impl FieldGroup {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Title,
        Self::Description,
        Self::Times,
        Self::Location,
        Self::Status,
        Self::Busy,
        Self::Attendees,
        Self::Tags,
    ];

    /// The fields, as the table has them.
    pub fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Title => &["title"],
            Self::Description => &["description"],
            Self::Times => &["start", "end", "time_zone", "rrule", "except"],
            Self::Location => &["location"],
            Self::Status => &["status"],
            Self::Busy => &["busy"],
            Self::Attendees => &["attendees"],
            Self::Tags => &["tags"],
        }
    }

    /// Its name, for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Times => "times",
            other => other.fields().first().copied().unwrap_or_default(),
        }
    }

    /// Its value in a form that is the same for all ways to say the same.
    pub fn value(self, entity: &Entity, item: &Item) -> Value {
        let text = |field: &str| entity.text(field).map(|text| text.replace("\r\n", "\n"));
        match self {
            Self::Title => entity.title().into(),
            Self::Description => json!(text("description")),
            Self::Location => json!(text("location")),
            Self::Times => times(item),
            Self::Status => json!(entity.text("status").filter(|status| *status != "confirmed")),
            Self::Busy => (entity.fields.get("busy") == Some(&Value::Bool(false))).into(),
            // An entry without an address stays here.
            Self::Attendees => json!(sorted(entity, "attendees", |text| text.contains('@'))),
            Self::Tags => json!(sorted(entity, "tags", |_| true)),
        }
    }
}

fn sorted(entity: &Entity, field: &str, keep: impl Fn(&str) -> bool) -> Vec<String> {
    let all = entity.fields.get(field).and_then(Value::as_array);
    let texts = all.into_iter().flatten().filter_map(Value::as_str).map(str::trim);
    let mut texts: Vec<String> = texts.filter(|text| keep(text)).map(str::to_owned).collect();
    texts.sort_unstable();
    texts.dedup();
    texts
}

fn times(item: &Item) -> Value {
    let at = |moment: Moment| match moment {
        Moment::Day(day) => day.to_string(),
        other => plain(other, item.zone),
    };
    let except = |moment: &Moment| match (moment, item.start) {
        // A day takes away the occurrence of that day.
        (Moment::Day(day), start) if !start.is_day() => {
            plain(Moment::Local(day.and_time(start.local(item.zone).time())), item.zone)
        }
        (Moment::Day(_), _) => at(*moment),
        (other, start) if start.is_day() => other.local(item.zone).date().to_string(),
        (other, _) => plain(*other, item.zone),
    };
    let mut excepted: Vec<String> = item.except.iter().map(except).collect();
    excepted.sort_unstable();
    excepted.dedup();
    let zone = (item.zone != Tz::UTC && !item.start.is_day()).then(|| item.zone.name());
    let rule = item.rrule.as_ref().map(|rule| with_plain_end(rule, item.zone, item.start.is_day()));
    json!([at(item.start), at(item.end), zone, rule, excepted])
}

/// A time on the clock of the zone; in UTC a moment.
fn plain(moment: Moment, zone: Tz) -> String {
    match zone {
        Tz::UTC => Moment::At(moment.local(zone).and_utc()).to_string(),
        zone => Moment::Local(moment.local(zone)).to_string(),
    }
}

/// The time that a moved occurrence had by its rule, as `recurrence_id` names it, in one form for all ways to say it. Empty for an event that is
/// no such occurrence.
pub fn occurrence(entity: &Entity, item: &Item) -> String {
    match entity.text("recurrence_id").and_then(Moment::parse) {
        None => String::new(),
        Some(Moment::Day(day)) if item.start.is_day() => day.to_string(),
        Some(Moment::Day(day)) => plain(Moment::Local(day.and_time(NaiveTime::MIN)), item.zone),
        Some(other) => plain(other, item.zone),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::EntityKind;

    fn value(group: FieldGroup, text: &str, zone: Tz) -> Value {
        let entity = Entity::read(EntityKind::Event, text, "x");
        let item = Item::of(&entity, zone).unwrap().unwrap();
        group.value(&entity, &item)
    }

    #[test]
    fn all_ways_to_say_the_same_times_are_one_value() {
        let berlin = Tz::Europe__Berlin;
        let same = [
            "---\nstart: 2026-12-01T09:00\ntime_zone: Europe/Berlin\n---\n",
            "---\nstart: 2026-12-01 09:00:00\nend: 2026-12-01T10:00\n---\n",
            "---\nstart: 2026-12-01T08:00:00Z\nend: 2026-12-01T09:00:00Z\n---\n",
            "---\nstart: 2026-12-01T10:00:00+02:00\n---\n",
        ];
        for text in same {
            assert_eq!(value(FieldGroup::Times, text, berlin), value(FieldGroup::Times, same[0], Tz::UTC), "{text}");
        }
        assert_ne!(value(FieldGroup::Times, same[1], Tz::UTC), value(FieldGroup::Times, same[1], berlin));
        let rule = |except: &str| format!("---\nstart: 2026-12-01T09:00\nrrule: FREQ=DAILY\nexcept: [{except}]\n---\n");
        let of = |except: &str| value(FieldGroup::Times, &rule(except), berlin);
        assert_eq!(of("2026-12-02"), of("'2026-12-02T08:00:00Z'"));
        let ends = |until: &str| format!("---\nstart: 2026-12-01T09:00\nrrule: FREQ=DAILY;UNTIL={until}\n---\n");
        let of = |until: &str| value(FieldGroup::Times, &ends(until), berlin);
        assert_eq!(of("20261205"), of("20261205T225959Z"));
        assert_eq!(value(FieldGroup::Status, "---\nstart: 2026-12-01\nstatus: confirmed\n---\n", berlin), Value::Null);
    }
}
