//! From a line that a person typed to the JSON that a question's schema asks for.
//!
//! The hub checks the answer against the whole schema; this module only converts the type, and refuses plain mistakes at once, so that they
//! are asked again.

use crate::value::{read_json, shown};
use domain::event::Question;
use serde_json::{Number, Value};

/// The ready answers of a question: its buttons, else the values that its schema lists.
pub(crate) fn choices(question: &Question) -> Vec<Value> {
    if let Some(buttons) = question.buttons.as_ref().filter(|buttons| !buttons.is_empty()) {
        return buttons.clone();
    }
    let own = listed(&question.schema);
    if own.is_empty() { question.schema.get("items").map(listed).unwrap_or_default() } else { own }
}

/// The values that a schema lists.
fn listed(schema: &Value) -> Vec<Value> {
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return values.clone();
    }
    let variants = ["oneOf", "anyOf"].iter().find_map(|key| schema.get(key)?.as_array());
    let constants: Option<Vec<Value>> =
        variants.and_then(|variants| variants.iter().map(|variant| variant.get("const").cloned()).collect());
    constants.unwrap_or_default()
}

/// The expected input, in a few words.
pub(crate) fn expected(question: &Question) -> String {
    if !choices(question).is_empty() {
        let many = is_many(&question.schema);
        return if many { "numbers or words, with commas".into() } else { "a number or the words".into() };
    }
    match kinds(&question.schema).as_slice() {
        ["boolean", ..] => "y/n".into(),
        ["integer", ..] => "a whole number".into(),
        ["number", ..] => "a number".into(),
        ["array", ..] => "with commas".into(),
        ["object", ..] => "JSON".into(),
        _ => String::new(),
    }
}

/// The answer in `line`; else its fault, in words.
pub(crate) fn parse(question: &Question, line: &str) -> Result<Value, String> {
    let (schema, line, choices) = (&question.schema, line.trim(), choices(question));
    if line.is_empty() {
        return match schema.get("default") {
            Some(default) => Ok(default.clone()),
            None if kinds(schema).contains(&"null") => Ok(Value::Null),
            None => Err("an answer is needed".into()),
        };
    }
    // A button is a whole answer; the values that a list's items may have are parts of one.
    let whole = question.buttons.is_some() || !is_many(schema);
    if whole && let Some(choice) = chosen(&choices, line) {
        return Ok(choice);
    }
    coerce(schema, line)
}

/// The choice that is meant by its words, or by its place in the list as it is shown.
fn chosen(choices: &[Value], line: &str) -> Option<Value> {
    let same = |choice: &&Value| shown(choice) == line;
    let alike = |choice: &&Value| shown(choice).to_lowercase() == line.to_lowercase();
    let by_words = choices.iter().find(same).or_else(|| choices.iter().find(alike));
    let by_place = || line.parse::<usize>().ok().and_then(|place| choices.get(place.checked_sub(1)?));
    by_words.or_else(by_place).cloned()
}

/// Whether words of one's own can answer it: the schema lists no values, and wants more than yes or no.
pub(crate) fn is_open(question: &Question) -> bool {
    let schema = &question.schema;
    let is_listed = !listed(schema).is_empty() || !schema.get("items").map(listed).unwrap_or_default().is_empty();
    !is_listed && kinds(schema).first() != Some(&"boolean")
}

/// Whether a schema wants a list.
pub(crate) fn is_many(schema: &Value) -> bool {
    kinds(schema).first() == Some(&"array")
}

/// The types that a schema allows, those that are told apart most easily first.
fn kinds(schema: &Value) -> Vec<&str> {
    const ORDER: [&str; 7] = ["boolean", "integer", "number", "array", "object", "string", "null"];
    let named: Vec<&str> = match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    ORDER.into_iter().filter(|kind| named.contains(kind)).collect()
}

fn coerce(schema: &Value, line: &str) -> Result<Value, String> {
    let values = listed(schema);
    if !values.is_empty() {
        let words = || values.iter().map(shown).collect::<Vec<_>>().join(", ");
        return chosen(&values, line).ok_or_else(|| format!("one of these is needed: {}", words()));
    }
    let kinds = kinds(schema);
    if kinds.is_empty() {
        let variants = ["oneOf", "anyOf"].iter().find_map(|key| schema.get(key)?.as_array());
        return match variants {
            Some(variants) => {
                let fits = variants.iter().find_map(|variant| coerce(variant, line).ok());
                fits.ok_or_else(|| format!("this does not fit: {schema}"))
            }
            None => Ok(Value::String(line.to_owned())),
        };
    }
    let mut wrong = String::new();
    for kind in kinds {
        match as_kind(kind, schema, line) {
            Ok(value) => return Ok(value),
            Err(reason) => wrong = reason,
        }
    }
    Err(wrong)
}

