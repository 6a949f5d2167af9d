//! What Bedrock's Converse demands of a history beyond what genai maps: that people and models take turns, that no text is
//! blank, and that tools are declared when the history has calls. It refuses the request otherwise.
//!
//! Like all mapping of histories it only appends: what was sent once keeps its blocks.

use genai::chat::{ChatMessage, ChatRole, ContentPart, MessageContent, Tool};
use serde_json::json;
use std::collections::BTreeSet;

/// The same history, with everything that is said to the model between two of its answers in one message.
pub(crate) fn alternating(messages: Vec<ChatMessage>) -> Vec<ChatMessage> {
    let mut turns: Vec<(bool, Vec<ContentPart>)> = Vec::new();
    for message in messages {
        let is_models = matches!(message.role, ChatRole::Assistant);
        let parts: Vec<_> = message.content.into_parts().into_iter().filter_map(|part| said(part, is_models)).collect();
        match turns.last_mut() {
            _ if parts.is_empty() => {}
            Some((models, all)) if *models == is_models => all.extend(parts),
            _ => turns.push((is_models, parts)),
        }
    }
    let message = |(is_models, parts): (bool, Vec<ContentPart>)| {
        let content = MessageContent::from_parts(parts);
        if is_models { ChatMessage::assistant(content) } else { ChatMessage::user(content) }
    };
    turns.into_iter().map(message).collect()
}

/// A part with something in it. A model that said only a line break said nothing; people's words and results have a place that
/// must be filled.
fn said(part: ContentPart, is_models: bool) -> Option<ContentPart> {
    match part {
        ContentPart::Text(text) if text.trim().is_empty() => (!is_models).then(|| ContentPart::from_text("(nothing)")),
        ContentPart::ToolResponse(mut response) if response.content.trim().is_empty() => {
            response.content = "(no output)".into();
            Some(ContentPart::ToolResponse(response))
        }
        part => Some(part),
    }
}

/// The tools that a history calls, for a request that offers none.
pub(crate) fn tools_of(messages: &[ChatMessage]) -> Option<Vec<Tool>> {
    let parts = messages.iter().flat_map(|message| message.content.parts());
    let names: BTreeSet<&str> =
        parts.filter_map(|part| part.as_tool_call()).map(|call| call.fn_name.as_str()).collect();
    let tool = |name: &str| {
        Tool::new(name).with_description("Cannot be used any more.").with_schema(json!({"type": "object"}))
    };
    (!names.is_empty()).then(|| names.into_iter().map(tool).collect())
}
