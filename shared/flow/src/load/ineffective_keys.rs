//! Keys of nodes that have the right shape and could never act: each is refused by its name, or noted where other engines have it (step 3).

use super::{Loader, expressions::expression_reads};
use crate::{
    failure::{self, FailureName},
    flow::Remember,
    graph::Role,
    manifest::{ErrorRouteManifest, NodeKind, NodeManifest, OpManifest, RetriesManifest},
};
use domain::Code;

/// A key that cannot act.
struct IneffectiveKey {
    /// Where it is in its node.
    pointer: String,
    code: &'static str,
    message: String,
    hint: &'static str,
}

impl IneffectiveKey {
    fn new(pointer: impl Into<String>, code: &'static str, message: String, hint: &'static str) -> Self {
        Self { pointer: pointer.into(), code, message, hint }
    }
}

impl Loader<'_> {
    /// Refuses and notes the keys of nodes that could never act.
    pub(super) fn check_ineffective_keys(&mut self) {
        let nodes = std::mem::take(&mut self.docs.workflow.value.nodes);
        for (place, node) in nodes.iter().enumerate() {
            let name = node.id.as_deref().unwrap_or("the node");
            let mut dead = of_people(node, name);
            dead.extend(of_split(node, name));
            dead.extend(of_score(node, name));
            dead.extend(of_retries(node, name));
            dead.extend(of_error_routes(node, name));
            dead.extend(of_memory(node, name));
            for IneffectiveKey { pointer, code, message, hint } in dead {
                let at = self.docs.workflow.at(&format!("/nodes/{place}/{pointer}"));
                self.faults.refuse(at, code, message, hint);
            }
            self.note_tools(place, node, name);
            self.note_exit_codes(place, node, name);
        }
        self.docs.workflow.value.nodes = nodes;
    }

    /// A deterministic node calls the tool of its operation and no other. Flows of the field list tools at each node, so it is no fault.
    fn note_tools(&mut self, place: usize, node: &NodeManifest, name: &str) {
        if node.kind != Some(NodeKind::Deterministic) || node.role == Some(Role::Exit) {
            return;
        }
        let called = match &node.op {
            Some(OpManifest::Spec(op)) => op.tool.as_deref(),
            Some(OpManifest::Name(_)) | None => None,
        };
        for (index, tool) in node.tools.iter().enumerate().filter(|(_, tool)| Some(tool.as_str()) != called) {
            let at = self.docs.workflow.at(&format!("/nodes/{place}/tools/{index}"));
            let message = format!("`{name}` lists the tool `{tool}` and never calls it");
            self.faults.note(at, "no_effect", message, "a deterministic node calls the tool of its `op`");
        }
    }

    /// Nothing but a command ends with an exit code.
    fn note_exit_codes(&mut self, place: usize, node: &NodeManifest, name: &str) {
        let may_run_one = match &node.op {
            Some(OpManifest::Spec(op)) => {
                let known = &self.docs.tools.value.tools;
                let is_other = |tool: &String| known.iter().any(|known| known.id == *tool && known.command.is_none());
                op.command.is_some() || op.tool.as_ref().is_some_and(|tool| !is_other(tool))
            }
            Some(OpManifest::Name(_)) | None => false,
        };
        if may_run_one {
            return;
        }
        let retried = match &node.retries {
            Some(RetriesManifest::Policy(policy)) => policy.on.as_slice(),
            Some(RetriesManifest::Times(_)) | None => &[],
        };
        let mut named: Vec<(String, &String)> = Vec::new();
        named.extend(retried.iter().enumerate().map(|(index, failure)| (format!("retries/on/{index}"), failure)));
        for (route, ErrorRouteManifest { on, .. }) in node.on_error.iter().enumerate() {
            named.extend(on.iter().enumerate().map(|(index, name)| (format!("on_error/{route}/on/{index}"), name)));
        }
        let is_exit = |(_, failure): &(String, &String)| matches!(failure.parse(), Ok(FailureName::Exit(_)));
        for (pointer, failure) in named.into_iter().filter(is_exit) {
            let at = self.docs.workflow.at(&format!("/nodes/{place}/{pointer}"));
            let message = format!("`{name}` runs no command, so it never ends with `{failure}`");
            self.faults.note(at, "no_effect", message, "name codes of errors, such as UNPROCESSABLE");
        }
    }
}

/// A node that asks people is rows while it waits: it has no time but that of its question, and takes no slot.
fn of_people(node: &NodeManifest, name: &str) -> Vec<IneffectiveKey> {
    if node.ask.is_none() || node.kind == Some(NodeKind::Agent) || node.role == Some(Role::Exit) {
        return Vec::new();
    }
    let mut dead = Vec::new();
    if node.timeout_seconds.is_some() {
        let message = format!("`{name}` asks people, who do not answer within the time of a node");
        let hint = "say in `ask` how long to wait: `timeout_seconds`";
        dead.push(IneffectiveKey::new("timeout_seconds", "misplaced_key", message, hint));
    }
    if node.max_concurrency.is_some() {
        let message = format!("`{name}` asks people, and any number of questions may be open at once");
        dead.push(IneffectiveKey::new("max_concurrency", "misplaced_key", message, "remove it"));
    }
    dead
}

