//! The chat of a task's agent (spec 002) and its differences: its tools are those that the node lists, under their ids in
//! `tools.yaml`, each confined to its root, and only the task talks to it.

use crate::tool_allowlist;
use domain::{
    AgentOf, AgentTool, AgentToolRuns, CLIENT_PREFIX, ChatCommand, ChatConfig, ChatId, ChatView, ClientEffects,
    ClientFunction, Code, Error, FilePath, Principal, Status, TaskId, ToolCall, ToolSpec,
};
use serde_json::Value;
use std::borrow::Cow;
use tools::{CommandTool, Effects, Registry, ToolKind};

/// The tool of a server that an agent's tool is, if it is one.
pub(crate) fn served(tool: &AgentTool) -> Option<&str> {
    builtin(tool).filter(|name| tools::is_served(name))
}

/// Whether a call by this name is run by a server.
pub(crate) fn is_served(config: &ChatConfig, name: &str) -> bool {
    match &config.agent {
        Some(agent) => named(agent, name).and_then(served).is_some(),
        None => tools::is_served(name),
    }
}

/// Whether a tool of a server is offered in this chat.
pub(crate) fn has_served(config: &ChatConfig, name: &str) -> bool {
    match &config.agent {
        Some(agent) => agent.tools.iter().any(|tool| served(tool) == Some(name)),
        None => tool_allowlist::has(config, name),
    }
}

/// The names of all tools of servers that the chat's flow lists, a line each: they are offered whatever the budget for others is.
pub(crate) fn listed_served(config: &ChatConfig) -> String {
    let tools = config.agent.iter().flat_map(|agent| &agent.tools);
    tools.filter_map(served).map(|name| format!("{name}\n")).collect()
}

/// The specifications of tools of servers as this chat's model reads them: an agent of a flow calls them by the ids of its flow.
pub(crate) fn told_served(config: &ChatConfig, specs: Vec<ToolSpec>) -> Vec<ToolSpec> {
    let Some(agent) = &config.agent else { return specs };
    let as_tool = |spec: &ToolSpec, tool: &AgentTool| {
        let own = tool.description.as_ref().map_or_else(String::new, |own| format!("{own} "));
        ToolSpec { name: tool.name.clone(), description: own + &spec.description, parameters: spec.parameters.clone() }
    };
    let of_spec = |spec: ToolSpec| {
        let tools = agent.tools.iter().filter(|tool| served(tool) == Some(spec.name.as_str()));
        tools.map(|tool| as_tool(&spec, tool)).collect::<Vec<_>>()
    };
    specs.into_iter().flat_map(of_spec).collect()
}

/// The declarations of the HTTP tools that the chat's flow brings, as files: names and texts.
pub(crate) fn declared(config: &ChatConfig) -> Vec<(String, String)> {
    let tools = config.agent.iter().flat_map(|agent| &agent.tools);
    let of = |tool: &AgentTool| match &tool.runs {
        AgentToolRuns::Http { name, declaration } => Some((format!("{name}.json"), declaration.clone())),
        _ => None,
    };
    tools.filter_map(of).collect()
}

/// The built-in tool that an agent's tool is, or the one of a server, if it is one.
pub(crate) fn builtin(tool: &AgentTool) -> Option<&str> {
    match &tool.runs {
        AgentToolRuns::Named => Some(&tool.name),
        AgentToolRuns::Builtin(name) | AgentToolRuns::Http { name, .. } => Some(name),
        AgentToolRuns::Function { .. } | AgentToolRuns::Command { .. } | AgentToolRuns::Denied { .. } => None,
    }
}

/// The name by which a persona lists the tool of a call; none for a tool of a flow that no persona lists, and for one that the node does not list.
pub(crate) fn listed_name<'a>(config: &'a ChatConfig, name: &'a str) -> Option<&'a str> {
    match &config.agent {
        Some(agent) => named(agent, name).and_then(builtin),
        None => Some(name),
    }
}

/// Whether a command may keep files at a path and below it: they are written as `write` writes them.
pub(crate) fn may_keep_at(config: &ChatConfig, path: &FilePath) -> bool {
    let is_open = |tool: &AgentTool| tool.root.as_ref().is_none_or(|root| path.is_within(root));
    let writes = |tool: &AgentTool| builtin(tool) == Some(tool_allowlist::WRITE) && is_open(tool);
    let may_write = match &config.agent {
        Some(agent) => agent.tools.iter().any(writes),
        None => tool_allowlist::has(config, tool_allowlist::WRITE),
    };
    may_write && tool_allowlist::may_write_below(config, path)
}

