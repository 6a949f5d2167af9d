//! JSON Schemas that come from input: of flows, and of questions that agents ask.
//!
//! A schema of two kilobytes can ask for 2^34 applications of itself to one value, by references that fork. So its cost is
//! known before a value is checked, and a value that would take more than [`MOST_APPLICATIONS`] is refused unchecked. Its patterns share
//! [`MOST_COMPILED`] bytes.
//! Nothing here has I/O.

mod answers;
mod cost;
mod patterns;

pub use answers::check_answers;

use cost::CostModel;
use domain::text::beginning;
use jsonschema::ValidationOptions;
use serde_json::Value;

/// The most applications of a subschema to a part of a value that one check may take: some tenths of a second.
pub const MOST_APPLICATIONS: u64 = 2_000_000;
/// The longest schema, in bytes of JSON.
pub const MOST_BYTES: usize = 1024 * 1024;
/// The longest error, in bytes: an error has the part of the value that does not fit in it.
const LONGEST_ERROR: usize = 2 * 1024;
/// The most bytes of the patterns of a schema together, once they are compiled.
pub const MOST_COMPILED: usize = 8 * 1024 * 1024;

/// A compiled JSON Schema. References lead to places in itself only; nothing is fetched.
#[derive(Debug)]
pub struct Schema {
    validator: jsonschema::Validator,
    cost: CostModel,
}

/// A value that is no JSON Schema, or one that takes too much to check.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SchemaError {
    /// Its place in the schema, as a JSON pointer.
    pub pointer: String,
    /// The fault, in words.
    pub message: String,
}

impl Schema {
    /// Compiles a schema of draft 2020-12.
    ///
    /// # Errors
    /// It is no schema; or it is too large, too deep, or refers to itself at the same place of a value; or its patterns are too large.
    pub fn compile(source: &Value) -> Result<Self, SchemaError> {
        Self::compile_within(source, MOST_COMPILED)
    }

    /// The same where its patterns have so many bytes, once they are compiled: for schemas of which there are many.
    ///
    /// # Errors
    /// As of [`Schema::compile`].
    pub fn compile_within(source: &Value, most: usize) -> Result<Self, SchemaError> {
        Self::build(source, jsonschema::draft202012::options(), most)
    }

    /// Compiles a schema of the draft that its `$schema` names; of 2020-12 without one.
    ///
    /// # Errors
    /// As of [`Schema::compile`].
    pub fn compile_any_draft(source: &Value) -> Result<Self, SchemaError> {
        Self::build(source, jsonschema::options(), MOST_COMPILED)
    }

    fn build(source: &Value, options: ValidationOptions<'_>, most: usize) -> Result<Self, SchemaError> {
        if domain::json_length(source) > MOST_BYTES {
            return Err(SchemaError {
                pointer: String::new(),
                message: format!("the schema is longer than {MOST_BYTES} bytes"),
            });
        }
        let cost = CostModel::of(source)?;
        let share = patterns::share(source, most)?;
        let options = options.with_pattern_options(patterns::options(share));
        let validator = options.build(source).map_err(|error| {
            let told = format!("this is no JSON Schema: {error}");
            let mut message = beginning(&told, LONGEST_ERROR);
            if told.ends_with("\"regex\"") {
                let most = format!("{share} bytes that a pattern may have here once it is compiled");
                message = format!("{message}, or takes more than the {most}");
            }
            SchemaError { pointer: error.instance_path().to_string(), message }
        })?;
        Ok(Self { validator, cost })
    }

    /// Whether the value fits.
    pub fn is_valid(&self, value: &Value) -> bool {
        self.cost.fits_budget(value, MOST_APPLICATIONS).is_ok() && self.validator.is_valid(value)
    }

    /// Checks that a validation of the value would not take too much work. It makes no validation.
    ///
    /// # Errors
    /// It would take more than [`MOST_APPLICATIONS`].
    pub fn affordable(&self, value: &Value) -> Result<(), SchemaError> {
        let fits = self.cost.fits_budget(value, MOST_APPLICATIONS);
        fits.map_err(|too_much| SchemaError { pointer: String::new(), message: too_much.to_string() })
    }

