//! The table of kinds and their fields: from it come the schemas of tools, validation, the whitelist of updates and `get_field_info`
//! (spec 003 §8).

use crate::EntityKind;

/// The types of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// A text of at most so many characters.
    Text(usize),
    /// One of these words.
    Choice(&'static [&'static str]),
    /// True or false.
    Flag,
    /// A whole number from the one to the other.
    Number(u64, u64),
    /// A day: `2026-12-01`.
    Day,
    /// A day, a time on the clock of the entity's `time_zone`, or a moment with an offset: `2026-12-01`, `2026-12-01T09:00`,
    /// `2026-12-01T09:00:00Z`.
    Moment,
    /// Several of them.
    Moments,
    /// A time zone of the IANA database, such as `Europe/Berlin`.
    Zone,
    /// A rule of RFC 5545 §3.3.10, such as `FREQ=WEEKLY;BYDAY=MO`.
    Rule,
    /// Texts.
    Texts,
    /// Paths of files.
    Paths,
}

/// Where a field is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldHome {
    /// A key of the front matter.
    Key,
    /// The text after the front matter.
    Body,
    /// The metadata of the file: nobody writes it.
    File,
}

/// A field of a kind.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// The type of its values.
    pub of: Type,
    /// Its meaning.
    pub description: &'static str,
    /// Whether an entity must have it.
    pub required: bool,
    /// Whether an update may change it.
    pub updatable: bool,
    /// Whether lists show it.
    pub listed: bool,
    /// Where it is kept.
    pub kept: FieldHome,
}

/// A key of the front matter that updates may change.
const fn key(name: &'static str, of: Type, description: &'static str) -> Field {
    Field { name, of, description, required: false, updatable: true, listed: false, kept: FieldHome::Key }
}

/// Metadata of the file.
const fn meta(name: &'static str, of: Type, description: &'static str) -> Field {
    Field { kept: FieldHome::File, updatable: false, ..key(name, of, description) }
}

impl Field {
    const fn required(self) -> Self {
        Self { required: true, ..self }
    }
    const fn listed(self) -> Self {
        Self { listed: true, ..self }
    }
    const fn body(self) -> Self {
        Self { kept: FieldHome::Body, ..self }
    }
    const fn fixed(self) -> Self {
        Self { updatable: false, ..self }
    }
}

/// The longest title, in characters.
const TITLE: usize = 200;
/// The longest text of a front matter, in characters.
const TEXT: usize = 4_000;
/// The longest body, in characters.
const BODY: usize = 200_000;
/// The statuses of a project.
const PROJECT_STATUS: &[&str] = &["active", "paused", "completed", "archived"];
/// The statuses of a task.
pub(crate) const TASK_STATUS: &[&str] = &["backlog", "in_progress", "done", "blocked"];
/// The colours of calendars, by their numbers in Google Calendar.
const COLORS: &[&str] = &["1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"];
/// The nearest colours of CSS, in the same order: iCalendar names colours as CSS does (RFC 7986 §5.9).
const CSS_COLORS: &[&str] = &[
    "slateblue",
    "mediumseagreen",
    "darkorchid",
    "lightcoral",
    "gold",
    "orangered",
    "dodgerblue",
    "dimgray",
    "royalblue",
    "seagreen",
    "red",
];

const TAGS: Field = key("tags", Type::Texts, "Words to find it by.");
const ZONE: Field = key("time_zone", Type::Zone, "The time zone of its times; that of the person's profile when none.");
const RULE: Field = key("rrule", Type::Rule, "When it comes again, from its first time on.");

/// The metadata of every entity.
const META: [Field; 4] = [
    meta("path", Type::Text(4_096), "The file: what other tools take."),
    meta("author", Type::Text(TITLE), "The author of the newest version."),
    meta("created_at", Type::Moment, "When it was made."),
    meta("updated_at", Type::Moment, "When it was changed last."),
];

