//! Requests for completions and responses, as far as they can be honoured. A field that cannot be is refused by its name.

use super::{
    AskedId, ResponseId, format,
    kept_items::{behind_the_last, is_answered_by},
    other_fields::{check, labels},
    settings::{LENGTHS_OF_COMPLETION, LENGTHS_OF_RESPONSE, settings},
};
use crate::{
    fields::{flag, given, object},
    functions,
    incoming_file::{IncomingFile, Message, Source},
};
use domain::{AnswerFormat, ChatId, ClientFunction, Error, Labels, ModelSettings};
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// The most messages, items and parts that are read.
const MOST: usize = 1_000;

/// A request for a completion or a response.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The persona.
    pub model: String,
    /// The part of the request that the agent reads.
    pub input: Input,
    /// Whether its events are streamed.
    pub stream: bool,
    /// Whether the answer is not waited for.
    pub background: bool,
    /// Whether the last chunk of a completion has the usage.
    pub with_usage: bool,
    /// The response that this one follows.
    pub previous: Option<ResponseId>,
    /// The chat that goes on.
    pub conversation: Option<ChatId>,
    /// The caller's own functions.
    pub functions: Vec<ClientFunction>,
    /// The settings of the model that the request names.
    pub settings: ModelSettings,
    /// The format that the answer has to have.
    pub format: Option<AnswerFormat>,
    /// The labels of a new chat or task.
    pub labels: Labels,
}

/// The part of a request that the agent reads.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// A message.
    Words {
        /// The words.
        content: String,
        /// Instructions and the conversation before them.
        earlier: String,
        /// Whether a conversation is before them, and not instructions alone.
        repeats: bool,
        /// The files that the message brings along.
        files: Vec<IncomingFile>,
    },
    /// Answers to questions: an object by their names, or one text.
    Answers(AskedId, String),
    /// A decision on a request for permission.
    Decision {
        /// The request.
        asked: AskedId,
        /// Whether it is a yes.
        approved: bool,
        /// Why it is a no.
        reason: Option<String>,
    },
}

/// Reads the body of a request for a completion.
///
/// # Errors
/// `INVALID_ARGUMENT` that names the field which is missing, has a form that the API does not know, or cannot be honoured.
pub fn completion(body: &Map<String, Value>) -> Result<Request, Error> {
    let known = &["model", "messages", "stream", "stream_options", "tools", "temperature", "top_p"][..];
    check(body, &[known, &["response_format", "store"], LENGTHS_OF_COMPLETION].concat())?;
    // No completion can be read later, so `true` and `false` have the same effect.
    flag(body, "store")?;
    let messages = list(body, "messages")?;
    let mut earlier = String::new();
    let (last, before) = messages.split_last().ok_or_else(|| Error::invalid("messages", "there is no message"))?;
    let input = match last["role"].as_str() {
        Some("user") => {
            for message in before {
                remember("messages", message, &mut earlier)?;
            }
            said("messages", &last["content"], earlier, has_conversation(before))?
        }
        Some("tool") => answered("messages", &last["tool_call_id"], text("messages", &last["content"])?)?,
        _ => {
            let error = Error::invalid("messages", "the last message is neither of the user nor the answer to a call");
            return Err(error.hint("end with a message of the role user"));
        }
    };
    Ok(Request {
        model: model(body)?,
        input,
        stream: flag(body, "stream")?.unwrap_or_default(),
        background: false,
        with_usage: object(body, "stream_options")?.get("include_usage") == Some(&json!(true)),
        previous: None,
        conversation: None,
        functions: functions_of(body)?,
        settings: settings(body, LENGTHS_OF_COMPLETION)?,
        format: format::of_completion(body)?,
        labels: labels(body)?,
    })
}

