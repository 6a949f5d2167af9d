//! An entity: a file as the table reads it.
//!
//! Reading never fails: a value that is not as the table says is a fault that details tell, and people may have written it. Writing is strict.

use crate::{
    EntityKind,
    clock::{self, Moment},
    front_matter::{self, FrontMatterFault},
    rule,
    table::{self, Field, FieldHome, Type},
};
use domain::{Code, Error, FilePath, text::shortened};
use serde_json::{Map, Value};

/// How many characters lists show of a text.
const SHOWN: usize = 100;
/// The most entries of a list of texts, and the longest of them in characters.
const MAX_TEXTS: usize = 100;
const MAX_ENTRY: usize = 300;

/// A file as the table reads it.
#[derive(Clone, Debug, PartialEq)]
pub struct Entity {
    /// Its kind.
    pub kind: EntityKind,
    /// Its fields in the order of the table, then keys that the table does not have.
    pub fields: Map<String, Value>,
    /// The faults of the file.
    pub faults: Vec<String>,
}

impl Entity {
    /// Reads the text of a file. `name` is its title when it has none.
    pub fn read(kind: EntityKind, text: &str, name: &str) -> Self {
        let parts = front_matter::read(text);
        let (mut keys, mut fields, mut faults) =
            (parts.keys, Map::new(), Vec::from_iter(parts.fault.map(|fault| fault.message)));
        for field in table::fields(kind) {
            let value = match field.kept {
                FieldHome::Body => Some(Value::from(parts.body.trim())).filter(|body| body.as_str() != Some("")),
                FieldHome::Key | FieldHome::File => keys.shift_remove(field.name),
            };
            let Some(value) = value.filter(|value| !value.is_null()) else { continue };
            if let Err(error) = check(field, &value) {
                faults.push(error.message);
            }
            fields.insert(field.name.to_owned(), value);
        }
        if fields.get(kind.title()).and_then(Value::as_str).is_none() {
            fields.insert(kind.title().to_owned(), name.into());
        }
        fields.extend(keys);
        Self { kind, fields, faults }
    }

    /// The text of a new file.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` about a field that is missing, unknown, or not as the table says.
    pub fn create(kind: EntityKind, given: &Map<String, Value>) -> Result<String, Error> {
        for (name, value) in given {
            let field =
                table::fields(kind).iter().find(|field| field.name == name).ok_or_else(|| unknown(kind, name))?;
            check(field, value)?;
        }
        let is_empty = |field: &Field| given.get(field.name).is_none_or(|value| value.as_str() == Some(""));
        if let Some(missing) = table::fields(kind).iter().find(|field| field.required && is_empty(field)) {
            let error = Error::invalid(missing.name, format!("a {} needs its {}", kind.words(), missing.name));
            return Err(error.hint("give it, too"));
        }
        let mut keys = Map::new();
        for field in table::fields(kind).iter().filter(|field| field.kept == FieldHome::Key) {
            match (given.get(field.name), field.of) {
                (Some(value), _) => drop(keys.insert(field.name.to_owned(), value.clone())),
                // The first word is the state of something new.
                (None, Type::Choice([first, ..])) if field.name == "status" => {
                    keys.insert(field.name.to_owned(), (*first).into());
                }
                (None, _) => {}
            }
        }
        let text =
            front_matter::render(&keys, given.get(table::body(kind)).and_then(Value::as_str).unwrap_or_default());
        fits(&text)?;
        Ok(text)
    }

    /// The text of a file with these changes: an empty text takes a field out.
    ///
    /// # Errors
    /// `FORBIDDEN` about a field that no update changes; `INVALID_ARGUMENT` about one that is unknown, required and empty, or not as the table
    /// says; `UNPROCESSABLE` when the front matter of the file cannot be read, or cannot be changed without a loss.
    pub fn update(kind: EntityKind, text: &str, changes: &Map<String, Value>) -> Result<String, Error> {
        Self::check_update(kind, changes)?;
        Self::put(text, kind, changes)
    }

    /// The text of a file that is to be changed.
    ///
    /// # Errors
    /// `UNPROCESSABLE` for a file that is no UTF-8: a change of what can be read of it would lose the rest.
    pub fn text_of(bytes: &[u8]) -> Result<&str, Error> {
        std::str::from_utf8(bytes).map_err(|_| {
            Error::new(Code::Unprocessable, "the file is no text in UTF-8, and a change would lose characters of it")
                .hint("write it again in UTF-8 first")
        })
    }

