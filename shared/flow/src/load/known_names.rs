//! Names outside of its folder that a flow can refer to.

use crate::op::{self, function::Functions};
use domain::{
    Limits,
    served::{CODE_PREFIX, HTTP_PREFIX, SERVED_PREFIX, WEB_FETCH, WEB_SEARCH},
};
use std::collections::BTreeSet;

/// The providers that an installation can have: those that its configuration has keys for.
pub const SERVED: [&str; 7] = ["openai", "anthropic", "gemini", "openrouter", "ollama", "bedrock", "scripted"];

/// Names of tools, functions, models and personas outside of a flow's folder, and what the server allows.
#[derive(Clone, Debug)]
pub struct KnownNames {
    /// Built-in tools, by name.
    pub tools: BTreeSet<String>,
    /// Registered Rust functions, `module:function`.
    pub functions: BTreeSet<String>,
    /// Those of the functions that agents can call, because a schema of their arguments is registered with them.
    pub callable: BTreeSet<String>,
    /// Tools and functions that can reach the network, which takes `allow_network`. No built-in one can.
    pub networked: BTreeSet<String>,
    /// Whether a sandbox is configured, without which no command runs.
    pub sandbox: bool,
    /// Personas of `/system/agents`; none when they are not known here (then none is missed).
    pub personas: Option<BTreeSet<String>>,
    /// Models, `provider/model`, with `provider/*` for all of a provider; none when they are not known here.
    pub models: Option<BTreeSet<String>>,
    /// The model of agents that name none, `provider/model`; none when it is not known here.
    pub default_model: Option<String>,
    /// Whether an embedding model is configured; none when that is not known here.
    pub embeds: Option<bool>,
    /// Whether observers can keep files, for which a disk has to outlive the process; none when that is not known here.
    pub observer_files: Option<bool>,
    /// The limits of a turn on the server that runs the flow: no agent goes beyond them. None when they are not known here, as of a check without a
    /// server: the usual ones count then, and nothing is told about wider ones.
    pub limits: Option<Limits>,
}

/// Whether a name is that of a tool of a server, an HTTP tool or a tool in code of the workspace, or the web.
pub(super) fn is_served(name: &str) -> bool {
    let of_server = name.strip_prefix(SERVED_PREFIX).and_then(|rest| rest.split_once("__"));
    of_server.is_some_and(|(server, tool)| !server.is_empty() && !tool.is_empty())
        || [HTTP_PREFIX, CODE_PREFIX].iter().any(|kind| name.strip_prefix(*kind).is_some_and(|tool| !tool.is_empty()))
        || [WEB_FETCH, WEB_SEARCH].contains(&name)
}

impl Default for KnownNames {
    /// The names that BuildScale comes with: its tools and its functions. Personas and models are not known.
    fn default() -> Self {
        Self {
            tools: op::alias::builtin().map(Into::into).collect(),
            functions: BTreeSet::new(),
            callable: BTreeSet::new(),
            networked: BTreeSet::new(),
            sandbox: false,
            personas: None,
            models: None,
            default_model: None,
            embeds: None,
            observer_files: None,
            limits: None,
        }
        .with_functions(&Functions::builtin())
    }
}

impl KnownNames {
    /// The same, with these functions and no others.
    #[must_use]
    pub fn with_functions(self, functions: &Functions) -> Self {
        let callable = functions.known().filter(|name| functions.signature(name).is_some()).map(Into::into).collect();
        Self { functions: functions.known().map(Into::into).collect(), callable, ..self }
    }

    /// The built-in tool that an entry point means, by its own or a usual name; or the tool of a server, which is known by its name alone: its server
    /// says whether it is there when it is called.
    pub(super) fn builtin<'a>(&'a self, entrypoint: &'a str) -> Option<&'a str> {
        let name = op::alias::alias(entrypoint).unwrap_or(entrypoint);
        self.tools.get(name).map(String::as_str).or_else(|| is_served(entrypoint).then_some(entrypoint))
    }

    /// Whether a model is known here, by `provider/model`.
    pub(super) fn has_model(&self, model: &str) -> bool {
        let provider = model.split_once('/').map(|(provider, _)| provider);
        // Only the installation knows the models of a provider; the providers themselves are known anywhere.
        let Some(models) = &self.models else { return provider.is_some_and(|provider| SERVED.contains(&provider)) };
        let any_of = provider.map(|provider| format!("{provider}/*"));
        models.contains(model) || any_of.is_some_and(|any| models.contains(&any))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_of_servers_are_known_by_the_form_of_their_names() {
        let known = KnownNames::default();
        for name in ["mcp__git__git_log", "http__open_ticket", "code__ring", "web_fetch", "web_search"] {
            assert_eq!(known.builtin(name), Some(name));
        }
        for other in ["mcp__git", "mcp____x", "http__", "code__", "web_other", "mcp_search"] {
            assert_eq!(known.builtin(other), None, "{other}");
        }
    }
}