/// Reads the body of a request for a response.
///
/// # Errors
/// As those of [`completion`].
pub fn response(body: &Map<String, Value>) -> Result<Request, Error> {
    check(
        body,
        &[
            "model",
            "input",
            "instructions",
            "stream",
            "stream_options",
            "background",
            "previous_response_id",
            "conversation",
            "tools",
            "temperature",
            "top_p",
            "max_output_tokens",
            "text",
        ],
    )?;
    let previous = match given(body, "previous_response_id") {
        None => None,
        Some(id) => Some(
            id.as_str()
                .unwrap_or_default()
                .parse::<ResponseId>()
                .map_err(|()| Error::not_found("response", short_text(id)).detail("field", "previous_response_id"))?,
        ),
    };
    object(body, "stream_options")?;
    let conversation = given(body, "conversation").map(conversation).transpose()?;
    if previous.is_some() && conversation.is_some() {
        return Err(Error::invalid("conversation", "there is a conversation and a previous_response_id")
            .hint("give one of them"));
    }
    let mut earlier = String::new();
    if let Some(instructions) = given(body, "instructions") {
        let instructions =
            instructions.as_str().ok_or_else(|| Error::invalid("instructions", "instructions are a text"))?;
        add(&mut earlier, "instructions", instructions);
    }
    let (input, named) = input(body, earlier, previous.is_some() || conversation.is_some())?;
    Ok(Request {
        model: model(body)?,
        input,
        stream: flag(body, "stream")?.unwrap_or_default(),
        background: flag(body, "background")?.unwrap_or_default(),
        with_usage: true,
        previous: previous.or(named),
        conversation,
        functions: functions_of(body)?,
        settings: settings(body, LENGTHS_OF_RESPONSE)?,
        format: format::of_response(body)?,
        labels: labels(body)?,
    })
}

/// The input, and the response that it follows by the items that it names, unless the request `goes_on` by another field.
fn input(body: &Map<String, Value>, mut earlier: String, goes_on: bool) -> Result<(Input, Option<ResponseId>), Error> {
    const FIELD: &str = "input";
    if let Some(Value::String(content)) = body.get(FIELD) {
        return Ok((words(FIELD, content.clone(), earlier, false, Vec::new())?, None));
    }
    let items = list(body, FIELD)?;
    let (last, before) = items.split_last().ok_or_else(|| Error::invalid(FIELD, "there is no item"))?;
    let decided = match last["type"].as_str() {
        Some("function_call_output") => {
            let output = match &last["output"] {
                Value::String(output) => output.clone(),
                parts => text(FIELD, parts)?,
            };
            Some(answered(FIELD, &last["call_id"], output)?)
        }
        Some("mcp_approval_response") => {
            let asked = asked(FIELD, &last["approval_request_id"])?;
            let approved =
                last["approve"].as_bool().ok_or_else(|| Error::invalid(FIELD, "approve is true or false"))?;
            Some(Input::Decision { asked, approved, reason: last["reason"].as_str().map(str::to_owned) })
        }
        _ => None,
    };
    if let Some(decided) = decided {
        // A client that keeps the conversation sends all of it, up to the call.
        return match before.last() {
            None => Ok((decided, None)),
            Some(call) if is_answered_by(call, last) => Ok((decided, None)),
            Some(_) => Err(Error::invalid(FIELD, "an answer comes alone: one question is open at a time")
                .hint("send the one item, with previous_response_id")),
        };
    }
    let kept = if goes_on { None } else { behind_the_last(items) };
    let (previous, new) = kept.unzip();
    let before = new.as_deref().and_then(<[_]>::split_last).map_or(before, |(_, before)| before);
    for item in before {
        remember(FIELD, item, &mut earlier)?;
    }
    match last["role"].as_str() {
        Some("user") => Ok((said(FIELD, &last["content"], earlier, has_conversation(before))?, previous)),
        _ => {
            Err(Error::invalid(FIELD, "the last item is no message of the user").hint("end with a message of the user"))
        }
    }
}

fn model(body: &Map<String, Value>) -> Result<String, Error> {
    let model = given(body, "model").and_then(Value::as_str).filter(|model| !model.is_empty());
    model.map(str::to_owned).ok_or_else(|| {
        Error::invalid("model", "the model is missing").hint("name a persona; GET /openai/v1/models lists them")
    })
}

