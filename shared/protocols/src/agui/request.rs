//! The input of a run (`RunAgentInput`).

use crate::{
    fields, functions,
    incoming_file::{IncomingFile, Message, Source, unknown_part},
};
use domain::{ClientFunction, Error};
use serde_json::{Map, Value};
use std::fmt::Write;
use uuid::Uuid;

/// The most messages, and the most parts of one, that are read.
const MOST: usize = 2_000;
/// The most entries of the client's context.
const MOST_CONTEXT: usize = 200;
/// The longest context of the client, in bytes: the agent reads the beginning of a file with the message, and the rest by its tools.
const MAX_CONTEXT: usize = 64 * 1024;
/// The name of the file with the context of the client.
pub const CONTEXT_FILE: &str = "context.md";
/// The longest id, in bytes.
const MAX_ID: usize = 200;

/// A run to begin.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The client's id of the thread.
    pub thread: String,
    /// The client's id of the run.
    pub run: String,
    /// The persona of a new chat.
    pub role: Option<String>,
    /// The model of a new chat.
    pub model: Option<String>,
    /// The functions that the client runs itself.
    pub functions: Vec<ClientFunction>,
    /// The conversation before the last message: a new chat reads it.
    pub earlier: String,
    /// The new part of it.
    pub input: Input,
    /// The context of the client, as a file that comes along with a message. The client sends it with every run.
    pub context: Option<IncomingFile>,
}

/// The new part of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// A message.
    Words {
        /// The words.
        content: String,
        /// The files that it brings along.
        files: Vec<IncomingFile>,
    },
    /// The answer to an interrupt, or the result of a function.
    Resume {
        /// The questions, the request for permission, or the call.
        id: Uuid,
        /// The answer; none of a client that gave it up.
        payload: Option<Value>,
    },
    /// The error of a function that failed.
    Failed {
        /// The call.
        id: Uuid,
        /// The output that it has given until then, and the error.
        output: String,
    },
}

/// Reads the input of a run.
///
/// # Errors
/// `INVALID_ARGUMENT` that names the field which is missing, has a form that the protocol does not know, or cannot be honoured.
pub fn request(body: &Map<String, Value>) -> Result<Request, Error> {
    let context = context(body)?;
    let id = |field: &str| {
        let id = body.get(field).and_then(Value::as_str).filter(|id| (1..=MAX_ID).contains(&id.len()));
        id.map(str::to_owned).ok_or_else(|| Error::invalid(field, format!("{field} has 1 to {MAX_ID} bytes")))
    };
    let (mut role, mut model) = (None, None);
    for (name, value) in fields::object(body, "forwardedProps")? {
        match (name.as_str(), value.as_str()) {
            ("role", Some(text)) => role = Some(text.to_owned()),
            ("model", Some(text)) => model = Some(text.to_owned()),
            _ => {
                let name: String = name.chars().take(64).collect();
                return Err(Error::invalid("forwardedProps", format!("{name} cannot be honoured here"))
                    .hint("forwardedProps can have role (a persona) and model"));
            }
        }
    }
    let (input, earlier) = match fields::list(body, "resume")? {
        [entry] => (resume(entry)?, String::new()),
        [_, _, ..] => {
            return Err(Error::invalid("resume", "a run has one interrupt, and so has its answer"));
        }
        [] => words(body)?,
    };
    let functions = functions::read(body)?;
    Ok(Request { thread: id("threadId")?, run: id("runId")?, role, model, functions, earlier, input, context })
}

