//! The requests (A2A 1.0 §3, §9.4).

use super::{
    OUTPUT, Refusal, RefusalKind, TaskId, VERSION,
    ids::task,
    list::ListAsk,
    push::{self, PushAsk, PushConfig},
};
use crate::incoming_file::{IncomingFile, Message, Source};
use domain::ChatId;
use serde_json::{Value, json};

/// The most parts of a message that are read.
const MOST: usize = 1_000;
/// A request, by its method.
#[derive(Clone, Debug, PartialEq)]
pub enum Ask {
    /// A message is sent.
    Send(Box<SentMessage>),
    /// A task is read, with at most so many messages of its history.
    Get(TaskId, Option<usize>),
    /// A task is canceled.
    Cancel(TaskId),
    /// A task is watched to its end.
    Subscribe(TaskId),
    /// Tasks are listed.
    List(ListAsk),
    /// The notifications of a task are configured.
    Push(TaskId, PushAsk),
    /// The card with the personas of the workspace.
    Card,
}

/// A message.
#[derive(Clone, Debug, PartialEq)]
pub struct SentMessage {
    /// The client's id of the message: one that comes again has the same.
    pub message: Option<String>,
    /// The task that it is for; none begins one.
    pub task: Option<TaskId>,
    /// The chat that it continues; none begins one.
    pub context: Option<ChatId>,
    /// Its parts: a text, or, of a single part of data, the data.
    pub content: Value,
    /// The files that it brings along.
    pub files: Vec<IncomingFile>,
    /// The persona of a new chat.
    pub skill: Option<String>,
    /// The model of a new chat.
    pub model: Option<String>,
    /// Whether the updates are streamed.
    pub is_streamed: bool,
    /// Whether the task is answered as soon as it is accepted.
    pub at_once: bool,
    /// The most messages of the history that the answer has.
    pub history: Option<usize>,
    /// The notifications of the task that the message begins or answers.
    pub push: Option<PushConfig>,
}

impl SentMessage {
    /// The content as the words of a message.
    pub fn words(&self) -> String {
        self.content.as_str().map_or_else(|| self.content.to_string(), str::to_owned)
    }
}

/// Reads a request of the protocol in this version, that of the header `A2A-Version`; without the header it is 0.3 (§3.6.2). It gives the id of the
/// request, null where it has none, and what it asks for, or the refusal with the kind that the protocol gives to it.
pub fn request(body: &Value, version: Option<&str>) -> (Value, Result<Ask, Refusal>) {
    let id = Some(&body["id"]).filter(|id| id.is_string() || id.is_i64() || id.is_u64());
    let method = body["method"].as_str().filter(|_| id.is_some() && body["jsonrpc"] == "2.0");
    let asked = match method {
        Some(method) => ask(method, &body["params"], version.unwrap_or("0.3")),
        None => Err(RefusalKind::InvalidRequest.of("body", "this is no request of JSON-RPC 2.0")),
    };
    (id.cloned().unwrap_or_default(), asked)
}

fn ask(method: &str, params: &Value, version: &str) -> Result<Ask, Refusal> {
    // A patch release changes nothing on the wire.
    if version != VERSION && !version.starts_with("1.0.") {
        let version: String = version.chars().take(16).collect();
        return Err(RefusalKind::VersionNotSupported
            .of("A2A-Version", format!("version {version:?} of the protocol is not spoken here"))
            .hint("send the header A2A-Version: 1.0, and its methods"));
    }
    if let Some(asked) = push::asked(method, params) {
        return asked.map(|(task, ask)| Ask::Push(task, ask));
    }
    match method {
        "SendMessage" => sent(params, false).map(Box::new).map(Ask::Send),
        "SendStreamingMessage" => sent(params, true).map(Box::new).map(Ask::Send),
        "GetTask" => Ok(Ask::Get(task(&params["id"])?, history(&params["historyLength"])?)),
        "CancelTask" => Ok(Ask::Cancel(task(&params["id"])?)),
        "SubscribeToTask" => Ok(Ask::Subscribe(task(&params["id"])?)),
        "GetExtendedAgentCard" => Ok(Ask::Card),
        "ListTasks" => ListAsk::read(params).map(Ask::List),
        other => {
            let other: String = other.chars().take(64).collect();
            Err(RefusalKind::MethodNotFound.of("method", format!("there is no method {other:?} in version 1.0")))
        }
    }
}

