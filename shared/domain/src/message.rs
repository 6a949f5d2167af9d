//! The messages of a chat, and the descriptions of tools for models.

use crate::{CallId, FilePath, MessageId, Timestamp, UserId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// One message of a chat's history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// A person's message.
    User {
        /// Its id.
        id: MessageId,
        /// Its time.
        at: Timestamp,
        /// The text.
        content: String,
        /// Files that were attached.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<FilePath>,
        /// The text for the model after the words: the attached files and the plan as they were then.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        context: String,
        /// The person who wrote it; none where a program did, as in the chat of a task's agent. Older logs lack it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user_id: Option<UserId>,
    },
    /// The model's message, with its tool calls.
    Assistant {
        /// Its id.
        id: MessageId,
        /// When it was complete.
        at: Timestamp,
        /// The text; may be empty when there are calls.
        content: String,
        /// The calls, in order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<ToolCall>,
        /// The model's reasoning text, if it gave one.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reasoning: String,
        /// Data that the provider wants back unchanged with this message (signatures); opaque to us.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        provider: Value,
    },
    /// The answer to one tool call.
    Tool {
        /// The call.
        call_id: CallId,
        /// The tool's name.
        tool: String,
        /// When it was answered.
        at: Timestamp,
        /// The output for the model.
        output: String,
        /// Whether it succeeded.
        success: bool,
    },
    /// A note by BuildScale that the model reads, such as the marker of an interruption (spec 000 §6).
    System {
        /// Its id.
        id: MessageId,
        /// Its time.
        at: Timestamp,
        /// The text.
        content: String,
    },
}

impl Message {
    /// When it was said.
    pub fn at(&self) -> Timestamp {
        match self {
            Self::User { at, .. } | Self::Assistant { at, .. } | Self::Tool { at, .. } | Self::System { at, .. } => *at,
        }
    }

    /// Its size as a model counts it, estimated at four characters per token (spec 003 §14) with a little for its frame.
    pub fn tokens(&self) -> u64 {
        const FRAME: u64 = 4;
        let bytes = match self {
            Self::User { content, context, .. } => content.len() + context.len(),
            Self::Assistant { content, calls, reasoning, .. } => {
                content.len()
                    + reasoning.len()
                    + calls.iter().map(|call| call.tool.len() + call.args.len() + 40).sum::<usize>()
            }
            Self::Tool { output, .. } => output.len() + 40,
            Self::System { content, .. } => content.len(),
        };
        bytes as u64 / 4 + FRAME
    }
}

/// One call of a tool by a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Its id, also towards the model.
    pub call_id: CallId,
    /// The tool's name as the model gave it; it may not exist.
    pub tool: String,
    /// The arguments exactly as the model wrote them: JSON, or text that the model took for JSON. Kept as text so that the bytes that a
    /// model gets back never change.
    pub args: String,
}

impl ToolCall {
    /// The arguments as JSON; an empty text is an empty object, and a number that would not be kept as it is stands as a text.
    ///
    /// # Errors
    /// The fault of a text that is no JSON, with its line and column.
    pub fn parsed(&self) -> Result<Value, serde_json::Error> {
        if self.args.trim().is_empty() {
            Ok(Value::Object(Default::default()))
        } else {
            serde_json::from_str(&crate::exact_numbers::quoted(&self.args))
        }
    }
}

/// The most bytes of a tool's name in a history that is sent to a provider.
const NAME_BYTES: usize = 64;

/// A tool's name in the form that every provider takes in a history: `^[a-zA-Z0-9_-]{1,64}$`. A name of that form stays what it
/// is. Any other name, which only a model can have made up, gets another character for each one that is not allowed, and is
/// cut; the same name always gets the same form, so that the bytes a provider has cached do not change.
pub fn name_for_providers(name: &str) -> std::borrow::Cow<'_, str> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.len() <= NAME_BYTES && name.chars().all(allowed) {
        return name.into();
    }
    let form: String = name.chars().map(|c| if allowed(c) { c } else { '_' }).take(NAME_BYTES).collect();
    if form.is_empty() { "unnamed".into() } else { form.into() }
}

/// The start of the names of functions that the client of a chat runs itself.
pub const CLIENT_PREFIX: &str = "client__";

