//! The Agent Client Protocol as an agent (spec 004 §13): an editor's messages become requests to the hub's door `/v1`, and the frames of that door
//! become session updates.
//!
//! A session is a thread, and a prompt is a turn of it. There is no rule here: a permission is asked for where the log says so, and answered by
//! whoever answers first.

mod content;
mod functions;
mod results;
mod servers;
mod updates;

pub use content::with_file;
pub use functions::{Call, EditorCapabilities, ended};
pub use results::{commands, failure, listed, notification, of_editor, opened, prompted, refused, replay, success};
pub use servers::{ToolServer, ToolServerTransport};
pub use updates::{EditorUpdate, PersonAsked, Updates};

use crate::IncomingFile;
use domain::ChatId;
use serde_json::{Value, json};

/// The version of the protocol that is spoken.
pub const PROTOCOL: u64 = 1;

const INVALID_REQUEST: i64 = -32_600;
const METHOD_NOT_FOUND: i64 = -32_601;
const INVALID_PARAMS: i64 = -32_602;

/// The request in a message of an editor.
#[derive(Clone, Debug, PartialEq)]
pub enum Reaction {
    /// It is answered so.
    Answer(Value),
    /// A notification that means nothing here, or no message.
    Silent,
    /// The response to a request of ours.
    Response {
        /// The number of the request.
        id: u64,
        /// Its result, or the editor's words about why there is none.
        result: Result<Value, String>,
    },
    /// The turn of a session is to be cancelled.
    Cancel {
        /// The session.
        session: String,
    },
    /// A request that the hub answers.
    Ask {
        /// The id of the message.
        id: Value,
        /// The request.
        asked: EditorRequest,
    },
}

/// A request that the hub answers. Each session in it is the id of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditorRequest {
    /// Make a session.
    New {
        /// The editor's folder.
        cwd: String,
        /// Its tool servers.
        servers: Vec<ToolServer>,
    },
    /// Replay a session, and go on with it.
    Load {
        /// The session.
        session: String,
        /// The editor's folder.
        cwd: Option<String>,
        /// Its tool servers.
        servers: Vec<ToolServer>,
    },
    /// List sessions.
    List {
        /// Only those of this folder.
        cwd: Option<String>,
        /// The `nextCursor` of the page before.
        cursor: Option<String>,
    },
    /// Begin a turn, and tell of it until it ends.
    Prompt {
        /// The session.
        session: String,
        /// The words.
        input: String,
        /// The files that they link to: absolute paths.
        links: Vec<String>,
        /// The files that come along.
        files: Vec<IncomingFile>,
    },
    /// Choose a mode.
    SetMode {
        /// The session.
        session: String,
        /// The mode.
        mode: String,
    },
    /// Choose a value of an option.
    SetOption {
        /// The session.
        session: String,
        /// The option.
        option: String,
        /// The value.
        value: String,
    },
}

/// Reads a message of an editor.
pub fn take(message: &Value) -> Reaction {
    let id = &message["id"];
    let refuse = |code, why: &str| Reaction::Answer(failure(id, code, why));
    if message["jsonrpc"] != "2.0" || !(id.is_null() || id.is_string() || id.is_number()) {
        return Reaction::Answer(failure(&Value::Null, INVALID_REQUEST, "this is no message of JSON-RPC 2.0"));
    }
    let Some(method) = message["method"].as_str() else {
        let is_response = message.get("result").is_some() || message.get("error").is_some();
        return match id.as_u64() {
            Some(id) if is_response => {
                let why = || message["error"]["message"].as_str().unwrap_or("the editor refused it").to_owned();
                Reaction::Response { id, result: message.get("result").cloned().ok_or_else(why) }
            }
            _ if is_response => Reaction::Silent,
            _ => refuse(INVALID_REQUEST, "it has no method"),
        };
    };
    let params = &message["params"];
    if message.get("id").is_none() {
        return match (method, session(params)) {
            ("session/cancel", Ok(session)) => Reaction::Cancel { session },
            _ => Reaction::Silent,
        };
    }
    if id.is_null() {
        return refuse(INVALID_REQUEST, "a request has an id");
    }
    match method {
        "initialize" => Reaction::Answer(success(id, initialized())),
        // There is nothing to sign in to: the process has the credential of the command line.
        "authenticate" => Reaction::Answer(success(id, json!({}))),
        _ => match asked(method, params) {
            None => refuse(METHOD_NOT_FOUND, &format!("there is no method {method:?} here")),
            Some(Ok(asked)) => Reaction::Ask { id: id.clone(), asked },
            Some(Err(why)) => refuse(INVALID_PARAMS, &why),
        },
    }
}

fn initialized() -> Value {
    json!({
        "protocolVersion": PROTOCOL,
        "agentCapabilities": {
            "loadSession": true,
            "promptCapabilities": { "image": true, "audio": true, "embeddedContext": true },
            "mcpCapabilities": { "http": true, "sse": false },
            "sessionCapabilities": { "list": {} },
        },
        "agentInfo": { "name": "buildscale", "title": "BuildScale", "version": env!("CARGO_PKG_VERSION") },
        "authMethods": [],
    })
}

fn asked(method: &str, params: &Value) -> Option<Result<EditorRequest, String>> {
    let of_session = |then: &dyn Fn(String) -> Result<EditorRequest, String>| session(params).and_then(then);
    Some(match method {
        "session/new" => text(params, "cwd")
            .and_then(|cwd| Ok(EditorRequest::New { cwd, servers: servers::declared(&params["mcpServers"])? })),
        "session/load" => of_session(&|session| {
            let servers = servers::declared(&params["mcpServers"])?;
            Ok(EditorRequest::Load { session, cwd: text(params, "cwd").ok(), servers })
        }),
        "session/list" => {
            Ok(EditorRequest::List { cwd: text(params, "cwd").ok(), cursor: text(params, "cursor").ok() })
        }
        "session/prompt" => of_session(&|session| {
            let (input, files) = content::input(&params["prompt"])?;
            Ok(EditorRequest::Prompt { session, input, links: content::links(&params["prompt"]), files })
        }),
        "session/set_mode" => {
            of_session(&|session| Ok(EditorRequest::SetMode { session, mode: text(params, "modeId")? }))
        }
        "session/set_config_option" => of_session(&|session| {
            Ok(EditorRequest::SetOption { session, option: text(params, "configId")?, value: text(params, "value")? })
        }),
        _ => return None,
    })
}

fn text(params: &Value, name: &str) -> Result<String, String> {
    params[name].as_str().map(ToOwned::to_owned).ok_or_else(|| format!("{name:?} is no text"))
}

/// A session of ours. It becomes a part of a path.
fn session(params: &Value) -> Result<String, String> {
    let given = text(params, "sessionId")?;
    given.parse::<ChatId>().map(|id| id.to_string()).map_err(|_| "there is no such session".to_owned())
}
