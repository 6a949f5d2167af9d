//! Bounds on all that a server says: its names, its words, its schemas and its answers are a stranger's input.

use domain::{Sha256, served::SERVED_PREFIX, text::counted};
use ports::{ServedAnswer, ServedTool};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents, Tool};
use serde_json::{Value, json};

/// The longest message.
pub(crate) const MAX_MESSAGE: usize = 4 << 20;
/// The most tools of one server.
pub(crate) const MAX_TOOLS: usize = 256;
/// The longest name that providers of models take.
const MAX_NAME: usize = 64;
/// The longest name of a tool at its server, and of an argument of a prompt, in bytes. Names are kept for as long as the connection.
pub(crate) const MAX_OWN_NAME: usize = 1_024;
/// The longest description, in characters.
const MAX_DESCRIPTION: usize = 1_024;
/// The longest schema, in bytes, and its depth.
const MAX_SCHEMA: usize = 16 * 1024;
const MAX_DEPTH: usize = 24;
/// The longest answer, in bytes: as text, and as data. Tools cap what a model reads of it.
const MAX_ANSWER: usize = 256 * 1024;

/// A tool as agents may see it; none for one that no model could call.
pub(crate) fn tool(server: &str, tool: &Tool) -> Option<ServedTool> {
    if tool.name.len() > MAX_OWN_NAME {
        tracing::warn!(server, "a tool of an MCP server is left out: its name has more than {MAX_OWN_NAME} bytes");
        return None;
    }
    let parameters = Value::Object((*tool.input_schema).clone());
    if parameters["type"] != "object" || depth(&parameters) > MAX_DEPTH || parameters.to_string().len() > MAX_SCHEMA {
        tracing::warn!(
            server,
            "a tool of an MCP server is left out: its schema is none of an object, too long or too deep"
        );
        return None;
    }
    let hints = tool.annotations.as_ref();
    let is_repeatable =
        hints.is_some_and(|hints| hints.read_only_hint == Some(true) || hints.idempotent_hint == Some(true));
    let description = printable(tool.description.as_deref().unwrap_or_default(), MAX_DESCRIPTION);
    Some(ServedTool { name: name(server, &tool.name), description, parameters, is_repeatable })
}

/// `mcp__server__tool`, in signs that every provider takes. One that would be too long, or has others, ends with a digest of the whole.
pub(crate) fn name(server: &str, tool: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let mut name = format!("{SERVED_PREFIX}{server}__");
    let plain: String = tool.chars().take(MAX_NAME).map(|c| if fits(c) { c } else { '_' }).collect();
    if plain == tool && !plain.is_empty() && name.len() + plain.len() <= MAX_NAME {
        return name + &plain;
    }
    let digest: String = ['_'].into_iter().chain(Sha256::of(tool.as_bytes()).to_string().chars().take(8)).collect();
    name.extend(plain.chars().take(MAX_NAME - name.len() - digest.len()));
    name + &digest
}

/// At most so many characters, without those that act on a terminal.
pub(crate) fn printable(text: &str, most: usize) -> String {
    let is_plain = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
    text.chars().filter(is_plain).take(most).collect()
}

pub(crate) fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Texts one after the other, up to the longest answer; and whether they were cut.
fn joined(texts: impl Iterator<Item = String>) -> (String, bool) {
    let (mut text, mut is_cut) = (String::new(), false);
    for words in texts {
        let room = MAX_ANSWER.saturating_sub(text.len());
        if !text.is_empty() && room > 0 {
            text.push('\n');
        }
        let end = (0..=room.min(words.len())).rev().find(|end| words.is_char_boundary(*end)).unwrap_or(0);
        text.push_str(&words[..end]);
        is_cut |= end < words.len();
    }
    (text, is_cut)
}

/// The contents of a resource.
pub(crate) fn contents(all: &[ResourceContents]) -> ServedAnswer {
    let one = |contents: &ResourceContents| match contents {
        ResourceContents::TextResourceContents { text, .. } => text.clone(),
        ResourceContents::BlobResourceContents { uri, blob, .. } => binary("resource", uri, blob.len()),
        _ => "[a resource of an unknown kind]".into(),
    };
    let (text, is_cut) = joined(all.iter().map(one));
    ServedAnswer { text, is_cut, ..ServedAnswer::default() }
}

/// The messages of a prompt; whether each is one of the assistant.
pub(crate) fn words(said: impl Iterator<Item = (bool, ContentBlock)>) -> ServedAnswer {
    let one = |(is_of_assistant, block): (bool, ContentBlock)| match is_of_assistant {
        true => format!("Assistant: {}", block_text(&block)),
        false => block_text(&block),
    };
    let (text, is_cut) = joined(said.map(one));
    ServedAnswer { text, is_cut, ..ServedAnswer::default() }
}

/// An answer as agents may read it. Its numbers are those that the server has sent ([`crate::exact_numbers`]).
pub(crate) fn answer(result: CallToolResult) -> ServedAnswer {
    let (mut text, is_cut) = joined(result.content.iter().map(block_text));
    let data = result.structured_content.unwrap_or_default();
    let is_long = data.to_string().len() > MAX_ANSWER || depth(&data) > MAX_DEPTH;
    if text.is_empty() && !data.is_null() && !is_long {
        text = data.to_string();
    }
    let data = if is_long { json!({ "left_out": "the data is too long or too deep" }) } else { data };
    ServedAnswer { text, data, is_error: result.is_error == Some(true), is_cut: is_cut || is_long }
}

