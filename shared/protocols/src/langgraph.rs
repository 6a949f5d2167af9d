//! The protocol of the LangGraph server (`@langchain/langgraph-sdk` with its `useStream`, `langgraph-sdk`): assistants, threads, runs, crons and
//! the store.
//!
//! Personas and flows are assistants. A thread is a chat, or a task of a flow. A run is one [part](crate::Part) of a turn, or the stretch of a
//! task up to its next question or breakpoint. The state of a chat is its messages, that of a task its current output. A checkpoint is the number
//! of an event of the log. A question and a request for permission are interrupts, and `command.resume` of the next run has the answer.

mod chat;
mod cron;
mod frames;
mod ids;
mod labels;
mod messages;
mod request;
mod resume;
mod state;
mod store;
mod task;
mod thread;

pub use chat::{ChatRun, Conversation};
pub use cron::{end_time, expression, rule, until};
pub use ids::{AssistantKind, RunId, checkpoint_number};
pub use labels::{labels, metadata};
pub use request::{Input, Run, Strategy, Words, plain, words};
pub use resume::{Resumed, resumed};
pub use state::{History, RunState, Status, run};
pub use store::{Item, folder, item, namespace_of};
pub use task::{TaskRun, TaskThread};
pub use thread::ThreadRuns;

use domain::Timestamp;
use serde_json::{Value, json};

/// The modes in which a run can be streamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// The whole state after each step.
    Values,
    /// Messages as they grow (`messages`).
    Messages,
    /// The pieces of messages (`messages-tuple`).
    Tuples,
    /// The output of each step.
    Updates,
    /// Files, plan and usage of a chat; the events of a task.
    Custom,
    /// The begin and the end of each call of a tool.
    Tools,
}

impl Mode {
    /// The mode of this name, if it is one that is spoken here.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "values" => Self::Values,
            "messages" => Self::Messages,
            "messages-tuple" => Self::Tuples,
            "updates" => Self::Updates,
            "custom" => Self::Custom,
            "tools" => Self::Tools,
            _ => return None,
        })
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Values => "values",
            Self::Messages => "messages",
            Self::Tuples => "messages-tuple",
            Self::Updates => "updates",
            Self::Custom => "custom",
            Self::Tools => "tools",
        }
    }

    /// The modes of these names; `values` when there are none.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a name of no mode that is spoken here.
    pub fn all<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Vec<Self>, domain::Error> {
        let mut modes = Vec::new();
        for name in names {
            let shown: String = name.chars().take(32).collect();
            let mode = Self::named(name).ok_or_else(|| {
                domain::Error::invalid("stream_mode", format!("the mode {shown:?} cannot be honoured here"))
                    .hint("one of: values, messages, messages-tuple, updates, custom, tools")
            })?;
            modes.push(mode);
        }
        if modes.is_empty() {
            modes.push(Self::Values);
        }
        Ok(modes)
    }
}

/// An assistant: a persona, or a flow.
pub fn assistant(kind: AssistantKind, name: &str, title: &str, description: &str, at: Timestamp) -> Value {
    json!({
        "assistant_id": kind.id(name), "graph_id": name, "name": title, "description": description, "version": 1,
        "config": {}, "context": {}, "metadata": { "created_by": "system", "kind": kind.name() },
        "created_at": at, "updated_at": at,
    })
}

/// The schemas of an assistant: those of a persona, or of a flow with this schema of its input.
pub fn schemas(kind: AssistantKind, name: &str, input: Option<Value>) -> Value {
    let messages = json!({
        "type": "object", "properties": { "messages": { "type": "array", "items": { "type": "object" } } },
        "required": ["messages"],
    });
    let (input, state) = match kind {
        AssistantKind::Persona => (messages.clone(), messages),
        AssistantKind::Flow => (input.unwrap_or_else(|| json!({})), json!({})),
    };
    let config = json!({ "type": "object", "properties": { "model": { "type": "string" } } });
    json!({
        "graph_id": name, "input_schema": input, "output_schema": state, "state_schema": state,
        "config_schema": config, "context_schema": config,
    })
}

/// The graph of a persona: the model, and its tools.
pub fn persona_graph() -> Value {
    let node = |id: &str| json!({ "id": id, "type": "runnable", "data": { "name": id } });
    let edge = |source: &str, target: &str, conditional: bool| json!({ "source": source, "target": target, "conditional": conditional });
    json!({
        "nodes": [node("__start__"), node("agent"), node("tools"), node("__end__")],
        "edges": [
            edge("__start__", "agent", false), edge("agent", "tools", true), edge("agent", "__end__", true),
            edge("tools", "agent", false),
        ],
    })
}
