//! The analysis of a message by the model: the request, and the answer. Pure.

use super::{
    excerpts::{ends, newest},
    rules::analysis,
};
use crate::{
    context,
    requests::title_of,
    session_plan::cut,
    state::{ChatState, PastTurn},
};
use domain::{
    Analysis, ChatConfig, Message, MessageId, SessionContext, Strategy, Timestamp,
    event::{ContextKind, ContextPart, ContextRecord},
    session::{Cut, SessionBudget},
};
use ports::ModelRequest;
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    collections::VecDeque,
    sync::{Arc, LazyLock},
};

/// The most tokens of an answer. It has about 100, and the reasoning of models that think before they answer counts as output.
const ANSWER: u32 = 4_000;
/// The most bytes of one earlier message: its beginning, and its end, where an agent asks the person.
const SAID: usize = 1_000;
/// The longest reasoning that is kept, in bytes.
const REASONING: usize = 500;

/// A further field of the answer, once a session has enough messages to be named by.
const TITLE: &str = ", \"title\": \"the subject of the chat, in its language, at most 50 characters\"";

/// Whether the model is asked for a title: a session is named by its first three to five messages (spec 003 §4 (5)), as long as its title is the
/// beginning of one of them. So a title that a person gave stays, and one that the model gave.
pub(crate) fn wants_title(state: &ChatState) -> bool {
    let Some(config) = &state.config else { return false };
    let mut said = state.history.iter().flat_map(|turn| &turn.messages);
    (2..5).contains(&state.turns)
        && said.any(|one| matches!(&**one, Message::User { content, .. } if title_of(content) == config.title))
}

/// The system text of the analysis.
fn system(context: SessionContext, wants_title: bool) -> Arc<str> {
    let title = if wants_title { TITLE } else { "" };
    let context =
        serde_json::to_value(context).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default();
    format!(
        "You are the analyst of a planner chat; its context is {context}. You judge how much work the last message needs, and do none of it.\n\
         simple: it is answered from the conversation or from general knowledge. tool: one look or one change, a few calls of tools at \
         most. complex: several steps that build on each other, or the same work on many things.\n\
         Answer with nothing but JSON: {{\"strategy\": \"simple\" | \"tool\" | \"complex\", \"reasoning\": \"one sentence\", \
         \"estimated_operations\": 0, \"requires_tools\": false, \"requires_executors\": false{title}}}"
    )
    .into()
}

/// An analysis that the model is asked for.
pub(crate) struct Request {
    system: Arc<str>,
    conversation: Conversation,
    wants_title: bool,
}

impl Request {
    /// About the last message of this chat.
    pub fn of(state: &ChatState, config: &ChatConfig) -> Self {
        let session = config.session.as_deref().cloned().unwrap_or_default();
        let room = SessionBudget::bytes(session.budgets.conversation);
        let wants_title = wants_title(state);
        let conversation = conversation(&state.history, room);
        Self { system: system(session.context, wants_title), conversation, wants_title }
    }

    /// The record of its context, which has no tools and nothing of the system text of the chat.
    pub fn record(&self, config: &ChatConfig) -> ContextRecord {
        let Conversation { words, earlier, count, left_out, .. } = &self.conversation;
        let tokens = |bytes: usize| bytes as u64 / 4;
        let part = |part, bytes, count| ContextPart { part, tokens: tokens(bytes), count, first_line: 0, last_line: 0 };
        let mut parts = vec![part(ContextKind::System, self.system.len(), 1)];
        if !earlier.is_empty() {
            parts.push(part(ContextKind::History, earlier.len(), *count));
        }
        parts.push(part(ContextKind::Turn, words.len(), 1));
        let kept = words.len() + earlier.len();
        let cut = Cut { part: "conversation".to_owned(), tokens: tokens(kept + left_out), kept: tokens(kept) };
        let cut = if *left_out > 0 { vec![cut] } else { Vec::new() };
        ContextRecord { parts, analysis: true, cut, ..context::about(Some(config)) }
    }

    /// Makes the request of an analysis out of the request of an answer.
    pub fn put_into(self, request: &mut ModelRequest) {
        request.system = self.system;
        request.messages = [Arc::new(self.conversation.message())].into();
        request.tools = Arc::from([]);
        // Temperature 0 gives the same message the same analysis, as far as the provider allows. A model that is known to refuse a
        // temperature is asked without it.
        (request.temperature, request.top_p) = (Some(0.0), None);
        request.max_tokens = Some(ANSWER);
        request.schema = Some(schema(self.wants_title));
    }
}

/// The last message of the person, with as much of the conversation before it as fits. Of what does not fit, the middle of messages is left out.
struct Conversation {
    id: MessageId,
    at: Timestamp,
    words: String,
    /// The words before it.
    earlier: String,
    /// The messages that they are.
    count: u64,
    /// The bytes that did not fit.
    left_out: usize,
}

impl Conversation {
    fn message(self) -> Message {
        let Self { id, at, words, earlier, .. } = self;
        Message::User { id, at, content: words, files: Vec::new(), context: earlier, user_id: None }
    }
}

