//! The analysis of a message by the model: the request, and the answer. Pure.

use super::rules::analysis;
use crate::{session_plan::cut, state::PastTurn};
use domain::{Analysis, Message, MessageId, SessionContext, Strategy, Timestamp};
use serde::Deserialize;
use serde_json::Value;
use std::{collections::VecDeque, sync::Arc};

/// Tokens of an answer.
pub(crate) const ANSWER: u32 = 300;
/// The longest reasoning that is kept, in bytes.
const REASONING: usize = 500;

/// The system text of the analysis.
pub(crate) fn system(context: SessionContext) -> Arc<str> {
    let context =
        serde_json::to_value(context).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default();
    format!(
        "You are the analyst of a planner chat; its context is {context}. You judge how much work the last message needs, and do none of it.\n\
         simple: it is answered from the conversation or from general knowledge. tool: one look or one change, a few calls of tools at \
         most. complex: several steps that build on each other, or the same work on many things.\n\
         Answer with nothing but JSON: {{\"strategy\": \"simple\" | \"tool\" | \"complex\", \"reasoning\": \"one sentence\", \
         \"estimated_operations\": 0, \"requires_tools\": false, \"requires_executors\": false}}"
    )
    .into()
}

/// The messages of the analysis: the last message of the person, with as much of the conversation before it as fits these bytes.
pub(crate) fn messages(history: &VecDeque<PastTurn>, mut room: usize) -> Vec<Arc<Message>> {
    let all = || history.iter().rev().flat_map(|turn| turn.messages.iter().rev());
    let (mut id, mut at, mut words) = (MessageId(uuid::Uuid::nil()), Timestamp::default(), String::new());
    let mut earlier = Vec::new();
    let (mut is_last, mut given) = (true, String::new());
    for message in all() {
        let (who, said) = match message.as_ref() {
            Message::User { id: of, at: when, content, context, .. } if is_last => {
                (id, at, words) = (*of, *when, cut(content, room));
                room = room.saturating_sub(words.len());
                // The words that the client says were said before.
                given = cut(context, room);
                room = room.saturating_sub(given.len());
                is_last = false;
                continue;
            }
            Message::User { content, .. } => ("person", content),
            Message::Assistant { content, .. } => ("you", content),
            Message::Tool { .. } | Message::System { .. } => continue,
        };
        let line = format!("{who}: {}", cut(said, 1_000));
        if line.len() > room {
            break;
        }
        room -= line.len();
        earlier.push(line);
    }
    earlier.reverse();
    let context = match earlier.is_empty() {
        true => given,
        false => [format!("The conversation before this message:\n{}", earlier.join("\n")), given]
            .join("\n\n")
            .trim_end()
            .to_owned(),
    };
    vec![Arc::new(Message::User { id, at, content: words, files: Vec::new(), context })]
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

/// The analysis that an answer is; none for an answer that fits no analysis.
pub(crate) fn read(text: &str) -> Option<Analysis> {
    let (begin, end) = (text.find('{')?, text.rfind('}')?);
    let value: Value = serde_json::from_str(text.get(begin..=end)?).ok()?;
    let Answer { strategy, reasoning, estimated_operations, requires_tools, requires_executors } =
        serde_json::from_value(value).ok()?;
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
    fn the_conversation_fits_its_budget_and_the_last_message_comes_first() {
        let user = |content: String| Message::User {
            id: MessageId(uuid::Uuid::nil()),
            at: Timestamp::default(),
            content,
            files: Vec::new(),
            context: String::new(),
        };
        let turn = |content: String| PastTurn { messages: vec![Arc::new(user(content))], ..PastTurn::default() };
        let history: VecDeque<PastTurn> =
            (0..100).map(|at| turn(format!("{at} {}", "x".repeat(900)))).chain([turn("the last".into())]).collect();
        const ROOM: usize = 10_000;
        let messages = messages(&history, ROOM);
        let [message] = messages.as_slice() else { panic!("{messages:?}") };
        let Message::User { content, context, .. } = message.as_ref() else { panic!("{message:?}") };
        assert_eq!(content, "the last");
        assert!(context.contains("person: 99 ") && !context.contains("person: 3 "), "{context}");
        assert!(content.len() + context.len() <= ROOM + 80, "{}", context.len());
    }
}