fn list<'a>(body: &'a Map<String, Value>, field: &str) -> Result<&'a Vec<Value>, Error> {
    let list = given(body, field).and_then(Value::as_array);
    let list = list.ok_or_else(|| Error::invalid(field, format!("{field} is missing, or no list")))?;
    match list.len() {
        0..=MOST => Ok(list),
        many => Err(Error::invalid(field, format!("{field} has {many} items; the limit is {MOST}"))
            .hint("go on with previous_response_id instead of sending all of a conversation")),
    }
}

fn conversation(given: &Value) -> Result<ChatId, Error> {
    let id = given.as_str().or_else(|| given["id"].as_str()).unwrap_or_default();
    let id = id.strip_prefix("conv_").and_then(|id| Uuid::try_parse(id).ok());
    id.map(ChatId).ok_or_else(|| Error::not_found("conversation", short_text(given)).detail("field", "conversation"))
}

fn short_text(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    text.chars().take(160).collect()
}

fn asked(field: &str, id: &Value) -> Result<AskedId, Error> {
    id.as_str().unwrap_or_default().parse::<AskedId>().map_err(|()| {
        Error::invalid(field, format!("{:?} is no id of a question or a request for permission", short_text(id)))
            .hint("send the id of the call or the request as it came")
    })
}

/// The answer to a call: to questions, or to the function that stands for a permission.
fn answered(field: &str, id: &Value, output: String) -> Result<Input, Error> {
    Ok(Input::Answers(asked(field, id)?, output))
}

/// A new message: its words, and the files that it brings along.
fn said(field: &str, content: &Value, earlier: String, repeats: bool) -> Result<Input, Error> {
    let Some(parts) = content.as_array().filter(|parts| parts.len() <= MOST) else {
        return words(field, text(field, content)?, earlier, repeats, Vec::new());
    };
    let mut said = Message::default();
    for part in parts {
        match Source::of_part(part) {
            Some(file) => said.bring(field, file)?,
            None => said.words.push_str(text_of(field, part)?),
        }
    }
    words(field, said.words, earlier, repeats, said.files)
}

fn words(
    field: &str,
    content: String,
    earlier: String,
    repeats: bool,
    files: Vec<IncomingFile>,
) -> Result<Input, Error> {
    if content.trim().is_empty() {
        return Err(Error::invalid(field, "the message has no words").hint("say what the agent is to do"));
    }
    Ok(Input::Words { content, earlier, repeats, files })
}

/// Whether messages of a conversation are among these, and not instructions alone.
fn has_conversation(messages: &[Value]) -> bool {
    messages.iter().any(|message| matches!(message["role"].as_str(), Some("user" | "assistant")))
}

/// The caller's functions, unless the request says that none is to be called.
fn functions_of(body: &Map<String, Value>) -> Result<Vec<ClientFunction>, Error> {
    let functions = functions::read(body)?;
    Ok(if given(body, "tool_choice").is_some_and(|choice| choice == "none") { Vec::new() } else { functions })
}

/// The text of a message or of its parts.
fn text(field: &str, content: &Value) -> Result<String, Error> {
    match content {
        Value::String(text) => Ok(text.clone()),
        Value::Array(parts) if parts.len() <= MOST => parts.iter().map(|part| text_of(field, part)).collect(),
        _ => Err(Error::invalid(field, "a message has no text").hint("send its content as a text")),
    }
}

/// The text of one part.
fn text_of<'a>(field: &str, part: &'a Value) -> Result<&'a str, Error> {
    let kind = part["type"].as_str().unwrap_or("part");
    let text = match kind {
        "text" | "input_text" | "output_text" => part["text"].as_str(),
        // Clients that keep the conversation send the refusals of models, too.
        "refusal" => part["refusal"].as_str(),
        _ => None,
    };
    text.ok_or_else(|| {
        let kind: String = kind.chars().take(32).collect();
        Error::invalid(field, format!("a message cannot have {kind:?} here"))
            .hint("send texts; write files into the workspace, and name them in the message")
    })
}

