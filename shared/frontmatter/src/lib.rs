//! Front matter of Markdown files: the YAML between a first line `---` and the next such line. It is read as a map, and changed key by key, so
//! that comments, order and keys of others stay.

use serde_json::{Map, Value};
use std::fmt::Write as _;

/// The longest front matter, in bytes. A file with a longer one counts as one without.
pub const MAX: usize = 64 * 1024;

/// A text and its front matter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextParts<'a> {
    /// The keys, in order.
    pub keys: Map<String, Value>,
    /// The lines between the two lines `---`; none for a text without.
    pub yaml: Option<&'a str>,
    /// The text after it.
    pub body: &'a str,
    /// Why the front matter cannot be read, if so.
    pub fault: Option<FrontMatterFault>,
}

/// A fault in the front matter of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrontMatterFault {
    /// The line of the file, from 1.
    pub line: u32,
    /// The fault, and its remedy.
    pub message: String,
}

impl FrontMatterFault {
    fn of_all(message: impl Into<String>) -> Option<Self> {
        Some(Self { line: 1, message: message.into() })
    }
}

/// Reads a text.
pub fn read(text: &str) -> TextParts<'_> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let none = TextParts { body: text, ..TextParts::default() };
    let Some(rest) = text.strip_prefix("---\n").or_else(|| text.strip_prefix("---\r\n")) else { return none };
    let mut end = 0;
    for line in rest.split_inclusive('\n') {
        if end > MAX {
            return TextParts {
                fault: FrontMatterFault::of_all(format!("the front matter is longer than {MAX} bytes")),
                ..none
            };
        }
        let after = end + line.len();
        if line.trim_end() == "---" {
            let (yaml, body) = (rest.get(..end).unwrap_or_default(), rest.get(after..).unwrap_or_default());
            return match serde_saphyr::from_str::<Option<Map<String, Value>>>(yaml) {
                Ok(keys) => TextParts { keys: keys.unwrap_or_default(), yaml: Some(yaml), body, fault: None },
                Err(error) => {
                    // Lines are counted from the one after the first ---.
                    let line = error.location().map_or(1, |at| u32::try_from(at.line()).unwrap_or(1)).saturating_add(1);
                    let message = format!("the front matter is not YAML: {}", error.without_snippet());
                    TextParts {
                        keys: Map::new(),
                        yaml: Some(yaml),
                        body,
                        fault: Some(FrontMatterFault { line, message }),
                    }
                }
            };
        }
        end = after;
    }
    TextParts { fault: FrontMatterFault::of_all("the front matter has no end: a line --- is missing"), ..none }
}

/// A new file.
pub fn render(keys: &Map<String, Value>, body: &str) -> String {
    let mut text = "---\n".to_owned();
    for (key, value) in keys {
        line(&mut text, key, value);
    }
    text.push_str("---\n");
    let body = body.trim();
    if !body.is_empty() {
        let _ = write!(text, "\n{body}\n");
    }
    text
}

/// The same file with these keys; one with the value null is taken out. `body` replaces the text when there is one.
pub fn edit(text: &str, changes: &Map<String, Value>, body: Option<&str>) -> String {
    let parts = read(text);
    let mut wanted = parts.keys.clone();
    // A value that stays keeps its line, and the comment on it.
    let is_new = |key: &str, value: &Value| parts.keys.get(key).unwrap_or(&Value::Null) != value;
    let changes: Map<String, Value> = changes
        .iter()
        .filter(|(key, value)| is_new(key, value))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    for (key, value) in &changes {
        match value {
            Value::Null => drop(wanted.shift_remove(key)),
            value => drop(wanted.insert(key.clone(), value.clone())),
        }
    }
    let body = body.filter(|body| body.trim() != parts.body.trim());
    let body = match body.map(str::trim) {
        None => parts.body.to_owned(),
        Some("") => String::new(),
        Some(body) => format!("\n{body}\n"),
    };
    if changes.is_empty() && body == parts.body {
        return text.to_owned();
    }
    let edited = format!("---\n{}---\n{body}", lines(parts.yaml.unwrap_or_default(), &changes));
    // Lines are found by their look; YAML that looks otherwise is written anew.
    if read(&edited).keys == wanted { edited } else { format!("{}{body}", render(&wanted, "")) }
}

