//! The files whose new versions start tasks: patterns that make sense, each once.

use super::{Loader, report::Faults, schema_check::SchemaCheck, tree::SourceTree};
use crate::{
    manifest::{self, schema_of},
    trigger::{MAX_TRIGGERS, Trigger, overlap},
};

/// The triggers of a `workflow.yaml` of this name, without a look at the rest of the flow. They are read as the check reads them, so these are the triggers
/// that the flow has. Those that make no sense are left out, and a file that cannot be read has none: the check of the flow tells about both.
pub fn triggers_of_workflow(file: &str, text: &str) -> Vec<Trigger> {
    let Ok((tree, ..)) = SourceTree::read(file, text) else { return Vec::new() };
    let root = schema_of("workflow");
    let mut faults = Faults::default();
    let mut check = SchemaCheck { file, root, secret: false, faults: &mut faults };
    let checked = check.check(tree.unwrapped("workflow", root));
    let on = checked.as_ref().and_then(|workflow| workflow.get("on")).map(SourceTree::to_value);
    let manifests: Vec<manifest::Trigger> = on.and_then(|on| serde_json::from_value(on).ok()).unwrap_or_default();
    manifests.iter().take(MAX_TRIGGERS).filter_map(|manifest| Trigger::new(manifest).ok()).collect()
}

impl Loader<'_> {
    /// Refuses triggers that can never start anything, and notes those that no version needs.
    pub(super) fn check_triggers(&mut self) {
        let on = &self.docs.workflow.value.on;
        if on.len() > MAX_TRIGGERS {
            let message = format!("`on` has {} entries; {MAX_TRIGGERS} fit", on.len());
            let hint = "patterns with `*` and `**` stand for many files";
            self.faults.refuse(self.docs.workflow.at_key("", "on"), "wrong_value", message, hint);
        }
        let mut before: Vec<Trigger> = Vec::new();
        for (place, manifest) in on.iter().enumerate().take(MAX_TRIGGERS) {
            let at = self.docs.workflow.at(&format!("/on/{place}"));
            match Trigger::new(manifest) {
                Err(fault) => {
                    let keyed = self.docs.workflow.at(&format!("/on/{place}/{}", fault.key));
                    self.faults.refuse(keyed, "wrong_trigger", fault.message, fault.hint);
                }
                Ok(trigger) => {
                    if let Some(other) = before.iter().find(|other| overlap(other, &trigger)) {
                        let message = format!("`{trigger}` and `{other}` overlap");
                        let hint = "a version that fulfils both starts the flow once; nothing needs to be done";
                        self.faults.note(at, "overlaps", message, hint);
                    }
                    before.push(trigger);
                }
            }
        }
    }

    /// The triggers of the flow.
    pub(super) fn triggers(&self) -> Vec<Trigger> {
        let on = self.docs.workflow.value.on.iter().take(MAX_TRIGGERS);
        on.filter_map(|manifest| Trigger::new(manifest).ok()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{KnownNames, load};

    fn told(triggers: &[Trigger]) -> Vec<String> {
        triggers.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn triggers_are_read_off_a_workflow_without_the_rest_of_it() {
        let text =
            "on: [/a/*.md, {path: /b.md, status: ready}, {path: nonsense}, {status: 3}]\nnodes: 3\nunknown: true\n";
        assert_eq!(told(&triggers_of_workflow("workflow.yaml", text)), ["/a/*.md", "/b.md status=ready"]);
        for none in ["nodes: []", "on: {", "on: /a.md", "", "- /a.md"] {
            assert_eq!(triggers_of_workflow("workflow.yaml", none), [], "{none}");
        }
    }

    #[test]
    fn the_triggers_that_start_tasks_are_those_that_the_check_accepts() {
        let nodes = "nodes: [{id: s, kind: deterministic, role: start, context: none}, {id: e, kind: deterministic, role: exit, context: none}]";
        let edges = "edges: [{from: s, to: e}]";
        let json = r#"{"on": ["/a/*.md"], "nodes": [{"id": "s", "kind": "deterministic", "role": "start", "context": "none"},
            {"id": "e", "kind": "deterministic", "role": "exit", "context": "none"}], "edges": [{"from": "s", "to": "e"}]}"#;
        for (file, text) in [
            ("workflow.yaml", format!("on: [/a/*.md]\n{nodes}\n{edges}\n")),
            // One key of the manifest's own name may stand around everything.
            ("workflow.yml", format!("version: 1\nworkflow:\n  on: [/a/*.md]\n  {nodes}\n  {edges}\n")),
            // Keys that begin with `x-` are left alone, and an empty value is none.
            ("workflow.yaml", format!("on: [{{path: /a/*.md, x-why: for tests, status: }}]\n{nodes}\n{edges}\n")),
            ("workflow.json", json.to_owned()),
        ] {
            let flow = load("test", [(file.to_owned(), text.clone())].into(), &KnownNames::default());
            let flow = flow.unwrap_or_else(|report| panic!("{text}: {report}"));
            assert_eq!(told(&flow.triggers), ["/a/*.md"], "{text}");
            assert_eq!(triggers_of_workflow(file, &text), flow.triggers, "{text}");
        }
    }
}
