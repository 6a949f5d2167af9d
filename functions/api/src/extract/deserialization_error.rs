//! Words of serde become the refusal of a body or of a query: its field, the words without names of our types, and a remedy.

use crate::error::excerpt;
use domain::{Error, text::shortened};

/// Stands before the possible values in serde's words.
const EXPECTED: &str = ", expected ";
/// serde_json's words for a value that can be no name of a variant.
pub(super) const NO_VARIANT: &str = "expected value";
/// How many characters of serde's words a refusal repeats: they quote the value, which may be as long as the body.
const SHOWN: usize = 300;
/// The same for the possible values.
const EXPECTED_SHOWN: usize = 1_000;

/// The refusal of data that does not fit its type. serde's words say which field: `limits.max_steps: invalid type: …`,
/// ``missing field `goal` ``, ``unknown field `gaol`, expected one of `goal`, `files` ``.
pub(super) fn deserialization_error(words: &str, whole: &str) -> Error {
    let words = words.split(" at line ").next().unwrap_or(words);
    let is_path = |path: &&str| !path.is_empty() && path.chars().all(|c| c.is_alphanumeric() || "_.[]-".contains(c));
    let (path, words) = match words.split_once(": ") {
        Some((path, rest)) if is_path(&path) => (Some(path), rest),
        _ => (None, words),
    };
    // A value may have quotes in it.
    let (said, expected) = words.rsplit_once(EXPECTED).unwrap_or((words, ""));
    let named = said.split('`').nth(1);
    let known: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
    if words.starts_with("missing field")
        && let Some(name) = named
    {
        return Error::invalid(&inside(path, name), format!("the field {name:?} is missing"));
    }
    if words.starts_with("duplicate field")
        && let Some(name) = named
    {
        let field = inside(path, name);
        return Error::invalid(&field, format!("{field} is given more than once")).hint("give it once");
    }
    if words.starts_with("unknown field")
        && let Some(name) = named
    {
        // The path of an unknown field ends in its own name.
        let above = path.map(|path| path.strip_suffix(name).unwrap_or(path).trim_end_matches('.'));
        let name = excerpt(name);
        return unknown_field(&inside(above.filter(|above| !above.is_empty()), &name), &name, &known);
    }
    let (words, remedy) = remedied(words, &known);
    let words = of_long_value(&words);
    let error = match path.map(|path| shortened(path, SHOWN)) {
        Some(path) => Error::invalid(&path, format!("{path}: {words}")),
        None => Error::invalid(whole, words),
    };
    match remedy {
        Some(remedy) => error.hint(remedy),
        None => error,
    }
}

/// The refusal of a name that is not one of those that are known.
pub(super) fn unknown_field(field: &str, name: &str, known: &[&str]) -> Error {
    let error = Error::invalid(field, format!("there is no field {name:?}"));
    let near = similar::get_close_matches(name, known, 1, 0.6);
    match (near.first(), known) {
        (Some(near), _) => error.hint(format!("did you mean {near}?")),
        (None, []) => error.hint("leave it out"),
        (None, known) => error.hint(format!("the fields are {}", known.join(", "))),
    }
}

/// The words with the beginning of a long value, and what was expected in its place.
fn of_long_value(words: &str) -> String {
    let (said, expected) = words.rfind(EXPECTED).map_or((words, ""), |at| words.split_at(at));
    format!("{}{}", shortened(said, SHOWN), shortened(expected, EXPECTED_SHOWN))
}

