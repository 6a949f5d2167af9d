//! The request of `DefaultChatTransport`: the client's messages, of which the last one is new or has answers in it.

use crate::{
    fields,
    incoming_file::{IncomingFile, Message, Source, unknown_part},
};
use domain::{CallId, Error, PermissionId};
use serde_json::{Map, Value};
use std::fmt::Write;

/// The most messages, and the most parts of one, that are read.
const MOST: usize = 2_000;
/// The longest id of a chat, in bytes.
const MAX_ID: usize = 200;

/// A request for an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The client's id of the chat.
    pub id: String,
    /// The persona of a new chat.
    pub role: Option<String>,
    /// The model of a new chat.
    pub model: Option<String>,
    /// The conversation before the last message: a new chat reads it.
    pub earlier: String,
    /// The new part of it.
    pub input: Input,
}

/// The new part of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// A message.
    Words {
        /// The words.
        content: String,
        /// The files that it brings along.
        files: Vec<IncomingFile>,
    },
    /// A decision on a request for permission.
    Decision {
        /// The request.
        id: PermissionId,
        /// Whether it is a yes.
        approved: bool,
        /// Why it is a no.
        reason: Option<String>,
    },
    /// Answers to the questions of a call: an object by their names, or one text.
    Answers(CallId, Value),
}

/// Reads the body of a request.
///
/// # Errors
/// `INVALID_ARGUMENT` that names the field which is missing, has a form that the SDK does not send, or cannot be honoured.
pub fn request(body: &Map<String, Value>) -> Result<Request, Error> {
    const KNOWN: [&str; 6] = ["id", "messages", "trigger", "messageId", "role", "model"];
    if let Some(field) = body.keys().find(|field| !KNOWN.contains(&field.as_str())) {
        let shown: String = field.chars().take(64).collect();
        return Err(Error::invalid(&shown, format!("{shown} cannot be honoured here"))
            .hint("beside the fields of the SDK, body can have role (a persona) and model"));
    }
    match fields::given(body, "trigger") {
        None => {}
        Some(Value::String(trigger)) if trigger == "submit-message" => {}
        Some(Value::String(trigger)) if trigger == "regenerate-message" => {
            return Err(Error::invalid("trigger", "an answer is not made again")
                .hint("fork the chat before the turn: POST /api/v1/workspaces/ID/chats/ID/fork"));
        }
        Some(_) => return Err(Error::invalid("trigger", "this trigger is not known").hint("send submit-message")),
    }
    fields::text(body, "messageId")?;
    let id = fields::text(body, "id")?.filter(|id| (1..=MAX_ID).contains(&id.len()));
    let id = id.ok_or_else(|| Error::invalid("id", format!("the id of a chat has 1 to {MAX_ID} bytes")))?;
    let messages = body.get("messages").and_then(Value::as_array).filter(|all| all.len() <= MOST);
    let messages =
        messages.ok_or_else(|| Error::invalid("messages", format!("messages is a list of at most {MOST}")))?;
    let (last, before) = messages.split_last().ok_or_else(|| Error::invalid("messages", "there is no message"))?;
    let input = match last["role"].as_str() {
        Some("user") => {
            let Message { words: content, files } = said(parts(last)?, true)?;
            Input::Words { content, files }
        }
        Some("assistant") => decided(parts(last)?)?,
        _ => return Err(Error::invalid("messages", "the last message is neither of the user nor of the assistant")),
    };
    let mut earlier = String::new();
    for message in before {
        let who = match message["role"].as_str() {
            Some("user") => "person",
            Some("assistant") => "you",
            _ => "instructions",
        };
        // Writing to a text does not fail.
        let _ = writeln!(earlier, "{who}: {}", said(parts(message)?, false)?.words);
    }
    let (role, model) = (fields::text(body, "role")?, fields::text(body, "model")?);
    Ok(Request { id: id.to_owned(), role: role.map(str::to_owned), model: model.map(str::to_owned), earlier, input })
}

fn parts(message: &Value) -> Result<&Vec<Value>, Error> {
    let parts = message["parts"].as_array().filter(|parts| parts.len() <= MOST);
    parts.ok_or_else(|| Error::invalid("messages", format!("a message has at most {MOST} parts")))
}