fn as_kind(kind: &str, schema: &Value, line: &str) -> Result<Value, String> {
    match kind {
        "boolean" => match line.to_lowercase().as_str() {
            "y" | "yes" | "true" | "1" => Ok(Value::Bool(true)),
            "n" | "no" | "false" | "0" => Ok(Value::Bool(false)),
            _ => Err("yes or no is needed".into()),
        },
        "integer" => {
            let number = line.parse::<i64>().map(Number::from).or_else(|_| line.parse::<u64>().map(Number::from));
            number.map(Value::Number).map_err(|_| "a whole number is needed".into())
        }
        "number" => as_kind("integer", schema, line).or_else(|_| {
            let number = line.parse::<f64>().ok().and_then(Number::from_f64);
            let number = number.filter(|_| domain::exact_numbers::first_inexact(line).is_none());
            number.map(Value::Number).ok_or_else(|| "a number is needed".into())
        }),
        "array" if line.starts_with('[') => read_json(line),
        "array" => {
            let items = schema.get("items").unwrap_or(&Value::Null);
            let parts = line.split(',').map(str::trim).filter(|part| !part.is_empty());
            parts.map(|part| coerce(items, part)).collect::<Result<_, _>>().map(Value::Array)
        }
        "object" => read_json(line),
        "null" => {
            if line == "null" {
                Ok(Value::Null)
            } else {
                Err("null is needed".into())
            }
        }
        _ => Ok(Value::String(line.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn question(schema: Value, buttons: Option<Vec<Value>>) -> Question {
        Question { name: "q".into(), question: "?".into(), schema, buttons }
    }

    fn check(schema: Value, cases: &[(&str, Option<Value>)]) {
        for (line, expected) in cases {
            assert_eq!(parse(&question(schema.clone(), None), line).ok(), *expected, "{line:?} as {schema}");
        }
    }

    #[test]
    fn types() {
        check(json!({ "type": "string" }), &[(" 12 ", Some(json!("12"))), ("", None)]);
        check(json!({}), &[("y", Some(json!("y")))]);
        check(json!({ "type": "boolean" }), &[("Y", Some(json!(true))), ("no", Some(json!(false))), ("maybe", None)]);
        check(json!({ "type": "integer" }), &[("-3", Some(json!(-3))), ("3.5", None), ("x", None)]);
        check(
            json!({ "type": "number" }),
            &[("3", Some(json!(3))), ("3.5", Some(json!(3.5))), ("inf", None), ("NaN", None), ("9e999", None)],
        );
        check(json!({ "type": "number" }), &[("12345678901234567890123", None), ("1e22", Some(json!(1e22)))]);
        check(
            json!({ "type": "object" }),
            &[
                (r#"{"a":1}"#, Some(json!({ "a": 1 }))),
                ("a", None),
                (r#"{"a":0.1000000000000000055511151231257827}"#, None),
            ],
        );
        check(
            json!({ "type": ["string", "integer", "null"] }),
            &[("7", Some(json!(7))), ("x", Some(json!("x"))), ("", Some(Value::Null))],
        );
        check(json!({ "type": "integer", "default": 5 }), &[("", Some(json!(5)))]);
        check(
            json!({ "anyOf": [{ "type": "integer" }, { "type": "boolean" }] }),
            &[("7", Some(json!(7))), ("yes", Some(json!(true))), ("x", None)],
        );
    }

    #[test]
    fn lists() {
        check(
            json!({ "type": "array", "items": { "type": "integer" } }),
            &[("1, 2,3", Some(json!([1, 2, 3]))), ("[4]", Some(json!([4]))), ("1,x", None)],
        );
        let colours = json!({ "type": "array", "items": { "type": "string", "enum": ["red", "blue"] } });
        assert_eq!(choices(&question(colours.clone(), None)), [json!("red"), json!("blue")]);
        check(colours, &[("2,red", Some(json!(["blue", "red"]))), ("1", Some(json!(["red"]))), ("green", None)]);
    }

    #[test]
    fn listed_values_go_by_word_before_place() {
        check(
            json!({ "type": "string", "enum": ["SQLite", "Postgres"] }),
            &[("2", Some(json!("Postgres"))), ("sqlite", Some(json!("SQLite"))), ("3", None), ("0", None)],
        );
        check(json!({ "enum": [3, 1, 2] }), &[("3", Some(json!(3))), ("1", Some(json!(1)))]);
        check(json!({ "oneOf": [{ "const": "a" }, { "const": "b" }] }), &[("2", Some(json!("b"))), ("c", None)]);
    }

    #[test]
    fn buttons_are_offers_and_free_text_stays_possible() {
        let offers = question(json!({ "type": "string" }), Some(vec![json!("today"), json!("tomorrow")]));
        assert_eq!(parse(&offers, "2"), Ok(json!("tomorrow")));
        assert_eq!(parse(&offers, "next week"), Ok(json!("next week")));
        let yes_no = question(json!({ "type": "boolean" }), Some(vec![json!(true), json!(false)]));
        assert_eq!((parse(&yes_no, "2"), parse(&yes_no, "y")), (Ok(json!(false)), Ok(json!(true))));
    }
}
