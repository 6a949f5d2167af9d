//! Human steps: a node asks and the task is only rows until a person answers. An answer that comes early is kept.

use crate::machine::{Mode, NodeResult, step::Step};
use domain::{Code, Error, NodeId, QuestionId, TaskCommand, TaskEvent, Timestamp, event::Question};
use flow::flow::Op;
use serde_json::{Map, Value};

impl Step<'_> {
    /// A node asks people, unless they have answered before.
    pub fn ask_people(&mut self, node: &NodeId, questions: Vec<Question>, expires_at: Option<Timestamp>) {
        if self.state().executing(node).is_none() {
            return;
        }
        if let Some((_, reason)) = self.state().stopping.clone() {
            return self.end_here(domain::task::stopped(&reason));
        }
        let question_id = QuestionId(self.stamp.id(1));
        let at = self.stamp.at;
        self.push(TaskEvent::Asked { node: node.clone(), question_id, questions: questions.clone(), at, expires_at });
        if let Some((answers, by)) = self.state().early.get(node).cloned()
            && self.fits(node, &questions, &answers)
        {
            return self.take(node, answers, by);
        }
        if let Some(at) = expires_at {
            self.send(self.own_id(), &TaskCommand::Expire { question_id }, Some(at));
        }
    }

    /// People have answered a node, maybe one that has not asked yet.
    pub fn answered(&mut self, node: &NodeId, answers: Map<String, Value>, by: &str) {
        if !matches!(self.node(node).map(|node| &node.op), Some(Op::Ask(_))) {
            return;
        }
        let asked = self.state().executing(node);
        match asked.map(|execution| &execution.mode) {
            Some(Mode::Asking { questions, .. }) => {
                if self.fits(node, questions, &answers) {
                    self.take(node, answers, by.to_owned());
                }
            }
            Some(Mode::Running | Mode::Agent { .. } | Mode::Waiting { .. }) | None => {
                let (node, by, at) = (node.clone(), by.to_owned(), self.stamp.at);
                self.push(TaskEvent::Answered { node, answers, by, at });
            }
        }
    }

    /// Whether the answers are those that were asked for. Beside an approval there may be a comment.
    fn fits(&self, node: &NodeId, questions: &[Question], answers: &Map<String, Value>) -> bool {
        let Some(Op::Ask(rule)) = self.node(node).map(|node| &node.op) else { return false };
        tools::check_answers(questions, &rule.asked_of(answers)).is_ok()
    }

    fn is_approval(&self, node: &NodeId) -> bool {
        self.node(node).is_some_and(|node| matches!(&node.op, Op::Ask(rule) if rule.approve.is_some()))
    }

    fn take(&mut self, node: &NodeId, answers: Map<String, Value>, by: String) {
        let at = self.stamp.at;
        let declined = answers.get("approved") == Some(&Value::Bool(false));
        self.push(TaskEvent::Answered { node: node.clone(), answers: answers.clone(), by, at });
        // A decision takes a no as one of its ways; anywhere else it is a failure.
        if self.is_approval(node) && declined && !self.decides(node) {
            let comment = answers.get("comment").and_then(Value::as_str).unwrap_or("no comment");
            let (error, output) =
                (Error::new(Code::Forbidden, format!("not approved: {comment}")), self.output_of(node, &answers));
            return self.done(NodeResult {
                node: Some(node.clone()),
                error: Some(error),
                output,
                ..NodeResult::default()
            });
        }
        let output = self.output_of(node, &answers);
        let schema = self.node(node).and_then(|node| self.flow.schemas.get(node.schema_out.as_ref()?));
        let rejected = schema.map(|schema| schema.errors(&output)).unwrap_or_default();
        if let Some(first) = rejected.first() {
            let text = format!("the answers to {node} do not fit its schema: {first}");
            let hint = "let the schemas of its questions ask for no less than `schema_out` does";
            let error = Some(Error::new(Code::Unprocessable, text).hint(hint));
            return self.done(NodeResult {
                node: Some(node.clone()),
                error,
                output,
                rejected,
                ..NodeResult::default()
            });
        }
        self.end_with(node.clone(), output);
    }

    fn decides(&self, node: &NodeId) -> bool {
        self.flow.graph.node(node).is_some_and(|node| node.role == flow::graph::Role::Decision)
    }

    /// The output that answers are.
    pub fn output_of(&self, node: &NodeId, answers: &Map<String, Value>) -> Value {
        match (self.is_approval(node), self.decides(node)) {
            (true, true) => {
                let declined = answers.get("approved") == Some(&Value::Bool(false));
                serde_json::json!({ "selected_edge": if declined { "declined" } else { "approved" }, "answers": answers })
            }
            // An approval lets its input pass.
            (true, false) => (*self.state().place.current).clone(),
            (false, _) => Value::Object(answers.clone()),
        }
    }

    /// Ends a wait whose time is up without an answer.
    pub fn expired(&mut self, id: QuestionId) {
        let Some(execution) = &self.state().execution else { return };
        if !matches!(execution.mode, Mode::Asking { question_id, .. } if question_id == id) {
            return;
        }
        let node = execution.node.clone();
        let default = match self.node(&node).map(|node| &node.op) {
            Some(Op::Ask(rule)) => rule.default.clone(),
            _ => None,
        };
        match default {
            Some(answers) => self.take(&node, answers, "default".into()),
            None => self.fail(Error::new(Code::Timeout, "no answer came in time")),
        }
    }
}
