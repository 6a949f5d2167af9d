//! Arguments: one Rust type a tool gives both its schema and its reading, so that the two cannot disagree.

use domain::{Error, text::shortened};
use jsonschema::{ValidationError, Validator, error::ValidationErrorKind};
use schema::Schema;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The JSON Schema of a tool's arguments, as plain as providers want it: nothing to look up, one type per field, nothing
/// optional written as null.
pub(crate) fn schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = Value::from(settings.into_generator().into_root_schema_for::<T>());
    plain(&mut schema, true);
    // An object without properties still has to say so for some providers.
    if let Value::Object(object) = &mut schema {
        object.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    }
    schema
}

/// `at_schema` is false inside of `properties`, whose keys are names and not keywords.
fn plain(value: &mut Value, at_schema: bool) {
    match value {
        Value::Object(object) => {
            if at_schema {
                for noise in ["title", "format"] {
                    object.remove(noise);
                }
                if object.get("default") == Some(&Value::Null) {
                    object.remove("default");
                }
                if let Some(Value::Array(types)) = object.get_mut("type") {
                    types.retain(|name| name != "null");
                    if let [one] = types.as_slice() {
                        let one = one.clone();
                        object.insert("type".into(), one);
                    }
                }
                if let Some(Value::Array(any)) = object.get_mut("anyOf") {
                    any.retain(|schema| schema != &serde_json::json!({ "type": "null" }));
                    if any.len() == 1
                        && let Some(Value::Object(only)) = any.pop()
                    {
                        object.remove("anyOf");
                        for (key, value) in only {
                            object.entry(key).or_insert(value);
                        }
                    }
                }
            }
            for (key, value) in object.iter_mut() {
                plain(value, !(at_schema && key == "properties"));
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| plain(value, at_schema)),
        _ => {}
    }
}

/// Reads the text that a model wrote, or a person sent, and checks it.
pub(crate) fn check(validator: &Validator, schema: &Value, text: &str) -> Result<Value, Error> {
    let text = if text.trim().is_empty() { "{}" } else { text };
    let mut args: Value = serde_json::from_str(text).map_err(|error| {
        let refused = Error::invalid("args", format!("the arguments are not JSON: {error}"));
        // A model whose answer reached its longest length does not know that, and would write the same again.
        refused.hint(match error.is_eof() {
            true => format!("they break off: make the call again, and a long one in parts; {}", fields(schema)),
            false => fields(schema),
        })
    })?;
    // Some models fill in every optional field with null.
    if let Value::Object(object) = &mut args {
        object.retain(|_, value| !value.is_null());
    }
    let wrong = validator.iter_errors(&args).next().map(|error| explain(&error, schema));
    wrong.map_or(Ok(args), Err)
}

/// The same for a schema that a flow brings, whose JSON is `source`: a text whose validation would take too much work is refused.
pub(crate) fn arguments(schema: &Schema, source: &Value, text: &str) -> Result<Value, Error> {
    if let Ok(value) = serde_json::from_str(text) {
        schema.affordable(&value).map_err(|too_much| Error::invalid("args", too_much.to_string()))?;
    }
    check(schema.validator(), source, text)
}

/// How many characters of a name a refusal repeats: a model, or a person, may have sent any.
const SHOWN: usize = 64;
/// The same for the words about a value.
const WORDS_SHOWN: usize = 1_000;

/// The error for wrong arguments: it names the field, and the fields that exist.
fn explain(first: &ValidationError<'_>, schema: &Value) -> Error {
    let at = first.instance_path().to_string();
    let field = shortened(&at.trim_start_matches('/').replace('/', "."), WORDS_SHOWN);
    // It quotes the value.
    let words = shortened(&first.to_string(), WORDS_SHOWN);
    match first.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let unknown = shortened(unexpected.first().map(String::as_str).unwrap_or_default(), SHOWN);
            let place = if field.is_empty() { String::new() } else { format!(" in {field}") };
            let error = Error::invalid(&unknown, format!("there is no argument {unknown:?}{place}"));
            match similar::get_close_matches(unknown.as_str(), &names(schema), 1, 0.5).first() {
                Some(near) => error.hint(format!("did you mean {near:?}? {}", fields(schema))),
                None => error.hint(fields(schema)),
            }
        }
        ValidationErrorKind::Required { property } => {
            let missing = property.as_str().unwrap_or_default();
            let place = if field.is_empty() { String::new() } else { format!(" in {field}") };
            Error::invalid(missing, format!("the argument {missing:?} is missing{place}")).hint(fields(schema))
        }
        _ if field.is_empty() => {
            Error::invalid("args", format!("the arguments are wrong: {words}")).hint(fields(schema))
        }
        _ => Error::invalid(&field, format!("the argument {field:?} is wrong: {words}")),
    }
}

/// The checked arguments as their type.
pub(crate) fn read<T: DeserializeOwned>(args: Value) -> Result<T, Error> {
    serde_json::from_value(args).map_err(|error| Error::invalid("args", error.to_string()))
}

fn names(schema: &Value) -> Vec<&str> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flatten().map(|(name, _)| name.as_str()).collect()
}

fn fields(schema: &Value) -> String {
    let names = names(schema);
    if names.is_empty() { "it takes no arguments".into() } else { format!("the arguments are: {}", names.join(", ")) }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use serde_json::json;

    #[test]
    fn a_refusal_repeats_the_beginning_of_long_arguments_alone() {
        let source =
            json!({ "type": "object", "properties": { "a": { "type": "integer" } }, "additionalProperties": false });
        let schema = Schema::compile_any_draft(&source).unwrap();
        let long = "x".repeat(1_000_000);
        for (args, begins) in [
            (json!({ "a": long }), "the argument \"a\" is wrong: \"xxx"),
            (json!({ (long.as_str()): 1 }), "there is no argument \"xxx"),
            (json!(long), "the argument"),
        ] {
            let refused = check(schema.validator(), &source, &args.to_string()).unwrap_err();
            assert!(refused.message.starts_with(begins), "{}", shortened(&refused.message, 100));
            assert!(refused.message.len() < 2_000 && refused.details["field"].to_string().len() < 100);
        }
    }

    #[test]
    fn arguments_of_a_flows_tool_have_the_budget_of_all_schemas() {
        let mut definitions: Map<String, Value> = (0..34)
            .map(|level| json!({ "$ref": format!("#/$defs/a{}", level + 1) }))
            .enumerate()
            .map(|(level, next)| (format!("a{level}"), json!({ "allOf": [next, next] })))
            .collect();
        definitions.insert("a34".into(), json!({ "type": ["string", "array", "object"] }));
        let source = json!({ "$defs": definitions, "$ref": "#/$defs/a0" });
        let refused = arguments(&Schema::compile_any_draft(&source).unwrap(), &source, "{}").unwrap_err();
        assert!(refused.message.contains("2000000"), "{refused}");
        let source = json!({ "properties": { "a": { "type": "integer" } } });
        let schema = Schema::compile_any_draft(&source).unwrap();
        assert_eq!(arguments(&schema, &source, r#"{"a": 1}"#).unwrap(), json!({ "a": 1 }));
        assert_eq!(arguments(&schema, &source, r#"{"a": "x"}"#).unwrap_err().code, domain::Code::InvalidArgument);
    }
}
