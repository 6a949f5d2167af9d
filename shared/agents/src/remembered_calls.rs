//! The tool calls of an agent, as its updates told of them: a request for permission names a call, and people see all that is known of it. Only so
//! much is remembered; of a call that is forgotten people see what its request tells.

use serde_json::{Map, Value};
use std::collections::{BTreeMap, VecDeque};

/// The most calls.
const CALLS: usize = 64;
/// The most bytes of memory that they take together. An update has 16 MiB at the most, and each may add fields to the same call.
const BYTES: usize = 32 << 20;

/// The calls, the one that was told of last at the end.
#[derive(Debug, Default)]
pub(crate) struct RememberedCalls {
    calls: VecDeque<Call>,
    bytes: usize,
}

#[derive(Debug)]
struct Call {
    id: String,
    fields: Map<String, Value>,
    /// Of memory.
    bytes: usize,
}

impl RememberedCalls {
    /// Adds the fields of an update to its call.
    pub fn merge(&mut self, update: &Value) {
        let (Some(id), Some(fields)) = (update["toolCallId"].as_str(), update.as_object()) else { return };
        let position = self.calls.iter().position(|known| known.id == id);
        let mut merged = position.and_then(|at| self.calls.remove(at)).map_or_else(Map::new, |call| {
            self.bytes -= call.bytes;
            call.fields
        });
        let news = fields.iter().filter(|(name, value)| *name != "sessionUpdate" && !value.is_null());
        merged.extend(news.map(|(name, value)| (name.clone(), value.clone())));
        let bytes = id.len() + merged.iter().map(|(name, value)| name.len() + bytes_of(value)).sum::<usize>();
        self.bytes += bytes;
        self.calls.push_back(Call { id: id.to_owned(), fields: merged, bytes });
        while self.calls.len() > CALLS || self.bytes > BYTES {
            let Some(oldest) = self.calls.pop_front() else { return };
            self.bytes -= oldest.bytes;
        }
    }

    /// All that is known of a call.
    pub fn find(&self, id: &str) -> Option<Value> {
        self.calls.iter().find(|known| known.id == id).map(|call| Value::Object(call.fields.clone()))
    }
}

/// The memory of a value, about, in bytes.
fn bytes_of(value: &Value) -> usize {
    let inside = match value {
        Value::String(text) => text.len(),
        Value::Array(all) => all.iter().map(bytes_of).sum(),
        Value::Object(all) => all.iter().map(|(name, value)| name.len() + bytes_of(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    size_of::<Value>() + inside
}

/// The category of a call (spec 004 §5), by its kind, or by what it says that it does.
pub(crate) fn category(call: &Value) -> &'static str {
    let input = &call["rawInput"];
    let names: BTreeMap<&str, &'static str> = BTreeMap::from([
        ("execute", "command"),
        ("edit", "file"),
        ("delete", "file"),
        ("move", "file"),
        ("read", "file"),
        ("search", "file"),
        ("fetch", "network"),
    ]);
    let of_kind = call["kind"].as_str().and_then(|kind| names.get(kind)).copied();
    of_kind.unwrap_or_else(|| match input {
        _ if !input["command"].is_null() => "command",
        _ if !input["url"].is_null() => "network",
        _ if call["locations"][0]["path"].is_string() => "file",
        _ => "mcp",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_call_is_known_with_all_that_was_told_of_it() {
        let mut calls = RememberedCalls::default();
        calls.merge(&json!({ "sessionUpdate": "tool_call", "toolCallId": "a", "title": "make", "kind": "execute" }));
        calls
            .merge(&json!({ "sessionUpdate": "tool_call_update", "toolCallId": "a", "kind": null, "title": "make x" }));
        assert_eq!(calls.find("a"), Some(json!({ "toolCallId": "a", "title": "make x", "kind": "execute" })));
        (0..CALLS).for_each(|call| calls.merge(&json!({ "toolCallId": call.to_string() })));
        assert_eq!((calls.find("a"), calls.calls.len()), (None, CALLS));
    }

    #[test]
    fn calls_that_grow_without_an_end_are_forgotten() {
        let mut calls = RememberedCalls::default();
        let long = "x".repeat(BYTES / 8);
        for field in 0..100 {
            calls.merge(&json!({ "toolCallId": (field % 3).to_string(), format!("field{field}"): long }));
            let held: usize = calls.calls.iter().map(|call| call.bytes).sum();
            assert!(held == calls.bytes && held <= BYTES, "{held} {}", calls.bytes);
        }
        calls.merge(&json!({ "toolCallId": "last", "title": "x" }));
        assert_eq!(calls.find("last"), Some(json!({ "toolCallId": "last", "title": "x" })));
    }
}
