//! The content of a prompt as an agent takes it, by its prompt capabilities.

use ports::AgentPrompt;
use serde_json::{Value, json};

/// The content of a prompt for an agent with these capabilities: each kind of attachment that it does not take becomes a link to the file, which every
/// agent takes. Words that repeat the attachments are left out where the agent has all of them.
pub(crate) fn as_taken(capabilities: &Value, content: Vec<Value>) -> Vec<Value> {
    let takes = |name: &str| capabilities[name] == true;
    let embeds = takes("embeddedContext");
    let as_taken = |block: Value| match block["type"].as_str() {
        Some(kind @ ("image" | "audio")) if !takes(kind) => link(&block["uri"], &block["mimeType"]),
        Some("resource") if !embeds => link(&block["resource"]["uri"], &block["resource"]["mimeType"]),
        _ => block,
    };
    let mut taken: Vec<Value> = content.into_iter().map(as_taken).collect();
    let has_all = embeds && !taken.iter().any(|block| block["type"] == "resource_link");
    taken.retain(|block| !(has_all && block.get(AgentPrompt::REPEATS).is_some()));
    for block in taken.iter_mut().filter_map(Value::as_object_mut) {
        block.remove(AgentPrompt::REPEATS);
    }
    taken
}

fn link(uri: &Value, media_type: &Value) -> Value {
    let uri = uri.as_str().unwrap_or("file:///");
    let mut link = json!({ "type": "resource_link", "uri": uri, "name": uri.rsplit('/').next().unwrap_or(uri) });
    if media_type.is_string() {
        link["mimeType"] = media_type.clone();
    }
    link
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attachment_that_an_agent_does_not_take_is_named_by_a_link_and_none_is_dropped() {
        let image = json!({ "type": "image", "mimeType": "image/png", "data": "aGk=", "uri": "file:///data/a.png" });
        let audio = json!({ "type": "audio", "mimeType": "audio/wav", "data": "aGk=", "uri": "file:///data/b.wav" });
        let text = json!({ "type": "resource", "resource": { "uri": "file:///data/c.md", "text": "# C" } });
        let repeats = json!({ "type": "text", "text": "<file/>", (AgentPrompt::REPEATS): true });
        let words = json!({ "type": "text", "text": "look" });
        let content = [&image, &audio, &text, &words, &repeats].map(Clone::clone).to_vec();
        let link = |name: &str, media_type: Option<&str>| {
            let mut link = json!({ "type": "resource_link", "uri": format!("file:///data/{name}"), "name": name });
            if let Some(media_type) = media_type {
                link["mimeType"] = json!(media_type);
            }
            link
        };
        let (a, b, c) = (link("a.png", Some("image/png")), link("b.wav", Some("audio/wav")), link("c.md", None));
        let plain = json!({ "type": "text", "text": "<file/>" });
        for (capabilities, expected) in [
            (json!({}), vec![&a, &b, &c, &words, &plain]),
            (json!({ "image": true }), vec![&image, &b, &c, &words, &plain]),
            (json!({ "audio": true }), vec![&a, &audio, &c, &words, &plain]),
            (json!({ "embeddedContext": true }), vec![&a, &b, &text, &words, &plain]),
            (json!({ "image": true, "audio": true, "embeddedContext": true }), vec![&image, &audio, &text, &words]),
        ] {
            let taken = as_taken(&capabilities, content.clone());
            assert_eq!(taken.iter().collect::<Vec<_>>(), expected, "{capabilities}");
        }
    }
}