const PROJECT: [Field; 19] = [
    key("name", Type::Text(TITLE), "The name of the project.").required().listed(),
    key("status", Type::Choice(PROJECT_STATUS), "Where the project is in its life.").listed(),
    key("description", Type::Text(TEXT), "What the project is, in one or two sentences.").listed(),
    key("executive_summary", Type::Text(TEXT), "The state of the project for people who decide."),
    key("context", Type::Text(BODY), "All that is known about the project, in Markdown.").body(),
    key("start_date", Type::Day, "The first day."),
    key("end_date", Type::Day, "The day until which it is to be completed.").listed(),
    TAGS,
    key("calendar_color_id", Type::Choice(COLORS), "The colour of its events, as Google Calendar numbers them."),
    key("calendar_sync_enabled", Type::Flag, "Whether its tasks stand in calendars that are exported."),
    key("core_goals_momentum", Type::Text(TEXT), "Milestones, and what moves now."),
    key("core_harmony_integration", Type::Text(TEXT), "How the parts fit together."),
    key("core_integrity_ideals", Type::Text(TEXT), "What good looks like."),
    key("core_meaning_identity", Type::Text(TEXT), "Why it exists, and what it is."),
    key("core_opportunity_freedom", Type::Text(TEXT), "Options that stay open."),
    key("core_people_bonds", Type::Text(TEXT), "Who takes part, and how they work together."),
    key("core_power_resources", Type::Text(TEXT), "Money, tools, influence."),
    key("core_reality_understanding", Type::Text(TEXT), "Facts, and what is measured."),
    key("core_trust_safeguards", Type::Text(TEXT), "Risks, and what protects from them."),
];

const TASK: [Field; 14] = [
    key("title", Type::Text(TITLE), "What is to be done.").required().listed(),
    key("description", Type::Text(BODY), "All that is known about the task, in Markdown.").body(),
    key("status", Type::Choice(TASK_STATUS), "How far it is.").listed(),
    key("priority", Type::Choice(&["low", "medium", "high"]), "How much it matters.").listed(),
    key("start_date", Type::Day, "The first day on which it can be done."),
    key("due_date", Type::Day, "The last day on which it is to be done.").listed(),
    key("duration_minutes", Type::Number(1, 60 * 24 * 31), "How long it takes."),
    key("scheduled_start", Type::Moment, "When it stands in the calendar; schedule_task sets it.").listed(),
    key("scheduled_end", Type::Moment, "Until when it stands there; by its duration when none."),
    ZONE,
    RULE,
    key("assignee", Type::Text(TITLE), "Who does it."),
    key("depends_on", Type::Paths, "Tasks that are to be done before."),
    TAGS,
];

const NOTE: [Field; 4] = [
    key("title", Type::Text(TITLE), "What the note is about.").required().listed(),
    key("content", Type::Text(BODY), "The note, in Markdown.").body(),
    key("category", Type::Text(64), "A word for notes of the same sort.").listed(),
    TAGS.listed(),
];

const BRAIN_DUMP: [Field; 4] = [
    key("title", Type::Text(TITLE), "What it is about; its first words when none.").listed(),
    key("content", Type::Text(BODY), "The thoughts, as they came.").body().required(),
    key(
        "status",
        Type::Choice(&["pending", "parsed", "saved"]),
        "Whether it was read, and sorted into projects and tasks.",
    )
    .listed(),
    TAGS,
];

const EVENT: [Field; 14] = [
    key("title", Type::Text(TITLE), "What the event is.").required().listed(),
    key("description", Type::Text(BODY), "All that is known about the event, in Markdown.").body(),
    key("start", Type::Moment, "When it begins; a day for an event of whole days.").required().listed(),
    key("end", Type::Moment, "When it ends; the day after its last one for whole days.").listed(),
    ZONE,
    RULE.listed(),
    key("except", Type::Moments, "Starts of the rule at which it does not take place."),
    key("location", Type::Text(TITLE), "Where it is.").listed(),
    key("status", Type::Choice(&["confirmed", "tentative", "cancelled"]), "Whether it takes place."),
    key("busy", Type::Flag, "Whether the time is taken; it is, unless this is false."),
    key("attendees", Type::Texts, "Who takes part."),
    TAGS,
    key("uid", Type::Text(500), "Its identity in other calendars (RFC 5545 §3.8.4.7).").fixed(),
    key("recurrence_id", Type::Moment, "Of a moved occurrence: the start that the rule gave it (RFC 5545 §3.8.4.4).")
        .fixed(),
];

