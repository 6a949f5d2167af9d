//! The format of the answer: `response_format` of a completion, `text` of a response.

use crate::fields::{given, object};
use domain::{AnswerFormat, Error};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Reads `response_format`.
pub(super) fn of_completion(body: &Map<String, Value>) -> Result<Option<AnswerFormat>, Error> {
    const FIELD: &str = "response_format";
    given(body, FIELD).map_or(Ok(None), |format| read(FIELD, format, &format["json_schema"]))
}

/// Reads `text`.
pub(super) fn of_response(body: &Map<String, Value>) -> Result<Option<AnswerFormat>, Error> {
    const FIELD: &str = "text";
    let text = object(body, FIELD)?;
    for (name, value) in &text {
        let asks_nothing = value.is_null() || name == "verbosity" && value == "medium";
        if name != "format" && !asks_nothing {
            let shown: String = name.chars().take(64).collect();
            return Err(Error::invalid(FIELD, format!("text.{shown} cannot be honoured here"))
                .hint("ask for the length in the message"));
        }
    }
    given(&text, "format").map_or(Ok(None), |format| read(FIELD, format, format))
}

/// Reads a format, whose schema has its name and its strictness beside it.
fn read(field: &str, format: &Value, named: &Value) -> Result<Option<AnswerFormat>, Error> {
    match format["type"].as_str() {
        Some("text") => Ok(None),
        Some("json_object") => {
            Ok(Some(AnswerFormat { name: None, schema: Arc::new(json!({ "type": "object" })), strict: false }))
        }
        Some("json_schema") => match (named["name"].as_str(), &named["schema"]) {
            (Some(name), Value::Object(schema)) => {
                let mut schema = schema.clone();
                // The model reads the schema alone.
                if let Some(description) = named["description"].as_str() {
                    schema.entry("description").or_insert_with(|| json!(description));
                }
                Ok(Some(AnswerFormat {
                    name: Some(name.chars().take(64).collect()),
                    schema: Arc::new(Value::Object(schema)),
                    strict: named["strict"] == true,
                }))
            }
            _ => Err(Error::invalid(field, "a json_schema has a name, and an object as its schema")),
        },
        _ => Err(Error::invalid(field, "the type of a format is text, json_object or json_schema")),
    }
}

/// A format as a response shows it.
pub(super) fn format_json(format: Option<&AnswerFormat>) -> Value {
    match format {
        None => json!({ "type": "text" }),
        Some(AnswerFormat { name: None, .. }) => json!({ "type": "json_object" }),
        Some(AnswerFormat { name: Some(name), schema, strict }) => {
            json!({ "type": "json_schema", "name": name, "schema": schema, "strict": strict })
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn both(format: Value) -> [Result<Option<AnswerFormat>, Error>; 2] {
        let mut nested = json!({ "response_format": { "type": format["type"] } });
        nested["response_format"]["json_schema"] = format.clone();
        let flat = json!({ "text": { "format": format, "verbosity": "medium" } });
        [of_completion(nested.as_object().unwrap()), of_response(flat.as_object().unwrap())]
    }

    #[test]
    fn a_format_is_read_in_both_forms_and_shown_as_it_came() {
        for format in [
            json!({ "type": "text" }),
            json!({ "type": "json_object" }),
            json!({ "type": "json_schema", "name": "n", "schema": { "type": "object" }, "strict": true }),
            json!({ "type": "json_schema", "name": "n", "schema": {}, "strict": false }),
        ] {
            for read in both(format.clone()) {
                assert_eq!(format_json(read.unwrap().as_ref()), format);
            }
        }
        for format in [
            json!({ "type": "grammar" }),
            json!({ "type": "json_schema", "schema": {} }),
            json!({ "type": "json_schema", "name": "n", "schema": true }),
            json!("json"),
        ] {
            let fields = both(format).map(|read| read.unwrap_err().details["field"].clone());
            assert_eq!(fields, ["response_format", "text"]);
        }
        for (schema, kept) in [(json!({}), "A bee."), (json!({ "description": "An insect." }), "An insect.")] {
            let format = json!({ "type": "json_schema", "name": "n", "description": "A bee.", "schema": schema });
            for read in both(format) {
                assert_eq!(read.unwrap().unwrap().schema["description"], kept);
            }
        }
        let wordy = json!({ "text": { "verbosity": "low" } });
        assert_eq!(of_response(wordy.as_object().unwrap()).unwrap_err().details["field"], "text");
    }
}