/// The context of the client, as a file: the agent reads it as data, and people see it beside the words.
fn context(body: &Map<String, Value>) -> Result<Option<IncomingFile>, Error> {
    const FIELD: &str = "context";
    let entries = fields::list(body, FIELD)?;
    if entries.len() > MOST_CONTEXT {
        return Err(Error::invalid(
            FIELD,
            format!("context has {} entries; the limit is {MOST_CONTEXT}", entries.len()),
        )
        .hint("put several values into one entry"));
    }
    let mut text = String::from("# Context of the client\n");
    for entry in entries {
        let (Some(description), Some(value)) = (entry["description"].as_str(), entry["value"].as_str()) else {
            return Err(Error::invalid(FIELD, "an entry of context has a description and a value, both texts")
                .hint("write another value as JSON"));
        };
        let title = description.split_whitespace().collect::<Vec<_>>().join(" ");
        // Writing to a text does not fail.
        let _ = writeln!(text, "\n## {title}\n\n{}", value.trim_end());
    }
    if text.len() > MAX_CONTEXT {
        return Err(Error::invalid(FIELD, format!("context has {} bytes; {MAX_CONTEXT} fit", text.len()))
            .hint("write it into a file of the workspace, and name that in the message"));
    }
    let file = || IncomingFile { name: CONTEXT_FILE.to_owned(), content: text.into_bytes() };
    Ok((!entries.is_empty()).then(file))
}

fn resume(entry: &Value) -> Result<Input, Error> {
    let id = entry["interruptId"].as_str().and_then(|id| Uuid::try_parse(id).ok());
    let id = id.ok_or_else(|| Error::invalid("resume", "interruptId is no id of an interrupt"))?;
    match entry["status"].as_str() {
        Some("resolved") => Ok(Input::Resume { id, payload: Some(entry["payload"].clone()) }),
        Some("cancelled") => Ok(Input::Resume { id, payload: None }),
        _ => Err(Error::invalid("resume", "status is resolved or cancelled")),
    }
}

fn words(body: &Map<String, Value>) -> Result<(Input, String), Error> {
    let messages = body.get("messages").and_then(Value::as_array).filter(|all| all.len() <= MOST);
    let messages =
        messages.ok_or_else(|| Error::invalid("messages", format!("messages is a list of at most {MOST}")))?;
    let (last, before) = match messages.split_last() {
        Some((last, before)) if last["role"] == "user" => (last, before),
        Some((last, _)) if last["role"] == "tool" => {
            let id = last["toolCallId"].as_str().and_then(|id| Uuid::try_parse(id).ok());
            let id = id.ok_or_else(|| Error::invalid("messages", "toolCallId is no id of a call"))?;
            let input = match last["error"].as_str().filter(|error| !error.is_empty()) {
                Some(error) => {
                    let told = last["content"].as_str().filter(|told| !told.is_empty() && *told != error);
                    Input::Failed { id, output: told.into_iter().chain([error]).collect::<Vec<_>>().join("\n") }
                }
                None => Input::Resume { id, payload: Some(last["content"].clone()) },
            };
            return Ok((input, String::new()));
        }
        _ => {
            return Err(Error::invalid("messages", "the last message is not the user's")
                .hint("add a message of the user, or answer an interrupt by resume"));
        }
    };
    let mut earlier = String::new();
    for message in before {
        let who = match message["role"].as_str() {
            Some("user") => "person",
            Some("assistant") => "you",
            Some("system" | "developer") => "instructions",
            // Results of tools, reasoning and activities of another run mean nothing in a new chat.
            _ => continue,
        };
        // Writing to a text does not fail.
        let _ = writeln!(earlier, "{who}: {}", said(&message["content"], false)?.words);
    }
    let Message { words: content, files } = said(&last["content"], true)?;
    Ok((Input::Words { content, files }, earlier))
}