    /// As [`Entity::update`], with the fields that identify it elsewhere, too.
    ///
    /// # Errors
    /// As [`Entity::update`], but `FORBIDDEN`.
    pub fn put(text: &str, kind: EntityKind, changes: &Map<String, Value>) -> Result<String, Error> {
        if let Some(fault) = front_matter::read(text).fault {
            return Err(unreadable(fault));
        }
        let (mut keys, mut body) = (Map::new(), None);
        for (name, value) in changes {
            let field =
                table::fields(kind).iter().find(|field| field.name == name).ok_or_else(|| unknown(kind, name))?;
            let empty = value.as_str() == Some("");
            if empty && field.required {
                let error = Error::invalid(name, format!("a {} needs its {name}", kind.words()));
                return Err(error.hint("give another one, or leave it out: it stays as it is then"));
            }
            if !empty {
                check(field, value)?;
            }
            match field.kept {
                FieldHome::Body => body = Some(value.as_str().unwrap_or_default()),
                FieldHome::Key | FieldHome::File if empty => drop(keys.insert(name.clone(), Value::Null)),
                FieldHome::Key | FieldHome::File => drop(keys.insert(name.clone(), value.clone())),
            }
        }
        let text = front_matter::edit(text, &keys, body).map_err(unreadable)?;
        fits(&text)?;
        Ok(text)
    }

    /// The whitelist of updates (spec 003 §7).
    fn check_update(kind: EntityKind, changes: &Map<String, Value>) -> Result<(), Error> {
        for name in changes.keys() {
            match table::field(kind, name) {
                Some(field) if field.updatable => {}
                Some(_) => {
                    let message = format!("the {name} of a {} is not changed by an update", kind.words());
                    return Err(Error::new(Code::Forbidden, message)
                        .detail("field", name.as_str())
                        .hint(choices(kind)));
                }
                None => return Err(unknown(kind, name)),
            }
        }
        Ok(())
    }

    /// A field that is a text; none for one that is not there, is empty, or is no text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.fields.get(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty())
    }

    /// Its name or title.
    pub fn title(&self) -> &str {
        self.text(self.kind.title()).unwrap_or_default()
    }

    /// As lists show it: the fields that are listed, with texts cut to 100 characters, and the beginning of the body of something that only
    /// has a body.
    pub fn row(&self, path: &FilePath) -> Map<String, Value> {
        let mut row = Map::from_iter([("path".to_owned(), path.as_str().into())]);
        for field in table::fields(self.kind).iter().filter(|field| field.listed) {
            if let Some(value) = self.fields.get(field.name) {
                let value = value.as_str().map_or_else(|| value.clone(), |text| preview(text, SHOWN).into());
                row.insert(field.name.to_owned(), value);
            }
        }
        if !table::fields(self.kind).iter().any(|field| field.listed && field.name == "description")
            && let Some(body) = self.text(table::body(self.kind))
        {
            row.insert("preview".to_owned(), preview(body, SHOWN).into());
        }
        row
    }

    /// Whether all of these words, in lower case, are in the texts of its fields.
    pub fn has_words(&self, words: &[String]) -> bool {
        let mut all = String::new();
        for value in self.fields.values() {
            match value {
                Value::String(text) => all.push_str(text),
                Value::Array(texts) => all.extend(texts.iter().filter_map(Value::as_str).flat_map(|text| [text, " "])),
                _ => {}
            }
            all.push('\n');
        }
        let all = all.to_lowercase();
        words.iter().all(|word| all.contains(word.as_str()))
    }

    /// The same without what lists neither show nor filter by: a text is cut, so that many can be kept in memory.
    #[must_use]
    pub fn abbreviated(mut self, characters: usize) -> Self {
        for value in self.fields.values_mut() {
            if let Value::String(text) = value
                && text.len() > characters
            {
                *text = text.chars().take(characters).collect();
            }
        }
        self
    }
}

/// The beginning of a text, on one line.
pub fn preview(text: &str, characters: usize) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > characters * 4 {
            break;
        }
    }
    shortened(&line, characters)
}

fn unreadable(fault: FrontMatterFault) -> Error {
    Error::new(Code::Unprocessable, fault.message).hint("read the file and correct it with edit first")
}

