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
use std::{collections::HashSet, future::Future, pin::Pin};

/// The most children of one task that are looked at, and the most of it that waits.
const MOST: usize = 2_000;

/// The requests of a node or of its agent.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) task: String,
    node: String,
    asker: Waits,
}

#[derive(Debug)]
enum Waits {
    /// The node asks.
    Node(Vec<Question>),
    /// Its agent asks.
    Agent {
        /// Its chat.
        chat: String,
        /// The name and the data of the event.
        event: String,
        data: Value,
    },
}

impl Waiting {
    /// The questions of a task, as its stream told them.
    pub(super) fn of(task: &str, ask: &Ask) -> Option<Self> {
        match ask {
            Ask::Questions { asker: Asker::Node(node), questions, .. } => {
                Some(Self { task: task.to_owned(), node: node.clone(), asker: Waits::Node(questions.clone()) })
            }
            Ask::Questions { .. } | Ask::Permission { .. } => None,
        }
    }

    /// The requests of an entry of the list of what waits.
    fn in_entry(entry: &Value) -> Vec<Self> {
        let (task, node, chat) = (text(entry, "task_id"), text(entry, "node"), text(entry, "chat_id"));
        let waiting = |asked: &Value| {
            let data = asked.get("data").unwrap_or(asked);
            let questions = list(data, "questions").iter();
            let asker = match chat {
                "" => Waits::Node(questions.filter_map(|one| serde_json::from_value(one.clone()).ok()).collect()),
                chat => {
                    Waits::Agent { chat: chat.to_owned(), event: text(asked, "event").to_owned(), data: data.clone() }
                }
            };
            Self { task: task.to_owned(), node: node.to_owned(), asker }
        };
        list(entry, "waiting_for").iter().map(waiting).collect()
    }

    /// A key of its own among all that waits.
    pub(super) fn key(&self) -> String {
        match &self.asker {
            Waits::Node(_) => self.task.clone(),
            Waits::Agent { data, .. } => [text(data, "permission_id"), text(data, "question_id")].concat(),
        }
    }

    /// Whether this very task asks, and no agent of it.
    pub(super) fn is_node_of(&self, task: &str) -> bool {
        self.task == task && matches!(self.asker, Waits::Node(_))
    }

    /// The command that answers: as it is typed, but for the parts that only a person can say.
    pub(super) fn command(&self) -> String {
        let questions = match &self.asker {
            Waits::Node(questions) => questions,
            Waits::Agent { event, data, .. } if event == "permission_required" => {
                return format!("buildscale permit {} yes", word(text(data, "permission_id")));
            }
            Waits::Agent { chat, .. } => return format!("buildscale chat --chat {}", word(chat)),
        };
        let mut words = format!("buildscale task answer {} --node {}", word(&self.task), word(&self.node));
        if is_approval(questions) {
            words.push_str(" --approve");
            return words;
        }
        for question in questions {
            words.push(' ');
            words.push_str(&word(&format!("{}={}", question.name, example(question))));
        }
        words
    }

    /// The requests, and how to answer, for people.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let node = one_line(&self.node, 60);
        let mut other = None;
        match &self.asker {
            Waits::Node(questions) => {
                for question in questions {
                    lines.push(format!("? {node}: {}", clean(&question.question)));
                    lines.extend(
                        answers::choices(question).iter().map(|choice| format!("    {}", clean(&shown(choice)))),
                    );
                }
                if is_approval(questions) {
                    other = Some("  or, instead of --approve: --decline --comment WHY");
                }
            }
            Waits::Agent { event, data, .. } if event == "permission_required" => {
                let (tool, args) = (text(data, "tool"), data.get("args").unwrap_or(&Value::Null));
                lines.push(format!("? the agent of {node} asks for permission: {}", call(tool, args)));
                other = Some("  or, instead of yes: no");
            }
            Waits::Agent { data, .. } => {
                let asked =
                    list(data, "questions").iter().map(|question| clean(text(question, "question")).to_string());
                lines.extend(asked.map(|question| format!("? the agent of {node}: {question}")));
            }
        }
        lines.push(format!("  answer it with: {}", self.command()));
        lines.extend(other.map(str::to_owned));
        lines
    }

    /// The same for programs, as an event that no log has.
    pub(super) fn json(&self) -> Value {
        let mut data = json!({ "task_id": self.task, "node": self.node, "command": self.command() });
        if let Waits::Agent { chat, event, data: asked } = &self.asker {
            data["chat_id"] = json!(chat);
            data[event] = asked.clone();
        }
        json!({ "id": null, "event": "waiting", "data": data })
    }
}

