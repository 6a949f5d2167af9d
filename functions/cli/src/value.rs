//! Reads of the hub's JSON. Lists and events are shown field by field, so a newer hub's extra fields do no harm and an
//! older one's missing fields show as nothing.

use crate::output::one_line;
use serde_json::Value;

/// The person of a hub without accounts.
const PERSON: &str = "user:00000000-0000-0000-0000-000000000000";

/// The text at `key`; empty when there is none.
pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The model of the chat, by its view; empty where the hub's default answers. A coding agent asks a model of its own.
pub(crate) fn model(view: &Value) -> &str {
    match view.get("agent_options").filter(|options| options.is_object()) {
        Some(options) if text(options, "model_id").is_empty() => "of the coding agent",
        Some(options) => text(options, "model_id"),
        None => text(view, "model"),
    }
}

/// The author at `key`, as people read it: the person of a hub without accounts has no name.
pub(crate) fn author(value: &Value, key: &str) -> String {
    match text(value, key) {
        PERSON => "user".to_owned(),
        author => one_line(author, 200),
    }
}

/// Words of the hub, as people read them: the person of a hub without accounts has no id in them.
pub(crate) fn without_local_person(words: &str) -> String {
    words.replace(PERSON, "user")
}

/// The number at `key`; 0 when there is none.
pub(crate) fn number(value: &Value, key: &str) -> u64 {
    value.get(key).and_then(Value::as_u64).unwrap_or_default()
}

/// The list at `key`; empty when there is none.
pub(crate) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The JSON that a person typed.
///
/// # Errors
/// Why it is none, or the number in it that would change on its way.
pub(crate) fn read_json(text: &str) -> Result<Value, String> {
    let value = serde_json::from_str(text).map_err(|error| format!("JSON is needed: {error}"))?;
    match domain::exact_numbers::first_inexact(text) {
        None => Ok(value),
        Some(number) => Err(format!("the number {number} cannot be kept exactly: send it as a text, in quotes")),
    }
}

/// A value as people write it: text without quotes.
pub(crate) fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_coding_agent_has_a_model_of_its_own_and_never_the_default_of_the_hub() {
        for (view, shown) in [
            (json!({ "model": null }), ""),
            (json!({ "model": "openai/gpt" }), "openai/gpt"),
            (json!({ "model": null, "agent_options": { "session_id": "s" } }), "of the coding agent"),
            (json!({ "model": "openai/gpt", "agent_options": { "model_id": "opus" } }), "opus"),
        ] {
            assert_eq!(model(&view), shown);
        }
    }

    #[test]
    fn an_author_has_no_id_where_there_are_no_accounts() {
        for (by, shown) in [(PERSON, "user"), ("agent:assistant", "agent:assistant"), ("", "")] {
            assert_eq!(author(&json!({ "by": by }), "by"), shown);
        }
        assert_eq!(without_local_person(&format!("changed since by {PERSON}")), "changed since by user");
    }
}
