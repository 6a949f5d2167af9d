//! The body of a request that makes a run, or a cron.

use super::{Mode, checkpoint_number, labels::labels};
use crate::{
    fields,
    incoming_file::{IncomingFile, Message, Source, unknown_part},
};
use domain::{Error, LabelChanges};
use serde_json::{Map, Value};
use std::fmt::Write;

/// The most messages, and the most parts of one, that are read.
const MOST: usize = 2_000;

/// The treatment of a run that comes while another one runs on its thread (`multitask_strategy`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// It waits.
    #[default]
    Enqueue,
    /// It is refused.
    Reject,
    /// The other one is stopped.
    Interrupt,
    /// The other one is stopped, and taken back.
    Rollback,
}

/// A run to make.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The assistant: its name or its id.
    pub assistant: String,
    /// The new part.
    pub input: Input,
    /// The modes of its stream.
    pub modes: Vec<Mode>,
    /// The treatment of it while another one runs.
    pub strategy: Strategy,
    /// Whether it is stopped when its client goes.
    pub stops_with_client: bool,
    /// Whether a thread that is not there is made.
    pub makes_thread: bool,
    /// The model of a new chat.
    pub model: Option<String>,
    /// The thread that its settings name.
    pub thread: Option<String>,
    /// The most steps of it (`recursion_limit`), where each call of the model is one, and the calls of tools after it are another.
    pub recursion_limit: Option<u32>,
    /// The nodes of a flow to pause before; `*` for each.
    pub breakpoints: Vec<String>,
    /// The checkpoint to go on at, by the number of its event; the last one when none.
    pub checkpoint: Option<u64>,
    /// Whether the stream is to have the events of graphs below this one.
    pub subgraphs: bool,
    /// Changes of the labels of its thread.
    pub labels: LabelChanges,
}

/// The new part of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// Messages of a chat, or the input of a flow.
    New(Value),
    /// The answer to an interrupt.
    Resume(Value),
    /// Nothing: a flow that paused at a breakpoint goes on.
    Nothing,
}

/// The messages of an input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// The last one, which is the person's.
    pub content: String,
    /// Those before it, for a new chat.
    pub earlier: String,
    /// The files that the last one brings along.
    pub files: Vec<IncomingFile>,
}

/// Fields that say nothing here when they are empty, with the way to do what they ask for.
const REFUSED: [(&str, &str); 8] = [
    ("metadata", "threads alone have labels; leave it out"),
    ("interrupt_after", "use interrupt_before with the nodes that come next"),
    ("webhook", "watch the run, or ask for its state"),
    ("after_seconds", "make a schedule: POST /api/v1/workspaces/ID/schedules"),
    ("feedback_keys", "leave it out"),
    ("langsmith_tracer", "leave it out"),
    ("on_run_completed", "the thread of a run is kept; leave it out, or send keep"),
    ("ttl", "threads are kept until they are deleted"),
];

/// Refuses fields that ask for what cannot be honoured, and fields that are not known.
///
/// # Errors
/// `INVALID_ARGUMENT` that names the field.
pub fn plain(body: &Map<String, Value>, known: &[&str]) -> Result<(), Error> {
    for (field, value) in body {
        let asks = match value {
            Value::Null | Value::Bool(false) => false,
            Value::Object(fields) => fields.values().any(|value| !value.is_null()),
            Value::Array(list) => !list.is_empty(),
            _ => true,
        };
        if !asks || known.contains(&field.as_str()) || (field == "on_run_completed" && value == "keep") {
            continue;
        }
        let shown: String = field.chars().take(64).collect();
        let hint = REFUSED.iter().find(|(name, _)| name == field).map_or("leave it out", |(_, hint)| hint);
        return Err(Error::invalid(&shown, format!("{shown} cannot be honoured here")).hint(hint));
    }
    Ok(())
}

