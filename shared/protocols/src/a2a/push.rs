//! Push notifications (A2A 1.0 §3.1.7 to §3.1.10, §4.3): their configurations, and the updates that are posted.

use super::{Refusal, RefusalKind, TaskId, ids::task, task::State};
use domain::{ChatId, Code, Timestamp, TurnId};
use serde_json::{Map, Value, json};

/// The longest id of a configuration, and the longest token, in bytes.
const MAX_ID: usize = 200;
const MAX_TOKEN: usize = 2_000;

/// The configuration of a task's notifications.
#[derive(Clone, Debug, PartialEq)]
pub struct PushConfig {
    /// Its id, unique within its task; none lets the server choose.
    pub id: Option<String>,
    /// The address.
    pub url: String,
    /// A text of the client's own, which comes with each notification.
    pub token: Option<String>,
}

impl PushConfig {
    /// Reads a configuration.
    pub(super) fn read(value: &Value) -> Result<Self, Refusal> {
        let text = |name: &'static str, most: usize| match &value[name] {
            Value::Null => Ok(None),
            Value::String(text) if text.is_empty() => Ok(None),
            Value::String(text) if text.len() <= most && !text.chars().any(char::is_control) => Ok(Some(text.clone())),
            _ => Err(RefusalKind::InvalidParams.of(name, format!("{name} is a text of at most {most} bytes"))),
        };
        if !value["authentication"].is_null() {
            return Err(RefusalKind::InvalidParams
                .of("authentication", "no credentials of receivers are kept here")
                .hint("check the signature of Standard Webhooks that each notification has, or its token"));
        }
        let url = text("url", 2_048)?.ok_or_else(|| RefusalKind::InvalidParams.of("url", "the url is missing"))?;
        Ok(Self { id: text("id", MAX_ID)?, url, token: text("token", MAX_TOKEN)? })
    }

    /// As the protocol has it.
    pub fn value(&self, of: TaskId) -> Value {
        let mut value = json!({ "taskId": of.to_string(), "id": self.id, "url": self.url });
        if let Some(token) = &self.token {
            value["token"] = json!(token);
        }
        value
    }
}

/// A request about the configurations of a task.
#[derive(Clone, Debug, PartialEq)]
pub enum PushAsk {
    /// One is made, or replaced.
    Create(PushConfig),
    /// One is read.
    Get(String),
    /// All are read.
    List,
    /// One is removed.
    Delete(String),
}

/// The request of a method about push notifications, if it is one.
pub(super) fn asked(method: &str, params: &Value) -> Option<Result<(TaskId, PushAsk), Refusal>> {
    let id = || {
        let id = params["id"].as_str().filter(|id| !id.is_empty() && id.len() <= MAX_ID);
        id.map(str::to_owned)
            .ok_or_else(|| RefusalKind::InvalidParams.of("id", "the id of the configuration is missing"))
    };
    let ask = match method {
        "CreateTaskPushNotificationConfig" => PushConfig::read(params).map(PushAsk::Create),
        "GetTaskPushNotificationConfig" => id().map(PushAsk::Get),
        "ListTaskPushNotificationConfigs" => Ok(PushAsk::List),
        "DeleteTaskPushNotificationConfig" => id().map(PushAsk::Delete),
        _ => return None,
    };
    Some(task(&params["taskId"]).and_then(|task| Ok((task, ask?))))
}