/// The effects of the function of the chat's client by this name; none for any other tool.
pub(crate) fn of_client(config: &ChatConfig, name: &str) -> Option<ClientEffects> {
    let is_it = |function: &&ClientFunction| name.starts_with(CLIENT_PREFIX) && function.spec.name == name;
    config.functions.iter().find(is_it).map(|function| function.effects)
}

/// A call that changes something is asked about as one of a server is: what it does is out of sight here, too.
pub(crate) fn client_kind(effects: ClientEffects) -> ToolKind {
    match effects {
        ClientEffects::Own => ToolKind::Ask,
        ClientEffects::Read => ToolKind::Read,
        ClientEffects::Write | ClientEffects::Execute | ClientEffects::Mcp => ToolKind::Served,
    }
}

/// The kind of a tool by its name; none for a tool that this chat does not have.
pub(crate) fn kind(registry: &Registry, config: &ChatConfig, name: &str) -> Option<ToolKind> {
    if let Some(effects) = of_client(config, name) {
        return Some(client_kind(effects));
    }
    let Some(agent) = &config.agent else { return registry.kind(name) };
    let tool = named(agent, name)?;
    match &tool.runs {
        // A pure function changes nothing.
        AgentToolRuns::Function { .. } => Some(ToolKind::Read),
        AgentToolRuns::Command { .. } => Some(ToolKind::Exec),
        AgentToolRuns::Named | AgentToolRuns::Builtin(_) | AgentToolRuns::Http { .. } => registry.kind(builtin(tool)?),
        AgentToolRuns::Denied { .. } => None,
    }
}

/// The effects of a call, by its arguments; `plan` is the plan file of a call that names none. An error for a call that has no effect.
pub(crate) fn effects(
    registry: &Registry,
    config: &ChatConfig,
    call: &ToolCall,
    plan: &FilePath,
) -> Result<Effects, Error> {
    domain::exact_numbers::check("args", &call.args)?;
    if let Some(effects) = of_client(config, &call.tool) {
        return Ok(Effects::none(client_kind(effects)));
    }
    let agent_tool = config.agent.as_ref().and_then(|agent| named(agent, &call.tool));
    match agent_tool.map(|tool| &tool.runs) {
        // Pure functions change nothing; commands are fenced where they run.
        Some(AgentToolRuns::Function { .. }) => Ok(Effects::none(ToolKind::Read)),
        Some(AgentToolRuns::Command { .. }) => Ok(Effects::none(ToolKind::Exec)),
        Some(AgentToolRuns::Builtin(name) | AgentToolRuns::Http { name, .. }) => {
            registry.effects(name, &call.args, plan)
        }
        Some(AgentToolRuns::Named | AgentToolRuns::Denied { .. }) | None => {
            registry.effects(&call.tool, &call.args, plan)
        }
    }
}

/// The implementation behind a call.
pub(crate) enum Runs<'a> {
    /// A built-in tool, with the arguments of the model, kept within the root of the tool.
    Builtin(&'a str, Cow<'a, str>),
    /// A registered function, with the schema of its arguments.
    Function(&'a str, &'a Value),
    /// A command of the flow, and the folder that it is kept within.
    Command(CommandTool<'a>, Option<&'a FilePath>),
}

/// Why a call does not run. A misuse has status `Failure`; a denial by a policy has `Partial`, and fails no node (spec 002 §10.5).
pub(crate) struct Refusal {
    pub error: Error,
    pub status: Status,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self { error, status: Status::Failure }
    }
}

