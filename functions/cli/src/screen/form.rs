//! A question or a request for permission as a form: choices with the arrow keys, and a line for words of one's own.

use super::{composer::Composer, keys::Key};
use crate::{
    answers,
    asks::{Ask, Reply},
    output::{clean, one_line},
    value::shown,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The longest choice, in characters.
const LABEL: usize = 400;

/// The state of a form.
#[derive(Debug, Default)]
pub(crate) struct Form {
    /// The question or the request.
    pub(crate) id: String,
    /// The row that Enter takes.
    pub(crate) at: usize,
    /// The rows that are ticked, where several answers make one.
    pub(crate) ticked: BTreeSet<usize>,
    /// The words of one's own.
    pub(crate) text: Composer,
    /// The fault of the last answer.
    pub(crate) wrong: Option<String>,
    /// The answer is on its way.
    pub(crate) sent: bool,
}

/// A row of a form.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Choice {
    pub(crate) label: String,
    means: Means,
}

#[derive(Clone, Debug, PartialEq)]
enum Means {
    /// A decision, as [`Ask::take`] takes it.
    Line(&'static str),
    Value(Value),
    /// The words that are written behind it, after this beginning.
    Write(&'static str),
}

/// The result of a key.
#[derive(Debug, PartialEq)]
pub(crate) enum KeyResult {
    Key,
    Reply(Reply),
    /// The key means nothing here.
    Nothing,
}

impl Choice {
    fn new(label: impl Into<String>, means: Means) -> Self {
        Self { label: label.into(), means }
    }

    /// Whether words are written behind it.
    pub(crate) fn is_written(&self) -> bool {
        matches!(self.means, Means::Write(_))
    }
}

/// The question of a form; the requests for permission tell their own.
pub(crate) fn question(ask: &Ask) -> String {
    ask.current().map(|question| clean(&question.question)).unwrap_or_default()
}

/// Whether several rows can be ticked.
pub(crate) fn is_many(ask: &Ask) -> bool {
    ask.current().is_some_and(|question| answers::is_many(&question.schema) && !answers::choices(question).is_empty())
}

/// The rows of a form.
pub(crate) fn choices(ask: &Ask) -> Vec<Choice> {
    let Some(question) = ask.current() else {
        let mut rows = vec![Choice::new("Allow once", Means::Line("y"))];
        if let Ask::Permission { always: Some(rule), .. } = ask {
            let rule = one_line(&rule.to_string(), LABEL);
            rows.push(Choice::new(format!("Always here: {rule}"), Means::Line("a")));
        }
        rows.push(Choice::new("Deny", Means::Line("n")));
        if let Ask::Permission { always: Some(_), .. } = ask {
            rows.push(Choice::new("Never here: the same", Means::Line("d")));
        }
        rows.push(Choice::new("Deny, and say why:", Means::Write("n ")));
        return rows;
    };
    let offered = answers::choices(question);
    let is_open = answers::is_open(question);
    let label = |value: &Value| match value {
        Value::Bool(true) => "Yes".to_owned(),
        Value::Bool(false) => "No".to_owned(),
        other => one_line(&shown(other), LABEL),
    };
    let mut rows: Vec<Choice> =
        offered.iter().map(|value| Choice::new(label(value), Means::Value(value.clone()))).collect();
    if rows.is_empty() && !is_open {
        rows = [true, false].map(|answer| Choice::new(label(&json!(answer)), Means::Value(json!(answer)))).into();
    }
    if is_open {
        let name = match (rows.is_empty(), answers::expected(question).as_str()) {
            (false, _) => "Something else:".to_owned(),
            (true, "") => "Answer:".to_owned(),
            (true, expected) => format!("Answer ({expected}):"),
        };
        rows.push(Choice::new(name, Means::Write("")));
    }
    rows
}

impl Form {
    /// An untouched one.
    pub(crate) fn of(ask: &Ask) -> Self {
        Self { id: ask.id().to_owned(), ..Self::default() }
    }

    /// Takes a key.
    pub(crate) fn take(&mut self, ask: &mut Ask, key: &Key) -> KeyResult {
        let rows = choices(ask);
        self.at = self.at.min(rows.len().saturating_sub(1));
        let written = rows.iter().position(Choice::is_written);
        let writes = Some(self.at) == written;
        match key {
            Key::Up => self.at = self.at.checked_sub(1).unwrap_or(rows.len().saturating_sub(1)),
            Key::Down => self.at = if self.at + 1 < rows.len() { self.at + 1 } else { 0 },
            Key::Enter => return self.choose(ask, &rows),
            Key::Char(' ') if !writes && is_many(ask) => {
                if !self.ticked.remove(&self.at) {
                    self.ticked.insert(self.at);
                }
            }
            Key::Char(digit @ '1'..='9') if !writes => {
                let place = (*digit as usize) - ('1' as usize);
                if place >= rows.len() {
                    return KeyResult::Nothing;
                }
                self.at = place;
            }
            Key::Left if writes => self.text.left(),
            Key::Right if writes => self.text.right(),
            Key::Home if writes => self.text.home(),
            Key::End if writes => self.text.end(),
            Key::Backspace if writes => self.text.backspace(),
            Key::Delete if writes => self.text.delete(),
            Key::WordLeft if writes => self.text.word_left(),
            Key::WordRight if writes => self.text.word_right(),
            Key::Ctrl('w') if writes => self.text.cut_word(),
            Key::Ctrl('u') if writes => self.text.cut_to_begin(),
            Key::Char(_) | Key::Paste(_) => match written {
                Some(place) => {
                    self.at = place;
                    match key {
                        Key::Paste(text) => self.text.insert(&text.replace('\n', " ")),
                        Key::Char(c) => self.text.insert(c.encode_utf8(&mut [0; 4])),
                        _ => {}
                    }
                }
                None => return KeyResult::Nothing,
            },
            _ => return KeyResult::Nothing,
        }
        self.wrong = None;
        KeyResult::Key
    }

    fn choose(&mut self, ask: &mut Ask, rows: &[Choice]) -> KeyResult {
        let Some(choice) = rows.get(self.at).filter(|_| !self.sent) else { return KeyResult::Key };
        let reply = match &choice.means {
            Means::Line(line) => ask.take(line),
            Means::Write(begin) => ask.take(&format!("{begin}{}", self.text.text())),
            Means::Value(value) => {
                let value = if is_many(ask) { self.all(rows, value) } else { value.clone() };
                Ok(ask.answer(Some(value)))
            }
        };
        match reply {
            Ok(Some(reply)) => {
                self.sent = true;
                KeyResult::Reply(reply)
            }
            Ok(None) => {
                *self = Self::of(ask); // the next question
                KeyResult::Key
            }
            Err(wrong) => {
                self.wrong = Some(wrong);
                KeyResult::Key
            }
        }
    }

    /// The ticked values; without any the one that Enter is on.
    fn all(&self, rows: &[Choice], this: &Value) -> Value {
        let value = |place: &usize| match &rows.get(*place)?.means {
            Means::Value(value) => Some(value.clone()),
            _ => None,
        };
        let ticked: Vec<Value> = self.ticked.iter().filter_map(value).collect();
        // A button of a list is a whole answer.
        match (ticked.is_empty(), this) {
            (true, Value::Array(_)) => this.clone(),
            (true, one) => json!([one]),
            (false, _) => Value::Array(ticked),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::follow::Event;

    fn asked(name: &str, data: Value) -> Result<Ask, &'static str> {
        Ask::of(&Event { number: Some(1), name: name.into(), data }).ok_or("nothing is asked")
    }

    fn press(form: &mut Form, ask: &mut Ask, keys: &str) -> Option<Value> {
        let mut body = None;
        for key in keys.chars() {
            let key = match key {
                '↓' => Key::Down,
                '↑' => Key::Up,
                '⏎' => Key::Enter,
                c => Key::Char(c),
            };
            if let KeyResult::Reply(reply) = form.take(ask, &key) {
                body = Some(reply.body);
            }
        }
        body
    }

    #[test]
    fn permissions_are_given_once_always_or_denied_with_a_reason() -> Result<(), &'static str> {
        let rule = json!({ "kind": "command_prefix", "words": ["cargo"] });
        for (keys, expected) in [
            ("⏎", Some(json!({ "outcome": "approved" }))),
            ("↓⏎", Some(json!({ "outcome": "declined" }))),
            ("2⏎", Some(json!({ "outcome": "declined" }))),
            ("not now⏎", Some(json!({ "outcome": "declined", "reason": "not now" }))),
            ("↑yes⏎", Some(json!({ "outcome": "declined", "reason": "yes" }))),
            ("y", None),
        ] {
            let mut ask = asked("permission_required", json!({ "permission_id": "p1" }))?;
            let mut form = Form::of(&ask);
            assert_eq!(press(&mut form, &mut ask, keys), expected, "{keys}");
            assert_eq!(form.sent, expected.is_some());
        }
        let mut ask = asked("permission_required", json!({ "permission_id": "p1", "always": rule }))?;
        let labels: Vec<String> = choices(&ask).into_iter().map(|choice| choice.label).collect();
        assert_eq!(labels[1..4], ["Always here: commands that begin with `cargo`", "Deny", "Never here: the same"]);
        let mut form = Form::of(&ask);
        let never = json!({ "outcome": "declined", "always": true });
        assert_eq!(press(&mut form, &mut ask, "4⏎"), Some(never));
        Ok(())
    }

    #[test]
    fn questions_come_one_after_the_other_and_faults_are_told() -> Result<(), &'static str> {
        let mut ask = asked(
            "question",
            json!({ "question_id": "q1", "call_id": "c1", "questions": [
                { "name": "store", "question": "Which?", "schema": { "type": "string", "enum": ["SQLite", "Postgres"] } },
                { "name": "many", "question": "Where?", "schema": { "type": "array", "items": { "enum": ["a", "b", "c"] } } },
                { "name": "size", "question": "How many?", "schema": { "type": "integer" } },
                { "name": "sure", "question": "Sure?", "schema": { "type": "boolean" } },
            ] }),
        )?;
        let mut form = Form::of(&ask);
        assert_eq!(press(&mut form, &mut ask, "↓⏎"), None);
        assert_eq!((question(&ask).as_str(), form.at), ("Where?", 0));
        assert_eq!(press(&mut form, &mut ask, " ↓↓ ⏎"), None);
        assert_eq!(press(&mut form, &mut ask, "some⏎"), None);
        assert_eq!(form.wrong.as_deref(), Some("a whole number is needed"));
        form.text.cut_to_begin();
        assert_eq!(press(&mut form, &mut ask, "12⏎"), None);
        assert_eq!(choices(&ask).iter().map(|choice| choice.label.as_str()).collect::<Vec<_>>(), ["Yes", "No"]);
        let answers = json!({ "store": "Postgres", "many": ["a", "c"], "size": 12, "sure": false });
        assert_eq!(press(&mut form, &mut ask, "2⏎"), Some(json!({ "answers": answers })));
        Ok(())
    }
}
