//! A chat's history, before a format makes JSON of it.
//!
//! The mapping is a pure function of each message and of the messages before it, so a longer history begins with the mapping of the shorter
//! one.

use domain::{FilePath, Message, ToolCall, name_for_providers};
use ports::ModelRequest;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};
use uuid::Uuid;

/// One thing that was said.
pub(crate) enum HistoryItem<'a> {
    /// By people, or by the system between brackets; with the messages and calls whose files belong to it.
    User(Cow<'a, str>, Vec<Uuid>),
    /// By the model; the text may be empty if there are calls. The reasoning is its text, which no provider has signed.
    Model { thoughts: Vec<Thought>, reasoning: &'a str, text: &'a str, calls: Vec<Called<'a>> },
    /// The results of one step in one message: Gemini demands it, Anthropic recommends it, the others do not mind.
    Results(Vec<ToolResult<'a>>),
}

/// A call that the model made.
pub(crate) struct Called<'a> {
    pub id: String,
    pub name: Cow<'a, str>,
    /// Always an object.
    pub args: Value,
    pub signature: Option<String>,
}

/// The result of a call.
pub(crate) struct ToolResult<'a> {
    pub id: String,
    pub name: Cow<'a, str>,
    pub output: &'a str,
}

/// The history of a request, with the data that `provider` wants back.
pub(crate) fn said<'a>(request: &'a ModelRequest, provider: &str) -> Vec<HistoryItem<'a>> {
    let mut said = Vec::with_capacity(request.messages.len());
    let (mut results, mut seen): (Vec<ToolResult<'a>>, Vec<Uuid>) = (Vec::new(), Vec::new());
    let has_media = |of: &Uuid| request.media.iter().any(|media| media.of == *of);
    let mut ids = Ids::default();
    for message in request.messages.iter() {
        if let Message::Tool { call_id, tool, output, .. } = message.as_ref() {
            results.push(ToolResult { id: ids.of(&call_id.to_string()), name: name_for_providers(tool), output });
            seen.extend(Some(call_id.0).filter(has_media));
            continue;
        }
        if !results.is_empty() {
            said.push(HistoryItem::Results(std::mem::take(&mut results)));
            said.extend(files_message(&mut seen));
        }
        match message.as_ref() {
            Message::User { id, content, files, context, .. } => {
                said.push(HistoryItem::User(user(content, files, context), vec![id.0]));
            }
            // In brackets as a person's words: most providers know no system text in the middle of a history, and those
            // that move it to the front would change bytes that they have already cached.
            Message::System { content, .. } => said.push(HistoryItem::User(
                match content.starts_with('[') {
                    true => Cow::Borrowed(content.as_str()),
                    false => Cow::Owned(format!("[System: {content}]")),
                },
                Vec::new(),
            )),
            // A model that was stopped before its first word, or that wrote a line break alone, said nothing; providers refuse blank messages.
            Message::Assistant { content, calls, .. } if content.trim().is_empty() && calls.is_empty() => {}
            Message::Assistant { content, calls, reasoning, provider: kept, .. } => {
                // Another provider's data means nothing to this one.
                let kept =
                    ProviderData::deserialize(kept).ok().filter(|kept| kept.provider == provider).unwrap_or_default();
                let mut signatures = kept.calls.into_iter().map(|signatures| signatures.into_iter().next());
                let mut own = kept.ids.into_iter();
                let called = |call: &'a ToolCall| Called {
                    id: ids.keep(&call.call_id.to_string(), own.next()),
                    name: name_for_providers(&call.tool),
                    args: arguments(call),
                    signature: signatures.next().flatten(),
                };
                let calls = calls.iter().map(called).collect();
                let text = if content.trim().is_empty() { "" } else { content.as_str() };
                said.push(HistoryItem::Model { thoughts: kept.thoughts, reasoning, text, calls });
            }
            Message::Tool { .. } => {}
        }
    }
    if !results.is_empty() {
        said.push(HistoryItem::Results(results));
        said.extend(files_message(&mut seen));
    }
    said
}