/// The words without names of our types, and what to do about it.
fn remedied(words: &str, known: &[&str]) -> (String, Option<String>) {
    if let Some((said, expected)) = words.rsplit_once("expected ")
        && let Some(ours) = in_words_of_json(expected)
    {
        return (format!("{said}expected {ours}"), None);
    }
    if words.starts_with("unknown variant") {
        return (words.to_owned(), Some(format!("one of {}", known.join(", "))));
    }
    if words == NO_VARIANT {
        let hint = "the API reference has the values that it may have";
        return ("it is of another type than it should be".to_owned(), Some(hint.to_owned()));
    }
    let of_object = |kind: &str| words.rsplit_once(&format!("expected {kind} "));
    if let Some((said, rest)) = OBJECTS.into_iter().find_map(of_object) {
        let rest = rest.trim_start_matches(|letter: char| letter.is_alphanumeric() || "_:".contains(letter));
        // It took a list for the values of the fields, and says how many there are.
        let rest = if rest.starts_with(" with ") && rest.contains(" element") { "" } else { rest };
        let hint = "give an object with the fields that the API reference names";
        return (format!("{said}expected an object{rest}"), Some(hint.to_owned()));
    }
    let is_of_a_time = words.contains("required for parsing a timestamp")
        || words.contains("failed to parse") && ["year", "date", "time"].iter().any(|word| words.contains(word));
    if is_of_a_time {
        return ("it is no time".to_owned(), Some("a time is written as 2026-11-01T12:00:00Z (RFC 3339)".to_owned()));
    }
    let remedy = if words.starts_with("the path ") || words.starts_with("a name in the path ") {
        Some("paths are absolute inside the workspace, such as /projects/app/main.rs".to_owned())
    } else if words.starts_with("UUID parsing failed") {
        let hint = "ids are UUIDs like 019bf537-f228-7cd3-aa1c-3da8af302e12";
        return ("it is no id".to_owned(), Some(hint.to_owned()));
    } else {
        None
    };
    (words.to_owned(), remedy)
}

/// Kinds of types of Rust that are objects in JSON. serde's words have the name of the type behind them.
const OBJECTS: [&str; 4] = ["struct variant", "struct", "internally tagged enum", "adjacently tagged enum"];

/// The words of JSON for a type that serde names as Rust does. Whole numbers have their bounds: one may be refused for its size alone.
fn in_words_of_json(expected: &str) -> Option<String> {
    let (least, most): (i128, i128) = match expected {
        "u8" => (0, u8::MAX.into()),
        "u16" => (0, u16::MAX.into()),
        "u32" => (0, u32::MAX.into()),
        "u64" | "usize" => (0, u64::MAX.into()),
        "i8" => (i8::MIN.into(), i8::MAX.into()),
        "i16" => (i16::MIN.into(), i16::MAX.into()),
        "i32" => (i32::MIN.into(), i32::MAX.into()),
        "i64" | "isize" => (i64::MIN.into(), i64::MAX.into()),
        "f32" | "f64" => return Some("a number".to_owned()),
        "a map" => return Some("an object".to_owned()),
        "a sequence" => return Some("an array".to_owned()),
        "string or map" => return Some("a string or an object".to_owned()),
        _ => return None,
    };
    Some(format!("a whole number from {least} to {most}"))
}

