//! Checks the answers that cases of evaluations have for people: each is to a node that asks, and people could give it (step 2).

use super::{Loader, nodes::ask_op, report::nearest};
use crate::{
    flow::Op,
    manifest::{AskManifest, NodeManifest},
};
use domain::Code;
use serde_json::Value;
use std::collections::BTreeMap;

impl Loader<'_> {
    pub(super) fn check_answers(&mut self) {
        if !self.docs.workflow.listed {
            return;
        }
        let nodes = &self.docs.workflow.value.nodes;
        if nodes.iter().any(|node| node.id.is_none()) {
            return;
        }
        let ids: BTreeMap<&str, &NodeManifest> =
            nodes.iter().filter_map(|node| Some((node.id.as_deref()?, node))).collect();
        let document = &self.docs.evaluations;
        for (suite_place, suite) in document.value.suites.iter().enumerate() {
            for (case_place, case) in suite.cases.iter().enumerate() {
                let pointer = format!("/suites/{suite_place}/cases/{case_place}/answers");
                for (name, answer) in &case.answers {
                    let at = document.at_key(&pointer, name);
                    let node = ids.get(name.as_str());
                    if let Some(ask) = node.and_then(|node| node.ask.as_ref()) {
                        if let Some(why) = misfit(ask, answer) {
                            let message = format!("people cannot answer `{name}` so: {why}");
                            let hint = "give each question a value; an approval has `approved`";
                            self.faults.refuse(at, "wrong_value", message, hint);
                        }
                        continue;
                    }
                    if node.is_some_and(|node| node.agent_id.is_some()) {
                        let message = format!("`{name}` is an agent, and a case answers only nodes with `ask`");
                        let hint = "script its model so that it asks nobody, and remove the answer";
                        self.faults.note(at, "no_effect", message, hint);
                        continue;
                    }
                    let (code, message) = match node {
                        Some(_) => ("asks_nobody", format!("`{name}` asks no people, so it takes no answer")),
                        None => ("unknown_node", format!("there is no node `{name}`")),
                    };
                    let asks = ids.iter().filter(|(_, node)| node.ask.is_some()).map(|(id, _)| *id);
                    let hint = nearest(name, asks, "workflow.yaml")
                        .unwrap_or_else(|| "no node of this flow asks people; remove it".into());
                    self.faults.refuse(at, code, message, hint);
                }
            }
        }
    }
}

/// Why people could not give this answer; none of one that they could. `null` is nobody's answer.
fn misfit(ask: &AskManifest, answer: &Value) -> Option<String> {
    let Op::Ask(rule) = ask_op(ask) else { return None };
    match answer {
        Value::Null => None,
        Value::Object(answers) => {
            let checked = schema::check_answers(&rule.all_questions(), &rule.asked_of(answers));
            // A schema of a question that cannot be used is a fault of its own.
            checked.err().filter(|error| error.code == Code::InvalidArgument).map(|error| error.message)
        }
        _ => Some("its answers are an object, or `null`".into()),
    }
}
