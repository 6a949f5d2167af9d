//! Requests of clients in their protocols.

use crate::parts;
use protocols::{a2a, acp, agui, ai_sdk, langgraph, mcp, openai};
use serde_json::{Map, Value};

/// A parser of requests: it is fed the body, and the fields of the body.
type Feed = fn(&Value, &Map<String, Value>);

/// The first line is a protocol, the rest a body. Another first line is a body for all of them.
pub(crate) fn requests(bytes: &[u8]) {
    let (name, body) = parts(bytes);
    let Ok(body) = serde_json::from_str::<Value>(&body) else { return };
    let fields = body.as_object().cloned().unwrap_or_default();
    let protocols: [(&str, Feed); 7] = [
        ("openai", |_, fields| _ = (openai::completion(fields), openai::response(fields))),
        ("ai_sdk", |_, fields| _ = ai_sdk::request(fields)),
        ("ag_ui", |_, fields| _ = agui::request(fields)),
        ("a2a", |body, _| _ = (a2a::request(body, Some("1.0")), a2a::request(body, None))),
        ("langgraph", of_langgraph),
        ("mcp", |body, _| _ = mcp::take(body)),
        ("acp", |body, _| _ = acp::take(body)),
    ];
    let is_one = protocols.iter().any(|(known, _)| *known == name);
    for (_, read) in protocols.iter().filter(|(known, _)| !is_one || *known == name) {
        read(&body, &fields);
    }
}

fn of_langgraph(body: &Value, fields: &Map<String, Value>) {
    let _ = langgraph::Run::read(fields);
    let _ = langgraph::words(body);
    let _ = langgraph::labels(fields);
    let _ = langgraph::resumed(body, "019bf537-f228-7cd3-aa1c-3da8af302e12");
    if let Some(namespace) =
        fields.get("namespace").and_then(|value| serde_json::from_value::<Vec<String>>(value.clone()).ok())
        && let Ok(path) = langgraph::item(&namespace, fields.get("key").and_then(Value::as_str).unwrap_or_default())
    {
        assert!(path.as_str().starts_with("/store/"), "{path}");
    }
}