fn conversation(history: &VecDeque<PastTurn>, mut room: usize) -> Conversation {
    let all = history.iter().rev().flat_map(|turn| turn.messages.iter().rev());
    let (mut id, mut at, mut words) = (MessageId(uuid::Uuid::nil()), Timestamp::default(), String::new());
    let mut earlier = Vec::new();
    let (mut is_last, mut is_full, mut given, mut left_out) = (true, false, String::new(), 0);
    for message in all {
        let (who, said) = match message.as_ref() {
            Message::User { id: of, at: when, content, context, .. } if is_last => {
                (id, at, words) = (*of, *when, ends(content, room));
                left_out += content.len().saturating_sub(room);
                room = room.saturating_sub(words.len());
                // The words that the client says were said before.
                given = newest(context, room);
                left_out += context.len().saturating_sub(room);
                room = room.saturating_sub(given.len());
                is_last = false;
                continue;
            }
            Message::User { content, .. } => ("person", content),
            Message::Assistant { content, .. } => ("you", content),
            Message::Tool { .. } | Message::System { .. } => continue,
        };
        if is_full {
            left_out += said.len();
            continue;
        }
        let line = format!("{who}: {}", ends(said, SAID));
        if line.len() > room {
            is_full = true;
            left_out += said.len();
            continue;
        }
        left_out += said.len().saturating_sub(SAID);
        room -= line.len();
        earlier.push(line);
    }
    earlier.reverse();
    let count = earlier.len() as u64;
    let earlier = match earlier.is_empty() {
        true => given,
        false => [format!("The conversation before this message:\n{}", earlier.join("\n")), given]
            .join("\n\n")
            .trim_end()
            .to_owned(),
    };
    Conversation { id, at, words, earlier, count, left_out }
}

/// The schema of the answer, for providers that hold a model to one. Every field is required, as OpenAI demands; the answer of a model without a
/// schema may leave fields out.
fn schema(wants_title: bool) -> Arc<Value> {
    static SCHEMA: LazyLock<Arc<Value>> = LazyLock::new(|| {
        Arc::new(json!({
            "type": "object",
            "properties": {
                "strategy": { "type": "string", "enum": ["simple", "tool", "complex"] },
                "reasoning": { "type": "string" },
                "estimated_operations": { "type": "integer" },
                "requires_tools": { "type": "boolean" },
                "requires_executors": { "type": "boolean" },
            },
            "required": ["strategy", "reasoning", "estimated_operations", "requires_tools", "requires_executors"],
            "additionalProperties": false,
        }))
    });
    if !wants_title {
        return Arc::clone(&SCHEMA);
    }
    let mut schema = (**SCHEMA).clone();
    schema["properties"]["title"] = json!({ "type": "string" });
    if let Some(required) = schema["required"].as_array_mut() {
        required.push(json!("title"));
    }
    Arc::new(schema)
}

/// The answer as models write it.
#[derive(Deserialize)]
struct Answer {
    strategy: Strategy,
    #[serde(default)]
    reasoning: String,
    #[serde(default, alias = "estimatedOperations")]
    estimated_operations: Option<u32>,
    #[serde(default, alias = "requiresTools")]
    requires_tools: Option<bool>,
    #[serde(default, alias = "requiresExecutors")]
    requires_executors: Option<bool>,
}

/// The JSON in an answer.
fn json_in(text: &str) -> Option<Value> {
    let (begin, end) = (text.find('{')?, text.rfind('}')?);
    serde_json::from_str(text.get(begin..=end)?).ok()
}

/// The title that an answer has for the session, if it has one.
pub(crate) fn title(text: &str) -> Option<String> {
    let title = title_of(json_in(text)?.get("title")?.as_str()?);
    (!title.is_empty()).then_some(title)
}

/// The analysis that an answer is; none for an answer that fits no analysis.
pub(crate) fn read(text: &str) -> Option<Analysis> {
    let Answer { strategy, reasoning, estimated_operations, requires_tools, requires_executors } =
        serde_json::from_value(json_in(text)?).ok()?;
    // An answer at once has no tools, so one that needs them is none.
    let strategy = match strategy {
        Strategy::Simple if requires_tools == Some(true) => Strategy::Tool,
        other => other,
    };
    let usual = analysis(strategy, &cut(reasoning.trim(), REASONING), 0);
    let operations = match strategy {
        Strategy::Simple => 0,
        Strategy::Tool => 1,
        Strategy::Complex => 3,
    };
    Some(Analysis {
        estimated_operations: estimated_operations.unwrap_or(operations),
        requires_tools: requires_tools.unwrap_or(usual.requires_tools),
        requires_executors: requires_executors.unwrap_or(usual.requires_executors),
        ..usual
    })
}