    /// The validator behind it, for errors that name fields. Ask [`Schema::affordable`] first.
    pub fn validator(&self) -> &jsonschema::Validator {
        &self.validator
    }

    /// The first errors of a value, at most `most` of them, each with its path and of at most two kilobytes; empty when it fits.
    pub fn errors(&self, value: &Value, most: usize) -> Vec<String> {
        if let Err(too_much) = self.cost.fits_budget(value, MOST_APPLICATIONS) {
            return vec![too_much.to_string()];
        }
        let errors = self.validator.iter_errors(value).take(most);
        errors
            .map(|error| match error.instance_path().to_string() {
                root if root.is_empty() => error.to_string(),
                path => format!("{path}: {error}"),
            })
            .map(|error| beginning(&error, LONGEST_ERROR))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    /// A schema whose definition `i` applies definition `i + 1` twice, as `fork` combines them.
    fn forks(levels: usize, fork: impl Fn(Value) -> Value) -> Value {
        let mut definitions: serde_json::Map<String, Value> = (0..levels)
            .map(|level| (format!("a{level}"), fork(json!({ "$ref": format!("#/$defs/a{}", level + 1) }))))
            .collect();
        definitions.insert(format!("a{levels}"), json!({ "type": ["string", "array", "object"] }));
        json!({ "$defs": definitions, "$ref": "#/$defs/a0" })
    }

    #[test]
    fn a_schema_that_multiplies_itself_checks_nothing() {
        let ways: [fn(Value) -> Value; 3] = [
            |next| json!({ "allOf": [next, next] }),
            |next| json!({ "anyOf": [next, { "not": next }] }),
            |next| json!({ "if": next, "then": next, "else": next }),
        ];
        for way in ways {
            let schema = Schema::compile(&forks(34, way)).unwrap();
            assert!(!schema.is_valid(&json!("x")));
            let errors = schema.errors(&json!("x"), 10);
            assert!(errors.len() == 1 && errors[0].contains("2000000"), "{errors:?}");
        }
    }

    #[test]
    fn a_schema_that_looks_at_too_many_subschemas_is_refused_before_the_library_copies_them() {
        let way =
            |next: Value| json!({ "unevaluatedProperties": false, "allOf": [next], "dependentSchemas": { "a": next } });
        let error = Schema::compile(&forks(34, way)).unwrap_err();
        assert!(error.message.contains("unevaluated"), "{error}");
        assert!(Schema::compile(&forks(3, way)).is_ok());
    }

    #[test]
    fn a_schema_that_multiplies_with_the_depth_of_a_value_checks_shallow_ones() {
        let again = json!({ "items": { "$ref": "#" } });
        let schema = Schema::compile(&json!({ "allOf": [again, again] })).unwrap();
        let nested = |depth: usize| (0..depth).fold(json!(1), |inner, _| json!([inner]));
        assert_eq!(schema.errors(&nested(5), 10), [""; 0]);
        assert_eq!(schema.errors(&nested(40), 10).len(), 1);
    }

    #[test]
    fn the_patterns_of_a_schema_are_bounded_together() {
        let fields = |count: usize, pattern: &str| {
            let field = |number: usize| (format!("f{number}"), json!({ "pattern": format!("{pattern}{number}") }));
            json!({ "properties": (0..count).map(field).collect::<serde_json::Map<_, _>>() })
        };
        let fits = Schema::compile(&fields(1_000, "^[a-z]{1,16}-")).unwrap();
        assert!(fits.is_valid(&json!({ "f7": "abc-7" })) && !fits.is_valid(&json!({ "f7": "ABC-7" })));
        assert!(Schema::compile(&fields(1, r"\pL{20}")).is_ok());
        let check = |schema: Value, expected: &str| {
            let error = Schema::compile(&schema).unwrap_err();
            assert!(error.message.contains(expected), "{error}");
        };
        check(fields(1, r"\pL{5000}"), "8388608 bytes");
        check(fields(1_000, r"\pL{20}"), "8388 bytes");
        check(json!({ "patternProperties": { r"\pL{5000}": true } }), "8388608 bytes");
        // The engine compiles what is looked ahead for by itself.
        check(json!({ "pattern": r"(?=\pL{20})".repeat(400) }), "5239 bytes");
        check(json!({ "pattern": r"\cA".repeat(100_000) }), "too long to read");
        let within = Schema::compile_within(&fields(1, r"\pL{20}"), 64 * 1024).unwrap_err();
        assert!(within.message.contains("65536 bytes"), "{within}");
    }

    #[test]
    fn a_schema_that_refers_to_itself_at_the_same_place_is_refused_with_its_place() {
        let circles = [
            json!({ "$ref": "#" }),
            json!({ "$defs": { "a": { "$anchor": "a", "anyOf": [true, { "$ref": "#b" }] }, "b": { "$anchor": "b", "$ref": "#/$defs/a" } },
                    "properties": { "x": { "$ref": "#a" } } }),
        ];
        for circle in circles {
            let error = Schema::compile(&circle).unwrap_err();
            assert!(error.message.contains("refers to itself"), "{error}");
        }
    }

    #[test]
    fn schemas_of_the_field_are_checked_as_ever() {
        let tree = json!({
            "$id": "https://example.com/tree",
            "$dynamicAnchor": "node",
            "type": "object",
            "properties": {
                "data": true,
                "children": { "type": "array", "items": { "$dynamicRef": "#node" } },
                "odd name~/": { "$ref": "#/$defs/odd%20name~0~1" },
                "other": { "$ref": "other" },
                "meta": { "$ref": "https://json-schema.org/draft/2020-12/schema" },
            },
            "$defs": {
                "odd name~/": { "type": "integer" },
                "other": { "$id": "other", "$ref": "#/$defs/inner", "$defs": { "inner": { "type": "boolean" } } },
            },
        });
        let schema = Schema::compile(&tree).unwrap();
        let fits = json!({ "children": [{ "data": 1 }, { "children": [] }], "odd name~/": 1, "other": true, "meta": { "type": "string" } });
        assert_eq!(schema.errors(&fits, 10), [""; 0]);
        for wrong in [
            json!({ "children": [1] }),
            json!({ "odd name~/": "x" }),
            json!({ "other": 1 }),
            json!({ "meta": { "type": 7 } }),
        ] {
            assert!(!schema.is_valid(&wrong), "{wrong}");
        }
    }

    #[test]
    fn too_deep_is_refused_and_overflows_no_stack() {
        let chain: serde_json::Map<String, Value> = (0..5_000)
            .map(|level| (format!("a{level}"), json!({ "$ref": format!("#/$defs/a{}", level + 1) })))
            .collect();
        let error = Schema::compile(&json!({ "$defs": chain, "$ref": "#/$defs/a0" })).unwrap_err();
        assert!(error.message.contains("follow"), "{error}");
    }

    proptest! {
        /// If the cost model finds a validation affordable, it is made, and its result is the library's.
        #[test]
        fn the_budget_changes_no_answer(forks_at in 1_usize..12, value in prop_oneof![Just(json!("x")), Just(json!(1)), Just(json!([["x"]]))]) {
            let source = forks(forks_at, |next| json!({ "allOf": [next, next] }));
            let schema = Schema::compile(&source).unwrap();
            prop_assert_eq!(schema.is_valid(&value), jsonschema::is_valid(&source, &value));
        }
    }

    #[test]
    fn an_error_does_not_repeat_a_long_value() {
        let schema = Schema::compile(&json!({ "type": "string" })).unwrap();
        let errors = schema.errors(&json!(["x".repeat(100_000)]), 10);
        assert!(errors.len() == 1 && errors[0].len() < 3_000 && errors[0].ends_with('…'), "{errors:?}");
    }
}
