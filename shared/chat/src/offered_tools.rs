//! The tools that a chat offers to its model.

use crate::{
    agent::{builtin, client_kind, served},
    machine::ChatMachine,
    tool_allowlist,
};
use domain::{AgentTool, AgentToolRuns, ChatConfig, ToolSpec};
use std::sync::Arc;
use tools::{Registry, ToolKind};

/// The tools that a model is told of in this chat: those that its persona and its mode allow, or those of the node in the order
/// of its list.
pub(crate) fn specs(machine: &ChatMachine, config: &ChatConfig) -> Arc<[Arc<ToolSpec>]> {
    let registry = &machine.tools;
    let Some(agent) = &config.agent else {
        let all = registry.specs();
        let offered = |spec: &Arc<ToolSpec>| {
            let kind = registry.kind(&spec.name);
            let is_for_nobody = kind == Some(ToolKind::Ask) && config.is_unattended();
            tool_allowlist::has(config, &spec.name)
                && kind.is_some_and(|kind| machine.gate.offers(config, kind))
                && !is_for_nobody
        };
        // Nearly always the same list for everybody, and then nothing is copied.
        if config.tools.is_none() && config.functions.is_empty() && all.iter().all(offered) {
            return all;
        }
        let optional = registry.optional();
        let listed = optional.iter().filter(|_| config.tools.is_some());
        let own =
            all.iter().chain(listed).filter(|spec| offered(spec)).map(|spec| tool_allowlist::with_globs(config, spec));
        let of_client =
            config.functions.iter().filter(|function| machine.gate.offers(config, client_kind(function.effects)));
        return own.chain(of_client.map(|function| Arc::clone(&function.spec))).collect();
    };
    agent.tools.iter().filter_map(|tool| spec(registry, config, tool)).collect()
}

/// Whether tools of servers are offered in this chat, beside those of [`specs`].
pub(crate) fn offers_served(machine: &ChatMachine, config: &ChatConfig) -> bool {
    let may_have = match &config.agent {
        Some(agent) => agent.tools.iter().any(|tool| served(tool).is_some()),
        None => tool_allowlist::may_have_served(config),
    };
    machine.tools.has_servers() && may_have && machine.gate.offers(config, ToolKind::Served)
}

/// The specification of a tool as the model reads it; none for a tool that the model cannot call.
fn spec(registry: &Registry, config: &ChatConfig, tool: &AgentTool) -> Option<Arc<ToolSpec>> {
    let mut of_registry = None;
    let (does, parameters) = match &tool.runs {
        AgentToolRuns::Function { description, parameters, .. } => (description.as_str(), parameters),
        AgentToolRuns::Command { parameters, .. } => ("Runs a command in the sandbox.", parameters),
        AgentToolRuns::Named | AgentToolRuns::Builtin(_) => {
            let spec = registry.spec(builtin(tool)?)?;
            of_registry = Some(spec);
            (spec.description.as_str(), &spec.parameters)
        }
        // Told of with the tools of servers.
        AgentToolRuns::Http { .. } | AgentToolRuns::Denied { .. } => return None,
    };
    let mut description = tool.description.as_ref().map_or_else(String::new, |own| format!("{own} "));
    description.push_str(does);
    // A model that does not know where it may go finds out by refusals, which cost steps.
    if let Some(root) = tool.root.as_ref().filter(|root| !root.is_root()) {
        description.push_str(&format!(" Here it works within {root} only."));
    }
    if let Some(name) = builtin(tool) {
        description.push_str(&tool_allowlist::bounds(config, name));
    }
    let description = description.trim();
    // Nothing is copied where the node adds nothing.
    if let Some(same) = of_registry.filter(|spec| spec.name == tool.name && spec.description == description) {
        return Some(Arc::clone(same));
    }
    Some(Arc::new(ToolSpec {
        name: tool.name.clone(),
        description: description.to_owned(),
        parameters: parameters.clone(),
    }))
}