fn fits(text: &str) -> Result<(), Error> {
    match front_matter::read(text).fault {
        None => Ok(()),
        Some(fault) => {
            Err(Error::new(Code::PayloadTooLarge, fault.message).hint("shorten its texts, or write a note beside it"))
        }
    }
}

fn unknown(kind: EntityKind, name: &str) -> Error {
    let shown: String = name.chars().take(64).collect();
    Error::invalid(&shown, format!("a {} has no field {shown:?}", kind.words())).hint(choices(kind))
}

fn choices(kind: EntityKind) -> String {
    let names: Vec<&str> = table::updatable(kind).map(|field| field.name).collect();
    format!("the fields that an update changes are: {}", names.join(", "))
}

/// Whether a value is as the table says.
///
/// # Errors
/// `INVALID_ARGUMENT` about the field.
pub fn check(field: &Field, value: &Value) -> Result<(), Error> {
    let name = field.name;
    let wrong = |wanted: String| {
        let shown: String = value.to_string().chars().take(80).collect();
        Err(Error::invalid(name, format!("{name} is {shown}; it has to be {wanted}")))
    };
    match (field.of, value) {
        (Type::Text(longest), Value::String(text)) => match text.chars().count() > longest {
            true => wrong(format!("a text of at most {longest} characters")),
            false => Ok(()),
        },
        (Type::Text(longest), _) => wrong(format!("a text of at most {longest} characters")),
        (Type::Choice(words), value) => match value.as_str().is_some_and(|word| words.contains(&word)) {
            true => Ok(()),
            false => wrong(format!("one of {}", words.join(", "))),
        },
        (Type::Flag, Value::Bool(_)) => Ok(()),
        (Type::Flag, _) => wrong("true or false".into()),
        (Type::Number(least, most), value) => {
            match value.as_u64().is_some_and(|number| (least..=most).contains(&number)) {
                true => Ok(()),
                false => wrong(format!("a whole number from {least} to {most}")),
            }
        }
        (Type::Day, value) => match value.as_str().and_then(Moment::parse) {
            Some(Moment::Day(_)) => Ok(()),
            _ => wrong("a day such as 2026-12-01".into()),
        },
        (Type::Moment, value) => match value.as_str() {
            Some(text) => Moment::argument(name, text).map(drop),
            None => wrong("a day or a time, such as 2026-12-01T09:00".into()),
        },
        (Type::Zone, value) => match value.as_str() {
            Some(text) => clock::zone(name, text).map(drop),
            None => wrong("a time zone such as Europe/Berlin".into()),
        },
        (Type::Rule, value) => match value.as_str() {
            Some(text) => rule::check_rule(name, text).map(drop),
            None => wrong("a rule such as FREQ=WEEKLY;BYDAY=MO".into()),
        },
        (Type::Texts | Type::Moments | Type::Paths, Value::Array(entries)) => {
            if entries.len() > MAX_TEXTS {
                return wrong(format!("a list of at most {MAX_TEXTS}"));
            }
            let fits = |entry: &Value| match (field.of, entry.as_str()) {
                (_, None) => false,
                (Type::Moments, Some(text)) => Moment::parse(text).is_some(),
                (Type::Paths, Some(text)) => FilePath::parse(text).is_ok(),
                (_, Some(text)) => !text.is_empty() && text.chars().count() <= MAX_ENTRY,
            };
            match (entries.iter().all(fits), field.of) {
                (true, _) => Ok(()),
                (false, Type::Moments) => wrong("a list of days or times".into()),
                (false, Type::Paths) => wrong("a list of paths of files".into()),
                (false, _) => wrong(format!("a list of texts of 1 to {MAX_ENTRY} characters")),
            }
        }
        (Type::Texts | Type::Moments | Type::Paths, _) => wrong("a list".into()),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use serde_json::json;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn a_task_is_made_read_and_changed() {
        let given = map(
            json!({ "title": "Order paper", "description": "# Which\nA4.", "priority": "high", "tags": ["office"] }),
        );
        let text = Entity::create(EntityKind::Task, &given).unwrap();
        assert_eq!(
            text,
            "---\ntitle: Order paper\nstatus: backlog\npriority: high\ntags: [\"office\"]\n---\n\n# Which\nA4.\n"
        );
        let task = Entity::read(EntityKind::Task, &text, "order-paper");
        assert_eq!(
            (task.title(), task.text("description"), task.faults.len()),
            ("Order paper", Some("# Which\nA4."), 0)
        );
        let changed = Entity::update(
            EntityKind::Task,
            &text,
            &map(json!({ "status": "done", "priority": "", "description": "B" })),
        )
        .unwrap();
        assert_eq!(changed, "---\ntitle: Order paper\nstatus: done\ntags: [\"office\"]\n---\n\nB\n");
    }

    #[test]
    fn updates_change_the_fields_of_the_whitelist_and_no_others() {
        let text = "---\ntitle: Fair\nstart: 2026-12-01\nuid: a@b\n---\n";
        for (changes, code) in [
            (json!({ "uid": "x" }), Code::Forbidden),
            (json!({ "created_at": "2026-12-01" }), Code::Forbidden),
            (json!({ "owner": "x" }), Code::InvalidArgument),
            (json!({ "title": "" }), Code::InvalidArgument),
            (json!({ "start": "soon" }), Code::InvalidArgument),
        ] {
            let error = Entity::update(EntityKind::Event, text, &map(changes.clone())).unwrap_err();
            assert_eq!(error.code, code, "{changes}");
            assert!(error.details.contains_key("field"), "{changes}");
        }
        assert_eq!(Entity::text_of(b"---\ntitle: caf\xe9\n---\n").unwrap_err().code, Code::Unprocessable);
        let broken = Entity::update(EntityKind::Event, "---\na: [\n---\n", &map(json!({ "title": "x" }))).unwrap_err();
        assert_eq!(broken.code, Code::Unprocessable);
    }

    #[test]
    fn a_file_that_people_wrote_is_read_with_its_faults_and_nothing_is_lost() {
        let text = "---\nstatus: later\npriority: 3\nowner: Ada\ntags: x\n---\nText";
        let task = Entity::read(EntityKind::Task, text, "the-name");
        assert_eq!((task.title(), task.faults.len()), ("the-name", 3));
        assert_eq!(task.fields.get("owner"), Some(&json!("Ada")));
        let changed = Entity::update(EntityKind::Task, text, &map(json!({ "status": "done" }))).unwrap();
        assert_eq!(changed, "---\nstatus: done\npriority: 3\nowner: Ada\ntags: x\n---\nText");
        let plain = Entity::read(EntityKind::Note, "# Just text", "n");
        assert_eq!(plain.text("content"), Some("# Just text"));
    }

    #[test]
    fn each_type_takes_its_values_and_refuses_others() {
        let field = |name| table::field(EntityKind::Task, name).unwrap();
        let event = |name| table::field(EntityKind::Event, name).unwrap();
        for (field, right, wrong) in [
            (field("title"), json!("x"), json!("x".repeat(201))),
            (field("status"), json!("done"), json!("finished")),
            (field("duration_minutes"), json!(30), json!(0)),
            (field("due_date"), json!("2026-12-01"), json!("2026-12-01T09:00")),
            (field("scheduled_start"), json!("2026-12-01T09:00"), json!(5)),
            (field("time_zone"), json!("Asia/Tokyo"), json!("Tokyo")),
            (field("rrule"), json!("FREQ=DAILY"), json!("daily")),
            (field("tags"), json!(["a"]), json!([""])),
            (field("depends_on"), json!(["/a"]), json!(["a"])),
            (event("except"), json!(["2026-12-01"]), json!(["x"])),
            (event("busy"), json!(false), json!("no")),
        ] {
            assert!(check(field, &right).is_ok(), "{} {right}", field.name);
            assert!(check(field, &wrong).is_err(), "{} {wrong}", field.name);
        }
    }

    #[test]
    fn a_project_is_abbreviated_for_lists() {
        let long = "word ".repeat(200);
        let text =
            Entity::create(EntityKind::Project, &map(json!({ "name": "Atlas", "description": long, "context": long })))
                .unwrap();
        let row = Entity::read(EntityKind::Project, &text, "atlas")
            .row(&FilePath::parse("/projects/atlas/README.md").unwrap());
        let keys: Vec<&String> = row.keys().collect();
        assert_eq!(keys, ["path", "name", "status", "description"]);
        assert_eq!(row.get("description").and_then(Value::as_str).map(|text| text.chars().count()), Some(100));
    }
}
