//! The questions and permission requests of a chat, and the lines that answer them.

use crate::{
    answers,
    follow::Event,
    output::clean,
    value::{list, shown, text},
};
use domain::{PermissionRule, event::Question};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Questions or a request for permission.
#[derive(Debug, PartialEq)]
pub(crate) enum Ask {
    /// May a tool run?
    Permission {
        /// Its id.
        id: String,
        /// The rule that a person can grant along with it.
        always: Option<PermissionRule>,
    },
    /// Questions of `ask_user`, asked one after the other.
    Questions {
        /// The id of the set.
        id: String,
        /// The one who waits for the answers.
        asker: Asker,
        /// All of them.
        questions: Vec<Question>,
        /// The answers so far, by question.
        answers: Map<String, Value>,
    },
}

/// The one who waits for the answers to questions.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Asker {
    /// A tool call of a chat.
    Call(String),
    /// A node of a task.
    Node(String),
}

/// A request to the hub: the path below the chat or the task, and the body.
#[derive(Debug, PartialEq)]
pub(crate) struct Reply {
    /// Two segments.
    pub(crate) path: [String; 2],
    /// The answers or the decision.
    pub(crate) body: Value,
}

impl Ask {
    /// The question or permission request in `event`, if it is one.
    pub(crate) fn of(event: &Event) -> Option<Self> {
        match event.name.as_str() {
            "permission_required" => Some(Self::Permission {
                id: text(&event.data, "permission_id").to_owned(),
                // A rule of a newer hub, which cannot be shown, is not offered.
                always: event.data.get("always").and_then(|rule| PermissionRule::deserialize(rule).ok()),
            }),
            "question" => {
                let questions = list(&event.data, "questions").iter();
                Some(Self::Questions {
                    id: text(&event.data, "question_id").to_owned(),
                    asker: match event.data.get("node").and_then(Value::as_str) {
                        Some(node) => Asker::Node(node.to_owned()),
                        None => Asker::Call(text(&event.data, "call_id").to_owned()),
                    },
                    questions: questions.filter_map(|question| serde_json::from_value(question.clone()).ok()).collect(),
                    answers: Map::new(),
                })
            }
            _ => None,
        }
    }

    /// The id that the chat's `waiting_for` has for it.
    pub(crate) fn id(&self) -> &str {
        match self {
            Self::Permission { id, .. } | Self::Questions { id, .. } => id,
        }
    }

    /// Whether `event` says that it is settled: decided, answered, withdrawn or timed out.
    pub(crate) fn is_settled_by(&self, event: &Event) -> bool {
        match self {
            Self::Permission { id, .. } => {
                event.name == "permission_resolved" && text(&event.data, "permission_id") == id
            }
            Self::Questions { asker: Asker::Call(call), .. } => {
                event.name == "observation" && text(&event.data, "call_id") == call
            }
            Self::Questions { asker: Asker::Node(node), .. } => {
                matches!(event.name.as_str(), "answered" | "node_finished") && text(&event.data, "node") == node
            }
        }
    }

    /// The text that a person reads before they answer: the question with its choices, or the rule that they can grant.
    pub(crate) fn prompt_text(&self) -> String {
        if let Self::Permission { always: Some(rule), .. } = self {
            let rule = clean(&rule.to_string());
            return format!("    a) always here: {rule}\n    d) never here: the same\n");
        }
        let Some(question) = self.current() else { return String::new() };
        let mut lines = vec![format!("? {}", clean(&question.question))];
        for (place, choice) in answers::choices(question).iter().enumerate() {
            lines.push(format!("    {}) {}", place + 1, clean(&shown(choice))));
        }
        lines.join("\n") + "\n"
    }

    /// The prompt in the line where the answer is typed.
    pub(crate) fn prompt(&self) -> String {
        match (self, self.current().map(answers::expected).as_deref()) {
            (Self::Permission { always: Some(_), .. }, _) => "  allow? (y, n, a, d, or n and why) ".into(),
            (Self::Permission { .. }, _) => "  allow? (y, n, or n and why) ".into(),
            (_, None | Some("")) => "  answer: ".into(),
            (_, Some(expected)) => format!("  answer ({expected}): "),
        }
    }

