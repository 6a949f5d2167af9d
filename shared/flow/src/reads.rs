//! The outputs of nodes that the expressions of others read.

use crate::flow::{Flow, Node, Op};
use crate::op;
use serde_json::Value;

impl Flow {
    /// Whether an expression of some node reads the outputs of nodes before it, so that tasks have to keep them at hand.
    pub fn reads_outputs(&self) -> bool {
        self.nodes.values().any(reads_outputs)
    }
}

fn reads_outputs(node: &Node) -> bool {
    let expression = |source: &str| op::expr::outputs_read(source).is_ok_and(|nodes| !nodes.is_empty());
    let template = |value: &Value| op::template::outputs_read(value).is_ok_and(|nodes| !nodes.is_empty());
    let text = |text: &str| template(&Value::String(text.to_owned()));
    let reads = match &node.op {
        Op::Expr(source) => expression(source),
        Op::Template(value) => template(value),
        Op::Tool { args, .. } => args.values().any(template),
        Op::Command(rule) => rule.templates().any(|template| text(template)),
        Op::Agent { prompt, .. } => prompt.as_deref().is_some_and(text),
        Op::Ask(rule) => {
            rule.approve.as_deref().is_some_and(text) || rule.questions.iter().any(|asked| text(&asked.question))
        }
        // The keys that a function reads are not known.
        Op::Function(_) => true,
        Op::Identity => false,
    };
    reads
        || node.split.as_ref().and_then(|rule| rule.over.as_deref()).is_some_and(expression)
        || node.remember.as_ref().and_then(|remember| remember.key.as_deref()).is_some_and(text)
}

#[cfg(test)]
mod tests {
    use crate::load::{KnownNames, load};
    use serde_json::json;

    /// Each key of a node that is an expression or has some in it.
    #[test]
    fn outputs_are_kept_for_each_expression_that_reads_them() {
        let reading = [
            json!({ "op": { "expr": "outputs.plan.n" } }),
            json!({ "op": { "template": ["{{outputs.plan.n}}"] } }),
            json!({ "op": { "command": ["echo", "{{outputs.plan.n}}"] } }),
            json!({ "op": { "command": ["ls"], "keep": [{ "from": "a", "to": "/{{outputs.plan.n}}" }] } }),
            json!({ "op": { "tool": "look", "args": { "path": "{{outputs.plan.n}}" } } }),
            json!({ "ask": { "approve": "{{outputs.plan.n}}?" } }),
            json!({ "ask": { "questions": [{ "name": "why", "question": "{{outputs.plan.n}}?" }] } }),
            json!({ "remember": { "store": "task", "key": "plan-{{outputs.plan.n}}" } }),
            json!({ "kind": "agent", "agent_id": "writer", "prompt": "{{outputs.plan.n}}" }),
            json!({ "role": "split", "split": { "over": "outputs.plan.list" } }),
        ];
        let others = [
            json!({}),
            json!({ "op": { "expr": "input.n" } }),
            json!({ "remember": { "store": "task", "key": "{{input.n}}" } }),
        ];
        for (more, reads) in reading.iter().map(|more| (more, true)).chain(others.iter().map(|more| (more, false))) {
            let node =
                |id: &str, role: &str| json!({ "id": id, "kind": "deterministic", "role": role, "context": "none" });
            let mut work = node("work", "linear");
            for (key, value) in more.as_object().into_iter().flatten() {
                work[key] = value.clone();
            }
            let nodes = json!([node("s", "start"), node("plan", "linear"), work, node("e", "exit")]);
            let edges = [("s", "plan"), ("plan", "work"), ("work", "e")];
            let edges: Vec<_> = edges.iter().map(|(from, to)| json!({ "from": from, "to": to })).collect();
            let files = [
                ("workflow.json", json!({ "nodes": nodes, "edges": edges })),
                ("agents.json", json!({ "agents": [{ "id": "writer" }] })),
                ("tools.json", json!({ "tools": [{ "id": "look", "entrypoint": "read" }] })),
            ];
            let files = files.into_iter().map(|(path, content)| (path.to_owned(), content.to_string())).collect();
            let flow = load("test", files, &KnownNames { sandbox: true, ..KnownNames::default() });
            let flow = flow.unwrap_or_else(|report| panic!("{more}: {report}"));
            assert_eq!(flow.reads_outputs(), reads, "{more}");
        }
    }
}
