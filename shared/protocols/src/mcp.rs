//! The Model Context Protocol as a server (spec 004 §12): messages of a host become requests to the HTTP API, and their answers become results.
//!
//! It is stateless: `initialize` answers and remembers nothing, and each message stands alone. There is no rule here: a request is made under the
//! credential of the message, and whatever the API refuses is refused.

mod files;
mod offer;
mod request;

pub use offer::LOOKING;
pub use request::Request;

use serde_json::{Value, json};

/// The versions of the protocol that are spoken, the newest first. They differ in nothing that is offered here.
pub const VERSIONS: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];

const INVALID_REQUEST: i64 = -32_600;
const METHOD_NOT_FOUND: i64 = -32_601;
const INVALID_PARAMS: i64 = -32_602;
/// There is no such resource, as the protocol numbers it.
const NO_RESOURCE: i64 = -32_002;

/// The request in a message.
#[derive(Debug, PartialEq)]
pub enum Reaction {
    /// It is answered so.
    Answer(Value),
    /// A notification, or a response to a question that was never asked: it has no answer.
    Silent,
    /// A request to the API has to be made first.
    Ask(Box<Ask>),
}

/// A request to the API, and the message that waits for its answer.
#[derive(Debug, PartialEq)]
pub struct Ask {
    /// The request.
    pub request: Request,
    id: Value,
    becomes: Becomes,
}

/// The result that an answer becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Becomes {
    /// The list of tools.
    Tools,
    /// The result of a tool of the workspace.
    Outcome,
    /// The answer itself, as data.
    Data,
    /// The list of resources.
    Resources,
    /// The resource of this URI.
    Resource(String),
    /// The list of prompts.
    Prompts,
    /// The skill of this name, whose text is read next, to be used for these words.
    Skill { name: String, request: String },
    /// A prompt, used for these words.
    Prompt(String),
}

/// Reads a message of a host.
pub fn take(message: &Value) -> Reaction {
    let refused = |id: &Value, code, why: &str| Reaction::Answer(failure(id, code, why));
    if message.is_array() {
        return refused(&Value::Null, INVALID_REQUEST, "messages are sent one by one");
    }
    let id = &message["id"];
    if message["jsonrpc"] != "2.0" || !(id.is_null() || id.is_string() || id.is_i64() || id.is_u64()) {
        return refused(&Value::Null, INVALID_REQUEST, "this is no message of JSON-RPC 2.0");
    }
    let Some(method) = message["method"].as_str() else {
        let is_response = message.get("result").is_some() || message.get("error").is_some();
        return if is_response { Reaction::Silent } else { refused(id, INVALID_REQUEST, "it has no method") };
    };
    if message.get("id").is_none() {
        return Reaction::Silent;
    }
    if id.is_null() {
        return refused(id, INVALID_REQUEST, "a request has an id");
    }
    let params = &message["params"];
    match method {
        "initialize" => Reaction::Answer(success(id, initialized(params))),
        "ping" => Reaction::Answer(success(id, json!({}))),
        "tools/list" => {
            let request = Request::get(vec!["tools".into()]);
            Reaction::Ask(Box::new(Ask { request, id: id.clone(), becomes: Becomes::Tools }))
        }
        "tools/call" => match called(params) {
            Ok((request, becomes)) => Reaction::Ask(Box::new(Ask { request, id: id.clone(), becomes })),
            Err(why) => refused(id, INVALID_PARAMS, &why),
        },
        "resources/templates/list" => Reaction::Answer(success(id, files::templates())),
        _ => match files::request(method, params) {
            Some(Ok((request, becomes))) => Reaction::Ask(Box::new(Ask { request, id: id.clone(), becomes })),
            Some(Err(why)) => refused(id, INVALID_PARAMS, &why),
            None => refused(id, METHOD_NOT_FOUND, "there is no such method here"),
        },
    }
}

fn initialized(params: &Value) -> Value {
    let asked = params["protocolVersion"].as_str().unwrap_or_default();
    let version = VERSIONS.iter().find(|version| **version == asked).unwrap_or(&VERSIONS[0]);
    json!({
        "protocolVersion": version,
        "capabilities": { "tools": {}, "resources": {}, "prompts": {} },
        "serverInfo": { "name": "buildscale", "title": "BuildScale", "version": env!("CARGO_PKG_VERSION") },
        "instructions": "The files, chats and flows of one workspace. Paths are absolute, and every write is a new version. A chat is an agent that \
            works on its own: start one, then read it until its status is idle. Files are resources, and skills are prompts. Permissions and questions of agents are answered by people, in BuildScale.",
    })
}