fn text(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}

fn history(value: &Value) -> Result<Option<usize>, Refusal> {
    match value {
        Value::Null => Ok(None),
        value => match value.as_u64() {
            Some(length) => Ok(Some(usize::try_from(length).unwrap_or(usize::MAX))),
            None => Err(RefusalKind::InvalidParams.of("historyLength", "historyLength is a number, 0 or more")),
        },
    }
}

fn sent(params: &Value, is_streamed: bool) -> Result<SentMessage, Refusal> {
    let (message, configuration) = (&params["message"], &params["configuration"]);
    if message["role"] != "ROLE_USER" {
        return Err(RefusalKind::InvalidParams.of("message", "the role of a message that is sent is ROLE_USER"));
    }
    let push = match &configuration["taskPushNotificationConfig"] {
        Value::Null => None,
        config => Some(PushConfig::read(config)?),
    };
    let modes = configuration["acceptedOutputModes"].as_array().filter(|modes| !modes.is_empty());
    let fits =
        |mode: &Value| mode.as_str().is_some_and(|mode| OUTPUT.contains(&mode) || mode == "*/*" || mode == "text/*");
    if modes.is_some_and(|modes| !modes.iter().any(fits)) {
        return Err(RefusalKind::ContentTypeNotSupported
            .of("acceptedOutputModes", "none of the accepted output modes is there")
            .hint("answers are text/plain, and their facts application/json"));
    }
    let named = |name: &'static str| match &message["metadata"][name] {
        Value::Null => Ok(None),
        value => match text(value) {
            Some(text) => Ok(Some(text.to_owned())),
            None => Err(RefusalKind::InvalidParams.of("metadata", format!("{name} of the metadata is a text"))),
        },
    };
    let context = text(&message["contextId"]).map(|id| {
        id.parse().map_err(|_| {
            RefusalKind::InvalidParams
                .of("contextId", "contextId is no id of a chat")
                .hint("leave it out to begin a context; its id is that of the chat, which the answer tells")
        })
    });
    let (content, files) = content(&message["parts"])?;
    Ok(SentMessage {
        message: text(&message["messageId"]).map(str::to_owned),
        task: text(&message["taskId"]).map(|_| task(&message["taskId"])).transpose()?,
        context: context.transpose()?,
        content,
        files,
        skill: named("skill")?,
        model: named("model")?,
        is_streamed,
        at_once: configuration["returnImmediately"] == true,
        history: history(&configuration["historyLength"])?,
        push,
    })
}

