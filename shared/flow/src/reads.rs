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
        Op::Command(words) => words.iter().any(|word| text(word)),
        Op::Agent { prompt, .. } => prompt.as_deref().is_some_and(text),
        Op::Ask(rule) => {
            rule.approve.as_deref().is_some_and(text) || rule.questions.iter().any(|asked| text(&asked.question))
        }
        // The keys that a function reads are not known.
        Op::Function(_) => true,
        Op::Identity => false,
    };
    reads || node.split.as_ref().and_then(|rule| rule.over.as_deref()).is_some_and(expression)
}
