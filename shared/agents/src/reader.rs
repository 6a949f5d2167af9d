//! The output of an agent: lines of JSON, with bounds. It ends at the end of the output, or with the reason why the agent has to be ended.

use crate::{agent_updates::AgentUpdates, callbacks::Callbacks};
use serde_json::Value;
use std::{io, sync::Arc};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

/// The longest line, in bytes.
const LINE: usize = 16 * 1024 * 1024;
/// The longest id of a request, in bytes. It is kept until the request is answered, which may take long.
const ID: usize = 1024;
/// How many lines may be no JSON: some programs greet on their output.
const GARBAGE: usize = 100;

/// Reads until the end of the output; the reason if the agent broke the protocol.
pub(crate) async fn read(
    output: impl AsyncRead + Unpin,
    shared: &Arc<AgentUpdates>,
    callbacks: &Callbacks,
) -> Option<String> {
    let mut reader = BufReader::with_capacity(64 * 1024, output);
    let mut garbage = 0;
    loop {
        let line = match line(&mut reader).await {
            Ok(Some(line)) => line,
            Ok(None) => return None,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Some(format!("it wrote a line of more than {} MiB", LINE >> 20));
            }
            Err(_) => return None,
        };
        let Ok(message) = serde_json::from_slice::<Value>(&line) else {
            garbage += usize::from(!line.iter().all(u8::is_ascii_whitespace));
            if garbage > GARBAGE {
                return Some(format!("it wrote more than {GARBAGE} lines that are no JSON"));
            }
            continue;
        };
        let length = line.len();
        drop(line);
        if let Some(reason) = take_in(message, length, shared, callbacks).await {
            return Some(reason);
        }
    }
}

/// The next line, without its end.
async fn line(reader: &mut BufReader<impl AsyncRead + Unpin>) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    loop {
        let piece = reader.fill_buf().await?;
        if piece.is_empty() {
            return Ok((!line.is_empty()).then_some(line));
        }
        let end = piece.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(piece.len(), |end| end + 1);
        line.extend_from_slice(&piece[..end.unwrap_or(piece.len())]);
        reader.consume(taken);
        if line.len() > LINE {
            return Err(io::ErrorKind::InvalidData.into());
        }
        if end.is_some() {
            return Ok(Some(line));
        }
    }
}

async fn take_in(
    mut message: Value,
    length: usize,
    shared: &Arc<AgentUpdates>,
    callbacks: &Callbacks,
) -> Option<String> {
    let method = message["method"].as_str().map(ToOwned::to_owned);
    let is_request = message.get("id").is_some();
    if method.is_some() && is_request && !is_id(&message["id"]) {
        return Some(format!("it names a request by something that is no number and no text of at most {ID} bytes"));
    }
    match (method.as_deref(), is_request) {
        (None, _) => shared.connection.answered(&message),
        (Some("session/update"), _) => {
            let mut params = message["params"].take();
            callbacks.host().known.redactor().value(&mut params);
            // Words keep the paths of the machine: the agent may read them again.
            if params["update"]["content"]["type"] != "text" {
                callbacks.host().show(&mut params);
            }
            match shared.updated(params, length) {
                Ok(true) => {}
                Ok(false) => shared.has_room().await,
                Err(too_much) => return Some(too_much),
            }
        }
        (Some("session/request_permission"), true) => {
            callbacks.host().known.redactor().value(&mut message["params"]);
            callbacks.host().show(&mut message["params"]);
            if let Err(why) = shared.asked(&message["id"], &message["params"], length).await {
                return Some(why);
            }
        }
        (Some(method), true) => {
            let (id, params) = (message["id"].take(), message["params"].take());
            if callbacks.answer(shared, id, method, params).await.is_err() {
                return Some("it does not read its input".into());
            }
        }
        // A notification of another kind.
        (Some(_), false) => {}
    }
    None
}

/// Whether a value names a request, as JSON-RPC has it.
fn is_id(value: &Value) -> bool {
    match value {
        Value::String(text) => text.len() <= ID,
        Value::Null | Value::Number(_) => true,
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => false,
    }
}