/// Adds an earlier message to the conversation that the agent reads before the last one.
fn remember(field: &str, message: &Value, earlier: &mut String) -> Result<(), Error> {
    let who = match (message["role"].as_str(), message["type"].as_str()) {
        (Some("system" | "developer"), _) => "instructions",
        (Some("user"), _) => "person",
        (Some("assistant"), _) => "you",
        // The agent's calls, thoughts and their results mean nothing in another chat.
        (Some("tool"), _)
        | (None, Some("reasoning" | "mcp_call" | "function_call" | "function_call_output" | "mcp_approval_request")) => {
            return Ok(());
        }
        (role, kind) => {
            let shown: String = role.or(kind).unwrap_or("of no role").chars().take(32).collect();
            return Err(Error::invalid(field, format!("an item {shown:?} is not known here")).hint(
                "send messages of the roles system, developer, user and assistant, or go on by previous_response_id",
            ));
        }
    };
    if !message["content"].is_null() {
        let content = match &message["content"] {
            // The files of earlier messages are with the chat that they were sent to.
            Value::Array(parts) if parts.len() <= MOST => {
                let texts = parts.iter().filter(|part| Source::of_part(part).is_none());
                texts.map(|part| text_of(field, part)).collect::<Result<String, Error>>()?
            }
            content => text(field, content)?,
        };
        add(earlier, who, &content);
    }
    Ok(())
}