/// Whether the model made its last calls without a thought that this provider signed, as with another model.
pub(crate) fn calls_without_thought(said: &[HistoryItem<'_>]) -> bool {
    let last = said.iter().rev().find_map(|said| match said {
        HistoryItem::Model { thoughts, calls, .. } => Some(thoughts.is_empty() && !calls.is_empty()),
        HistoryItem::User(..) | HistoryItem::Results(_) => None,
    });
    last.unwrap_or_default()
}

/// The files that calls have read. Few formats have them in the results of calls, and all have them in the words of people.
fn files_message<'a>(seen: &mut Vec<Uuid>) -> Option<HistoryItem<'a>> {
    let words = Cow::Borrowed("[System: The files that were read.]");
    (!seen.is_empty()).then(|| HistoryItem::User(words, std::mem::take(seen)))
}

/// The ids under which a provider knows calls: those that it gave them itself, as long as each is given once. Some servers take
/// only ids of their own form (Mistral's nine letters and digits), some tell models by them which call is meant (Kimi's
/// `functions.name:0`), and a prompt that comes back as it was written meets the provider's cache. Calls of other providers, and
/// calls without an id of their own, go by the id that they have here. Ours stays the key of a call everywhere else: it is there
/// before a provider says anything, and it never comes twice.
#[derive(Default)]
struct Ids {
    taken: HashSet<String>,
    by_call: HashMap<String, String>,
}

/// OpenAI refuses longer ones.
const LONGEST_ID: usize = 40;

impl Ids {
    fn keep(&mut self, call: &str, own: Option<String>) -> String {
        let usable = |id: &String| !id.is_empty() && id.len() <= LONGEST_ID && !self.taken.contains(id);
        let id = own.filter(usable).unwrap_or_else(|| call.to_owned());
        self.taken.insert(id.clone());
        self.by_call.insert(call.to_owned(), id.clone());
        id
    }

    fn of(&self, call: &str) -> String {
        self.by_call.get(call).map_or_else(|| call.to_owned(), Clone::clone)
    }
}

/// A person's words, and after them the chat's additions; if there are none, attached files are at least named.
fn user<'a>(content: &'a str, files: &[FilePath], context: &str) -> Cow<'a, str> {
    if !context.is_empty() {
        Cow::Owned(format!("{content}\n\n{context}"))
    } else if !files.is_empty() {
        let files: Vec<_> = files.iter().map(|file| file.as_str()).collect();
        Cow::Owned(format!("{content}\n\n[Attached files: {}]", files.join(", ")))
    } else {
        Cow::Borrowed(content)
    }
}

/// The arguments as an object, because some providers take nothing else; any other value is wrapped in one.
fn arguments(call: &ToolCall) -> Value {
    match call.parsed() {
        Ok(object @ Value::Object(_)) => object,
        _ => Value::Object(Map::from_iter([("invalid_arguments".to_owned(), Value::String(call.args.clone()))])),
    }
}

/// The data that a provider wants back with a message, as [`Message::Assistant`] keeps it. Persisted: fields may be added, never changed.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ProviderData {
    /// The provider that wants it.
    pub provider: String,
    /// The thoughts before the message's text, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thoughts: Vec<Thought>,
    /// The signatures of each call; left out when no call has one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Vec<String>>,
    /// The provider's own id of each call, empty for one without; left out when no call has one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<String>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Thought {
    /// A signature or an encrypted thought.
    Signature(String),
    /// The text that the signature before it signs.
    Reasoning(String),
    /// A block as the provider sent it.
    Block(Value),
}

impl ProviderData {
    /// The persisted form: null if it is empty.
    pub fn into_value(mut self) -> Value {
        if self.calls.iter().all(Vec::is_empty) {
            self.calls.clear();
        }
        if self.ids.iter().all(String::is_empty) {
            self.ids.clear();
        }
        if self.thoughts.is_empty() && self.calls.is_empty() && self.ids.is_empty() {
            return Value::Null;
        }
        serde_json::to_value(self).unwrap_or_default()
    }
}