impl Run {
    /// Reads the body of a request.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` that names the field which is missing, has another form than the SDKs send, or cannot be honoured.
    pub fn read(body: &Map<String, Value>) -> Result<Self, Error> {
        const KNOWN: [&str; 18] = [
            "assistant_id",
            "metadata",
            "input",
            "command",
            "stream_mode",
            "multitask_strategy",
            "on_disconnect",
            "on_completion",
            "if_not_exists",
            "config",
            "context",
            "interrupt_before",
            "stream_resumable",
            "durability",
            "strict_resume",
            "checkpoint",
            "checkpoint_id",
            "stream_subgraphs",
        ];
        plain(body, &[&KNOWN[..], &["checkpoint_during"]].concat())?;
        let text = |field: &str| body.get(field).and_then(Value::as_str);
        let one_of = |field: &str, known: &[&str], hint: &str| match fields::given(body, field) {
            None => Ok(None),
            Some(value) => match value.as_str().and_then(|value| known.iter().position(|known| *known == value)) {
                Some(place) => Ok(Some(place)),
                None => Err(Error::invalid(field, format!("this {field} cannot be honoured here")).hint(hint)),
            },
        };
        let assistant = text("assistant_id").filter(|id| !id.is_empty());
        let assistant = assistant.ok_or_else(|| {
            Error::invalid("assistant_id", "a run names its assistant")
                .hint("POST /langgraph/assistants/search lists them")
        })?;
        let strategy = match one_of(
            "multitask_strategy",
            &["enqueue", "reject", "interrupt", "rollback"],
            "one of: enqueue, reject, interrupt, rollback",
        )? {
            Some(1) => Strategy::Reject,
            Some(2) => Strategy::Interrupt,
            Some(3) => Strategy::Rollback,
            _ => Strategy::Enqueue,
        };
        one_of("on_completion", &["keep"], "the thread is kept; delete it when it is not needed")?;
        one_of("durability", &["sync", "async", "exit"], "every step is durable")?;
        let stops_with_client =
            one_of("on_disconnect", &["continue", "cancel"], "one of: continue, cancel")? == Some(1);
        let makes_thread = one_of("if_not_exists", &["reject", "create"], "one of: reject, create")? == Some(1);
        let Settings { model, thread, recursion_limit } = settings(body)?;
        Ok(Self {
            assistant: assistant.to_owned(),
            input: input(body)?,
            modes: modes(body.get("stream_mode"))?,
            strategy,
            stops_with_client,
            makes_thread,
            model,
            thread,
            recursion_limit,
            breakpoints: breakpoints(body.get("interrupt_before"))?,
            checkpoint: checkpoint(body)?,
            subgraphs: fields::flag(body, "stream_subgraphs")?.unwrap_or_default(),
            labels: labels(&fields::object(body, "metadata")?)?,
        })
    }

    /// The most calls of the model that its limit of steps leaves: a run of calls begins and ends with one.
    pub fn max_model_calls(&self) -> Option<u32> {
        self.recursion_limit.map(|limit| limit.div_ceil(2))
    }
}

fn input(body: &Map<String, Value>) -> Result<Input, Error> {
    match fields::given(body, "command") {
        None => Ok(fields::given(body, "input").map_or(Input::Nothing, |input| Input::New(input.clone()))),
        Some(command) => {
            // The SDK for Python sends the empty list of a command that goes nowhere.
            for (field, value) in command.as_object().into_iter().flatten() {
                if field != "resume" && !is_empty(value) {
                    let shown: String = field.chars().take(64).collect();
                    return Err(Error::invalid("command", format!("{shown} of a command cannot be honoured here"))
                        .hint("a command has resume alone: the state is made by agents, and not from outside"));
                }
            }
            let resume = command.get("resume").filter(|value| !value.is_null());
            let resume = resume.ok_or_else(|| Error::invalid("command", "a command has an answer as resume"))?;
            Ok(Input::Resume(resume.clone()))
        }
    }
}