fn add(earlier: &mut String, who: &str, text: &str) {
    earlier.push_str(who);
    earlier.push_str(": ");
    earlier.push_str(text);
    earlier.push('\n');
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn read(body: Value) -> Result<Request, Error> {
        response(body.as_object().unwrap())
    }

    fn field(refused: Result<Request, Error>) -> String {
        refused.unwrap_err().details["field"].as_str().unwrap().to_owned()
    }

    #[test]
    fn a_field_that_cannot_be_honoured_is_refused_by_name() {
        for (name, value) in [
            ("tools", json!([{ "type": "web_search" }])),
            ("temperature", json!(2.5)),
            ("temperature", json!("warm")),
            ("top_p", json!(-0.5)),
            ("max_output_tokens", json!(0)),
            ("max_output_tokens", json!(1.5)),
            ("max_tokens", json!(10)),
            ("stop", json!(["END"])),
            ("seed", json!("x")),
            ("reasoning_effort", json!("low")),
            ("response_format", json!({ "type": "json_object" })),
            ("text", json!({ "verbosity": "low" })),
            ("tool_choice", json!("required")),
            ("stream_options", json!(true)),
            ("input", json!(" ")),
            ("presence_penalty", json!(0.5)),
            ("frequency_penalty", json!(0.5)),
            ("store", json!(false)),
            ("prompt", json!({ "id": "p" })),
            ("metadata", json!("team")),
            ("metadata", json!([1])),
            ("metadata", json!({ "attempt": 7 })),
            ("user", json!({ "id": 1 })),
            ("include", json!("reasoning")),
        ] {
            let mut body = json!({ "model": "assistant", "input": "hi" });
            body[name] = value;
            assert_eq!(field(read(body)), name);
        }
        let usual = json!({ "model": "a", "input": "hi", "temperature": 1, "store": true, "tools": [], "user": "u", "n": null, "seed": 7, "metadata": { "team": "a" } });
        assert!(read(usual).is_ok());
        let empty = json!({
            "model": "a", "messages": [{ "role": "user", "content": "hi" }], "stop": [], "logit_bias": {}, "seed": null, "store": false,
            "presence_penalty": 0, "frequency_penalty": 0, "logprobs": false, "top_logprobs": 0, "verbosity": "medium",
            "stream": true, "stream_options": { "include_usage": true }, "tool_choice": "auto",
        });
        let read = completion(empty.as_object().unwrap());
        assert_eq!(read.map(|request| request.with_usage), Ok(true), "defaults that ask for nothing");
    }

    #[test]
    fn a_client_that_keeps_the_conversation_sends_it_before_its_answer() {
        let asked = AskedId { chat: ChatId(Uuid::from_u128(1)), id: Uuid::from_u128(2) };
        let other = AskedId { id: Uuid::from_u128(3), ..asked };
        let hello = json!({ "role": "user", "content": "Hello" });
        let called = |asked: AskedId| json!({ "type": "function_call", "call_id": asked.as_call(), "name": "f", "arguments": "{}" });
        let output =
            |asked: AskedId| json!({ "type": "function_call_output", "call_id": asked.as_call(), "output": "7" });
        let request = |asked: AskedId| json!({ "type": "mcp_approval_request", "id": asked.as_approval() });
        let given =
            json!({ "type": "mcp_approval_response", "approval_request_id": asked.as_approval(), "approve": true });
        let input = |items: Value| read(json!({ "model": "a", "input": items })).map(|request| request.input);
        let answer = Input::Answers(asked, "7".to_owned());
        let whole = json!([hello, called(other), output(other), called(asked), output(asked)]);
        assert_eq!(input(whole), Ok(answer.clone()));
        assert_eq!(input(json!([output(asked)])), Ok(answer));
        let decision = Input::Decision { asked, approved: true, reason: None };
        assert_eq!(input(json!([hello, request(asked), given])), Ok(decision.clone()));
        let reference = |id: String| json!({ "type": "item_reference", "id": id });
        let named = json!([hello, reference("msg_1".to_owned()), reference(asked.as_approval()), given]);
        assert_eq!(input(named), Ok(decision));
        let named = json!([hello, reference(other.as_approval()), given]);
        assert_eq!(field(read(json!({ "model": "a", "input": named }))), "input");
        for before in [called(other), output(other), hello.clone(), request(asked), reference(asked.as_call())] {
            let refused = read(json!({ "model": "a", "input": [hello, before, output(asked)] }));
            assert_eq!(field(refused), "input", "{before}");
        }
    }

    #[test]
    fn the_settings_of_the_model_are_read_under_their_names() {
        let settings = |temperature, top_p, max_output_tokens| ModelSettings { temperature, top_p, max_output_tokens };
        let response = |more: Value| {
            let mut body = json!({ "model": "a", "input": "hi" });
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            read(body).map(|request| request.settings)
        };
        let all = json!({ "temperature": 0.2, "top_p": 1, "max_output_tokens": 10 });
        assert_eq!(response(all), Ok(settings(Some(0.2), Some(1.0), Some(10))));
        assert_eq!(response(json!({ "temperature": null })), Ok(ModelSettings::default()));
        let completed = |more: Value| {
            let mut body = json!({ "model": "a", "messages": [{ "role": "user", "content": "hi" }] });
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            completion(body.as_object().unwrap())
        };
        for (more, tokens) in [
            (json!({ "max_tokens": 5 }), 5),
            (json!({ "max_completion_tokens": 6 }), 6),
            (json!({ "max_tokens": 7, "max_completion_tokens": 7 }), 7),
        ] {
            let read = completed(more).map(|request| request.settings);
            assert_eq!(read, Ok(settings(None, None, Some(tokens))));
        }
        assert_eq!(field(completed(json!({ "max_tokens": 5, "max_completion_tokens": 6 }))), "max_completion_tokens");
        assert_eq!(field(completed(json!({ "max_output_tokens": 5 }))), "max_output_tokens");
    }

    #[test]
    fn the_conversation_before_is_read_with_the_first_message() {
        let items = json!([
            { "role": "developer", "content": "Be brief." },
            { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "Yes?" }] },
            { "role": "user", "content": [{ "type": "input_text", "text": "Go" }] },
        ]);
        let request = read(json!({ "model": "a", "input": items })).unwrap();
        let earlier = "instructions: Be brief.\nyou: Yes?\n".to_owned();
        assert_eq!(request.input, Input::Words { content: "Go".into(), earlier, repeats: true, files: Vec::new() });
        assert_eq!(
            field(read(json!({ "model": "a", "input": [{ "role": "user", "content": [{ "type": "input_image" }] }] }))),
            "input"
        );
        assert_eq!(field(read(json!({ "model": "a", "input": [] }))), "input");
        let told = json!({ "model": "a", "instructions": "Be brief.", "input": "Go", "conversation": format!("conv_{}", Uuid::nil().simple()) });
        let earlier = "instructions: Be brief.\n".to_owned();
        let input = Input::Words { content: "Go".into(), earlier, repeats: false, files: Vec::new() };
        assert_eq!(read(told).map(|request| request.input), Ok(input), "instructions come with any response");
        assert_eq!(field(read(json!({ "input": "hi" }))), "model");
    }
}
