//! The Agent2Agent protocol 1.0, in its binding to JSON-RPC: messages of other agents in, tasks out.
//!
//! A task is a turn, and its context is the chat. A question and a request for permission are the state `input-required`: the next message with
//! the id of the task is the answer. The answer of the agent is one artifact of text, and each file that the turn has changed is another.
//! Personas are skills.

mod card;
mod ids;
mod list;
mod push;
mod refusal;
mod request;
mod task;

pub use card::{Card, Skill};
pub use ids::TaskId;
pub use list::{ListAsk, PageToken};
pub use push::{PushAsk, PushConfig, pushed};
pub use refusal::{Refusal, RefusalKind};
pub use request::{Ask, SentMessage, request};
pub use task::{Shows, State, Task};

use serde_json::{Value, json};

/// The version of the protocol.
pub const VERSION: &str = "1.0";
/// The media types of answers.
const OUTPUT: [&str; 2] = ["text/plain", "application/json"];

/// The answer to a request.
pub fn success(id: &Value, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}
