//! Front matter of Markdown files: the YAML between a first line `---` and the next such line. It is read as a map, and changed key by key, so
//! that comments, order and keys of others stay, and so do the ends of lines and a byte order mark.

use serde_json::{Map, Value};
use std::{borrow::Cow, fmt::Write as _};

/// The longest front matter, in bytes. A file with a longer one counts as one without.
pub const MAX: usize = 64 * 1024;
/// The byte order mark of UTF-8, which some editors put first.
const MARK: &str = "\u{feff}";
/// From here on, not every whole number is a double.
const MOST_EXACT: f64 = 9_007_199_254_740_992.0;

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
    let text = text.strip_prefix(MARK).unwrap_or(text);
    let none = TextParts { body: text, ..TextParts::default() };
    let Some((first, rest)) = text.split_once('\n') else { return none };
    if first.trim_end() != "---" {
        return none;
    }
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

/// A new file. A key with the value null is left out.
pub fn render(keys: &Map<String, Value>, body: &str) -> String {
    let mut text = "---\n".to_owned();
    for (key, value) in keys {
        line(&mut text, key, value, "\n");
    }
    text.push_str("---\n");
    let body = body.trim();
    if !body.is_empty() {
        let _ = write!(text, "\n{body}\n");
    }
    text
}

/// The same file with these keys; one with the value null is taken out. `body` replaces the text when there is one. A front matter may become longer
/// than [`MAX`] by it, which is for the caller to refuse.
///
/// # Errors
/// The fault of a front matter that cannot be read, or cannot be changed without a loss.
pub fn edit(text: &str, changes: &Map<String, Value>, body: Option<&str>) -> Result<String, FrontMatterFault> {
    let parts = read(text);
    if let Some(fault) = parts.fault {
        return Err(fault);
    }
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
    let plain = |text: &str| text.trim().replace("\r\n", "\n");
    let mark = if text.starts_with(MARK) { MARK } else { "" };
    let end = if text.split_once('\n').is_some_and(|(first, _)| first.ends_with('\r')) { "\r\n" } else { "\n" };
    let body = match body.map(plain).filter(|body| *body != plain(parts.body)) {
        None => parts.body.to_owned(),
        Some(body) if body.is_empty() => body,
        Some(body) => format!("{end}{}{end}", body.replace('\n', end)),
    };
    if changes.is_empty() && body == parts.body {
        return Ok(text.to_owned());
    }
    let yaml = parts.yaml.unwrap_or_default();
    let whole = |lines: String| format!("{mark}---{end}{lines}---{end}{body}");
    // Lines are found by their look; YAML that looks otherwise is written anew.
    let changed = lines(yaml, &changes, end);
    let is_long = changed.len() > MAX;
    let edited = whole(changed);
    if is_long || read(&edited).keys == wanted {
        return Ok(edited);
    }
    let anew = whole(lines_anew(yaml, &wanted, end));
    if read(&anew).keys == wanted && wanted.values().all(is_exact) {
        return Ok(anew);
    }
    let message = "the front matter cannot be changed key by key: it is YAML that would lose something";
    Err(FrontMatterFault { line: 1, message: message.to_owned() })
}

/// The lines of a front matter with these changes.
fn lines(yaml: &str, changes: &Map<String, Value>, end: &str) -> String {
    let (mut text, mut left, mut skipping) = (String::new(), changes.clone(), false);
    for old in yaml.split_inclusive('\n') {
        if let Some(key) = key_of(old) {
            skipping = changes.contains_key(key);
            if let Some(value) = left.shift_remove(key) {
                line(&mut text, key, &value, end);
            }
        } else if old.starts_with('#') {
            skipping = false;
        }
        if !skipping {
            text.push_str(old);
        }
    }
    if !text.is_empty() && !text.ends_with('\n') {
        text.push_str(end);
    }
    for (key, value) in &left {
        line(&mut text, key, value, end);
    }
    text
}

/// The lines of a front matter with these keys, behind the comments that stood on lines of their own.
fn lines_anew(yaml: &str, keys: &Map<String, Value>, end: &str) -> String {
    let mut text = String::new();
    for comment in yaml.lines().map(str::trim).filter(|line| line.starts_with('#')) {
        let _ = write!(text, "{comment}{end}");
    }
    for (key, value) in keys {
        match value {
            Value::Null => drop(write!(text, "{}: null{end}", name(key))),
            value => line(&mut text, key, value, end),
        }
    }
    text
}

/// Whether a value has no number that lost digits when it was read.
fn is_exact(value: &Value) -> bool {
    match value {
        Value::Number(number) if number.is_f64() => number.as_f64().is_some_and(|number| number.abs() < MOST_EXACT),
        Value::Array(values) => values.iter().all(is_exact),
        Value::Object(fields) => fields.values().all(is_exact),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

/// The key that a line begins; none for a line that goes on with the one before.
fn key_of(line: &str) -> Option<&str> {
    if let Some(quote) = line.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        let (key, rest) = line.get(1..)?.split_once(quote)?;
        return (rest.trim_start().starts_with(':') && !key.contains('\\')).then_some(key);
    }
    let is_other = |c: char| c.is_whitespace() || matches!(c, '#' | '[' | ']' | '{' | '}' | ',');
    if line.starts_with(is_other) || line.starts_with("- ") {
        return None;
    }
    // A colon without a space behind it is a part of its word.
    let ends =
        |(at, _): &(usize, &str)| line.get(at + 1..).is_none_or(|rest| rest.trim_start() != rest || rest.is_empty());
    let (at, _) = line.match_indices(':').find(ends)?;
    line.get(..at).map(str::trim_end).filter(|key| !key.is_empty())
}

/// A key with its value; nothing for null. JSON is YAML, so values that are no plain words are written as JSON.
fn line(text: &mut String, key: &str, value: &Value, end: &str) {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '_' | '-' | '/' | '.');
    let key = name(key);
    let _ = match value {
        Value::Null => Ok(()),
        Value::String(word) if is_word(word) && word.chars().all(plain) => write!(text, "{key}: {word}{end}"),
        value => write!(text, "{key}: {}{end}", json(value)),
    };
}

