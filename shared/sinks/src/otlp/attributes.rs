//! Attributes in OTLP's JSON form: whole numbers are texts there.

use serde_json::{Value, json};

/// Attributes, in the order in which they were given.
#[derive(Default)]
pub(super) struct Attributes(Vec<Value>);

impl Attributes {
    pub fn text(mut self, key: &str, value: &str) -> Self {
        self.0.push(json!({ "key": key, "value": { "stringValue": value } }));
        self
    }

    pub fn maybe(self, key: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.text(key, value),
            None => self,
        }
    }

    pub fn whole(mut self, key: &str, value: u64) -> Self {
        self.0.push(json!({ "key": key, "value": { "intValue": value.to_string() } }));
        self
    }

    pub fn number(mut self, key: &str, value: f64) -> Self {
        self.0.push(json!({ "key": key, "value": { "doubleValue": value } }));
        self
    }

    pub fn into_value(self) -> Value {
        Value::Array(self.0)
    }
}
