//! A chat's history as genai wants it.
//!
//! The mapping is a pure function of each message (and, for results, of their neighbours inside the same step), so a
//! longer history begins with what the shorter one was mapped to.

use crate::{converse, kind::Kind};
use domain::{FilePath, Message, ToolCall, ToolSpec, name_for_providers};
use genai::chat::{ChatMessage, ChatRequest, ContentPart, CustomPart, MessageContent, Tool, ToolResponse};
use ports::ModelRequest;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The whole request.
pub(crate) fn chat_request(request: &ModelRequest, kind: Kind) -> ChatRequest {
    let mut messages = messages(request, kind);
    if kind == Kind::Bedrock {
        messages = converse::alternating(messages);
    }
    let mut chat = ChatRequest::new(messages);
    // Providers refuse one that is empty.
    if !request.system.is_empty() {
        chat = chat.with_system(request.system.as_ref());
    }
    if !request.tools.is_empty() {
        chat = chat.with_tools(request.tools.iter().map(|spec| tool(spec, kind)));
    } else if kind == Kind::Bedrock {
        chat.tools = converse::tools_of(&chat.messages);
    }
    chat
}

fn tool(spec: &ToolSpec, kind: Kind) -> Tool {
    let tool =
        Tool::new(spec.name.clone()).with_description(spec.description.clone()).with_schema(spec.parameters.clone());
    // Responses alone is strict when nothing is said, and then makes every optional argument a required one.
    if kind == Kind::OpenAiResponses { tool.with_strict(false) } else { tool }
}

fn messages(request: &ModelRequest, kind: Kind) -> Vec<ChatMessage> {
    let mut mapped = Vec::with_capacity(request.messages.len());
    // The results of one step go in one message: Gemini demands it, Anthropic recommends it, the others do not mind.
    let mut results: Vec<ToolResponse> = Vec::new();
    for message in &request.messages {
        if let Message::Tool { call_id, tool, output, .. } = message.as_ref() {
            results.push(ToolResponse::new(call_id.to_string(), output.clone()).with_fn_name(name_for_providers(tool)));
            continue;
        }
        if !results.is_empty() {
            mapped.push(ChatMessage::from(std::mem::take(&mut results)));
        }
        match message.as_ref() {
            Message::User { content, files, context, .. } => {
                mapped.push(ChatMessage::user(user(content, files, context)));
            }
            // In brackets as a person's words: most providers know no system text in the middle of a history, and those
            // that move it to the front would change bytes that they have already cached.
            Message::System { content, .. } => mapped.push(ChatMessage::user(if content.starts_with('[') {
                content.clone()
            } else {
                format!("[System: {content}]")
            })),
            Message::Assistant { content, calls, provider, .. } => {
                let parts = assistant(content, calls, provider, kind);
                // A model that was stopped before its first word said nothing; providers refuse empty messages.
                if !parts.is_empty() {
                    mapped.push(ChatMessage::assistant(MessageContent::from_parts(parts)));
                }
            }
            Message::Tool { .. } => {}
        }
    }
    if !results.is_empty() {
        mapped.push(ChatMessage::from(results));
    }
    mapped
}

/// A person's words, and after them what the chat adds; where it adds nothing, attached files are at least named.
fn user(content: &str, files: &[FilePath], context: &str) -> String {
    if !context.is_empty() {
        format!("{content}\n\n{context}")
    } else if !files.is_empty() {
        let files: Vec<_> = files.iter().map(|file| file.as_str()).collect();
        format!("{content}\n\n[Attached files: {}]", files.join(", "))
    } else {
        content.to_owned()
    }
}

fn assistant(content: &str, calls: &[ToolCall], provider: &Value, kind: Kind) -> Vec<ContentPart> {
    // What another provider wanted back means nothing to this one.
    let kept = Kept::deserialize(provider).ok().filter(|kept| kept.provider == kind.name()).unwrap_or_default();
    let text = (!content.is_empty()).then(|| ContentPart::from_text(content));
    if text.is_none() && calls.is_empty() {
        return Vec::new();
    }
    let mut parts: Vec<_> = kept.thoughts.into_iter().map(Thought::into_part).collect();
    parts.extend(text);
    let mut signatures = kept.calls.into_iter();
    parts.extend(calls.iter().map(|call| {
        ContentPart::ToolCall(genai::chat::ToolCall {
            call_id: call.call_id.to_string(),
            fn_name: name_for_providers(&call.tool).into_owned(),
            fn_arguments: arguments(call),
            thought_signatures: signatures.next().filter(|signatures| !signatures.is_empty()),
        })
    }));
    parts
}