/// A key as YAML has it: one that is no plain word as JSON.
fn name(key: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let is_plain = key.starts_with(char::is_alphabetic) && key.chars().all(plain) && !is_reserved(key);
    if is_plain { Cow::Borrowed(key) } else { Cow::Owned(json(&Value::from(key))) }
}

/// JSON that is YAML, too: YAML takes some characters by their numbers alone (YAML 1.2 §5.1).
pub fn json(value: &Value) -> String {
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
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
    begins && !text.ends_with(' ') && !is_reserved(text)
}

/// Whether a word is a value of another type, to some readers of YAML.
fn is_reserved(word: &str) -> bool {
    const OTHER: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    OTHER.contains(&word.to_ascii_lowercase().as_str())
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
    fn an_edit_keeps_comments_order_and_keys_of_others() {
        let text = "---\n# ours\ntitle: Order paper\nstatus: backlog   # for now\ntags:\n- a\n- b\n# theirs\nnext: {x: 1}\n---\n\n# Body\n";
        let changes = map(json!({ "status": "done", "tags": ["c"], "due_date": "2026-12-01", "next": null }));
        let edited = edit(text, &changes, None).unwrap();
        assert_eq!(
            edited,
            "---\n# ours\ntitle: Order paper\nstatus: done\ntags: [\"c\"]\n# theirs\ndue_date: \"2026-12-01\"\n---\n\n# Body\n"
        );
        assert_eq!(edit(&edited, &Map::new(), Some("New")).unwrap(), edited.replace("# Body", "New"));
    }

    #[test]
    fn yaml_of_another_look_is_written_anew_and_means_the_same() {
        for text in [
            "---\n{a: 1, status: x}\n---\nbody",
            "---\n\"status\": x\na: 1\n---\nbody",
            "---\nstatus: |\n  s: 1\na: 1\n---\nbody",
        ] {
            let edited = edit(text, &map(json!({ "status": "done" })), None).unwrap();
            let parts = read(&edited);
            assert_eq!(
                (parts.keys.get("a"), parts.keys.get("status")),
                (Some(&json!(1)), Some(&json!("done"))),
                "{edited}"
            );
            assert_eq!(parts.body, "body");
        }
        assert_eq!(read(&edit("plain", &map(json!({ "a": 1 })), None).unwrap()).keys, map(json!({ "a": 1 })));
    }

    #[test]
    fn an_edit_keeps_the_ends_of_lines_and_the_mark() {
        let text = "\u{feff}--- \r\n# ours\r\nstatus: x\r\ntags:\r\n- a\r\n---\r\n\r\nBody\r\nof two lines\r\n";
        let done = map(json!({ "status": "done", "next": "a" }));
        let edited = edit(text, &done, Some("Body\nof two lines")).unwrap();
        let expected =
            text.replace("--- \r\n", "---\r\n").replace("x\r\n", "done\r\n").replace("- a\r\n", "- a\r\nnext: a\r\n");
        assert_eq!(edited, expected);
        let other = edit(&edited, &Map::new(), Some("One\nand two")).unwrap();
        assert!(other.ends_with("---\r\n\r\nOne\r\nand two\r\n"), "{other:?}");
    }

    #[test]
    fn an_edit_keeps_lines_with_keys_of_every_look() {
        let of_others = "due date: soon # theirs\nbase: &b {z: 1}\n<<: *b\nurl:x: 1.10\n'it''s': 0x1F\n";
        let text = format!("---\n\"status\": x\n{of_others}---\nbody");
        let edited = edit(&text, &map(json!({ "status": "done" })), None).unwrap();
        assert_eq!(edited, format!("---\nstatus: done\n{of_others}---\nbody"));
    }

    #[test]
    fn front_matter_that_is_written_anew_keeps_comments_and_every_key() {
        let text = "---\n# theirs\n{\"a: b\": 1, \"b c\": null, \"y\": [1.5], status: x}\n---\nbody";
        let edited = edit(text, &map(json!({ "status": "done" })), None).unwrap();
        assert_eq!(edited, "---\n# theirs\n\"a: b\": 1\n\"b c\": null\n\"y\": [1.5]\nstatus: done\n---\nbody");
        let anchored = "---\nowner: &o Ada\n# theirs\nlead: *o\n---\n";
        let edited = edit(anchored, &map(json!({ "owner": "Bob" })), None).unwrap();
        assert_eq!(edited, "---\n# theirs\nowner: Bob\nlead: Ada\n---\n");
    }

    #[test]
    fn an_edit_to_a_front_matter_that_is_too_long_is_told_by_its_reader() {
        let long = edit("---\na: 1\n---\nx", &map(json!({ "b": "x".repeat(MAX) })), None).unwrap();
        assert!(read(&long).fault.is_some_and(|fault| fault.message.contains("longer")));
    }

    #[test]
    fn an_edit_that_would_lose_something_is_refused() {
        let done = map(json!({ "status": "done" }));
        for text in ["---\na: 1\na: 2\n---\nx", "---\na: [\n---\nx", "---\na: 1\n...\nb: 2\n---\nx", "---\na: 1\n"] {
            assert!(read(text).fault.is_some(), "{text}");
            edit(text, &done, None).unwrap_err();
        }
        assert!(!is_exact(&json!({ "a": [1.2345678901234568e22] })) && is_exact(&json!({ "a": [0.1, u64::MAX, -1] })));
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