/// Resolves a call to its implementation. Refuses a tool that the node does not list like one that does not exist, and each
/// path that leaves the root.
pub(crate) fn runs<'a>(config: &'a ChatConfig, call: &'a ToolCall) -> Result<Runs<'a>, Refusal> {
    let Some(agent) = &config.agent else {
        if tool_allowlist::is_withheld(config, &call.tool) {
            let error =
                Error::new(Code::Forbidden, "an agent of a team does not write the plan that all of them share");
            return Err(error.hint("plan_update_step claims a step of it, and ends it").into());
        }
        let is_own = of_client(config, &call.tool).is_some();
        if let Some(names) =
            tool_allowlist::names(config).filter(|_| !is_own && !tool_allowlist::has(config, &call.tool))
        {
            return Err(tools::unknown(&call.tool, names.into_iter()).into());
        }
        return Ok(Runs::Builtin(&call.tool, Cow::Borrowed(&call.args)));
    };
    let Some(tool) = named(agent, &call.tool) else {
        let callable = agent.tools.iter().filter(|tool| !matches!(tool.runs, AgentToolRuns::Denied { .. }));
        return Err(tools::unknown(&call.tool, callable.map(|tool| tool.name.as_str())).into());
    };
    let name = match &tool.runs {
        AgentToolRuns::Function { entrypoint, parameters, .. } => return Ok(Runs::Function(entrypoint, parameters)),
        AgentToolRuns::Command { words, network, parameters } => {
            let tool = CommandTool { name: &tool.name, words, network: *network, parameters };
            return Ok(Runs::Command(tool, agent_root(agent, &call.tool)));
        }
        AgentToolRuns::Denied { rule, reason } => {
            let error = Error::new(Code::Forbidden, format!("the tool {} is denied by {rule}", tool.name));
            let hint = reason.clone().unwrap_or_else(|| "go on without it".into());
            return Err(Refusal { error: error.hint(hint), status: Status::Partial });
        }
        AgentToolRuns::Named => &tool.name,
        AgentToolRuns::Builtin(name) | AgentToolRuns::Http { name, .. } => name,
    };
    let args = match tool.root.as_ref().filter(|root| !root.is_root()) {
        None => Cow::Borrowed(call.args.as_str()),
        Some(root) => Cow::Owned(within(root, name, call)?.to_string()),
    };
    Ok(Runs::Builtin(name, args))
}

fn within(root: &FilePath, name: &str, call: &ToolCall) -> Result<Value, Error> {
    let args = call.parsed().map_err(|error| Error::invalid("args", format!("the arguments are not JSON: {error}")))?;
    tools::confined(name, args, root)
}

/// The folder that a tool is kept within, where it is one.
fn agent_root<'a>(agent: &'a AgentOf, name: &str) -> Option<&'a FilePath> {
    named(agent, name)?.root.as_ref()
}

fn named<'a>(agent: &'a AgentOf, name: &str) -> Option<&'a AgentTool> {
    agent.tools.iter().find(|tool| tool.name == name)
}

/// Why `by` may not send this command to this chat, if so: the flow decides what an agent reads and how it is set up, and
/// a person who changed that would change the meaning of the task's history.
pub(crate) fn refuses(config: &ChatConfig, command: &ChatCommand, by: &Principal) -> Option<Error> {
    let theirs = matches!(command, ChatCommand::StartTurn(_) | ChatCommand::Configure { .. });
    if let Some(member) = config.member {
        return (theirs && *by != Principal::System).then(|| of_team(member.chat));
    }
    let agent = config.agent.as_ref()?;
    (theirs && *by != Principal::System).then(|| match &agent.executor {
        Some(executor) => of_session(executor.session),
        None => belongs_to(agent.task),
    })
}

/// Refuses a person's command to the chat of a task.
pub(crate) fn check_not_of_task(view: &ChatView) -> Result<(), Error> {
    if let Some(executor) = view.executor {
        return Err(of_session(executor.session));
    }
    if let Some(parent) = view.parent_chat_id {
        return Err(of_team(parent));
    }
    view.task_id.map_or(Ok(()), |task| Err(belongs_to(task)))
}

fn of_session(session: ChatId) -> Error {
    Error::new(Code::Conflict, "this chat is an executor of a session of the planner chat")
        .hint(format!("it belongs to the session {session}: say it there, or stop the session"))
        .detail("session_id", session.to_string())
}

fn of_team(parent: ChatId) -> Error {
    Error::new(Code::Conflict, "this chat is an agent of the team of another chat")
        .hint(format!("it belongs to the chat {parent}: say it there, or stop either of them"))
        .detail("parent_chat_id", parent.to_string())
}

fn belongs_to(task: TaskId) -> Error {
    Error::new(Code::Conflict, "this chat is the conversation of a task's agent")
        .hint(format!("it belongs to the task {task}: answer what it asks, or stop the task"))
        .detail("task_id", task.to_string())
}