fn is_approval(questions: &[Question]) -> bool {
    matches!(questions, [only] if only.name == "approved")
}

/// A call in a line: the tool and the command, the title, the path or the arguments.
pub(crate) fn call(tool: &str, args: &Value) -> String {
    let words = ["command", "title", "path"].iter().find_map(|key| args.get(*key)).map_or_else(|| shown(args), shown);
    one_line(&format!("{tool} {words}"), 100)
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

/// All that waits for people in the tree of a task: its nodes and their agents, and those of its clones and subtasks.
pub(super) async fn asked_in(client: &Client, workspace: &str, task: &str) -> Result<Vec<Waiting>, CliError> {
    let entries = client.list(&["workspaces", workspace, "waiting"], "waiting", &[("task", task)], MOST).await?;
    Ok(entries.iter().flat_map(Waiting::in_entry).collect())
}

fn waits_for_children(view: &Value) -> bool {
    matches!(text(view, "phase"), "running" | "paused") && text(view, "node").is_empty() && number(view, "children") > 0
}

/// Whether nothing of a task and of those below it goes on by itself; `asked` are the tasks that wait for people.
pub(super) async fn only_waits(
    client: &Client,
    workspace: &str,
    task: &str,
    asked: &HashSet<&str>,
) -> Result<bool, CliError> {
    let view = client.get(&["workspaces", workspace, "tasks", task], &[]).await?;
    all_wait(client, workspace, &view, asked).await
}

/// The same of a task's state.
fn all_wait<'a>(
    client: &'a Client,
    workspace: &'a str,
    view: &'a Value,
    asked: &'a HashSet<&str>,
) -> Pin<Box<dyn Future<Output = Result<bool, CliError>> + Send + 'a>> {
    Box::pin(async move {
        let task = text(view, "task_id");
        match text(view, "phase") {
            "finished" | "parked" => return Ok(true),
            "suspended" if asked.contains(task) => return Ok(true),
            _ if waits_for_children(view) => {}
            phase => return Ok(phase == "paused"),
        }
        let children = client.list(&["workspaces", workspace, "tasks"], "tasks", &[("parent", task)], MOST).await?;
        for child in &children {
            if !all_wait(client, workspace, child, asked).await? {
                return Ok(false);
            }
        }
        Ok(true)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(questions: Value) -> Option<Waiting> {
        let asked = json!({ "event": "question", "data": { "questions": questions } });
        Waiting::in_entry(&json!({ "task_id": "t1", "node": "the review", "waiting_for": [asked] })).pop()
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
    fn a_request_of_an_agent_says_what_it_would_do_and_how_it_is_answered() {
        let data = json!({ "permission_id": "p1", "tool": "exec", "args": { "command": "rm -rf build" } });
        let asked = json!({ "event": "permission_required", "data": data });
        let entry = json!({ "task_id": "t1", "node": "work", "chat_id": "c1", "waiting_for": [asked] });
        let waiting = Waiting::in_entry(&entry).pop();
        let expected = [
            "? the agent of work asks for permission: exec rm -rf build",
            "  answer it with: buildscale permit p1 yes",
            "  or, instead of yes: no",
        ];
        assert_eq!(waiting.as_ref().map(Waiting::lines).unwrap_or_default(), expected);
        let told = waiting.map(|waiting| waiting.json()["data"].clone()).unwrap_or_default();
        assert_eq!((&told["chat_id"], &told["permission_required"]["permission_id"]), (&json!("c1"), &json!("p1")));
    }

    #[test]
    fn text_of_a_flow_stays_one_word_of_the_shell() {
        assert_eq!(word("a'; rm -rf b"), r"'a'\''; rm -rf b'");
        assert_eq!((word(""), word("a\u{1b}b").contains('\u{1b}')), ("''".to_owned(), false));
    }
}
