//! The differences of two JSON values, by path.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;

/// One place where two values differ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// A JSON pointer (RFC 6901); empty for the whole value.
    pub path: String,
    /// The value in the first; none when it is absent there.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "present")]
    pub a: Option<Value>,
    /// The value in the second.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "present")]
    pub b: Option<Value>,
}

/// A place that holds null is not a place that is not there.
mod present {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_json::Value;

    /// Writes a value that is there.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(value: &Option<Value>, serializer: S) -> Result<S::Ok, S::Error> {
        value.as_ref().unwrap_or(&Value::Null).serialize(serializer)
    }

    /// Reads a value that is there; null is one.
    ///
    /// # Errors
    /// Those of the deserializer.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
        Value::deserialize(deserializer).map(Some)
    }
}

/// The first `most` places where two values differ, in the order of their paths in `a`.
pub fn differences(a: &Value, b: &Value, most: usize) -> Vec<Difference> {
    let mut found = Vec::new();
    walk(a, b, &mut String::new(), most, &mut found);
    found
}

fn walk(a: &Value, b: &Value, path: &mut String, most: usize, found: &mut Vec<Difference>) {
    if found.len() >= most || a == b {
        return;
    }
    match (a, b) {
        (Value::Object(left), Value::Object(right)) => {
            let names: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
            for name in names {
                let part = name.replace('~', "~0").replace('/', "~1");
                step(left.get(name), right.get(name), &part, path, most, found);
            }
        }
        (Value::Array(left), Value::Array(right)) => {
            for index in 0..left.len().max(right.len()) {
                step(left.get(index), right.get(index), &index.to_string(), path, most, found);
            }
        }
        _ => found.push(Difference { path: path.clone(), a: Some(a.clone()), b: Some(b.clone()) }),
    }
}

fn step(a: Option<&Value>, b: Option<&Value>, part: &str, path: &mut String, most: usize, found: &mut Vec<Difference>) {
    let length = path.len();
    path.push('/');
    path.push_str(part);
    match (a, b) {
        (Some(a), Some(b)) => walk(a, b, path, most, found),
        (a, b) if found.len() < most => {
            found.push(Difference { path: path.clone(), a: a.cloned(), b: b.cloned() });
        }
        _ => {}
    }
    path.truncate(length);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn places_are_json_pointers() {
        let a = json!({ "same": 1, "a/b": [1, 2, { "x": null }], "gone": true });
        let b = json!({ "same": 1, "a/b": [1, 3, { "x": 1 }, 4], "new": null });
        let found = differences(&a, &b, 50);
        let paths: Vec<&str> = found.iter().map(|found| found.path.as_str()).collect();
        assert_eq!(paths, ["/a~1b/1", "/a~1b/2/x", "/a~1b/3", "/gone", "/new"]);
        assert_eq!((&found[1].a, &found[1].b), (&Some(Value::Null), &Some(json!(1))));
        assert_eq!((&found[4].a, &found[4].b), (&None, &Some(Value::Null)));
        for found in &found {
            let text = serde_json::to_string(found).unwrap_or_default();
            assert_eq!(serde_json::from_str::<Difference>(&text).ok().as_ref(), Some(found), "{text}");
        }
    }

    #[test]
    fn no_more_than_asked_for() {
        let (a, b): (Value, Value) = ((0..100).collect(), (1..101).collect());
        assert_eq!(differences(&a, &b, 7).len(), 7);
        assert_eq!(differences(&a, &a, 7), []);
        assert_eq!(differences(&json!(1), &json!("1"), 7).len(), 1);
    }
}