/// The arguments as an object, which is all that some providers take; what was no object is kept inside one.
fn arguments(call: &ToolCall) -> Value {
    match call.parsed() {
        Ok(object @ Value::Object(_)) => object,
        _ => json!({ "invalid_arguments": call.args }),
    }
}

/// What a provider wants back with a message, as [`Message::Assistant`] keeps it. Persisted: fields may be added, never
/// changed.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Kept {
    /// Who wants it.
    provider: String,
    /// What stands before the message's text, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    thoughts: Vec<Thought>,
    /// The signatures of each call; left out when no call has one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    calls: Vec<Vec<String>>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Thought {
    /// A signature or an encrypted thought.
    Signature(String),
    /// The text that the signature before it signs.
    Reasoning(String),
    /// A block as the provider sent it.
    Block(Value),
}

impl Thought {
    fn into_part(self) -> ContentPart {
        match self {
            Self::Signature(text) => ContentPart::ThoughtSignature(text),
            Self::Reasoning(text) => ContentPart::ReasoningContent(text),
            Self::Block(data) => ContentPart::Custom(CustomPart { model_iden: None, data }),
        }
    }
}

impl Kept {
    /// What to keep of an answer: its thoughts and, for Gemini, which call each signature belongs to (for the others
    /// genai only repeats the thoughts there).
    pub(crate) fn of(parts: &[ContentPart], kind: Kind) -> Value {
        let mut kept = Self { provider: kind.name().into(), ..Self::default() };
        for part in parts {
            match part {
                ContentPart::ThoughtSignature(text) => kept.thoughts.push(Thought::Signature(text.clone())),
                ContentPart::ReasoningContent(text) => kept.thoughts.push(Thought::Reasoning(text.clone())),
                ContentPart::Custom(custom) => kept.thoughts.push(Thought::Block(custom.data.clone())),
                ContentPart::ToolCall(call) if kind == Kind::Gemini => {
                    kept.calls.push(call.thought_signatures.clone().unwrap_or_default());
                }
                _ => {}
            }
        }
        // genai lists the signatures of calls among the thoughts as well.
        let of_calls = &kept.calls;
        let is_of_call = |text: &String| of_calls.iter().flatten().any(|signature| signature == text);
        kept.thoughts.retain(|thought| !matches!(thought, Thought::Signature(text) if is_of_call(text)));
        if kept.calls.iter().all(Vec::is_empty) {
            kept.calls.clear();
        }
        if kept.thoughts.is_empty() && kept.calls.is_empty() {
            return Value::Null;
        }
        serde_json::to_value(kept).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_comes_back_to_its_own_provider_only() {
        let parts = [
            ContentPart::ThoughtSignature("s1".into()),
            ContentPart::ReasoningContent("because".into()),
            ContentPart::Custom(CustomPart { model_iden: None, data: json!({"type": "redacted_thinking"}) }),
            ContentPart::from_text("text"),
        ];
        let kept = Kept::of(&parts, Kind::Anthropic);
        assert_eq!(
            kept,
            json!({"provider": "anthropic", "thoughts": [
                {"signature": "s1"}, {"reasoning": "because"}, {"block": {"type": "redacted_thinking"}}]})
        );
        assert_eq!(assistant("text", &[], &kept, Kind::Anthropic).len(), 4);
        assert_eq!(assistant("text", &[], &kept, Kind::Gemini).len(), 1);
        assert_eq!(assistant("", &[], &kept, Kind::Anthropic).len(), 0);
        assert_eq!(Kept::of(&[ContentPart::from_text("text")], Kind::Anthropic), Value::Null);
    }

    #[test]
    fn a_persons_words_come_with_their_context() {
        let files: Vec<FilePath> = ["/a.md", "/b.md"].iter().filter_map(|path| path.parse().ok()).collect();
        assert_eq!(user("hi", &files, "<file>…</file>"), "hi\n\n<file>…</file>");
        assert_eq!(user("hi", &files, ""), "hi\n\n[Attached files: /a.md, /b.md]");
        assert_eq!(user("hi", &[], ""), "hi");
    }

    #[test]
    fn arguments_are_always_an_object() {
        let call =
            |args: &str| ToolCall { call_id: domain::CallId::from_key("t", "c"), tool: "t".into(), args: args.into() };
        assert_eq!(arguments(&call("")), json!({}));
        assert_eq!(arguments(&call(r#"{"b": 1, "a": 2}"#)).to_string(), r#"{"b":1,"a":2}"#, "the order is kept");
        assert_eq!(arguments(&call("[1]")), json!({"invalid_arguments": "[1]"}));
        assert_eq!(arguments(&call("{\"path\": \"/a")), json!({"invalid_arguments": "{\"path\": \"/a"}));
    }
}