/// The body of a notification: a status update. `event` is the type of the event of webhooks, and `data` its facts.
pub fn pushed(chat: ChatId, turn: TurnId, event: &str, at: Timestamp, data: &Map<String, Value>) -> Value {
    let id = TaskId { chat, turn };
    let text = |name: &str| data.get(name).and_then(Value::as_str).unwrap_or_default();
    let (state, parts) = match event {
        "question.asked" => {
            let questions = data.get("questions").cloned().unwrap_or_default();
            let words: Vec<_> =
                questions.as_array().into_iter().flatten().map(|one| text_of(one, "question")).collect();
            let data = json!({ "questionId": data.get("question_id"), "questions": questions });
            (State::InputRequired, json!([{ "text": words.join("\n") }, { "data": data }]))
        }
        "permission.asked" => {
            let words = format!("May I call {}? {}", text("tool"), text("reason"));
            let data = json!({
                "permissionId": data.get("permission_id"), "tool": data.get("tool"), "reason": data.get("reason"),
            });
            (State::InputRequired, json!([{ "text": words }, { "data": data }]))
        }
        "task.ended" => {
            let error = data.get("error").unwrap_or(&Value::Null);
            let state = match (text("status"), &error["code"]) {
                (_, code) if *code == json!(Code::Cancelled) => State::Canceled,
                (status, Value::Null) if status != "failure" => State::Completed,
                _ => State::Failed,
            };
            (state, json!([{ "text": text_of(error, "message") }]))
        }
        // Its facts are not known: the other agent reads the task.
        "event.lost" => {
            let error = data.get("error").unwrap_or(&Value::Null);
            (State::Working, json!([{ "text": text_of(error, "message") }]))
        }
        _ => {
            let state = match text("stop_reason") {
                "end_turn" => State::Completed,
                "refusal" => State::Rejected,
                "stopped" => State::Canceled,
                _ => State::Failed,
            };
            (state, json!([{ "text": text("text") }]))
        }
    };
    let message = json!({
        "messageId": format!("{turn}-{}", at.as_millis()), "contextId": chat, "taskId": id.to_string(), "role": "ROLE_AGENT",
        "parts": parts,
    });
    let status = json!({ "state": state.name(), "timestamp": at, "message": message });
    json!({ "statusUpdate": { "taskId": id.to_string(), "contextId": chat, "status": status } })
}

fn text_of<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use uuid::Uuid;

    #[test]
    fn a_notification_is_a_status_update() {
        let (chat, turn) = (ChatId(Uuid::from_u128(1)), TurnId(Uuid::from_u128(2)));
        let state = |event: &str, data: Value| {
            let body = pushed(chat, turn, event, Timestamp::from_millis(0), data.as_object().unwrap());
            let status = &body["statusUpdate"]["status"];
            let text = status["message"]["parts"][0]["text"].as_str().unwrap().to_owned();
            (status["state"].as_str().unwrap().to_owned(), text)
        };
        let is = |state: &str, text: &str| (format!("TASK_STATE_{state}"), text.to_owned());
        let ended = |reason: &str| json!({ "stop_reason": reason, "text": "Said." });
        assert_eq!(state("turn.ended", ended("end_turn")), is("COMPLETED", "Said."));
        assert_eq!(state("turn.ended", ended("stopped")), is("CANCELED", "Said."));
        assert_eq!(state("turn.ended", ended("step_limit")), is("FAILED", "Said."));
        assert_eq!(state("task.ended", json!({ "status": "success" })), is("COMPLETED", ""));
        assert_eq!(state("task.ended", json!({ "status": "failure" })), is("FAILED", ""));
        let stopped = json!({ "status": "failure", "error": { "code": "CANCELLED", "message": "Stop." } });
        assert_eq!(state("task.ended", stopped), is("CANCELED", "Stop."));
        let failed = json!({ "status": "failure", "error": { "code": "TIMEOUT", "message": "Late." } });
        assert_eq!(state("task.ended", failed), is("FAILED", "Late."));
        let question = json!({ "question_id": "q", "questions": [{ "name": "a", "question": "Which?" }] });
        assert_eq!(state("question.asked", question), is("INPUT_REQUIRED", "Which?"));
        let permission = json!({ "permission_id": "p", "tool": "write", "reason": "It asks." });
        assert_eq!(state("permission.asked", permission), is("INPUT_REQUIRED", "May I call write? It asks."));
        let lost = json!({ "error": { "code": "CONTENT_MISSING", "message": "It is lost." } });
        assert_eq!(state("event.lost", lost), is("WORKING", "It is lost."), "nobody knows that the task has failed");
    }

    #[test]
    fn credentials_of_receivers_are_refused() {
        let read = |value: Value| PushConfig::read(&value).map_err(|refusal| refusal.error.details["field"].clone());
        let config = PushConfig { id: None, url: "https://a.example".into(), token: Some("t".into()) };
        assert_eq!(read(json!({ "id": "", "url": "https://a.example", "token": "t" })), Ok(config));
        let refused =
            json!({ "url": "https://a.example", "authentication": { "scheme": "Bearer", "credentials": "c" } });
        assert_eq!(read(refused), Err(json!("authentication")));
        assert_eq!(read(json!({ "id": "x" })), Err(json!("url")));
    }
}