fn modes(asked: Option<&Value>) -> Result<Vec<Mode>, Error> {
    match asked {
        None | Some(Value::Null) => Mode::all([]),
        Some(Value::String(one)) => Mode::all([one.as_str()]),
        Some(Value::Array(all)) if all.len() <= 16 && all.iter().all(Value::is_string) => {
            Mode::all(all.iter().filter_map(Value::as_str))
        }
        Some(_) => Err(Error::invalid("stream_mode", "the modes are a name, or a list of names")),
    }
}

/// Whether a value says nothing.
fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(Map::is_empty)
}

/// The settings of `config` and `context`.
#[derive(Default)]
struct Settings {
    model: Option<String>,
    thread: Option<String>,
    recursion_limit: Option<u32>,
}

/// Reads the settings that can be honoured; everything else in them is refused.
fn settings(body: &Map<String, Value>) -> Result<Settings, Error> {
    let refused = |field: &'static str, name: &str| {
        let shown: String = name.chars().take(64).collect();
        Err(Error::invalid(field, format!("{shown} of {field} cannot be honoured here"))
            .hint("config can have recursion_limit; config.configurable and context can have model, for a new chat"))
    };
    let mut settings = Settings::default();
    let config = fields::object(body, "config")?;
    for (name, value) in &config {
        match name.as_str() {
            _ if is_empty(value) => {}
            "configurable" => {}
            "recursion_limit" => {
                let limit = value.as_u64().filter(|limit| *limit > 0);
                let limit =
                    limit.ok_or_else(|| Error::invalid("config", "recursion_limit is a number of steps above 0"))?;
                settings.recursion_limit = Some(u32::try_from(limit).unwrap_or(u32::MAX));
            }
            _ => return refused("config", name),
        }
    }
    let configurable = fields::object_of(&config, "configurable", "config.configurable")?;
    for (field, of) in [("config", configurable), ("context", fields::object(body, "context")?)] {
        for (name, value) in &of {
            match (name.as_str(), value) {
                (_, Value::Null) => {}
                ("model", Value::String(name)) => settings.model = Some(name.clone()),
                ("thread_id", Value::String(id)) => settings.thread = Some(id.clone()),
                _ => return refused(field, name),
            }
        }
    }
    Ok(settings)
}

fn breakpoints(asked: Option<&Value>) -> Result<Vec<String>, Error> {
    match asked {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(one)) => Ok(vec![one.clone()]),
        Some(Value::Array(all)) if all.len() <= MOST && all.iter().all(Value::is_string) => {
            Ok(all.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        }
        Some(_) => Err(Error::invalid("interrupt_before", "the nodes are a list of names, or *")),
    }
}

/// The checkpoint that a run names, by itself or as the SDKs read it from a state.
fn checkpoint(body: &Map<String, Value>) -> Result<Option<u64>, Error> {
    let named = fields::object(body, "checkpoint")?;
    let id = fields::text(&named, "checkpoint_id")?;
    let id = id.map_or_else(|| fields::text(body, "checkpoint_id"), |id| Ok(Some(id)))?;
    id.map(checkpoint_number).transpose()
}

