//! The table as JSON: schemas of the arguments of tools, and answers of `get_field_info`.

use crate::{
    EntityKind,
    table::{self, Field, FieldHome, Type},
};
use serde_json::{Map, Value, json};

/// The fields with which an entity is made, as properties of a JSON Schema, and the names of those that are required.
pub fn properties_of_new(kind: EntityKind) -> (Map<String, Value>, Vec<&'static str>) {
    let fields = || table::updatable(kind);
    let required = fields().filter(|field| field.required).map(|field| field.name).collect();
    (fields().map(|field| property(field, is_told(field))).collect(), required)
}

/// The fields that an update changes, as properties of a JSON Schema. An empty text takes a value away, so words of a choice are told and checked
/// later. Their meanings are those of the fields of a new entity, and in the answer of `get_field_info`: a request of a model does not repeat them.
pub fn properties_of_update(kind: EntityKind) -> Map<String, Value> {
    table::updatable(kind).map(|field| property(field, false)).collect()
}

/// Whether a field needs words beside its name and its type.
fn is_told(field: &Field) -> bool {
    match field.of {
        Type::Text(_) | Type::Moment | Type::Moments | Type::Zone | Type::Rule | Type::Paths => true,
        Type::Choice(_) | Type::Flag | Type::Number(..) | Type::Day | Type::Texts => false,
    }
}

fn property(field: &Field, is_told: bool) -> (String, Value) {
    let mut schema = match field.of {
        Type::Text(_) | Type::Day | Type::Moment | Type::Zone | Type::Rule => json!({ "type": "string" }),
        Type::Choice(words) => json!({ "type": "string", "enum": words.iter().chain(&[""]).collect::<Vec<_>>() }),
        Type::Flag => json!({ "type": "boolean" }),
        Type::Number(least, most) => json!({ "type": "integer", "minimum": least, "maximum": most }),
        Type::Moments | Type::Texts | Type::Paths => json!({ "type": "array", "items": { "type": "string" } }),
    };
    if is_told {
        schema["description"] = field.description.into();
    }
    (field.name.to_owned(), schema)
}

/// A field for those who ask.
pub fn info(field: &Field) -> Value {
    let name = match field.of {
        Type::Text(_) => "string",
        Type::Choice(_) => "enum",
        Type::Flag => "boolean",
        Type::Number(..) => "integer",
        Type::Day => "date",
        Type::Moment => "date_or_time",
        Type::Moments => "list of date_or_time",
        Type::Zone => "time_zone",
        Type::Rule => "rrule",
        Type::Texts => "list of string",
        Type::Paths => "list of path",
    };
    let mut info = json!({ "type": name });
    let mut add = |key: &str, value: Value| info[key] = value;
    match field.of {
        Type::Text(longest) => add("max_length", longest.into()),
        Type::Choice(words) => add("enum_values", words.into()),
        Type::Number(least, most) => {
            add("minimum", least.into());
            add("maximum", most.into());
        }
        _ => {}
    }
    add("description", field.description.into());
    add("required", field.required.into());
    add("updatable", field.updatable.into());
    add("listed", field.listed.into());
    if field.kept == FieldHome::Body {
        add("kept", "the text of the file".into());
    }
    info
}

/// All fields of a kind for those who ask, by name.
pub fn infos(kind: EntityKind) -> Map<String, Value> {
    table::all(kind).map(|field| (field.name.to_owned(), info(field))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answers_about_fields_are_those_of_the_specification() {
        let status = table::field(EntityKind::Project, "status").map(info);
        assert_eq!(
            status,
            Some(json!({
                "type": "enum", "enum_values": ["active", "paused", "completed", "archived"],
                "description": "Where the project is in its life.", "required": false, "updatable": true, "listed": true,
            }))
        );
        let name = infos(EntityKind::Project).get("name").cloned().unwrap_or_default();
        assert_eq!((&name["type"], &name["required"]), (&json!("string"), &json!(true)));
        assert_eq!(infos(EntityKind::Task)["created_at"]["updatable"], false);
    }
}
