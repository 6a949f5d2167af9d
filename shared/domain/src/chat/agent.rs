//! The role of a chat in a task or a session, and its tools there.

use crate::{ExecutorOf, FilePath, NodeId, TaskId, flow::FlowRef};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The role of a chat in a task: the conversation of one agent node. Its turns are the rounds of the node, and each of them reports to the
/// task when it ends. It is on no list of chats and has no file; the task's history has its messages. An executor of a session has the same
/// role: its session stands where the task is, and is told instead of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentOf {
    /// The task; of an executor the session, under its own id.
    pub task: TaskId,
    /// The tasks above it, the root first: a stop of one of them is a stop of this agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub above: Vec<TaskId>,
    /// The node.
    pub node: NodeId,
    /// The tools that the node lists; the agent has no others.
    #[serde(default)]
    pub tools: Vec<AgentTool>,
    /// How warm the model is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The part of the likeliest words that the model chooses from, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// The most tokens of one answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// Its priority among those that wait for slots, which is that of the task.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub priority: i8,
    /// The slots that a call of its model takes: names, and how many there are of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<(String, u32)>,
    /// The flow, if it says itself how the model is reached (`providers.yaml`); else the installation's own is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<FlowRef>,
    /// Whether it has not the home of its person: a file started its flow, which somebody else may have written.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_home: bool,
    /// Set on an executor: the session, and the step of its plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<Box<ExecutorOf>>,
}

impl AgentOf {
    /// The task that it works for; none for an executor.
    pub fn of_task(&self) -> Option<TaskId> {
        self.executor.is_none().then_some(self.task)
    }

    /// The task that people made: that of its node, or the one at the top of the tasks above that.
    pub fn root(&self) -> TaskId {
        self.task.top(&self.above)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_usual(priority: &i8) -> bool {
    *priority == 0
}

/// A tool that an agent of a task has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentTool {
    /// The name that the agent calls it by: its id in `tools.yaml`.
    pub name: String,
    /// Its purpose, in the words of the flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The action of a call.
    #[serde(default)]
    pub runs: AgentToolRuns,
    /// The folder that it may touch; everything when none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<FilePath>,
}

/// The actions of an agent's tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentToolRuns {
    /// The built-in tool that has its name.
    #[default]
    Named,
    /// This built-in tool.
    Builtin(String),
    /// An HTTP tool that the flow brings.
    Http {
        /// The name that servers know it by, `http__NAME`.
        name: String,
        /// Its declaration, as JSON.
        declaration: String,
    },
    /// A registered function.
    Function {
        /// The name that it is registered under.
        entrypoint: String,
        /// Its description for models.
        description: String,
        /// The JSON Schema of its arguments.
        parameters: Value,
    },
    /// A command in the workspace's sandbox.
    Command {
        /// Its words, each a template over `input`, the arguments.
        words: Vec<String>,
        /// Whether it may open sockets, if the installation lets any command do so.
        network: bool,
        /// The JSON Schema of its arguments.
        parameters: Value,
    },
    /// Nothing: it was denied before the agent was asked. A model is not told of it, and one that calls it anyway reads why not.
    Denied {
        /// The rule that denies it.
        rule: String,
        /// The reason, for people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}
