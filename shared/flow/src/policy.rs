//! Permissions (spec 002 §5, §10.5): the node's own list of tools and their permissions, then `policy.yaml`.
//!
//! A denial is decided before anything runs and changes no route: the caller notes it in the history. A node that can do nothing
//! else fails like it would of anything else; an agent goes on with the tools that are left to it. Folders are enforced where
//! tools run.

use crate::{
    Flow,
    flow::{Node, PolicyRule, PolicyTarget, StoreKind, ToolBinding, ToolTarget},
    graph::Role,
};

/// A use that a node is about to make.
#[derive(Clone, Copy, Debug)]
pub enum Use<'a> {
    /// It executes.
    Node,
    /// It reads a store of memory.
    Context(StoreKind),
    /// It asks a model: `provider/model`.
    Model(&'a str),
    /// It asks the model of the installation, since its agent names none: `provider/model`, where that is known.
    DefaultModel(Option<&'a str>),
    /// It, or its agent, calls a tool.
    Tool(&'a ToolBinding),
    /// It runs a command of its own in the sandbox.
    Command,
}

/// The decision about a use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It may be.
    Permit,
    /// It may not be.
    Deny {
        /// The rule's id; `node.tools`, `node.role` or `permissions.…` for what no rule has to say.
        rule: String,
        /// The refused use, such as `tool deploy`.
        what: String,
        /// The reason, for people.
        reason: Option<String>,
    },
}

impl Decision {
    /// Whether it may be.
    pub fn permits(&self) -> bool {
        *self == Self::Permit
    }
}

/// The name that rules have for the model of agents that name none, beside its own.
const DEFAULT_MODEL: &str = "default";

/// Decides about a use. The node's own limits come first; then the first rule of the flow that matches decides; a use
/// that no rule matches is permitted.
pub fn permit(flow: &Flow, node: &Node, what: &Use<'_>) -> Decision {
    decide(&flow.policy, node, what)
}

fn decide(rules: &[PolicyRule], node: &Node, what: &Use<'_>) -> Decision {
    // An exit only gives back its input: there is nothing to deny.
    if node.role == Role::Exit && matches!(what, Use::Node) {
        return Decision::Permit;
    }
    if let Some((rule, reason)) = beyond(node, what) {
        return Decision::Deny { rule: rule.into(), what: describe_use(node, what), reason: Some(reason.into()) };
    }
    match rules.iter().find(|rule| matches(rule, node, what)) {
        Some(PolicyRule { id, allow: false, reason, .. }) => {
            Decision::Deny { rule: id.clone(), what: describe_use(node, what), reason: reason.clone() }
        }
        Some(_) | None => Decision::Permit,
    }
}

/// A use that the node itself does not allow for, in spite of any policy.
fn beyond(node: &Node, what: &Use<'_>) -> Option<(&'static str, &'static str)> {
    match what {
        Use::Tool(_) | Use::Model(_) | Use::DefaultModel(_) | Use::Command if node.role == Role::Exit => {
            Some(("node.role", "an exit only gives back what was decided before it"))
        }
        Use::Tool(binding) if !node.tools.contains(&binding.id) => {
            Some(("node.tools", "a node calls only the tools that it lists"))
        }
        Use::Tool(ToolBinding { target: ToolTarget::Command(_), permissions, .. }) if !permissions.allow_shell => {
            Some(("permissions.allow_shell", "the tool runs a command and has no permission for it"))
        }
        // A command runs in the sandbox, which has a network or none by the same permission.
        Use::Tool(binding) if binding.reaches_network && !binding.permissions.allow_network => {
            Some(("permissions.allow_network", "the tool can reach the network and has no permission for it"))
        }
        Use::Node | Use::Context(_) | Use::Model(_) | Use::DefaultModel(_) | Use::Tool(_) | Use::Command => None,
    }
}

fn target(what: &Use<'_>) -> PolicyTarget {
    match what {
        Use::Node => PolicyTarget::Node,
        Use::Context(_) => PolicyTarget::Context,
        Use::Model(_) | Use::DefaultModel(_) => PolicyTarget::Model,
        Use::Tool(_) | Use::Command => PolicyTarget::Tool,
    }
}

fn name<'a>(node: &'a Node, what: &'a Use<'_>) -> &'a str {
    match what {
        Use::Node => node.id.as_str(),
        Use::Context(store) => store.name(),
        Use::Model(model) => model,
        Use::DefaultModel(model) => model.unwrap_or(DEFAULT_MODEL),
        Use::Tool(binding) => &binding.id,
        Use::Command => "command",
    }
}

fn describe_use(node: &Node, what: &Use<'_>) -> String {
    let kind = match what {
        Use::Node => "node",
        Use::Context(_) => "context",
        Use::Model(_) | Use::DefaultModel(_) => "model",
        Use::Tool(_) => "tool",
        Use::Command => return "a command".into(),
    };
    format!("{kind} {}", name(node, what))
}

fn matches(rule: &PolicyRule, node: &Node, what: &Use<'_>) -> bool {
    let is_default = matches!(what, Use::DefaultModel(_));
    let fits = |name: &str| rule.names.iter().any(|pattern| is_like(pattern, name));
    rule.target == target(what)
        && (rule.names.is_empty() || fits(name(node, what)) || (is_default && fits(DEFAULT_MODEL)))
        && (rule.nodes.is_empty() || rule.nodes.iter().any(|pattern| is_like(pattern, node.id.as_str())))
}

/// Whether a name fits a pattern, in which `*` stands for anything.
pub fn is_like(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(first) else { return false };
    let mut parts = rest.split('*').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return name.ends_with(part);
        }
        // The first place is as good as any later one: the star takes the text before it.
        match name.split_once(part) {
            Some((_, after)) => name = after,
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests;