/// A function that the client of a chat runs itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClientFunction {
    /// As the model is told about it, by a name with [`CLIENT_PREFIX`].
    #[serde(flatten)]
    pub spec: Arc<ToolSpec>,
    /// The effects of a call.
    #[serde(default, skip_serializing_if = "ClientEffects::are_own")]
    pub effects: ClientEffects,
}

/// The effects of a call of a client's function, as the client declares them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientEffects {
    /// The client decides by itself whether it runs a call.
    #[default]
    Own,
    /// It looks, and can be run again at will.
    Read,
    /// It changes a file, and can be run again: a person is asked before.
    Write,
    /// It runs a command, once: a person is asked before.
    Execute,
    /// It calls a tool of an MCP server of the client's, once: a person is asked before.
    Mcp,
}

impl ClientEffects {
    /// Whether the client decides by itself.
    pub fn are_own(&self) -> bool {
        *self == Self::Own
    }
}

/// A tool as a model is told about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Its name: lower case and underscores.
    pub name: String,
    /// Its purpose and when to use it, for the model.
    pub description: String,
    /// The JSON Schema (2020-12) of its arguments.
    pub parameters: Value,
}

/// The usage of a model call, a turn or a chat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens read, cached ones included.
    pub input_tokens: u64,
    /// Tokens written, reasoning included.
    pub output_tokens: u64,
    /// Those of the tokens read that came from the provider's cache.
    pub cached_tokens: u64,
    /// The cost, in US dollars; 0 if the price is not known.
    pub cost_usd: f64,
}

impl Usage {
    /// Whether nothing was used.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// The tokens read and written.
    pub fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

// A sum that wraps would be below every limit.
impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(other.cached_tokens);
        self.cost_usd += other.cost_usd;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts with the tokens that `tiktoken-rs` 0.12.1 counts in them with `o200k_base`.
    #[derive(Deserialize)]
    struct Counted {
        kind: String,
        tokens: u64,
        text: String,
    }

    #[test]
    fn an_estimate_of_text_is_near_the_count_of_a_tokenizer_and_that_of_records_is_not() {
        let texts: Vec<Counted> = serde_json::from_str(include_str!("../tests/data/tokens.json")).unwrap_or_default();
        let (id, at) = (MessageId(uuid::Uuid::nil()), Timestamp::default());
        let estimate = |content| Message::System { id, at, content }.tokens();
        let frame = estimate(String::new());
        let errors: Vec<(String, i64)> = texts
            .into_iter()
            .map(|Counted { kind, tokens, text }| {
                let estimated = estimate(text) - frame;
                (kind, (estimated * 100 / tokens).cast_signed() - 100)
            })
            .collect();
        let percent = [
            ("english", 14),
            ("messages", -2),
            ("rust", -15),
            ("declaration", 11),
            ("front matter", -23),
            ("german", 20),
            ("french", 17),
            ("chinese", 16),
            ("japanese", -6),
            ("korean", 13),
            ("russian", 99),
            ("records", -41),
            ("numbers", -54),
        ];
        assert_eq!(errors, percent.map(|(kind, error)| (kind.to_owned(), error)));
    }

    #[test]
    fn sums_of_tokens_stay_at_the_largest_number_and_above_every_limit() {
        let mut used = Usage { input_tokens: u64::MAX - 1, output_tokens: u64::MAX, cached_tokens: 3, cost_usd: 0.5 };
        used += Usage { input_tokens: 2, output_tokens: 2, cached_tokens: 4, cost_usd: 0.25 };
        let most = Usage { input_tokens: u64::MAX, output_tokens: u64::MAX, cached_tokens: 7, cost_usd: 0.75 };
        assert_eq!((used, used.tokens()), (most, u64::MAX));
    }

    #[test]
    fn names_for_providers_are_stable_and_keep_what_is_allowed() {
        assert_eq!(name_for_providers("plan_write-2"), "plan_write-2");
        assert_eq!(name_for_providers("functions.write"), "functions_write");
        assert_eq!(name_for_providers(""), "unnamed");
        assert_eq!(name_for_providers(&"x".repeat(100)), "x".repeat(64));
        assert_eq!(name_for_providers("ünï tool"), "_n__tool");
    }
}