const DOCUMENT: [Field; 4] = [
    key("title", Type::Text(TITLE), "What the document is.").listed(),
    key("content", Type::Text(BODY), "The document, in Markdown.").body(),
    key("description", Type::Text(TEXT), "What it is for, in one or two sentences.").listed(),
    TAGS,
];

/// The colour of CSS for a number of a colour; none for another text.
pub(crate) fn css_color(number: &str) -> Option<&'static str> {
    COLORS.iter().zip(CSS_COLORS).find(|(known, _)| **known == number).map(|(_, name)| *name)
}

/// The fields of a kind that its file has, in the order in which files and lists have them.
pub fn fields(kind: EntityKind) -> &'static [Field] {
    match kind {
        EntityKind::Project => &PROJECT,
        EntityKind::Task => &TASK,
        EntityKind::Note => &NOTE,
        EntityKind::BrainDump => &BRAIN_DUMP,
        EntityKind::Event => &EVENT,
        EntityKind::Document => &DOCUMENT,
    }
}

/// Those, and the metadata of the file.
pub fn all(kind: EntityKind) -> impl Iterator<Item = &'static Field> {
    fields(kind).iter().chain(&META)
}

/// A field by its name.
pub fn field(kind: EntityKind, name: &str) -> Option<&'static Field> {
    all(kind).find(|field| field.name == name)
}

/// The fields that an update may change.
pub fn updatable(kind: EntityKind) -> impl Iterator<Item = &'static Field> {
    fields(kind).iter().filter(|field| field.updatable)
}

/// The field that is the text of the file.
pub fn body(kind: EntityKind) -> &'static str {
    fields(kind).iter().find(|field| field.kept == FieldHome::Body).map_or("content", |field| field.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_changed_in_the_fields_of_the_specification_and_no_others() {
        let mut fields: Vec<&str> = updatable(EntityKind::Project).map(|field| field.name).collect();
        fields.sort_unstable();
        let mut listed = [
            "name",
            "description",
            "executive_summary",
            "context",
            "status",
            "start_date",
            "end_date",
            "tags",
            "calendar_color_id",
            "calendar_sync_enabled",
            "core_goals_momentum",
            "core_harmony_integration",
            "core_integrity_ideals",
            "core_meaning_identity",
            "core_opportunity_freedom",
            "core_people_bonds",
            "core_power_resources",
            "core_reality_understanding",
            "core_trust_safeguards",
        ];
        listed.sort_unstable();
        assert_eq!(fields, listed);
    }

    #[test]
    fn every_kind_has_one_body_a_title_and_fields_with_different_names() {
        for kind in EntityKind::ALL {
            let fields = fields(kind);
            assert_eq!(fields.iter().filter(|field| field.kept == FieldHome::Body).count(), 1, "{kind:?}");
            assert!(field(kind, kind.title()).is_some_and(|title| title.listed), "{kind:?}");
            let mut names: Vec<&str> = all(kind).map(|field| field.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), all(kind).count(), "{kind:?}");
            assert!(all(kind).all(|field| field.description.ends_with('.')), "{kind:?}");
        }
    }

    #[test]
    fn every_number_of_a_colour_has_a_colour_of_its_own() {
        let mut names: Vec<_> = COLORS.iter().filter_map(|number| css_color(number)).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!((names.len(), css_color("12")), (COLORS.len(), None));
    }

    #[test]
    fn the_words_of_the_specification_are_allowed() {
        let of = |kind, name| field(kind, name).map(|field| field.of);
        assert_eq!(
            of(EntityKind::Project, "status"),
            Some(Type::Choice(&["active", "paused", "completed", "archived"]))
        );
        assert_eq!(of(EntityKind::Task, "status"), Some(Type::Choice(&["backlog", "in_progress", "done", "blocked"])));
        assert_eq!(of(EntityKind::Task, "priority"), Some(Type::Choice(&["low", "medium", "high"])));
    }
}