/// The words of a message, and of a new one its files. Other parts are refused in a new message.
fn said(parts: &[Value], is_new: bool) -> Result<Message, Error> {
    let mut said = Message::default();
    for part in parts {
        match (part["type"].as_str(), part["text"].as_str()) {
            (Some("text"), Some(text)) => said.words.push_str(text),
            (Some("file"), _) if is_new => {
                said.bring("messages", Source::address(&part["url"], &part["filename"]))?;
            }
            (kind, _) if is_new => return Err(unknown_part("messages", kind)),
            _ => {}
        }
    }
    Ok(said)
}

/// The answer in the message of the assistant: that of its last tool which has one.
fn decided(parts: &[Value]) -> Result<Input, Error> {
    let none = || {
        Error::invalid("messages", "the last message is the assistant's, and has no answer in it")
            .hint("send a message of the user, an approval response, or the output of ask_user")
    };
    for part in parts.iter().rev() {
        let executed = part["providerExecuted"] == true;
        let is_ask = part["toolName"] == crate::part::ASK || part["type"] == "tool-ask_user";
        match part["state"].as_str() {
            Some("approval-responded") => {
                let approval = &part["approval"];
                let id = approval["id"].as_str().and_then(|id| id.parse().ok());
                let (Some(id), Some(approved)) = (id, approval["approved"].as_bool()) else { return Err(none()) };
                return Ok(Input::Decision { id, approved, reason: approval["reason"].as_str().map(str::to_owned) });
            }
            Some("output-available") if is_ask && !executed => {
                let call = part["toolCallId"].as_str().and_then(|id| id.parse().ok()).ok_or_else(none)?;
                return Ok(Input::Answers(call, part["output"].clone()));
            }
            _ => {}
        }
    }
    Err(none())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use serde_json::json;

    fn read(body: Value) -> Result<Request, Error> {
        request(body.as_object().unwrap())
    }

    #[test]
    fn the_last_message_is_new_or_has_an_answer() {
        let said = json!({ "role": "user", "parts": [{ "type": "text", "text": "Hi" }] });
        let new = read(json!({ "id": "x", "messages": [said], "trigger": "submit-message" })).unwrap();
        assert_eq!((new.id.as_str(), new.input), ("x", Input::Words { content: "Hi".into(), files: Vec::new() }));
        let photo = json!({ "type": "file", "mediaType": "image/png", "filename": "a.png", "url": "data:image/png;base64,aGk=" });
        let shows = json!({ "role": "user", "parts": [photo, { "type": "text", "text": "Look" }] });
        let Input::Words { content, files } = read(json!({ "id": "x", "messages": [shows] })).unwrap().input else {
            panic!()
        };
        assert_eq!(
            (content.as_str(), files[0].name.as_str(), files[0].content.as_slice()),
            ("Look", "a.png", b"hi".as_slice())
        );
        let again = read(json!({ "id": "x", "messages": [shows, said] })).unwrap();
        assert_eq!(again.earlier, "person: Look\n", "files of earlier messages are with their chat");
        let id = "019bf537-f228-7cd3-aa1c-3da8af302e12";
        let part = json!({ "type": "dynamic-tool", "state": "approval-responded", "approval": { "id": id, "approved": false, "reason": "no" } });
        let decided = json!({ "role": "assistant", "parts": [{ "type": "step-start" }, part] });
        let request = read(json!({ "id": "x", "messages": [said, decided] })).unwrap();
        assert_eq!(request.earlier, "person: Hi\n");
        let decision = Input::Decision { id: id.parse().unwrap(), approved: false, reason: Some("no".into()) };
        assert_eq!(request.input, decision);
        let silent = json!({ "role": "assistant", "parts": [] });
        for (body, field) in [
            (json!({ "id": "x", "messages": [silent] }), "messages"),
            (json!({ "id": "x", "messages": [] }), "messages"),
            (json!({ "messages": [said] }), "id"),
            (json!({ "id": "x", "messages": [said], "trigger": "regenerate-message" }), "trigger"),
            (json!({ "id": "x", "messages": [said], "trigger": 1 }), "trigger"),
            (json!({ "id": "x", "messages": [said], "trigger": "resume" }), "trigger"),
            (json!({ "id": "x", "messages": [said], "messageId": 1 }), "messageId"),
            (json!({ "id": "x", "messages": [said], "role": ["reviewer"] }), "role"),
            (json!({ "id": "x", "messages": [said], "model": {} }), "model"),
            (json!({ "id": "x", "messages": [said], "temperature": 1 }), "temperature"),
            (json!({ "id": "x", "messages": [{ "role": "user", "parts": [{ "type": "file" }] }] }), "messages"),
        ] {
            assert_eq!(read(body).unwrap_err().details["field"], field);
        }
    }
}
