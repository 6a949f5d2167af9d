//! Attributes in OTLP's JSON form: whole numbers are texts there.

use serde_json::{Value, json};

/// A provider as the conventions call it, where they have a name of their own for it.
pub(super) fn provider_name(provider: &str) -> &str {
    match provider {
        "bedrock" => "aws.bedrock",
        "openai-responses" => "openai",
        "gemini" => "gcp.gemini",
        "mistral" => "mistral_ai",
        "xai" => "x_ai",
        other => other,
    }
}

/// Attributes, in the order in which they were given.
#[derive(Clone, Default)]
pub(super) struct Attributes(Vec<Value>);

impl Attributes {
    pub fn text(mut self, key: &str, value: &str) -> Self {
        self.0.push(json!({ "key": key, "value": { "stringValue": value } }));
        self
    }

    /// The same on one that is borrowed.
    pub fn add_text(&mut self, key: &str, value: &str) {
        self.0.push(json!({ "key": key, "value": { "stringValue": value } }));
    }

    pub fn texts(mut self, key: &str, values: &[&str]) -> Self {
        let values: Vec<Value> = values.iter().map(|value| json!({ "stringValue": value })).collect();
        self.0.push(json!({ "key": key, "value": { "arrayValue": { "values": values } } }));
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