/// The texts and data of a message, a line each, and its files; data that is all of it stays data.
fn content(parts: &Value) -> Result<(Value, Vec<IncomingFile>), Refusal> {
    let parts = parts.as_array().filter(|parts| (1..=MOST).contains(&parts.len()));
    let Some(parts) = parts else {
        return Err(RefusalKind::InvalidParams.of("parts", format!("a message has 1 to {MOST} parts")));
    };
    if let [part] = parts.as_slice()
        && let Some(data) = part.get("data")
    {
        return Ok((data.clone(), Vec::new()));
    }
    let (mut words, mut said) = (Vec::new(), Message::default());
    for part in parts {
        match (part["text"].as_str(), part.get("data")) {
            (Some(text), _) => words.push(text.to_owned()),
            (None, Some(data)) => words.push(data.to_string()),
            (None, None) if part["raw"].is_string() || part["url"].is_string() => {
                said.bring("parts", Source::either(&part["raw"], &part["mediaType"], &part["url"], &part["filename"]))?;
            }
            (None, None) => {
                return Err(RefusalKind::ContentTypeNotSupported
                    .of("parts", "a part of a message is a text, data, or a file")
                    .hint("send text, data, raw, or url with a data: address"));
            }
        }
    }
    Ok((json!(words.join("\n")), said.files))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn read(method: &str, params: Value, version: Option<&str>) -> Result<Ask, RefusalKind> {
        let body = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        request(&body, version).1.map_err(|refusal| refusal.kind)
    }

    fn message(more: Value) -> Value {
        let mut message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "Hi" }] });
        message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "message": message })
    }

    #[test]
    fn a_message_begins_a_context_or_is_for_a_task() {
        let Ask::Send(sent) =
            read("SendMessage", message(json!({ "metadata": { "skill": "reviewer" } })), Some("1.0")).unwrap()
        else {
            panic!("a message");
        };
        assert_eq!(
            (sent.words().as_str(), sent.skill.as_deref(), sent.task, sent.context),
            ("Hi", Some("reviewer"), None, None)
        );
        let data = json!({ "parts": [{ "data": { "approved": true } }] });
        let Ask::Send(sent) = read("SendStreamingMessage", message(data), Some("1.0.3")).unwrap() else {
            panic!("a message")
        };
        assert_eq!((sent.content, sent.is_streamed), (json!({ "approved": true }), true));
        let file = json!({ "raw": "aGk=", "mediaType": "image/png" });
        let parts = json!({ "parts": [{ "text": "Look" }, file, { "url": "data:text/plain;base64,aGk=", "filename": "a.md" }] });
        let Ask::Send(sent) = read("SendMessage", message(parts), Some("1.0")).unwrap() else { panic!("a message") };
        let names: Vec<_> = sent.files.iter().map(|file| (file.name.as_str(), file.content.as_slice())).collect();
        assert_eq!((sent.content, names), (json!("Look"), vec![("file.png", &b"hi"[..]), ("a.md", b"hi")]));
    }

    #[test]
    fn a_request_that_cannot_be_honoured_is_refused_by_its_kind() {
        let mut images = message(json!({}));
        images["configuration"] = json!({ "acceptedOutputModes": ["image/png"] });
        for (method, params, kind) in [
            ("SendMessage", images, RefusalKind::ContentTypeNotSupported),
            ("SendMessage", message(json!({ "parts": [{ "file": "AA==" }] })), RefusalKind::ContentTypeNotSupported),
            ("SendMessage", message(json!({ "parts": [{ "raw": "?" }] })), RefusalKind::InvalidParams),
            (
                "SendMessage",
                message(json!({ "parts": [{ "url": "https://example.org/a" }] })),
                RefusalKind::InvalidParams,
            ),
            ("SendMessage", message(json!({ "parts": [] })), RefusalKind::InvalidParams),
            ("SendMessage", message(json!({ "contextId": "mine" })), RefusalKind::InvalidParams),
            ("SendMessage", message(json!({ "role": "ROLE_AGENT" })), RefusalKind::InvalidParams),
            ("GetTask", json!({ "id": "x" }), RefusalKind::TaskNotFound),
            ("GetTask", json!({}), RefusalKind::InvalidParams),
            ("ListTasks", json!({ "status": "busy" }), RefusalKind::InvalidParams),
            ("ListTaskPushNotificationConfigs", json!({}), RefusalKind::InvalidParams),
            ("ListTaskPushNotificationConfigs", json!({ "taskId": "x" }), RefusalKind::TaskNotFound),
            ("message/send", message(json!({})), RefusalKind::MethodNotFound),
        ] {
            assert_eq!(read(method, params, Some("1.0")), Err(kind), "{method}");
        }
        assert_eq!(read("SendMessage", message(json!({})), None), Err(RefusalKind::VersionNotSupported));
        let (id, asked) = request(&json!({ "id": 7, "method": "GetTask" }), Some("1.0"));
        assert_eq!((id, asked.unwrap_err().kind), (json!(7), RefusalKind::InvalidRequest), "its id can be told");
        let (id, asked) = request(&json!([]), Some("1.0"));
        assert_eq!((id, asked.unwrap_err().kind), (Value::Null, RefusalKind::InvalidRequest));
    }
}