    /// The question that is to be answered next.
    pub(crate) fn current(&self) -> Option<&Question> {
        match self {
            Self::Permission { .. } => None,
            Self::Questions { questions, answers, .. } => {
                questions.iter().find(|question| !answers.contains_key(&question.name))
            }
        }
    }

    /// Takes a line: gives the reply when all questions are answered, nothing when there are more, else the fault of the line.
    pub(crate) fn take(&mut self, line: &str) -> Result<Option<Reply>, String> {
        match self {
            Self::Permission { id, always } => {
                let body = match (line.trim().to_lowercase().as_str(), refusal(line)) {
                    ("y" | "yes", _) => json!({ "outcome": "approved" }),
                    ("n" | "no", _) => json!({ "outcome": "declined" }),
                    (_, Some(reason)) => json!({ "outcome": "declined", "reason": reason }),
                    ("a" | "always", _) if always.is_some() => json!({ "outcome": "approved", "always": true }),
                    ("d" | "never", _) if always.is_some() => json!({ "outcome": "declined", "always": true }),
                    ("a" | "always" | "d" | "never", _) => {
                        return Err("there is no rule for this: y or n is needed".into());
                    }
                    _ if always.is_some() => return Err("y, n, a or d is needed".into()),
                    _ => return Err("y or n is needed".into()),
                };
                Ok(Some(Reply { path: ["permissions".into(), id.clone()], body }))
            }
            Self::Questions { .. } => {
                let answer = self.current().map(|question| answers::parse(question, line)).transpose()?;
                Ok(self.answer(answer))
            }
        }
    }

    /// Takes the answer to the current question: gives the reply when all questions are answered.
    pub(crate) fn answer(&mut self, answer: Option<Value>) -> Option<Reply> {
        let name = self.current().map(|question| question.name.clone());
        let Self::Questions { id, asker, questions, answers } = self else { return None };
        if let (Some(name), Some(answer)) = (name, answer) {
            answers.insert(name, answer);
        }
        let complete = questions.iter().all(|question| answers.contains_key(&question.name));
        // A chat is answered by the question, a task by the node: it may be answered before it asks.
        let to = match asker {
            Asker::Call(_) => id.clone(),
            Asker::Node(node) => node.clone(),
        };
        complete.then(|| Reply { path: ["answers".into(), to], body: json!({ "answers": answers }) })
    }

    /// Begins anew, after the hub has refused the answers.
    pub(crate) fn reset(&mut self) {
        if let Self::Questions { answers, .. } = self {
            answers.clear();
        }
    }
}

