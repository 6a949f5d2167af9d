//! Binds tools to their targets, and checks that agents can have those that their nodes list (step 6).

use super::{
    Loader,
    known_names::is_served,
    report::{ENTRYPOINTS, meant, there_are},
};
use crate::{
    flow::{Permissions, ToolBinding, ToolTarget},
    manifest::{NodeKind, Root, ToolManifest},
    op::alias,
};
use domain::FilePath;
use std::collections::HashMap;

/// The longest name of a tool that every provider of models takes.
const LONGEST_NAME: usize = 64;

impl Loader<'_> {
    /// Step 6: binds tools to their targets, and agents to models and tools.
    pub(super) fn register_tools(&mut self) -> HashMap<String, ToolBinding> {
        self.check_models();
        let tools = std::mem::take(&mut self.docs.tools.value.tools);
        let mut bound = HashMap::with_capacity(tools.len());
        for (place, tool) in tools.iter().enumerate() {
            let root = match &tool.permissions.root {
                Some(Root::Folder(root)) => Some(root.clone()),
                Some(Root::None(_)) | None => None,
            };
            if root.as_ref().is_some_and(|root| !root.starts_with('/') || FilePath::parse(root).is_err()) {
                let at = self.docs.tools.at(&format!("/tools/{place}/permissions/root"));
                let hint = "it begins with `/` and has no `..`, such as `/projects`";
                self.faults.add(at, "wrong_value", "a root is a folder of the workspace", hint);
            }
            let Some(target) = self.target(place, tool) else { continue };
            let reaches_network = match &target {
                ToolTarget::Builtin(name) => is_served(name) || self.known.networked.contains(name),
                ToolTarget::Function(name) => self.known.networked.contains(name),
                ToolTarget::Command(_) => false,
            };
            let permissions = Permissions {
                root,
                allow_network: tool.permissions.allow_network,
                allow_shell: tool.permissions.allow_shell,
            };
            let (id, description) = (tool.id.clone(), tool.description.clone());
            bound.entry(id.clone()).or_insert(ToolBinding { id, description, target, permissions, reaches_network });
        }
        self.docs.tools.value.tools = tools;
        self.check_tools_of_agents(&bound);
        bound
    }

    fn target(&mut self, place: usize, tool: &ToolManifest) -> Option<ToolTarget> {
        let id = &tool.id;
        let entrypoint = match (&tool.entrypoint, &tool.command) {
            (None, Some(command)) if !command.is_empty() => return Some(ToolTarget::Command(command.clone())),
            (Some(_), Some(_)) => {
                let at = self.docs.tools.at(&format!("/tools/{place}/command"));
                let message = format!("`{id}` has an entry point and a command");
                self.faults.add(at, "misplaced_key", message, "keep one of them");
                return None;
            }
            (Some(entrypoint), None) => entrypoint,
            // A tool that is called like a built-in one is that one.
            (None, _) => id,
        };
        if self.known.functions.contains(entrypoint) {
            return Some(ToolTarget::Function(entrypoint.clone()));
        }
        if let Some(builtin) = self.known.builtin(entrypoint) {
            return Some(ToolTarget::Builtin(builtin.into()));
        }
        let mut hint = self.entrypoints(entrypoint);
        if tool.entrypoint.is_none() {
            hint.insert_str(0, "say what it runs: `entrypoint: …` or `command: […]`; ");
        }
        let (key, message) = match &tool.entrypoint {
            Some(_) => ("/entrypoint", format!("nothing is registered as `{entrypoint}`")),
            None => ("", format!("`{id}` has no `entrypoint` and is no built-in tool")),
        };
        let at = self.docs.tools.at(&format!("/tools/{place}{key}"));
        self.faults.add(at, "unknown_entrypoint", message, hint);
        None
    }

    /// The hint for an unknown entry point: the nearest name, and the known ones.
    fn entrypoints(&self, entrypoint: &str) -> String {
        let (tools, functions) = (&self.known.tools, &self.known.functions);
        let module = |name: &str| name.split_once(':').map(|(module, _)| module.to_owned());
        // Of a tool the module does not count, unless functions have it.
        let bare = entrypoint.rsplit([':', '.', '/']).next().unwrap_or(entrypoint);
        let of_functions =
            module(entrypoint).is_some_and(|of| functions.iter().any(|name| module(name).as_ref() == Some(&of)));
        let name = if of_functions { entrypoint } else { bare };
        let all: Vec<&str> = tools.iter().chain(functions).map(String::as_str).collect();
        let mut with_usual = all.clone();
        for usual in alias::known().filter(|usual| self.known.builtin(usual).is_some()) {
            with_usual.push(usual);
        }
        let near = meant(name, &with_usual);
        let near = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
        let there_are = there_are(name, &all, ENTRYPOINTS).unwrap_or_else(|| "nothing is registered".into());
        format!("{near}{there_are}")
    }

    /// An agent calls the tools of its node by their ids, so every one of these must be something that a model can call.
    fn check_tools_of_agents(&mut self, bound: &HashMap<String, ToolBinding>) {
        let nodes = self.docs.workflow.value.nodes.iter().enumerate();
        for (place, node) in nodes.filter(|(_, node)| node.kind == Some(NodeKind::Agent)) {
            for (index, binding) in
                node.tools.iter().enumerate().filter_map(|(index, id)| Some((index, bound.get(id)?)))
            {
                let id = &binding.id;
                let (code, message, hint) = match &binding.target {
                    _ if !is_callable_name(id) => (
                        "tool_name",
                        format!("no model can call a tool `{id}`"),
                        format!("rename it in tools.yaml: letters, digits, `_` and `-`, {LONGEST_NAME} at most"),
                    ),
                    ToolTarget::Function(name) if !self.known.callable.contains(name) => (
                        "function_without_schema",
                        format!("an agent cannot call `{id}`: no schema of arguments is registered with `{name}`"),
                        "register it with a signature, or call it in a deterministic node".into(),
                    ),
                    ToolTarget::Command(_) if !self.known.sandbox => (
                        "no_sandbox",
                        format!("an agent cannot call `{id}`: it is a command, and no sandbox is configured"),
                        "give the agent a built-in tool or a registered function, or configure a sandbox".into(),
                    ),
                    ToolTarget::Builtin(_) | ToolTarget::Function(_) | ToolTarget::Command(_) => continue,
                };
                let at = self.docs.workflow.at(&format!("/nodes/{place}/tools/{index}"));
                self.faults.add(at, code, message, hint);
            }
        }
    }
}

fn is_callable_name(id: &str) -> bool {
    id.len() <= LONGEST_NAME && id.bytes().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, b'_' | b'-'))
}