fn block_text(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => binary("image", &image.mime_type, image.data.len()),
        ContentBlock::Audio(audio) => binary("audio", &audio.mime_type, audio.data.len()),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => format!("[{}]\n{text}", printable(uri, 512)),
            ResourceContents::BlobResourceContents { uri, blob, .. } => binary("resource", uri, blob.len()),
            _ => "[a resource of an unknown kind]".into(),
        },
        ContentBlock::ResourceLink(link) => format!("[resource {}]", printable(&link.uri, 512)),
        _ => "[content of an unknown kind]".into(),
    }
}

fn binary(kind: &str, about: &str, base64: usize) -> String {
    format!("[{kind} {}, {}, not shown]", printable(about, 256), counted(base64 / 4 * 3, "byte"))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn served(value: Value) -> Option<ServedTool> {
        tool("s", &serde_json::from_value(value).unwrap())
    }

    #[test]
    fn names_are_those_that_providers_take() {
        assert_eq!(name("git", "git_log"), "mcp__git__git_log");
        let (odd, other, long) = (name("s", "a.b"), name("s", "a/b"), name("s", &"x".repeat(500)));
        assert!(odd.starts_with("mcp__s__a_b_") && odd != other, "{odd} {other}");
        assert_eq!(long.len(), MAX_NAME);
        assert_eq!(name(&"n".repeat(24), &"é".repeat(100)).len(), MAX_NAME);
        assert!(name("s", "").starts_with("mcp__s___"));
        for tool in ["git_log", "git__log", "", "é"] {
            assert_eq!(ports::server_of(&name("my_git", tool)), Some("my_git"), "{tool}");
        }
        for other in ["mcp__git", "mcp_search", "http__git__log", "read"] {
            assert_eq!(ports::server_of(other), None, "{other}");
        }
    }

    #[test]
    fn a_tool_of_a_hostile_server_is_bounded_or_left_out() {
        let plain = json!({ "type": "object" });
        let long = "a\u{1b}[31m".repeat(10_000);
        let bounded = served(json!({ "name": "t", "description": long, "inputSchema": plain })).unwrap();
        assert_eq!(bounded.description.chars().count(), MAX_DESCRIPTION);
        assert!(!bounded.description.contains('\u{1b}'));
        let mut deep = json!({});
        for _ in 0..50 {
            deep = json!({ "properties": { "a": deep } });
        }
        deep["type"] = "object".into();
        let fat = json!({ "type": "object", "description": "x".repeat(MAX_SCHEMA) });
        for schema in [json!({ "type": "string" }), json!({}), deep, fat] {
            assert_eq!(served(json!({ "name": "t", "inputSchema": schema })), None);
        }
        let named = |length: usize| served(json!({ "name": "n".repeat(length), "inputSchema": { "type": "object" } }));
        assert!(named(MAX_OWN_NAME).is_some() && named(MAX_OWN_NAME + 1).is_none());
    }

    #[test]
    fn a_hint_says_that_a_call_may_be_repeated() {
        let of =
            |hints: Value| served(json!({ "name": "t", "inputSchema": { "type": "object" }, "annotations": hints }));
        assert!(of(json!({ "readOnlyHint": true })).unwrap().is_repeatable);
        assert!(of(json!({ "idempotentHint": true })).unwrap().is_repeatable);
        assert!(!of(json!({ "destructiveHint": false })).unwrap().is_repeatable);
    }

    #[test]
    fn an_answer_is_cut_at_a_character() {
        let long = "é".repeat(MAX_ANSWER);
        let result = json!({ "content": [{ "type": "text", "text": long }, { "type": "image", "data": "AAAA", "mimeType": "image/png" }] });
        let answer = answer(serde_json::from_value(result).unwrap());
        assert!(answer.is_cut && answer.text.len() <= MAX_ANSWER + 1, "{}", answer.text.len());
    }

    #[test]
    fn data_without_a_text_is_told_with_its_numbers_as_they_came() {
        let of = |content: &str| {
            let result = format!("{{\"content\":[{content}],\"structuredContent\":{{\"n\":12345678901234567890123}}}}");
            let message = crate::exact_numbers::kept(&format!("{{\"result\":{result}}}")).unwrap();
            let message: Value = serde_json::from_str(&message).unwrap();
            let answer = answer(serde_json::from_value(message["result"].clone()).unwrap());
            (answer.text, answer.data)
        };
        let data = json!({ "n": "12345678901234567890123" });
        assert_eq!(of(""), (data.to_string(), data.clone()));
        let told = r#"{"type":"text","text":"it has {\"n\": 12345678901234567890123}"}"#;
        assert_eq!(of(told), ("it has {\"n\": 12345678901234567890123}".into(), data));
    }

    #[test]
    fn content_that_is_no_text_is_told_of() {
        let result =
            json!({ "isError": true, "content": [{ "type": "image", "data": "AAAA", "mimeType": "image/png" }] });
        let answer = answer(serde_json::from_value(result).unwrap());
        assert_eq!((answer.text.as_str(), answer.is_error), ("[image image/png, 3 bytes, not shown]", true));
    }
}