/// The reason that a line gives which declines a permission, as in `n, use the other tool` or `n because it is slow`.
fn refusal(line: &str) -> Option<&str> {
    let (word, reason) = line.trim().split_once([' ', ','])?;
    let is_no = word.eq_ignore_ascii_case("n") || word.eq_ignore_ascii_case("no");
    let reason = reason.trim_start_matches([' ', ',']).trim_start_matches("because ");
    Some(reason.trim()).filter(|reason| is_no && !reason.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str, data: Value) -> Event {
        Event { number: Some(1), name: name.into(), data }
    }

    fn asked() -> Option<Ask> {
        Ask::of(&event(
            "question",
            json!({ "question_id": "q1", "call_id": "c1", "questions": [
                { "name": "db", "question": "Which database?", "schema": { "type": "string" },
                  "buttons": ["SQLite", "Postgres"] },
                { "name": "size", "question": "How many rows?", "schema": { "type": "integer" } },
            ] }),
        ))
    }

    #[test]
    fn questions_come_one_after_the_other_and_wrong_answers_are_asked_again() -> Result<(), String> {
        let mut ask = asked().ok_or("no question")?;
        assert_eq!(ask.prompt_text(), "? Which database?\n    1) SQLite\n    2) Postgres\n");
        assert_eq!(ask.prompt(), "  answer (a number or the words): ");
        assert_eq!(ask.take("2"), Ok(None));
        assert_eq!(ask.prompt_text(), "? How many rows?\n");
        assert_eq!(ask.prompt(), "  answer (a whole number): ");
        assert_eq!(ask.take("many"), Err("a whole number is needed".into()));
        let reply = ask.take("12")?.ok_or("not complete")?;
        assert_eq!(reply.path, ["answers", "q1"]);
        assert_eq!(reply.body, json!({ "answers": { "db": "Postgres", "size": 12 } }));
        Ok(())
    }

    #[test]
    fn permissions_need_a_plain_yes_or_no() -> Result<(), String> {
        let mut ask = Ask::of(&event("permission_required", json!({ "permission_id": "p1" }))).ok_or("nothing")?;
        for line in ["", "maybe", "1"] {
            assert!(ask.take(line).is_err(), "{line:?}");
        }
        let outcome = |reply: Option<Reply>| reply.map(|reply| reply.body["outcome"].clone());
        assert_eq!(outcome(ask.take("Y")?), Some(json!("approved")));
        assert_eq!(outcome(ask.take("no")?), Some(json!("declined")));
        for line in ["a", "d"] {
            assert!(ask.take(line).is_err(), "no rule is offered");
        }
        Ok(())
    }

    #[test]
    fn a_rule_is_shown_before_it_is_granted_and_a_no_has_its_reason() -> Result<(), String> {
        let rule = json!({ "kind": "command_prefix", "words": ["cargo", "test"] });
        let asked = event("permission_required", json!({ "permission_id": "p1", "always": rule }));
        let mut ask = Ask::of(&asked).ok_or("nothing")?;
        let shown = "    a) always here: commands that begin with `cargo test`\n    d) never here: the same\n";
        assert_eq!(ask.prompt_text(), shown);
        let body = |reply: Option<Reply>| reply.map(|reply| reply.body);
        assert_eq!(body(ask.take("a")?), Some(json!({ "outcome": "approved", "always": true })));
        assert_eq!(body(ask.take("never")?), Some(json!({ "outcome": "declined", "always": true })));
        for line in ["n because it is slow", "no, it is slow", "N it is slow"] {
            let declined = json!({ "outcome": "declined", "reason": "it is slow" });
            assert_eq!(body(ask.take(line)?), Some(declined), "{line}");
        }
        // A rule that is not understood cannot be granted.
        let newer = event("permission_required", json!({ "permission_id": "p1", "always": { "kind": "hosts" } }));
        let mut ask = Ask::of(&newer).ok_or("nothing")?;
        assert_eq!(ask.prompt_text(), "");
        assert!(ask.take("a").is_err());
        Ok(())
    }

    #[test]
    fn a_node_is_answered_by_its_name() -> Result<(), String> {
        let data = json!({ "question_id": "q1", "node": "review", "questions": [
            { "name": "approved", "question": "Publish?", "schema": { "type": "boolean" } },
        ] });
        let mut ask = Ask::of(&event("question", data)).ok_or("nothing")?;
        let reply = ask.take("y")?.ok_or("not complete")?;
        assert_eq!(reply.path, ["answers", "review"]);
        assert_eq!(reply.body, json!({ "answers": { "approved": true } }));
        assert!(ask.is_settled_by(&event("answered", json!({ "node": "review" }))));
        assert!(!ask.is_settled_by(&event("node_finished", json!({ "node": "other" }))));
        Ok(())
    }

    #[test]
    fn events_settle_it() {
        let Some(ask) = asked() else { panic!("no question") };
        assert!(ask.is_settled_by(&event("observation", json!({ "call_id": "c1" }))));
        assert!(!ask.is_settled_by(&event("observation", json!({ "call_id": "c2" }))));
        assert!(!ask.is_settled_by(&event("permission_resolved", json!({ "permission_id": "q1" }))));
        assert_eq!(Ask::of(&event("chunk", json!({}))), None);
    }
}
