//! One text for one value: the keys of objects in order, so that equal values have equal bytes and equal hashes.

use domain::Sha256;
use serde_json::{Map, Value, json};

/// Values of up to this many bytes stand in a trace themselves; of longer ones only the hash does.
const SHOWN: usize = 4 * 1024;

/// The value with the keys of all its objects in the order of their bytes.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        Value::Object(fields) => {
            let mut names: Vec<&String> = fields.keys().collect();
            names.sort_unstable();
            let entry = |name: &String| (name.clone(), fields.get(name).map(sorted).unwrap_or_default());
            Value::Object(names.into_iter().map(entry).collect::<Map<_, _>>())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// The hash of a value.
pub fn hash(value: &Value) -> Sha256 {
    Sha256::of(sorted(value).to_string().as_bytes())
}

/// A value as a trace shows it: its hash, its length as JSON in bytes, and itself unless it is long.
pub fn trace_value(value: &Value) -> Value {
    let value = sorted(value);
    let text = value.to_string();
    let mut shown = json!({ "sha256": Sha256::of(text.as_bytes()), "bytes": text.len() });
    if text.len() <= SHOWN
        && let Value::Object(fields) = &mut shown
    {
        fields.insert("value".into(), value);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_keys_changes_nothing() {
        let one: Value = serde_json::from_str(r#"{"b":[{"y":1,"x":2}],"a":0.5}"#).unwrap_or_default();
        let two: Value = serde_json::from_str(r#"{"a":0.5,"b":[{"x":2,"y":1}]}"#).unwrap_or_default();
        assert_ne!(one.to_string(), two.to_string());
        assert_eq!(trace_value(&one).to_string(), trace_value(&two).to_string());
        assert_eq!(hash(&one), hash(&two));
        assert_ne!(hash(&one), hash(&json!({ "a": 0.5, "b": [] })));
    }

    #[test]
    fn long_values_are_told_by_their_hash() {
        let long = trace_value(&Value::String("x".repeat(SHOWN)));
        assert_eq!(long.get("value"), None);
        assert_eq!(long.get("bytes"), Some(&json!(SHOWN + 2)));
        assert_eq!(trace_value(&json!([1])).get("value"), Some(&json!([1])));
    }
}
