//! The answers to questions and to requests for permission, in the forms that clients send, and the settings of the model that come with them.

use super::{Reply, Speaker, check_settings_of_flow};
use domain::{ChatView, CommandId, Error, ModelSettings};
use serde_json::{Map, Value};
use uuid::Uuid;

impl Speaker<'_> {
    /// Gives the model of a chat these settings. The answer to `asked` comes behind them, so the rest of the turn has them. They change while `asked` is open
    /// alone: an answer that comes too late, or again, changes nothing.
    pub(super) async fn set_model(&self, view: &ChatView, asked: Uuid, settings: ModelSettings) -> Result<(), Error> {
        if view.task_id.is_some() {
            return check_settings_of_flow(settings);
        }
        let wanted = settings.or(view.model_settings);
        if wanted == view.model_settings || !is_open(view, asked) {
            return Ok(());
        }
        let setup = chat::Setup { model_settings: Some(wanted), ..chat::Setup::default() };
        let command = CommandId::from_key(&self.command().to_string(), "model settings");
        self.context.chats.configure_once(self.workspace, view.chat_id, command, setup, &self.by).await
    }
}

fn is_open(view: &ChatView, id: Uuid) -> bool {
    let id = id.to_string();
    let has_it = |open: &Value| ["call_id", "permission_id", "question_id"].iter().any(|key| open["data"][*key] == id);
    view.waiting_for.iter().any(has_it)
}

pub(super) fn is_permission(view: &ChatView, id: Uuid, reply: &Reply) -> bool {
    let id = id.to_string();
    match view.waiting_for.iter().find(|open| open["data"]["permission_id"] == id || open["data"]["question_id"] == id)
    {
        Some(open) => open["event"] == "permission_required",
        // It is not open any more: the refusal is that of the command that the caller means.
        None => matches!(reply, Reply::Decision { .. }),
    }
}

/// A yes or a no in the forms that clients send.
pub(super) fn decision(reply: Reply) -> Result<(bool, Option<String>), Error> {
    let unclear = || {
        Error::invalid("answer", "a request for permission is answered by a yes or a no")
            .hint(r#"send {"approved": true}, {"approved": false, "reason": "…"}, approved or declined"#)
    };
    match reply {
        Reply::Decision { approved, reason } => Ok((approved, reason)),
        Reply::Given(Value::Bool(approved)) => Ok((approved, None)),
        Reply::Given(Value::Object(fields)) => {
            let approved = fields.get("approved").and_then(Value::as_bool).ok_or_else(unclear)?;
            Ok((approved, fields.get("reason").and_then(Value::as_str).map(str::to_owned)))
        }
        Reply::Given(Value::String(text)) => match serde_json::from_str(&text) {
            Ok(value @ (Value::Bool(_) | Value::Object(_))) => decision(Reply::Given(value)),
            _ => match text.split_once(':').map_or((text.as_str(), None), |(word, why)| (word, Some(why))) {
                ("approved", None) => Ok((true, None)),
                ("declined", why) => Ok((false, why.map(|why| why.trim().to_owned()))),
                _ => Err(unclear()),
            },
        },
        Reply::Given(_) | Reply::Failed(_) => Err(unclear()),
    }
}

/// Answers by the names of the questions. One value is the answer to one question.
pub(super) fn answers_of(waiting_for: &[Value], id: Uuid, reply: Reply) -> Result<Map<String, Value>, Error> {
    let given = match reply {
        Reply::Given(Value::String(text)) => domain::exact_numbers::value_or_text(&text),
        Reply::Given(value) => value,
        Reply::Decision { .. } => {
            return Err(Error::invalid("answer", "questions are answered by values, not by a yes or a no"));
        }
        Reply::Failed(_) => return Err(Error::invalid("answer", "questions are answered by values, not by an error")),
    };
    let id = id.to_string();
    let open = waiting_for.iter().find(|open| open["data"]["question_id"] == id);
    let questions = open.and_then(|open| open["data"]["questions"].as_array());
    let names: Vec<&str> = questions.into_iter().flatten().filter_map(|one| one["name"].as_str()).collect();
    match given {
        Value::Object(mut fields) => match fields.remove("answers") {
            Some(Value::Object(answers)) if fields.is_empty() => Ok(answers),
            Some(other) => {
                fields.insert("answers".to_owned(), other);
                Ok(fields)
            }
            None => Ok(fields),
        },
        value => match names[..] {
            [name] => Ok(Map::from_iter([(name.to_owned(), value)])),
            // The refusal of what is not open any more is that of the command.
            [] => Ok(Map::new()),
            _ => Err(Error::invalid("answer", "there are several questions, and one answer")
                .hint(format!("send an object with {}", names.join(", ")))),
        },
    }
}