/// The messages of the input of a chat.
///
/// # Errors
/// `INVALID_ARGUMENT` when the last message is not the person's, has parts that are no text, or when something else stands beside the messages.
pub fn words(input: &Value) -> Result<Words, Error> {
    let wrong = |message: &str| {
        Error::invalid("input", message).hint(r#"send {"messages": [{"type": "human", "content": "…"}]}"#)
    };
    let fields = input.as_object().ok_or_else(|| wrong("the input of a chat is its new messages"))?;
    if let Some(name) = fields.keys().find(|name| *name != "messages") {
        let shown: String = name.chars().take(64).collect();
        return Err(wrong(&format!("{shown} cannot be honoured here")));
    }
    let list = match fields.get("messages") {
        Some(Value::Array(list)) if list.len() <= MOST => list.clone(),
        Some(one @ (Value::Object(_) | Value::String(_))) => vec![one.clone()],
        _ => return Err(wrong("there are no messages")),
    };
    // A pair of texts is one message: who, and the words.
    let list = match &list[..] {
        [Value::String(_), Value::String(_)] => vec![Value::Array(list)],
        _ => list,
    };
    let (last, before) = list.split_last().ok_or_else(|| wrong("there are no messages"))?;
    let (who, content) = read(last);
    if who != "person" {
        return Err(wrong("the last message is not the person's"));
    }
    let mut earlier = String::new();
    for message in before {
        let (who, content) = read(message);
        // Writing to a text does not fail.
        let _ = writeln!(earlier, "{who}: {}", said(content, false)?.words);
    }
    let Message { words: content, files } = said(content, true)?;
    Ok(Words { content, earlier, files })
}

/// The author and the content of a message in any of the forms of LangChain.
fn read(message: &Value) -> (&'static str, &Value) {
    let (who, content) = match message {
        Value::String(_) => return ("person", message),
        Value::Array(pair) => (pair.first(), pair.get(1).unwrap_or(&Value::Null)),
        _ => (message.get("type").or_else(|| message.get("role")), &message["content"]),
    };
    let who = match who.and_then(Value::as_str) {
        Some("human" | "user") => "person",
        Some("ai" | "assistant" | "AIMessageChunk") => "you",
        Some("tool" | "function") => "a tool",
        _ => "instructions",
    };
    (who, content)
}

/// The words of a message, and of a new one its files. Other parts are refused in a new message.
fn said(content: &Value, is_new: bool) -> Result<Message, Error> {
    let mut said = Message::default();
    let Some(parts) = content.as_array() else {
        said.words = content.as_str().unwrap_or_default().to_owned();
        return Ok(said);
    };
    for part in parts.iter().take(MOST) {
        match (part["type"].as_str(), part["text"].as_str().or_else(|| part.as_str())) {
            (Some("text") | None, Some(text)) => said.words.push_str(text),
            (kind, _) if is_new => {
                let file = Source::of_part(part).ok_or_else(|| unknown_part("input", kind))?;
                said.bring("input", file)?;
            }
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

    fn run(more: Value) -> Result<Run, Error> {
        let mut body = json!({ "assistant_id": "assistant", "input": { "messages": "Hi" } });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        Run::read(body.as_object().unwrap())
    }

    #[test]
    fn a_field_that_cannot_be_honoured_is_refused_by_its_name() {
        let plain =
            run(json!({ "metadata": {}, "webhook": null, "stream_subgraphs": false, "on_disconnect": "cancel" }))
                .unwrap();
        assert!(plain.stops_with_client && plain.modes == [Mode::Values]);
        assert_eq!(run(json!({ "config": { "configurable": { "model": "m" } } })).unwrap().model.as_deref(), Some("m"));
        assert_eq!(plain.max_model_calls(), None);
        for (more, field) in [
            (json!({ "multitask_strategy": "replace" }), "multitask_strategy"),
            (json!({ "stream_mode": ["values", "events"] }), "stream_mode"),
            (json!({ "checkpoint": 7 }), "checkpoint"),
            (json!({ "stream_subgraphs": "yes" }), "stream_subgraphs"),
            (json!({ "webhook": "https://x.example" }), "webhook"),
            (json!({ "after_seconds": 5 }), "after_seconds"),
            (json!({ "on_completion": "delete" }), "on_completion"),
            (json!({ "metadata": { "a": 1 } }), "metadata"),
            (json!({ "config": { "recursion_limit": 0 } }), "config"),
            (json!({ "config": { "recursion_limit": "5" } }), "config"),
            (json!({ "config": { "tags": ["a"] } }), "config"),
            (json!({ "context": { "user": "a" } }), "context"),
            (json!({ "context": "m" }), "context"),
            (json!({ "config": [] }), "config"),
            (json!({ "config": { "configurable": 7 } }), "config.configurable"),
            (json!({ "command": { "goto": "x" } }), "command"),
            (json!({ "command": { "update": {} } }), "command"),
            (json!({ "assistant_id": "" }), "assistant_id"),
            (json!({ "temperature": 1 }), "temperature"),
        ] {
            assert_eq!(run(more).unwrap_err().details["field"], field);
        }
    }

    #[test]
    fn a_limit_of_steps_counts_calls_of_the_model_and_of_tools() {
        let most = u32::MAX.div_ceil(2);
        for (limit, calls) in [(1, 1), (2, 1), (3, 2), (25, 13), (10_000, 5_000), (u64::MAX, most)] {
            let config = json!({ "recursion_limit": limit, "tags": [], "metadata": {}, "configurable": {} });
            assert_eq!(run(json!({ "config": config })).unwrap().max_model_calls(), Some(calls), "{limit}");
        }
    }

    #[test]
    fn a_command_of_the_sdk_for_python_has_empty_fields() {
        let command = json!({ "graph": null, "update": null, "resume": "red", "goto": [] });
        assert_eq!(run(json!({ "input": null, "command": command })).unwrap().input, Input::Resume(json!("red")));
    }

    #[test]
    fn a_run_names_its_checkpoint_as_the_sdks_do() {
        let state = json!({ "thread_id": "t", "checkpoint_ns": "", "checkpoint_id": "00000000000000000012", "checkpoint_map": null });
        for (more, checkpoint) in [
            (json!({}), None),
            (json!({ "checkpoint": null, "checkpoint_id": null }), None),
            (json!({ "checkpoint": { "checkpoint_id": null, "checkpoint_ns": "" } }), None),
            (json!({ "checkpoint": state }), Some(12)),
            (json!({ "checkpoint_id": "00000000000000000012" }), Some(12)),
        ] {
            assert_eq!(run(more.clone()).unwrap().checkpoint, checkpoint, "{more}");
        }
        let unknown = run(json!({ "checkpoint": { "checkpoint_id": "1ef-663b" } })).unwrap_err();
        assert_eq!(unknown.code, domain::Code::NotFound, "an id of another server");
        assert!(run(json!({ "stream_subgraphs": true })).unwrap().subgraphs);
    }

    #[test]
    fn messages_are_read_in_the_forms_of_the_sdks() {
        let said = |content: &str| Words { content: content.into(), earlier: String::new(), files: Vec::new() };
        for input in [
            json!({ "messages": "Hi" }),
            json!({ "messages": ["user", "Hi"] }),
            json!({ "messages": [["user", "Hi"]] }),
            json!({ "messages": [{ "role": "user", "content": "Hi" }] }),
            json!({ "messages": { "type": "human", "content": [{ "type": "text", "text": "Hi" }] } }),
        ] {
            assert_eq!(words(&input).unwrap(), said("Hi"), "{input}");
        }
        let two = json!({ "messages": [{ "type": "ai", "content": "Hello" }, { "type": "human", "content": "Hi" }] });
        assert_eq!(words(&two).unwrap().earlier, "you: Hello\n");
        let block = json!({ "type": "image_url", "image_url": { "url": "data:image/png;base64,aGk=" } });
        let shows = |after: Value| json!({ "messages": [{ "type": "human", "content": [{ "type": "text", "text": "Look" }, block] }, after] });
        let again = words(&shows(json!({ "type": "human", "content": "Hi" }))).unwrap();
        assert_eq!((again.earlier.as_str(), again.files), ("person: Look\n", Vec::new()), "files are with their chat");
        let seen = words(&shows(json!({ "type": "human", "content": [block] }))).unwrap();
        assert_eq!((seen.files[0].name.as_str(), seen.files[0].content.as_slice()), ("file.png", b"hi".as_slice()));
        for wrong in [
            json!({ "messages": [] }),
            json!({ "messages": [{ "type": "ai", "content": "x" }] }),
            json!({ "messages": "x", "todos": [] }),
            json!({ "messages": [{ "type": "human", "content": [{ "type": "image_url" }] }] }),
            json!("x"),
        ] {
            assert_eq!(words(&wrong).unwrap_err().details["field"], "input");
        }
    }
}