fn inside(path: Option<&str>, name: &str) -> String {
    path.map_or_else(|| name.to_owned(), |path| format!("{}.{name}", shortened(path, SHOWN)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_that_does_not_fit_is_refused_with_a_remedy_and_without_names_of_our_types() {
        let told = |words: &str| {
            let error = deserialization_error(words, "body");
            format!(
                "{} | {} | {}",
                error.details["field"].as_str().unwrap_or_default(),
                error.message,
                error.hint.unwrap_or_default()
            )
        };
        assert_eq!(
            told(
                "to.time: failed to parse four digit integer as year: invalid digit, expected 0-9 but got y at line 1 column 9"
            ),
            "to.time | to.time: it is no time | a time is written as 2026-11-01T12:00:00Z (RFC 3339)"
        );
        assert_eq!(
            told("to: invalid type: string \"yesterday\", expected struct RewindPoint"),
            "to | to: invalid type: string \"yesterday\", expected an object | give an object with the fields that the API reference names"
        );
        assert_eq!(
            told("limits.max_steps: invalid value: integer `-1`, expected u32 at line 3 column 1"),
            "limits.max_steps | limits.max_steps: invalid value: integer `-1`, expected a whole number from 0 to 4294967295 | "
        );
        assert_eq!(
            told("action: invalid length 0, expected struct variant Action::Chat with 6 elements"),
            "action | action: invalid length 0, expected an object | give an object with the fields that the API reference names"
        );
        // It is whole, and not below 0: only the bound says why it is refused.
        assert_eq!(
            told("priority: invalid value: integer `300`, expected i8"),
            "priority | priority: invalid value: integer `300`, expected a whole number from -128 to 127 | "
        );
        assert_eq!(
            told("action: invalid type: string \"chat\", expected internally tagged enum Action"),
            "action | action: invalid type: string \"chat\", expected an object | give an object with the fields that the API reference names"
        );
        assert_eq!(
            told("args: invalid type: string \"expected u8\", expected a map"),
            "args | args: invalid type: string \"expected u8\", expected an object | "
        );
        assert_eq!(
            told("scope: UUID parsing failed: invalid character: found `n` at 0"),
            "scope | scope: it is no id | ids are UUIDs like 019bf537-f228-7cd3-aa1c-3da8af302e12"
        );
        assert_eq!(
            told("kinds[0]: unknown variant `bogus`, expected one of `file`, `chat`"),
            "kinds[0] | kinds[0]: unknown variant `bogus`, expected one of `file`, `chat` | one of file, chat"
        );
    }

    #[test]
    fn a_refusal_repeats_the_beginning_of_a_long_value_alone() {
        let long = "ä`".repeat(1_000_000);
        for words in [
            format!("mode: unknown variant `{long}`, expected one of `chat`, `plan`"),
            format!("mode: invalid type: string \"{long}\", expected a map"),
            format!("mode: it is {long}, expected {long}"),
        ] {
            let error = deserialization_error(&words, "body");
            let told = error.message.len() + error.hint.as_deref().map_or(0, str::len);
            assert!(told < 4_000 && error.message.starts_with("mode: "), "{told} bytes");
        }
        let name = "x".repeat(1_000_000);
        for words in [
            format!("{name}: unknown field `{name}`, expected `a` or `b`"),
            format!("files.{name}: invalid type: integer `1`, expected a string"),
            format!("files.{name}: missing field `a`"),
        ] {
            let error = deserialization_error(&words, "body");
            let field = error.details["field"].as_str().map_or(usize::MAX, str::len);
            assert!(field < 400 && error.message.len() < 1_000, "{field} bytes");
        }
        let error = deserialization_error(&format!("unknown variant `{long}`, expected one of `chat`, `plan`"), "body");
        assert!(error.message.ends_with("…, expected one of `chat`, `plan`"), "{}", error.message);
        assert_eq!(error.hint.as_deref(), Some("one of chat, plan"));
    }

    #[test]
    fn serdes_words_become_a_field_and_a_hint() {
        let check = |words: &str, field: &str, hint: Option<&str>| {
            let error = deserialization_error(words, "body");
            assert_eq!(error.details["field"], field, "{words}");
            assert_eq!(error.hint.as_deref(), hint, "{words}");
        };
        check("duplicate field `goal` at line 1 column 22", "goal", Some("give it once"));
        check("limits: duplicate field `max_steps`", "limits.max_steps", Some("give it once"));
        check("mode: unknown variant `a`b`c`, expected `chat` or `plan`", "mode", Some("one of chat, plan"));
        check("missing field `goal` at line 1 column 2", "goal", None);
        let hint = "the API reference has the values that it may have";
        check("kinds[0]: expected value at line 1 column 9", "kinds[0]", Some(hint));
        check(
            "unknown field `gaol`, expected one of `goal`, `files` at line 1 column 7",
            "gaol",
            Some("did you mean goal?"),
        );
        check("gaol: unknown field `gaol`, expected `goal` or `files`", "gaol", Some("did you mean goal?"));
        check("limits.steps: unknown field `steps`, expected `a` or `b`", "limits.steps", Some("the fields are a, b"));
        check("x: unknown field `x`, there are no fields", "x", Some("leave it out"));
        check(
            "limits.max_steps: invalid type: string \"a\", expected u32 at line 3 column 1",
            "limits.max_steps",
            None,
        );
        check(
            "files[0]: UUID parsing failed: invalid length",
            "files[0]",
            Some("ids are UUIDs like 019bf537-f228-7cd3-aa1c-3da8af302e12"),
        );
        check(
            "path: the path \"a\" is not absolute: begin it with /, as in /projects/app/main.rs",
            "path",
            Some("paths are absolute inside the workspace, such as /projects/app/main.rs"),
        );
        // A day alone, and a time without its zone, are no moments.
        for words in [
            "failed to find time component, which is required for parsing a timestamp",
            "failed to find offset component, which is required for parsing a timestamp",
        ] {
            let hint = "a time is written as 2026-11-01T12:00:00Z (RFC 3339)";
            check(&format!("expires_at: {words}"), "expires_at", Some(hint));
        }
        check(
            "invalid type: sequence, expected struct NewChat",
            "body",
            Some("give an object with the fields that the API reference names"),
        );
    }
}
