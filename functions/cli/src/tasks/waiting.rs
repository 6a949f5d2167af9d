//! A task that waits for people: its questions, and the command that answers.

use crate::{
    answers,
    asks::{Ask, Asker},
    client::Client,
    failure::CliError,
    output::{clean, one_line},
    value::{list, number, shown, text},
};
use domain::event::Question;
use serde_json::{Value, json};
use std::{future::Future, pin::Pin};

/// The most children of one task that are looked at.
const MOST: usize = 2_000;

/// The questions of one task.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) task: String,
    node: String,
    questions: Vec<Question>,
}

impl Waiting {
    /// The questions of a task, as its stream told them.
    pub(super) fn of(task: &str, ask: &Ask) -> Option<Self> {
        match ask {
            Ask::Questions { asker: Asker::Node(node), questions, .. } => {
                Some(Self { task: task.to_owned(), node: node.clone(), questions: questions.clone() })
            }
            Ask::Questions { .. } | Ask::Permission { .. } => None,
        }
    }

    /// The questions of a task, as lists show them.
    pub(super) fn in_view(view: &Value) -> Vec<Self> {
        let asked = list(view, "waiting_for").iter().map(|asked| asked.get("data").unwrap_or(asked));
        let waiting = |data: &Value| {
            let questions = list(data, "questions").iter();
            let questions = questions.filter_map(|question| serde_json::from_value(question.clone()).ok()).collect();
            Self { task: text(view, "task_id").to_owned(), node: text(data, "node").to_owned(), questions }
        };
        asked.map(waiting).collect()
    }

    fn is_approval(&self) -> bool {
        matches!(&*self.questions, [only] if only.name == "approved")
    }

    /// The command that answers: as it is typed, but for the parts that only a person can say.
    pub(super) fn command(&self) -> String {
        let mut words = format!("buildscale task answer {} --node {}", word(&self.task), word(&self.node));
        if self.is_approval() {
            words.push_str(" --approve");
            return words;
        }
        for question in &self.questions {
            words.push(' ');
            words.push_str(&word(&format!("{}={}", question.name, example(question))));
        }
        words
    }

    /// The questions, and how to answer, for people.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for question in &self.questions {
            lines.push(format!("? {}: {}", one_line(&self.node, 60), clean(&question.question)));
            lines.extend(answers::choices(question).iter().map(|choice| format!("    {}", clean(&shown(choice)))));
        }
        lines.push(format!("  answer it with: {}", self.command()));
        if self.is_approval() {
            lines.push("  or, instead of --approve: --decline --comment WHY".into());
        }
        lines
    }

    /// The same for programs, as an event that no log has.
    pub(super) fn json(&self) -> Value {
        let data = json!({ "task_id": self.task, "node": self.node, "command": self.command() });
        json!({ "id": null, "event": "waiting", "data": data })
    }
}

/// An answer of the right kind, or the name of that kind.
fn example(question: &Question) -> String {
    let choice = answers::choices(question).into_iter().next().or_else(|| question.schema.get("default").cloned());
    match (choice, question.schema.get("type").and_then(Value::as_str)) {
        // A text that reads as JSON would be taken for it.
        (Some(Value::String(text)), _) if serde_json::from_str::<Value>(&text).is_err() => text,
        (Some(choice), _) => choice.to_string(),
        (None, Some("boolean")) => "true".into(),
        (None, Some("integer" | "number")) => "NUMBER".into(),
        (None, Some("array" | "object")) => "JSON".into(),
        (None, _) => "TEXT".into(),
    }
}

/// `text` quoted as one word for a shell.
fn word(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=@%+,".contains(letter);
    let text = clean(text).to_string();
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// The questions in the tree of a task that waits for its children, if all of it waits for people; nothing while a part of it goes on by
/// itself.
pub(super) async fn asked_below(client: &Client, workspace: &str, task: &str) -> Result<Vec<Waiting>, CliError> {
    let view = client.get(&["workspaces", workspace, "tasks", task], &[]).await?;
    let found = if waits_for_children(&view) { below(client, workspace, task.to_owned()).await? } else { None };
    Ok(found.unwrap_or_default())
}

fn waits_for_children(view: &Value) -> bool {
    matches!(text(view, "phase"), "running" | "paused") && text(view, "node").is_empty() && number(view, "children") > 0
}

type Found<'a> = Pin<Box<dyn Future<Output = Result<Option<Vec<Waiting>>, CliError>> + Send + 'a>>;

/// None when something goes on.
fn below<'a>(client: &'a Client, workspace: &'a str, task: String) -> Found<'a> {
    Box::pin(async move {
        let children = client.list(&["workspaces", workspace, "tasks"], "tasks", &[("parent", &*task)], MOST).await?;
        let mut all = Vec::new();
        for child in &children {
            let asked = Waiting::in_view(child);
            match text(child, "phase") {
                "finished" | "parked" => {}
                "suspended" if !asked.is_empty() => all.extend(asked),
                _ if waits_for_children(child) => {
                    let found = below(client, workspace, text(child, "task_id").to_owned()).await?;
                    let Some(found) = found else { return Ok(None) };
                    all.extend(found);
                }
                "paused" => {}
                _ => return Ok(None),
            }
        }
        Ok(Some(all))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(questions: Value) -> Option<Waiting> {
        let asked = json!({ "data": { "node": "the review", "questions": questions } });
        Waiting::in_view(&json!({ "task_id": "t1", "waiting_for": [asked] })).pop()
    }

    #[test]
    fn an_approval_is_answered_by_a_flag() {
        let asked = json!([{ "name": "approved", "question": "Publish?", "schema": { "type": "boolean" } }]);
        let lines = waiting(asked).map(|waiting| waiting.lines()).unwrap_or_default();
        let expected = [
            "? the review: Publish?",
            "  answer it with: buildscale task answer t1 --node 'the review' --approve",
            "  or, instead of --approve: --decline --comment WHY",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn questions_are_answered_by_name_with_an_answer_of_the_right_kind() {
        let asked = json!([
            { "name": "colour", "question": "Which?", "schema": { "enum": ["dark red", "blue"] } },
            { "name": "size", "question": "How many?", "schema": { "type": "integer" } },
            { "name": "code", "question": "Code?", "schema": { "enum": ["12"] } },
            { "name": "approved", "question": "Sure?", "schema": { "type": "boolean" } },
            { "name": "why", "question": "Why?", "schema": { "type": "string" } },
        ]);
        let command = waiting(asked).map(|waiting| waiting.command()).unwrap_or_default();
        let answers = r#"'colour=dark red' size=NUMBER 'code="12"' approved=true why=TEXT"#;
        assert_eq!(command, format!("buildscale task answer t1 --node 'the review' {answers}"));
    }

    #[test]
    fn text_of_a_flow_stays_one_word_of_the_shell() {
        assert_eq!(word("a'; rm -rf b"), r"'a'\''; rm -rf b'");
        assert_eq!((word(""), word("a\u{1b}b").contains('\u{1b}')), ("''".to_owned(), false));
    }
}
