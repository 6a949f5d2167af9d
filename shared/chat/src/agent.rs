//! The chat of a task's agent (seed 002): what is different about it. Its tools are those that the node lists, each confined to
//! its root, and only the task talks to it.

use domain::{
    AgentOf, AgentTool, ChatCommand, ChatConfig, ChatView, Code, Error, FilePath, Principal, TaskId, ToolCall, ToolSpec,
};
use serde_json::Value;
use std::{borrow::Cow, sync::Arc};
use tools::Registry;

/// The tools that a model is told of in this chat, in the registry's order.
pub(crate) fn specs(registry: &Registry, config: &ChatConfig) -> Arc<[ToolSpec]> {
    let Some(agent) = &config.agent else { return registry.specs() };
    let listed = |spec: &ToolSpec| {
        let mut of_name = named(agent, &spec.name).peekable();
        of_name.peek()?;
        // A model that does not know where it may go finds out by refusals, which cost steps.
        let roots: Option<Vec<&str>> =
            of_name.map(|tool| tool.root.as_ref().filter(|root| !root.is_root()).map(FilePath::as_str)).collect();
        let mut spec = spec.clone();
        if let Some(roots) = roots {
            spec.description.push_str(&format!(" Here it works within {} only.", roots.join(" or ")));
        }
        Some(spec)
    };
    registry.specs().iter().filter_map(listed).collect()
}

/// The arguments that a call runs with: those of the model, kept within the root of the tool. Refuses a tool that the node does
/// not list like one that does not exist, and whatever leaves the root.
pub(crate) fn arguments<'a>(config: &ChatConfig, call: &'a ToolCall) -> Result<Cow<'a, str>, Error> {
    let Some(agent) = &config.agent else { return Ok(Cow::Borrowed(&call.args)) };
    let mut refusal = None;
    for tool in named(agent, &call.tool) {
        let Some(root) = tool.root.as_ref().filter(|root| !root.is_root()) else {
            return Ok(Cow::Borrowed(&call.args));
        };
        match within(root, call) {
            Ok(args) => return Ok(Cow::Owned(args.to_string())),
            Err(error) => refusal = Some(error),
        }
    }
    Err(refusal.unwrap_or_else(|| tools::unknown(&call.tool, agent.tools.iter().map(|tool| tool.name.as_str()))))
}

fn within(root: &FilePath, call: &ToolCall) -> Result<Value, Error> {
    let args = call.parsed().map_err(|error| Error::invalid("args", format!("the arguments are not JSON: {error}")))?;
    tools::confined(&call.tool, args, root)
}

/// A node may list a tool twice, with two roots.
fn named<'a>(agent: &'a AgentOf, name: &str) -> impl Iterator<Item = &'a AgentTool> {
    agent.tools.iter().filter(move |tool| tool.name == name)
}

/// Why `by` may not tell this chat to do that, if it is so: what an agent reads and how it is set up is the flow's, and a
/// person who changed it would change what the task's history means.
pub(crate) fn refuses(config: &ChatConfig, command: &ChatCommand, by: &Principal) -> Option<Error> {
    let agent = config.agent.as_ref()?;
    let theirs = matches!(command, ChatCommand::StartTurn { .. } | ChatCommand::Configure { .. });
    (theirs && *by != Principal::System).then(|| belongs_to(agent.task))
}

/// Refuses what people do to a chat, where it is a task's.
pub(crate) fn check_not_of_task(view: &ChatView) -> Result<(), Error> {
    view.task_id.map_or(Ok(()), |task| Err(belongs_to(task)))
}

fn belongs_to(task: TaskId) -> Error {
    Error::new(Code::Conflict, "this chat is the conversation of a task's agent")
        .hint(format!("it belongs to the task {task}: answer what it asks, or stop the task"))
        .detail("task_id", task.to_string())
}
