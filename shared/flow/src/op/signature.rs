//! Signatures of registered functions for models, so that agents can call them as tools (spec 002 §5).

use domain::Error;
use serde_json::{Value, json};

/// The purpose of a function, and its arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct Signature {
    /// Its purpose, for models.
    pub description: String,
    /// The JSON Schema of its arguments: of an object, because that is all that models can call with.
    pub parameters: Value,
}

impl Signature {
    /// A signature.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when `parameters` is no JSON Schema of an object.
    pub fn new(description: impl Into<String>, parameters: Value) -> Result<Self, Error> {
        if parameters.get("type") != Some(&json!("object")) {
            return Err(Error::invalid(
                "parameters",
                "the arguments of a tool are an object: write `\"type\": \"object\"`",
            ));
        }
        jsonschema::draft202012::options()
            .build(&parameters)
            .map_err(|error| Error::invalid("parameters", format!("this is no JSON Schema: {error}")))?;
        Ok(Self { description: description.into(), parameters })
    }
}

/// The signature of a function that BuildScale comes with.
pub(super) fn builtin(name: &str) -> Option<Signature> {
    let list = |more: Value| {
        let mut properties = json!({ "list": { "type": "array", "items": {}, "description": "The list." } });
        let mut required = vec!["list"];
        if let (Value::Object(properties), Value::Object(more)) = (&mut properties, more) {
            required.extend(more.keys().filter(|key| *key == "size").map(|_| "size"));
            properties.extend(more);
        }
        json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
    };
    let text = || {
        json!({
            "type": "object",
            "properties": { "text": { "type": "string", "description": "The text." } },
            "required": ["text"],
            "additionalProperties": false,
        })
    };
    let (description, parameters) = match name {
        "json:keys" => (
            "Lists the names of the fields of the object that it is called with.",
            json!({ "type": "object", "properties": {} }),
        ),
        "json:merge" => ("Merges a list of objects into one; later fields replace earlier ones.", list(json!({}))),
        "json:parse" => ("Reads a text as JSON, also out of a fenced block.", text()),
        "json:text" => {
            ("Writes the object that it is called with as a JSON text.", json!({ "type": "object", "properties": {} }))
        }
        "list:chunk" => (
            "Cuts a list into lists of a size; the last one may be shorter.",
            list(json!({ "size": { "type": "integer", "minimum": 1, "description": "How long each is." } })),
        ),
        "list:flatten" => ("Puts the items of lists in a list into one list.", list(json!({}))),
        "list:repeat" => (
            "Makes a list of one value, repeated.",
            json!({
                "type": "object",
                "properties": {
                    "value": { "description": "The value to repeat." },
                    "count": { "type": "integer", "minimum": 0, "maximum": 100_000, "description": "How often." },
                },
                "required": ["value", "count"],
                "additionalProperties": false,
            }),
        ),
        "list:unique" => ("Removes duplicates from a list.", list(json!({}))),
        "merge:by_node" => ("Groups the outputs that arrived at a merge by their node.", list(json!({}))),
        "merge:outputs" => ("Lists the outputs that arrived at a merge.", list(json!({}))),
        "text:join" => (
            "Joins a list into one text.",
            list(
                json!({ "separator": { "type": "string", "description": "The text in between; a line break by default." } }),
            ),
        ),
        "text:lines" => ("Cuts a text into its lines.", text()),
        "text:words" => ("Cuts a text into its words.", text()),
        _ => return None,
    };
    Some(Signature { description: description.into(), parameters })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::op::Functions;

    #[test]
    fn s5_every_function_in_the_box_can_be_called_by_an_agent() {
        let functions = Functions::builtin();
        for name in functions.known() {
            let signature = functions.signature(name).unwrap_or_else(|| panic!("{name} has no signature"));
            Signature::new("", signature.parameters.clone()).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(signature.description.ends_with('.'), "{name}");
        }
    }

    #[test]
    fn s5_the_arguments_of_a_function_are_an_object_with_a_schema() {
        for parameters in [json!({ "type": "array" }), json!({ "type": "object", "required": 7 })] {
            assert_eq!(Signature::new("", parameters).unwrap_err().code, domain::Code::InvalidArgument);
        }
    }
}
