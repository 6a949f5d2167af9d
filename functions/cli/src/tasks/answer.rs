//! `buildscale task answer`: answers to questions of a task, from the command line or from a terminal.

use super::Desk;
use crate::{
    asks::Ask,
    failure::{CliError, Exit},
    follow::Event,
    input::Lines,
    output::Output,
    value::{list, text},
};
use serde_json::{Map, Value, json};

/// The answer on the command line.
pub(super) struct Given {
    pub(super) node: Option<String>,
    pub(super) approve: bool,
    pub(super) decline: bool,
    pub(super) comment: Option<String>,
    pub(super) answers: Vec<String>,
}

impl Given {
    /// The answers, if any were typed.
    fn answers(&self) -> Result<Option<Map<String, Value>>, CliError> {
        let mut answers = Map::new();
        for answer in &self.answers {
            let (name, value) = answer
                .split_once('=')
                .ok_or_else(|| CliError::Usage(format!("{answer:?} is no answer: it is written NAME=VALUE")))?;
            answers.insert(name.to_owned(), domain::exact_numbers::value_or_text(value));
        }
        if self.approve || self.decline {
            answers.insert("approved".into(), json!(self.approve));
        }
        if let Some(comment) = &self.comment {
            answers.insert("comment".into(), json!(comment));
        }
        Ok(if answers.is_empty() { None } else { Some(answers) })
    }
}

impl Desk {
    /// Answers; with nothing typed, asks question by question.
    pub(super) async fn answer(&self, given: Given, out: &mut Output) -> Result<Exit, CliError> {
        let typed = given.answers()?;
        // A node that does not ask yet can be answered, when it is named.
        let view = self.view().await?;
        let asked = asked(&view, given.node.as_deref());
        let (node, answers) = match (typed, asked, given.node) {
            (Some(answers), _, Some(node)) => (node, Value::Object(answers)),
            (Some(answers), Some(asked), None) => (text(&asked, "node").to_owned(), Value::Object(answers)),
            (None, Some(asked), _) => self.ask(asked, out).await?,
            (_, None, node) => {
                let which = node.map(|node| format!(" in {node}")).unwrap_or_default();
                if text(&view, "phase") == "finished" {
                    let ended = text(&view, "status");
                    return Err(CliError::NotFound(format!("nothing is asked{which}: the task has ended, {ended}")));
                }
                let how = "before it asks, a node is answered by --node NODE with --approve, --decline or NAME=VALUE";
                return Err(CliError::NotFound(format!("nothing is asked{which}; {how}")));
            }
        };
        let body = json!({ "answers": answers });
        let answer = self.client.post(&self.at(&["answers", &node]), &body).await?;
        if out.is_json() {
            out.json(&answer)?
        } else {
            out.line("answered")?
        }
        Ok(Exit::Done)
    }

    async fn ask(&self, data: Value, out: &mut Output) -> Result<(String, Value), CliError> {
        let node = text(&data, "node").to_owned();
        let event = Event { number: None, name: "question".into(), data };
        let (mut lines, mut ask) = (Lines::default(), Ask::of(&event));
        while let Some(open) = &mut ask {
            out.prompt(open.prompt_text())?;
            out.prompt(open.prompt())?;
            let Some(line) = lines.next().await else { break };
            match open.take(&line) {
                Err(wrong) => out.notice(wrong)?,
                Ok(None) => {}
                Ok(Some(reply)) => return Ok((node, reply.body.get("answers").cloned().unwrap_or_default())),
            }
        }
        Err(CliError::Usage("standard input has no answer; give NAME=VALUE, --approve or --decline".into()))
    }
}

/// The data of the question that a task waits for, of this node if one is named.
fn asked(view: &Value, node: Option<&str>) -> Option<Value> {
    let data = |asked: &Value| asked.get("data").unwrap_or(asked).clone();
    let mut open = list(view, "waiting_for").iter().map(data);
    open.find(|asked| node.is_none_or(|node| text(asked, "node") == node))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(answers: &[&str]) -> Given {
        let answers = answers.iter().map(|answer| (*answer).to_owned()).collect();
        Given { node: None, approve: false, decline: false, comment: None, answers }
    }

    #[test]
    fn values_are_json_where_they_are() -> Result<(), CliError> {
        let answers = given(&["size=12", "name=Bee", "tags=[\"a\"]", "eq=a=b", "id=12345678901234567890123"]);
        let expected =
            json!({ "size": 12, "name": "Bee", "tags": ["a"], "eq": "a=b", "id": "12345678901234567890123" });
        assert_eq!(answers.answers()?.map(Value::Object), Some(expected), "a number that would change is a text");
        assert!(given(&["size"]).answers().is_err());
        assert_eq!(given(&[]).answers()?, None);
        let declined = Given { decline: true, comment: Some("not yet".into()), ..given(&[]) };
        let expected = json!({ "approved": false, "comment": "not yet" });
        assert_eq!(declined.answers()?.map(Value::Object), Some(expected));
        Ok(())
    }
}