/// A split over no list makes one subtask per edge, each with the whole input.
fn of_split(node: &NodeManifest, name: &str) -> Vec<IneffectiveKey> {
    let Some(split) = node.split.as_ref().filter(|split| split.over.is_none() && node.role == Some(Role::Split)) else {
        return Vec::new();
    };
    let keys = [("as", split.item.is_some()), ("max_subtasks", split.max_subtasks.is_some())];
    let dead = keys.into_iter().filter(|(_, there)| *there).map(|(key, _)| {
        let message = format!("`{name}` has `{key}` and splits no list: it makes one subtask per edge");
        IneffectiveKey::new(format!("split/{key}"), "misplaced_key", message, "say which list in `over`, or remove it")
    });
    dead.collect()
}

/// A score sees the inputs of its merge and the task alone.
fn of_score(node: &NodeManifest, name: &str) -> Option<IneffectiveKey> {
    let score = node.merge.as_ref()?.score.as_deref()?;
    let read = expression_reads(score).into_iter().next()?;
    let message = format!("the score of `{name}` reads the output of `{read}`, which it does not see");
    let hint = "it sees `input` (`from`, `child`, `status`, `output`) and `task`";
    Some(IneffectiveKey::new("merge/score", "output_not_there", message, hint))
}

fn of_retries(node: &NodeManifest, name: &str) -> Vec<IneffectiveKey> {
    let Some(RetriesManifest::Policy(policy)) = &node.retries else { return Vec::new() };
    let mut dead = stops("retries/on", &policy.on);
    let shortest = policy.backoff_seconds.min(policy.max_backoff_seconds) * (1.0 - policy.jitter);
    if policy.within_seconds.is_some_and(|within| within < shortest) {
        let message = format!("`{name}` is never tried again: its first pause is longer than all of its time");
        let hint = "raise it, or shorten `backoff_seconds`";
        dead.push(IneffectiveKey::new("retries/within_seconds", "wrong_value", message, hint));
    }
    dead
}

fn of_error_routes(node: &NodeManifest, name: &str) -> Vec<IneffectiveKey> {
    let mut dead = Vec::new();
    let mut earlier: Vec<FailureName> = Vec::new();
    for (place, route) in node.on_error.iter().enumerate() {
        dead.extend(stops(&format!("on_error/{place}/on"), &route.on));
        let names: Vec<FailureName> = route.on.iter().filter_map(|name| name.parse().ok()).collect();
        let is_taken = |name: &FailureName| earlier.iter().any(|before| before.covers(*name));
        if !names.is_empty() && names.iter().all(is_taken) {
            let message = format!("no failure of `{name}` goes to `{}`: routes before it take them all", route.to);
            let hint = "put it before the wider one: the first that matches counts";
            dead.push(IneffectiveKey::new(format!("on_error/{place}"), "wrong_value", message, hint));
        }
        earlier.extend(names);
    }
    dead
}

/// A store takes no item with such a key or such tags, and that would be told once the node has done its work.
fn of_memory(node: &NodeManifest, name: &str) -> Vec<IneffectiveKey> {
    let Some(remember) = &node.remember else { return Vec::new() };
    let mut dead = Vec::new();
    let is_rendered = |key: &&str| key.contains("{{");
    if let Some(key) = remember.key.as_deref().filter(|key| !is_rendered(key))
        && (key.is_empty() || key.len() > Remember::LONGEST_KEY)
    {
        let message =
            format!("`{name}` remembers under a key of {} bytes; 1 to {} fit", key.len(), Remember::LONGEST_KEY);
        let hint = "shorten it, or leave it out: the key is the node's id then";
        dead.push(IneffectiveKey::new("remember/key", "wrong_value", message, hint));
    }
    if remember.tags.len() > Remember::MOST_TAGS {
        let message = format!("`{name}` remembers with {} tags; {} fit", remember.tags.len(), Remember::MOST_TAGS);
        dead.push(IneffectiveKey::new("remember/tags", "wrong_value", message, "leave some of them out"));
    }
    let long = remember.tags.iter().enumerate().filter(|(_, tag)| tag.len() > Remember::LONGEST_TAG);
    dead.extend(long.map(|(place, tag)| {
        let message = format!("a tag of `{name}` has {} bytes; {} fit", tag.len(), Remember::LONGEST_TAG);
        IneffectiveKey::new(format!("remember/tags/{place}"), "wrong_value", message, "shorten it")
    }));
    dead
}

/// The names that mean a stop, which is no failure.
fn stops(pointer: &str, names: &[String]) -> Vec<IneffectiveKey> {
    let is_stop = |name: &&String| matches!(name.parse(), Ok(FailureName::Code(Code::Cancelled)));
    let stops = names.iter().enumerate().filter(|(_, name)| is_stop(name));
    let dead = stops.map(|(place, name)| {
        let message = format!(
            "`{name}` is no failure: a task that is stopped ends, and its node is neither tried again nor routed"
        );
        IneffectiveKey::new(format!("{pointer}/{place}"), "unknown_failure", message, failure::NAMES)
    });
    dead.collect()
}