fn called(params: &Value) -> Result<(Request, Becomes), String> {
    let name = params["name"].as_str().ok_or("params has no name")?;
    let none = json!({});
    let args = match &params["arguments"] {
        Value::Null => &none,
        args @ Value::Object(_) => args,
        _ => return Err("arguments is no object".into()),
    };
    if let Some(request) = offer::request(name, args)? {
        return Ok((request, Becomes::Data));
    }
    if offer::HIDDEN.contains(&name) {
        return Err(format!("there is no tool {name:?}"));
    }
    Ok((Request::post(vec!["tools".into()], json!({ "tool": name, "args": args })), Becomes::Outcome))
}

impl Ask {
    /// The request that follows from the answer to this one, and has the answer to the message; none when this one has it.
    pub fn then(&self, body: &Value) -> Option<Self> {
        let Becomes::Skill { name, request } = &self.becomes else { return None };
        let (content, becomes) = (files::content(files::path_of_skill(name, body)?), Becomes::Prompt(request.clone()));
        Some(Self { request: content, id: self.id.clone(), becomes })
    }

    /// The answer to the message, from that to the request: its body, or the error of its envelope.
    pub fn answer(&self, answered: Result<Value, Value>) -> Value {
        let body = match answered {
            Ok(body) => body,
            // Tools alone have a result that says so.
            Err(error) => {
                return match &self.becomes {
                    Becomes::Outcome | Becomes::Data => success(&self.id, tool_result(&words(&error), None, true)),
                    Becomes::Resource(uri) if error["code"] == "NOT_FOUND" => {
                        let mut refused = failure(&self.id, NO_RESOURCE, &words(&error));
                        refused["error"]["data"] = json!({ "uri": uri });
                        refused
                    }
                    _ => failure(&self.id, INVALID_PARAMS, &words(&error)),
                };
            }
        };
        match &self.becomes {
            Becomes::Tools => success(&self.id, json!({ "tools": offer::tools(&body) })),
            Becomes::Resources if body["success"] != true => failure(&self.id, INVALID_PARAMS, &words(&body["error"])),
            Becomes::Resources => success(&self.id, files::resources(&body)),
            Becomes::Resource(uri) => success(&self.id, files::resource(uri, &body)),
            Becomes::Prompts => success(&self.id, files::prompts(&body)),
            Becomes::Skill { name, .. } => failure(&self.id, INVALID_PARAMS, &format!("there is no prompt {name:?}")),
            Becomes::Prompt(request) => success(&self.id, files::prompt(request, &body)),
            Becomes::Data => success(&self.id, tool_result(&body.to_string(), Some(&body), false)),
            Becomes::Outcome if is_unknown(&body) => failure(&self.id, INVALID_PARAMS, &words(&body["error"])),
            Becomes::Outcome => {
                let output = body["output"].as_str().unwrap_or_default();
                success(&self.id, tool_result(output, Some(&body["result"]), body["success"] != true))
            }
        }
    }
}

/// Whether a tool was called that there is not.
fn is_unknown(body: &Value) -> bool {
    let error = &body["error"];
    error["code"] == "NOT_FOUND" && error["details"]["field"] == "tool"
}

/// The words of an error of the API.
fn words(error: &Value) -> String {
    let text = |key: &str| error[key].as_str().unwrap_or_default();
    let (code, message, hint) = (text("code"), text("message"), text("hint"));
    let hint = if hint.is_empty() { String::new() } else { format!("\nHint: {hint}") };
    format!("Error ({code}): {message}{hint}")
}

fn tool_result(text: &str, data: Option<&Value>, is_error: bool) -> Value {
    let mut result = json!({ "content": [{ "type": "text", "text": text }], "isError": is_error });
    if let Some(data) = data.filter(|data| data.is_object()) {
        result["structuredContent"] = data.clone();
    }
    result
}

fn success(id: &Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

fn failure(id: &Value, code: i64, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}