/// The analysis when there is none: the middle way can answer at once, too.
pub(crate) fn fallback() -> Analysis {
    analysis(Strategy::Tool, "the analysis was missing or wrong", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_from_what_models_write_around_it_and_anything_else_is_none() {
        let read = |text: &str| read(text).map(|analysis| (analysis.strategy, analysis.estimated_operations));
        assert_eq!(read(r#"{"strategy": "simple", "reasoning": "x"}"#), Some((Strategy::Simple, 0)));
        assert_eq!(
            read("```json\n{\"strategy\": \"complex\", \"estimatedOperations\": 7}\n```"),
            Some((Strategy::Complex, 7))
        );
        for wrong in
            ["", "complex", "{}", r#"{"strategy": "hard"}"#, r#"{"strategy": "tool", "requires_tools": "yes"}"#, "}{"]
        {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        assert_eq!(fallback().strategy, Strategy::Tool);
    }

    #[test]
    fn an_answer_at_once_that_needs_tools_is_work_for_tools() {
        let strategy = |needs: bool| {
            let text = json!({ "strategy": "simple", "requires_tools": needs }).to_string();
            read(&text).map(|analysis| (analysis.strategy, analysis.requires_tools))
        };
        assert_eq!(strategy(true), Some((Strategy::Tool, true)));
        assert_eq!(strategy(false), Some((Strategy::Simple, false)));
    }

    #[test]
    fn an_analysis_reads_both_ends_of_long_messages_and_the_newest_words_of_a_client() {
        const ROOM: usize = 4_000;
        let (id, at) = (MessageId(uuid::Uuid::nil()), Timestamp::default());
        let user = |content: String, context: String| {
            let message = Message::User { id, at, content, files: Vec::new(), context, user_id: None };
            PastTurn { messages: vec![Arc::new(message)], ..PastTurn::default() }
        };
        let asked = |content: String| {
            let (calls, reasoning, provider) = (Vec::new(), String::new(), Value::Null);
            let message = Message::Assistant { id, at, content, calls, reasoning, provider };
            PastTurn { messages: vec![Arc::new(message)], ..PastTurn::default() }
        };
        let long = |begin: &str, end: &str| format!("{begin} {} {end}", "x".repeat(9_000));
        let history =
            VecDeque::from([asked(long("I looked.", "Shall I compare all?")), user("Yes".into(), String::new())]);
        let Conversation { earlier, left_out, .. } = conversation(&history, ROOM);
        assert!(earlier.contains("you: I looked.") && earlier.ends_with("Shall I compare all?"), "{earlier}");
        assert!(left_out > 8_000, "{left_out}");
        let pasted = VecDeque::from([user(long("Two drafts:", "Now compare them."), String::new())]);
        let Conversation { words, .. } = conversation(&pasted, ROOM);
        assert!(words.starts_with("Two drafts:") && words.ends_with("Now compare them."), "{words}");
        let brought = (0..1_000).map(|number| format!("person: word{number}.\n")).collect();
        let Conversation { words, earlier, .. } =
            conversation(&VecDeque::from([user("And now?".into(), brought)]), ROOM);
        assert!(words == "And now?" && earlier.contains("word999.") && !earlier.contains("word0."), "{earlier}");
    }

    #[test]
    fn the_conversation_fits_its_budget_and_the_last_message_comes_first() {
        let user = |content: String| Message::User {
            id: MessageId(uuid::Uuid::nil()),
            at: Timestamp::default(),
            content,
            files: Vec::new(),
            context: String::new(),
            user_id: None,
        };
        let turn = |content: String| PastTurn { messages: vec![Arc::new(user(content))], ..PastTurn::default() };
        let history: VecDeque<PastTurn> =
            (0..100).map(|at| turn(format!("{at} {}", "x".repeat(900)))).chain([turn("the last".into())]).collect();
        const ROOM: usize = 10_000;
        let Conversation { words, earlier, count, left_out, .. } = conversation(&history, ROOM);
        assert_eq!(words, "the last");
        assert!(earlier.contains("person: 99 ") && !earlier.contains("person: 3 "), "{earlier}");
        assert!(words.len() + earlier.len() <= ROOM + 80, "{}", earlier.len());
        let said: usize = (0..100).map(|at| format!("{at} ").len() + 900).sum();
        let kept = earlier.split_once('\n').map_or(0, |(_, lines)| lines.len() + 1) - 10 * "person: \n".len();
        assert_eq!((count, said - left_out), (10, kept), "all that is not there is counted");
    }

    #[test]
    fn an_answer_that_the_schema_allows_is_an_analysis() {
        let answer = json!({ "strategy": "complex", "reasoning": "x", "estimated_operations": 4, "requires_tools": true,
            "requires_executors": true });
        let mut named = answer.clone();
        named["title"] = json!(" Drafts of the atlas\nand more");
        for (schema, answer, count) in [(schema(false), &answer, 5), (schema(true), &named, 6)] {
            let required: Vec<&str> =
                schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            assert!(required.len() == count && required.iter().all(|name| answer.get(name).is_some()), "{required:?}");
            assert_eq!(schema["properties"].as_object().map(serde_json::Map::len), Some(required.len()));
            assert_eq!(read(&answer.to_string()).map(|analysis| analysis.estimated_operations), Some(4));
        }
        assert_eq!(title(&named.to_string()).as_deref(), Some("Drafts of the atlas"));
        assert_eq!((title(&answer.to_string()), title(r#"{"title": " "}"#)), (None, None));
    }
}
