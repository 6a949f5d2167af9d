//! The format of the answer of a turn, and the other wishes of a message about the calls of the model in its turn.

use crate::ModelSettings;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// The format that the answer of a turn has to have: JSON that fits a schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerFormat {
    /// The client's name for the schema; none where any JSON object is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The JSON Schema.
    pub schema: Arc<Value>,
    /// Whether the provider is asked to hold the model to the schema. The answer is checked in any case.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub strict: bool,
}

/// The wishes of a message about the calls of the model in its turn. They count from the beginning of that turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TurnWishes {
    /// Settings that the chat has from this turn on. One that is none stays as it is.
    #[serde(skip_serializing_if = "ModelSettings::is_empty")]
    pub settings: ModelSettings,
    /// The format of the answer of this turn alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<AnswerFormat>,
}

/// The JSON of an answer, with its text: the whole answer, or its one fenced block, or the text between its outermost brackets.
pub fn answer_json(text: &str) -> Option<(Value, &str)> {
    let text = text.trim();
    if let Ok(value) = serde_json::from_str(text) {
        return Some((value, text));
    }
    if let Some((_, rest)) = text.split_once("```")
        && let Some((block, _)) = rest.split_once("```")
    {
        let block = block.trim_start_matches(|letter: char| letter.is_ascii_alphanumeric()).trim();
        if let Ok(value) = serde_json::from_str(block) {
            return Some((value, block));
        }
    }
    let begin = text.find(['{', '['])?;
    let end = text.rfind(['}', ']'])?;
    let json = text.get(begin..=end)?;
    Some((serde_json::from_str(json).ok()?, json))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_json_of_an_answer_is_found_in_what_models_write_around_it() {
        for text in
            ["{\"a\": 1}", "```json\n{\"a\": 1}\n```", "Here you are: {\"a\": 1}. Good luck!", "```\n{\"a\":1}```"]
        {
            assert_eq!(answer_json(text).map(|(value, _)| value), Some(json!({ "a": 1 })), "{text}");
        }
        assert_eq!(answer_json("I cannot do that."), None);
    }
}