/// Each signature of a thought, with the text that it signs.
pub(crate) fn signed(thoughts: Vec<Thought>) -> Vec<(Thought, Option<String>)> {
    let mut signed: Vec<(Thought, Option<String>)> = Vec::new();
    for thought in thoughts {
        match (thought, signed.last_mut()) {
            (Thought::Reasoning(text), Some((Thought::Signature(_), slot @ None))) => *slot = Some(text),
            (Thought::Reasoning(_), _) => {}
            (thought, _) => signed.push((thought, None)),
        }
    }
    signed
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::{CallId, MessageId, Timestamp};
    use serde_json::json;
    use std::sync::Arc;

    fn says(key: &str, calls: &[&str], provider: Value) -> Arc<Message> {
        let call =
            |tool: &&str| ToolCall { call_id: CallId::from_key(key, tool), tool: (*tool).into(), args: "{}".into() };
        Arc::new(Message::Assistant {
            id: MessageId::from_key("t", key),
            at: Timestamp::from_millis(0),
            content: "text".into(),
            calls: calls.iter().map(call).collect(),
            reasoning: String::new(),
            provider,
        })
    }

    fn model<'a>(said: &'a HistoryItem<'_>) -> (&'a [Thought], Vec<(&'a str, &'a str)>) {
        let HistoryItem::Model { thoughts, calls, .. } = said else { return (&[], Vec::new()) };
        (thoughts, calls.iter().map(|call| (call.id.as_str(), call.name.as_ref())).collect())
    }

    #[test]
    fn data_of_a_provider_comes_back_to_that_provider_only() {
        let kept = json!({"provider": "anthropic", "thoughts": [{"signature": "s"}], "ids": ["toolu_1"]});
        let request = ModelRequest { messages: [says("a", &["read"], kept)].into(), ..ModelRequest::default() };
        let own = said(&request, "anthropic");
        assert_eq!(model(&own[0]), (&[Thought::Signature("s".into())][..], vec![("toolu_1", "read")]));
        let other = said(&request, "gemini");
        let ours = CallId::from_key("a", "read").to_string();
        assert_eq!(model(&other[0]), (&[][..], vec![(ours.as_str(), "read")]));
        assert_eq!(ProviderData { provider: "openai".into(), ..ProviderData::default() }.into_value(), Value::Null);
    }

    #[test]
    fn ids_of_providers_are_kept_while_they_are_ids() {
        let kept = |ids: &[&str]| json!({"provider": "openai", "ids": ids});
        let long = "x".repeat(41);
        let result = |key: &str, tool: &str| {
            Arc::new(Message::Tool {
                call_id: CallId::from_key(key, tool),
                tool: tool.into(),
                at: Timestamp::from_millis(0),
                output: String::new(),
                success: true,
            })
        };
        let messages = vec![
            says("a", &["read", "ls", "rm"], kept(&["Ab3dEf6hI", "", &long])),
            result("a", "read"),
            result("a", "ls"),
            result("a", "rm"),
            says("b", &["read"], kept(&["Ab3dEf6hI"])),
            result("b", "read"),
        ];
        let request = ModelRequest { messages: messages.into(), ..ModelRequest::default() };
        let said = said(&request, "openai");
        let ours = |key: &str, tool: &str| CallId::from_key(key, tool).to_string();
        let expected = ["Ab3dEf6hI".to_owned(), ours("a", "ls"), ours("a", "rm")];
        let ids = |said: &HistoryItem<'_>| match said {
            HistoryItem::Model { calls, .. } => calls.iter().map(|call| call.id.clone()).collect(),
            HistoryItem::Results(results) => results.iter().map(|result| result.id.clone()).collect(),
            HistoryItem::User(..) => Vec::new(),
        };
        assert_eq!((ids(&said[0]), ids(&said[1])), (expected.to_vec(), expected.to_vec()));
        assert_eq!((ids(&said[2]), ids(&said[3])), (vec![ours("b", "read")], vec![ours("b", "read")]));
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
        let call = |args: &str| ToolCall { call_id: CallId::from_key("t", "c"), tool: "t".into(), args: args.into() };
        assert_eq!(arguments(&call("")), json!({}));
        assert_eq!(arguments(&call(r#"{"b": 1, "a": 2}"#)).to_string(), r#"{"b":1,"a":2}"#, "the order is kept");
        assert_eq!(arguments(&call("[1]")), json!({"invalid_arguments": "[1]"}));
        assert_eq!(arguments(&call("{\"n\": 12345678901234567890123}")), json!({"n": "12345678901234567890123"}));
        assert_eq!(arguments(&call("{\"path\": \"/a")), json!({"invalid_arguments": "{\"path\": \"/a"}));
    }
}
