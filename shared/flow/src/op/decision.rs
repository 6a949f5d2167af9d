//! What a decision node's output selects (seed 002 §3.3; engine.md).

use serde_json::Value;

/// The label or the target's id that an output selects: `{"selected_edge": …}`, or a bare text. None when it selects
/// nothing, which fails the node; whether there is such an edge is the graph's to say.
pub fn selected(output: &Value) -> Option<&str> {
    let text = match output {
        Value::String(text) => text,
        Value::Object(object) => object.get("selected_edge")?.as_str()?,
        _ => return None,
    };
    Some(text.trim()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn s3_3_a_decision_selects_by_its_key_or_as_a_bare_text() {
        assert_eq!(selected(&json!({"selected_edge": "yes", "why": "because"})), Some("yes"));
        assert_eq!(selected(&json!(" review\n")), Some("review"));
        for nothing in [json!({"edge": "yes"}), json!({"selected_edge": 1}), json!(""), json!(null), json!(["yes"])] {
            assert_eq!(selected(&nothing), None, "{nothing}");
        }
    }
}