/// The words of a message, and of a new one its files. Other parts are refused in a new message.
fn said(content: &Value, is_new: bool) -> Result<Message, Error> {
    let mut said = Message::default();
    let Some(parts) = content.as_array() else {
        said.words = content.as_str().unwrap_or_default().to_owned();
        return Ok(said);
    };
    for part in parts.iter().take(MOST) {
        match (part["type"].as_str(), part["text"].as_str()) {
            (Some("text"), Some(text)) => said.words.push_str(text),
            (Some("binary"), _) if is_new => {
                let file = Source::either(&part["data"], &part["mimeType"], &part["url"], &part["filename"]);
                said.bring("messages", file)?;
            }
            // Images, audio, video and documents of the newer form, with their source beside their type.
            (Some("image" | "audio" | "video" | "document"), _) if is_new => {
                let source = &part["source"];
                let data = if source["type"] == "data" { &source["value"] } else { &Value::Null };
                let file = Source::either(data, &source["mimeType"], &source["value"], &part["filename"]);
                said.bring("messages", file)?;
            }
            (kind, _) if is_new => return Err(unknown_part("messages", kind)),
            _ => {}
        }
    }
    Ok(said)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use serde_json::json;

    #[test]
    fn a_run_has_a_message_or_the_answer_to_an_interrupt() {
        let read = |more: Value| {
            let mut body = json!({ "threadId": "t", "runId": "r", "messages": [{ "role": "user", "content": "Hi" }], "tools": [] });
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            request(body.as_object().unwrap())
        };
        assert_eq!(read(json!({})).unwrap().input, Input::Words { content: "Hi".into(), files: Vec::new() });
        let url = "data:image/png;base64,aGk=";
        let parts = json!([
            { "type": "text", "text": "Look" },
            { "type": "binary", "mimeType": "text/plain", "data": "aGk=", "filename": "a.log" },
            { "type": "binary", "mimeType": "image/png", "url": url },
            { "type": "document", "source": { "type": "data", "mimeType": "application/pdf", "value": "aGk=" } },
            { "type": "image", "source": { "type": "url", "value": url } },
        ]);
        let said = |parts: &Value| read(json!({ "messages": [{ "role": "user", "content": parts }] }));
        let Input::Words { content, files } = said(&parts).unwrap().input else { panic!() };
        let names: Vec<_> = files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!((content.as_str(), names), ("Look", vec!["a.log", "file.png", "file.pdf", "file.png"]));
        assert!(files.iter().all(|file| file.content == b"hi"));
        let elsewhere = json!([{ "type": "image", "source": { "type": "url", "value": "https://example.org/a.png" } }]);
        assert_eq!(said(&elsewhere).unwrap_err().details["field"], "messages");
        let id = Uuid::from_u128(1);
        let entry = json!({ "interruptId": id, "status": "resolved", "payload": { "approved": true } });
        let payload = Some(json!({ "approved": true }));
        assert_eq!(read(json!({ "resume": [entry] })).unwrap().input, Input::Resume { id, payload });
        let told = json!({ "role": "tool", "toolCallId": id, "content": "warm" });
        let payload = Some(json!("warm"));
        assert_eq!(read(json!({ "messages": [told] })).unwrap().input, Input::Resume { id, payload });
        for (content, output) in [("", "no sensor"), ("no sensor", "no sensor"), ("warm?", "warm?\nno sensor")] {
            let told = json!({ "role": "tool", "toolCallId": id, "content": content, "error": "no sensor" });
            let failed = Input::Failed { id, output: output.into() };
            assert_eq!(read(json!({ "messages": [told] })).unwrap().input, failed, "{content}");
        }
        assert_eq!(read(json!({ "tools": [{ "name": "f" }] })).unwrap().functions.len(), 1);
        let entry = json!({ "description": "The page\nof the person", "value": "Invoice 7" });
        let file = read(json!({ "context": [entry] })).unwrap().context.unwrap();
        let text = "# Context of the client\n\n## The page of the person\n\nInvoice 7\n";
        assert_eq!(file.name, CONTEXT_FILE);
        assert_eq!(String::from_utf8_lossy(&file.content), text);
        for (more, field) in [
            (json!({ "tools": [{ "name": "" }] }), "tools"),
            (json!({ "context": [{}] }), "context"),
            (json!({ "context": [{ "description": "page", "value": { "id": 1 } }] }), "context"),
            (json!({ "context": [{ "description": "page", "value": "x".repeat(MAX_CONTEXT) }] }), "context"),
            (json!({ "context": vec![entry.clone(); MOST_CONTEXT + 1] }), "context"),
            (json!({ "context": { "user": "a" } }), "context"),
            (json!({ "context": "the page" }), "context"),
            (json!({ "resume": { "interruptId": id } }), "resume"),
            (json!({ "forwardedProps": "reviewer" }), "forwardedProps"),
            (json!({ "threadId": "" }), "threadId"),
            (json!({ "messages": [] }), "messages"),
            (json!({ "resume": [{}, {}] }), "resume"),
            (json!({ "forwardedProps": { "temperature": 1 } }), "forwardedProps"),
        ] {
            assert_eq!(read(more).unwrap_err().details["field"], field);
        }
    }
}
