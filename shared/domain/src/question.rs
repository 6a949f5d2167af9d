//! The questions of agents.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One question of `ask_user`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// The key of the answer.
    pub name: String,
    /// The text of the question.
    pub question: String,
    /// The JSON Schema of the answer.
    pub schema: Value,
    /// Ready answers to show as buttons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buttons: Option<Vec<Value>>,
}
