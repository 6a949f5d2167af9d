//! The fields of a request that no agent is asked with: some have no effect, and others are refused by their names.

use crate::fields::object;
use domain::{Error, Labels};
use serde_json::{Map, Value};

/// Whether a value is of the type of its field.
type IsOfType = fn(&Value) -> bool;

/// Fields that no agent is asked with, each with its type: `metadata`, which [`labels`] reads, names of the caller's own, and hints for the provider's
/// machines. OpenAI's API does not promise an effect of `seed` either.
const LABELS: [(&str, IsOfType, &str); 8] = [
    ("user", Value::is_string, "a text"),
    ("safety_identifier", Value::is_string, "a text"),
    ("prompt_cache_key", Value::is_string, "a text"),
    ("prompt_cache_retention", Value::is_string, "a text"),
    ("metadata", Value::is_object, "an object"),
    ("service_tier", Value::is_string, "a text"),
    ("include", Value::is_array, "a list"),
    ("seed", Value::is_i64, "a whole number of 64 bits"),
];

/// Fields that have these values alone here, and the advice for any other. Some clients send defaults that ask for nothing.
const FIXED: &[(&str, &[&str], &str)] = &[
    ("n", &["1"], "ask once for each"),
    ("presence_penalty", &["0", "0.0"], "leave it out: no model is asked with it"),
    ("frequency_penalty", &["0", "0.0"], "leave it out: no model is asked with it"),
    ("logprobs", &["false"], "leave it out"),
    ("store", &["true"], "every response is a turn of a chat, which is kept until the chat is deleted"),
    ("truncation", &["\"disabled\"", "\"auto\""], "leave it out"),
    ("tool_choice", &["\"auto\"", "\"none\""], "the persona chooses"),
    ("parallel_tool_calls", &["true", "false"], "leave it out"),
    ("functions", &["[]"], "send them as tools"),
    ("verbosity", &["\"medium\""], "ask for the length in the message"),
    ("reasoning", &["{}", r#"{"effort":null,"summary":null}"#], "leave it out: the configuration of the server has it"),
    ("reasoning_effort", &[], "leave it out: the configuration of the server has it"),
    ("stop", &["[]"], "leave it out, and end the answer in your program"),
    ("logit_bias", &["{}"], "leave it out: no model is asked with it"),
    ("top_logprobs", &["0"], "leave it out"),
    ("modalities", &[r#"["text"]"#], "answers are texts"),
];

/// The labels that the metadata of a request are.
pub(super) fn labels(body: &Map<String, Value>) -> Result<Labels, Error> {
    let pairs = object(body, "metadata")?.into_iter().map(|(name, value)| match value {
        Value::String(text) => Ok((name, text)),
        _ => {
            let shown: String = name.chars().take(64).collect();
            Err(Error::invalid("metadata", format!("{shown} of metadata is no text")).hint("send its value as a text"))
        }
    });
    Labels::checked("metadata", pairs.collect::<Result<Vec<_>, _>>()?)
}

/// Refuses fields that cannot be honoured.
pub(super) fn check(body: &Map<String, Value>, known: &[&str]) -> Result<(), Error> {
    for (field, value) in body {
        if known.contains(&field.as_str()) || value.is_null() {
            continue;
        }
        if let Some((name, is_of_type, kind)) = LABELS.iter().find(|(name, ..)| name == field) {
            if is_of_type(value) {
                continue;
            }
            return Err(Error::invalid(name, format!("{name} is {kind}")));
        }
        let fixed = FIXED.iter().find(|(name, ..)| name == field);
        let value = value.to_string();
        if fixed.is_some_and(|(_, values, _)| values.contains(&value.as_str())) {
            continue;
        }
        let shown: String = field.chars().take(64).collect();
        let hint = fixed.map_or("leave it out", |(_, _, hint)| hint);
        return Err(Error::invalid(&shown, format!("{shown} cannot be honoured here")).hint(hint));
    }
    Ok(())
}