/// The lines of a front matter with these changes.
fn lines(yaml: &str, changes: &Map<String, Value>) -> String {
    let (mut text, mut left, mut skipping) = (String::new(), changes.clone(), false);
    for old in yaml.split_inclusive('\n') {
        let key = key_of(old);
        if let Some(key) = &key {
            skipping = changes.contains_key(key);
            if let Some(value) = left.shift_remove(key) {
                line(&mut text, key, &value);
            }
        } else if old.starts_with('#') {
            skipping = false;
        }
        if !skipping {
            text.push_str(old);
        }
    }
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    for (key, value) in &left {
        line(&mut text, key, value);
    }
    text
}

/// The key that a line begins; none for a line that goes on with the one before.
fn key_of(line: &str) -> Option<String> {
    let (key, _) = line.split_once(':')?;
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    (!key.is_empty() && !key.starts_with('-') && key.chars().all(plain)).then(|| key.to_owned())
}

/// A key with its value; nothing for null. JSON is YAML, so values that are no plain words are written as JSON.
fn line(text: &mut String, key: &str, value: &Value) {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '_' | '-' | '/' | '.');
    let _ = match value {
        Value::Null => Ok(()),
        Value::String(word) if is_word(word) && word.chars().all(plain) => writeln!(text, "{key}: {word}"),
        value => writeln!(text, "{key}: {}", json(value)),
    };
}

/// JSON that is YAML, too: YAML takes some characters by their numbers alone (YAML 1.2 §5.1).
fn json(value: &Value) -> String {
    let is_printable =
        |c: char| !matches!(c, '\u{7f}'..='\u{84}' | '\u{86}'..='\u{9f}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}');
    let mut text = String::new();
    for character in value.to_string().chars() {
        match is_printable(character) {
            true => text.push(character),
            false => drop(write!(text, "\\u{:04x}", u32::from(character))),
        }
    }
    text
}

/// Whether a text begins as a word, and means nothing else in YAML.
fn is_word(text: &str) -> bool {
    const OTHER: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
    begins && !text.ends_with(' ') && !OTHER.contains(&text.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn an_edit_keeps_comments_order_and_keys_of_others() {
        let text = "---\n# ours\ntitle: Order paper\nstatus: backlog   # for now\ntags:\n- a\n- b\n# theirs\nnext: {x: 1}\n---\n\n# Body\n";
        let changes = map(json!({ "status": "done", "tags": ["c"], "due_date": "2026-12-01", "next": null }));
        let edited = edit(text, &changes, None);
        assert_eq!(
            edited,
            "---\n# ours\ntitle: Order paper\nstatus: done\ntags: [\"c\"]\n# theirs\ndue_date: \"2026-12-01\"\n---\n\n# Body\n"
        );
        assert_eq!(edit(&edited, &Map::new(), Some("New")), edited.replace("# Body", "New"));
    }

    #[test]
    fn yaml_of_another_look_is_written_anew_and_means_the_same() {
        for text in [
            "---\n{a: 1, status: x}\n---\nbody",
            "---\n\"status\": x\na: 1\n---\nbody",
            "---\nstatus: |\n  s: 1\na: 1\n---\nbody",
        ] {
            let edited = edit(text, &map(json!({ "status": "done" })), None);
            let parts = read(&edited);
            assert_eq!(
                (parts.keys.get("a"), parts.keys.get("status")),
                (Some(&json!(1)), Some(&json!("done"))),
                "{edited}"
            );
            assert_eq!(parts.body, "body");
        }
        assert_eq!(read(&edit("plain", &map(json!({ "a": 1 })), None)).keys, map(json!({ "a": 1 })));
    }

    #[test]
    fn every_text_comes_back_as_it_was() {
        let values = [
            "yes",
            "a: b",
            "- x",
            "multi\nline: 1\n---\n",
            " x",
            "é",
            "",
            "2026-12-01",
            "1",
            "#",
            "/projects/a b.md",
            "\u{7f}\"\\",
        ];
        for value in values {
            let keys = map(json!({ "x": value, "list": [value] }));
            let text = render(&keys, "Body");
            assert_eq!(read(&text).keys, keys, "{text}");
        }
    }

    #[test]
    fn front_matter_that_cannot_be_read_is_told_and_leaves_the_text() {
        for (text, word) in [
            ("---\na: 1\n", "no end"),
            ("---\na: [\n---\nx", "not YAML"),
            (&format!("---\na: {}\n---\n", "x".repeat(MAX)), "longer"),
        ] {
            assert!(read(text).fault.is_some_and(|fault| fault.message.contains(word)), "{word}");
        }
        assert_eq!(read("# Text").body, "# Text");
    }
}
